// SPDX-License-Identifier: Apache-2.0
// What NCCL's search finds on some machines, as input of its tuning model, and communicators made
// of it. One function for each machine; `nodes` equal nodes with eight GPUs unless the name says
// otherwise.
#pragma once

#include <algorithm>
#include <optional>

#include "nccl/search/graph.h"
#include "nccl/tuning/communicator.h"
#include "nccl/tuning/nvls_channels.h"
#include "nccl/tuning/tuning.h"
#include "nccl/types/environment.h"
#include "nccl/types/types.h"

namespace trainyard::nccl {

struct TunedMachine {
  Communicator input;
  int channels = 0;  // Channels that collectives have.
};

inline Graph found_graph(GraphPattern pattern, int channels, double intra, double inter,
                         PathType type_intra, PathType type_inter) {
  Graph graph;
  graph.pattern = pattern;
  graph.channel_count = channels;
  graph.bw_intra = intra;
  graph.bw_inter = inter;
  graph.type_intra = type_intra;
  graph.type_inter = type_inter;
  return graph;
}

inline TunedMachine machine_of(int nodes, int ppn, int compute_capability, int channels) {
  TunedMachine machine;
  machine.input.nodes = nodes;
  machine.input.ranks = nodes * ppn;
  for (int node = 0; node <= nodes; ++node) {
    machine.input.first_rank.push_back(node * ppn);
  }
  machine.input.min_compute_capability = compute_capability;
  machine.input.max_compute_capability = compute_capability;
  machine.channels = channels;
  return machine;
}

inline void set_nvls(TunedMachine& machine, int heads, double intra, double inter,
                     PathType type_inter) {
  machine.input.aligned.nvls =
      found_graph(GraphPattern::Nvls, heads, intra, inter, PathType::Nvl, type_inter);
  machine.input.has_nvswitch = true;
}

// NVSwitch, a NIC of 400 Gb/s for each GPU on its PCIe switch.
inline TunedMachine h100_node() {
  TunedMachine machine = machine_of(1, 8, 90, 24);
  GraphSet& graphs = machine.input.aligned;
  graphs.ring = found_graph(GraphPattern::Ring, 12, 30, 30, PathType::Nvl, PathType::Pix);
  graphs.tree = found_graph(GraphPattern::BalancedTree, 12, 30, 30, PathType::Nvl, PathType::Pix);
  set_nvls(machine, 8, 40, 60, PathType::Pix);
  return machine;
}

inline TunedMachine h100_400g(int nodes) {
  TunedMachine machine = machine_of(nodes, 8, 90, 16);
  GraphSet& graphs = machine.input.aligned;
  graphs.ring = found_graph(GraphPattern::Ring, 8, 48, 48, PathType::Nvl, PathType::Pix);
  graphs.ring.cross_nic = 2;
  graphs.ring.same_channels = false;
  graphs.tree = found_graph(GraphPattern::Tree, 8, 48, 48, PathType::Nvl, PathType::Pix);
  set_nvls(machine, 8, 40, 48, PathType::Pix);
  return machine;
}

inline TunedMachine h100_200g(int nodes) {
  TunedMachine machine = h100_400g(nodes);
  GraphSet& graphs = machine.input.aligned;
  graphs.ring.bw_intra = graphs.ring.bw_inter = 24;
  graphs.tree.bw_inter = 24;
  set_nvls(machine, 8, 24, 24, PathType::Pix);
  return machine;
}

// NICs of 400 Gb/s under every other GPU.
inline TunedMachine h100_4nics(int nodes) {
  TunedMachine machine = h100_200g(nodes);
  set_nvls(machine, 4, 48, 48, PathType::Pix);
  return machine;
}

// Two NICs of 200 Gb/s for each GPU.
inline TunedMachine h100_16nics(int nodes) {
  TunedMachine machine = h100_400g(nodes);
  GraphSet& graphs = machine.input.aligned;
  graphs.ring.channel_count = graphs.tree.channel_count = 16;
  graphs.ring.bw_intra = graphs.ring.bw_inter = 24;
  graphs.tree.bw_intra = graphs.tree.bw_inter = 24;
  set_nvls(machine, 8, 24, 24, PathType::Pix);
  machine.channels = 32;
  return machine;
}

inline TunedMachine h100_4gpus() {
  TunedMachine machine = h100_node();
  machine.input.ranks = 4;
  machine.input.first_rank = {0, 4};
  set_nvls(machine, 4, 60, 60, PathType::Pix);
  return machine;
}

inline TunedMachine b200_node() {
  TunedMachine machine = machine_of(1, 8, 100, 32);
  GraphSet& graphs = machine.input.aligned;
  graphs.ring = found_graph(GraphPattern::Ring, 16, 45, 45, PathType::Nvl, PathType::Pix);
  graphs.tree = found_graph(GraphPattern::BalancedTree, 16, 45, 45, PathType::Nvl, PathType::Pix);
  set_nvls(machine, 8, 80, 90, PathType::Pix);
  return machine;
}

inline TunedMachine b200_400g(int nodes) {
  TunedMachine machine = machine_of(nodes, 8, 100, 16);
  GraphSet& graphs = machine.input.aligned;
  graphs.ring = found_graph(GraphPattern::Ring, 8, 48, 48, PathType::Nvl, PathType::Pxn);
  graphs.tree = found_graph(GraphPattern::Tree, 8, 96, 48, PathType::Nvl, PathType::Pix);
  set_nvls(machine, 8, 48, 48, PathType::Pix);
  return machine;
}

inline TunedMachine b200_800g(int nodes) {
  TunedMachine machine = machine_of(nodes, 8, 100, 32);
  GraphSet& graphs = machine.input.aligned;
  graphs.ring = found_graph(GraphPattern::Ring, 16, 48, 48, PathType::Nvl, PathType::Pix);
  graphs.ring.cross_nic = 2;
  graphs.ring.same_channels = false;
  graphs.tree = found_graph(GraphPattern::Tree, 16, 48, 48, PathType::Nvl, PathType::Pix);
  set_nvls(machine, 8, 80, 96, PathType::Pix);
  return machine;
}

// AMD CPUs.
inline TunedMachine a100_node() {
  TunedMachine machine = machine_of(1, 8, 80, 24);
  machine.input.cpu = CpuKind::Amd;
  machine.input.has_nvswitch = true;
  GraphSet& graphs = machine.input.aligned;
  graphs.ring = found_graph(GraphPattern::Ring, 12, 20, 20, PathType::Nvl, PathType::Pix);
  graphs.tree = found_graph(GraphPattern::BalancedTree, 12, 20, 20, PathType::Nvl, PathType::Pix);
  return machine;
}

inline TunedMachine a100_200g(int nodes) {
  TunedMachine machine = machine_of(nodes, 8, 80, 16);
  machine.input.cpu = CpuKind::Amd;
  machine.input.has_nvswitch = true;
  GraphSet& graphs = machine.input.aligned;
  graphs.ring = found_graph(GraphPattern::Ring, 8, 24, 24, PathType::Nvl, PathType::Pxn);
  graphs.tree = found_graph(GraphPattern::BalancedTree, 8, 24, 24, PathType::Nvl, PathType::Phb);
  return machine;
}

// Intel CPUs.
inline TunedMachine a100_100g(int nodes) {
  TunedMachine machine = a100_200g(nodes);
  machine.input.cpu = CpuKind::Intel;
  GraphSet& graphs = machine.input.aligned;
  graphs.ring.bw_intra = graphs.ring.bw_inter = 12;
  graphs.tree.bw_inter = 12;
  return machine;
}

// Two H100 with 18 NVLinks between them and no switch.
inline TunedMachine h100_bridge() {
  TunedMachine machine = machine_of(1, 2, 90, 24);
  GraphSet& graphs = machine.input.aligned;
  graphs.ring = found_graph(GraphPattern::Ring, 12, 30, 30, PathType::Nvl, PathType::Pix);
  graphs.tree = found_graph(GraphPattern::BalancedTree, 12, 60, 30, PathType::Nvl, PathType::Pix);
  return machine;
}

// Four GPUs of compute capability 89 on PCIe Gen4 and two sockets.
inline TunedMachine pcie_4gpus() {
  TunedMachine machine = machine_of(1, 4, 89, 2);
  GraphSet& graphs = machine.input.aligned;
  graphs.ring = found_graph(GraphPattern::Ring, 1, 20, 20, PathType::Sys, PathType::Pix);
  graphs.tree = found_graph(GraphPattern::BalancedTree, 1, 20, 20, PathType::Sys, PathType::Pix);
  return machine;
}

// One H100 and one NIC of 400 Gb/s in each node.
inline TunedMachine h100_1gpu(int nodes) {
  TunedMachine machine = machine_of(nodes, 1, 90, 4);
  GraphSet& graphs = machine.input.aligned;
  graphs.ring = found_graph(GraphPattern::Ring, 2, 24, 24, PathType::Loc, PathType::Pix);
  graphs.tree = found_graph(GraphPattern::Tree, 2, 48, 24, PathType::Loc, PathType::Pix);
  return machine;
}

// One GPU and sockets over 10 Gb/s in each node.
inline TunedMachine socket_1gpu(int nodes) {
  TunedMachine machine = machine_of(nodes, 1, 90, 2);
  GraphSet& graphs = machine.input.aligned;
  graphs.ring = found_graph(GraphPattern::Ring, 1, 1.2, 1.2, PathType::Loc, PathType::Phb);
  graphs.tree = found_graph(GraphPattern::Tree, 1, 2.4, 1.2, PathType::Loc, PathType::Phb);
  return machine;
}

// Two ranks on one H100.
inline TunedMachine h100_shared() {
  TunedMachine machine = machine_of(1, 2, 90, 64);
  GraphSet& graphs = machine.input.aligned;
  graphs.ring = found_graph(GraphPattern::Ring, 32, 60, 60, PathType::Loc, PathType::Loc);
  graphs.tree = found_graph(GraphPattern::BalancedTree, 32, 6, 6, PathType::Loc, PathType::Loc);
  return machine;
}

inline Communicator communicator_of(const TunedMachine& machine,
                                    const Environment& environment = {}) {
  const Communicator& input = machine.input;
  Communicator communicator = input;
  communicator.node_kind.assign(static_cast<std::size_t>(input.nodes), 0);
  communicator.graphs = {input.aligned};
  communicator.channels = machine.channels;
  if (input.aligned.nvls.exists()) {
    set_up_nvls(communicator, environment);
    communicator.nvls_heads = input.aligned.nvls.channel_count;
  }
  communicator.tuning = make_tuning_table(input, environment);
  return communicator;
}

}  // namespace trainyard::nccl
