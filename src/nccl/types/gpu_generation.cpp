// SPDX-License-Identifier: Apache-2.0
#include "nccl/types/gpu_generation.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <string>

#include "sim/config_error.h"

namespace trainyard::nccl {
namespace {

constexpr GpuGeneration kVolta{.compute_capability = 70,
                               .name = "volta",
                               .tuning_row = 0,
                               .ring_latency_factor = 1.9,
                               .takes_way_back = true,
                               .needs_nvlink_to_send = true};

constexpr GpuGeneration kAmpere{
    .compute_capability = 80, .name = "ampere", .tuning_row = 1, .reads_from_peers = true};

constexpr GpuGeneration kHopper{.compute_capability = 90,
                                .name = "hopper",
                                .tuning_row = 2,
                                .needs_flush = false,
                                .doubles_many_channels = false,
                                .searches_all_nic_paths = false,
                                .tries_tree_after_balanced = true,
                                .has_nvls = true,
                                .mixes_ll128 = true,
                                .slows_collnet = true,
                                .doubles_fast_rings = true};

constexpr GpuGeneration blackwell(int compute_capability) {
  GpuGeneration made = kHopper;
  made.compute_capability = compute_capability;
  made.name = "blackwell";
  made.tuning_row = 3;
  made.corrects_nvls_tree = true;
  made.has_more_nvls_channels = true;
  made.has_large_network_chunks = true;
  return made;
}

// ROCm/rccl, src/graph/search.cc: speedArrayIntra and speedArrayInter for AMD.
constexpr std::array kAmdSpeeds{48.0F, 24.0F, 20.0F, 18.0F, 15.0F, 12.0F, 10.0F, 9.0F, 7.0F,
                                6.0F,  5.0F,  4.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};

// RCCL gives them the compute capability 6.0, and GB/s of one xGMI link by its topo.h.
constexpr GpuGeneration amd(int number, std::string_view gcn, std::string_view name, float xgmi) {
  GpuGeneration made = kVolta;
  made.compute_capability = number;
  made.gcn = gcn;
  made.name = name;
  made.own_link = xgmi;
  made.own_speeds = kAmdSpeeds;
  return made;
}

constexpr std::array kAmdGenerations{amd(910, "gfx90a", "cdna2", 36.0F),
                                     amd(942, "gfx942", "cdna3", 48.0F),
                                     amd(950, "gfx950", "cdna4", 48.0F)};

constexpr GpuGeneration turing() {
  GpuGeneration made = kVolta;
  made.compute_capability = 75;
  made.name = "turing";
  return made;
}

// GPUs of Ampere's generation that push to their peers, and of Ada's.
constexpr GpuGeneration workstation(int compute_capability, std::string_view name) {
  GpuGeneration made = kAmpere;
  made.compute_capability = compute_capability;
  made.name = name;
  made.reads_from_peers = false;
  made.doubles_many_channels = false;
  return made;
}

constexpr std::array kGenerations{kVolta,
                                  turing(),
                                  kAmpere,
                                  workstation(86, "ampere"),
                                  workstation(89, "ada"),
                                  kHopper,
                                  blackwell(100),
                                  blackwell(103),
                                  blackwell(120),
                                  blackwell(121)};

}  // namespace

const GpuGeneration& gpu_generation(int compute_capability, std::string_view place) {
  for (const GpuGeneration& row : kAmdGenerations) {
    if (row.compute_capability == compute_capability) {
      return row;
    }
  }
  std::string known;
  for (const GpuGeneration& row : kGenerations) {
    if (row.compute_capability == compute_capability) {
      return row;
    }
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", row.compute_capability, row.name);
  }
  throw ConfigError(fmt::format(
      "{}expected a GPU of a compute capability whose rules in NCCL are known: {}; found {}", place,
      known, compute_capability));
}

const GpuGeneration* amd_generation(std::string_view gcn) {
  const std::string_view target = gcn.substr(0, gcn.find(':'));
  for (const GpuGeneration& row : kAmdGenerations) {
    if (target == row.gcn || target == std::to_string(row.compute_capability)) {
      return &row;
    }
  }
  return nullptr;
}

}  // namespace trainyard::nccl
