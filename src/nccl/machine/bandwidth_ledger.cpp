// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine/bandwidth_ledger.h"

#include <algorithm>
#include <cmath>

#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

float rounded(float bandwidth) {
  return std::round(bandwidth * 1000.0F) / 1000.0F;
}

}  // namespace

BandwidthLedger::BandwidthLedger(const System& system)
    : system_(system), takes_way_back_(system.vertices.size(), false) {
  for (const Edge& edge : system.edges) {
    left_.push_back(edge.bandwidth);
  }
  for (const SystemGpu& gpu : system.gpus) {
    takes_way_back_[as_index(gpu.device)] = gpu.generation->takes_way_back;
  }
}

bool BandwidthLedger::take(const Path& path, float bandwidth, bool from_gpu) {
  const std::size_t done = follow(path, path.edges.size(), bandwidth, from_gpu);
  if (done < path.edges.size()) {
    (void)follow(path, done, -bandwidth, from_gpu);
    return false;
  }
  return true;
}

void BandwidthLedger::give_back(const Path& path, float bandwidth, bool from_gpu) {
  (void)follow(path, path.edges.size(), -bandwidth, from_gpu);
}

bool BandwidthLedger::passes_intel(const Path& path) const {
  return std::any_of(path.edges.begin(), path.edges.end(), [&](int index) {
    const int to = system_.edges[as_index(index)].to;
    const Vertex& vertex = system_.vertices[as_index(to)];
    return vertex.kind == VertexKind::Cpu &&
           system_.cpus[as_index(vertex.index)].vendor == CpuVendor::Intel;
  });
}

// search.cc: followPath.
std::size_t BandwidthLedger::follow(const Path& path, std::size_t links, float bandwidth,
                                    bool from_gpu) {
  const bool has_overhead = path.type == PathType::Phb && from_gpu && passes_intel(path);
  const float pci = has_overhead ? bandwidth * 6 / 5 : bandwidth;
  for (std::size_t link = 0; link < links; ++link) {
    const auto index = as_index(path.edges[link]);
    const Edge& edge = system_.edges[index];
    const Vertex& to = system_.vertices[as_index(edge.to)];
    const float there = edge.kind == EdgeKind::Pci ? pci : bandwidth;
    float back = 0.0F;
    if (!from_gpu && takes_way_back_[as_index(edge.to)]) {
      back = there / 8;
    }
    if (to.kind == VertexKind::Cpu && edge.kind == EdgeKind::Nvl &&
        system_.cpus[as_index(to.index)].arch == CpuArch::Power) {
      back += there;
    }
    float& left = left_[index];
    float& left_back = left_[as_index(edge.reverse)];
    if (left < there || (back != 0.0F && left_back < back)) {
      return link;
    }
    left = rounded(left - there);
    if (back != 0.0F) {
      left_back = rounded(left_back - back);
    }
  }
  return links;
}

float BandwidthLedger::pci_bandwidth(int gpu) const {
  const int device = system_.gpus[as_index(gpu)].device;
  for (const int index : system_.vertices[as_index(device)].edges) {
    const Edge& edge = system_.edges[as_index(index)];
    if (edge.kind == EdgeKind::Pci) {
      return std::min(left(index), left(edge.reverse));
    }
  }
  return -1.0F;
}

}  // namespace trainyard::nccl
