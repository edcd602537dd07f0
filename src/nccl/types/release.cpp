// SPDX-License-Identifier: Apache-2.0
#include "nccl/types/release.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace trainyard::nccl {
namespace {

// --- Rows --------------------------------------------------------------------------------------

constexpr Release kV2_30{};

constexpr Release v2_28() {
  Release row = kV2_30;
  row.ll_sends = LlSends::UpToMostChannels;
  row.cell_traffic = std::int64_t{16} * 1024;
  return row;
}

constexpr Release v2_27() {
  Release row = v2_28();
  row.hands_over_from_c2c = false;
  return row;
}

constexpr Release v2_25() {
  Release row = v2_27();
  row.nics_over_c2c = NicsOverC2c::Far;
  row.rings_need_two = false;
  row.first_gpus = FirstGpus::FromTurn;
  row.nvlink[3] = 40.0F;
  row.knows_newer_intel_sockets = false;
  row.ll_traffic = 1;
  return row;
}

constexpr Release v2_26() {
  Release row = v2_25();
  row.nics_over_c2c = NicsOverC2c::FarOnPath;
  row.rings_need_two = true;
  row.knows_newer_intel_sockets = true;
  row.ll_traffic = 4;
  return row;
}

constexpr Release v2_20() {
  Release row = v2_25();
  row.max_channels = 32;
  row.ll_sends = LlSends::ByChannel;
  row.cell_traffic = 0;
  row.bounds_types = false;
  row.next_gpus = NextGpus::NeighboursFirst;
  row.nvlink[2] = row.nvlink[3] = 20.0F;
  row.fast_rings = FastRings::Hopper;
  row.peers = PeerRule::NotIntel;
  return row;
}

constexpr Release v2_21() {
  Release row = v2_20();
  row.nvlink[2] = row.nvlink[3] = 20.6F;
  row.next_gpus = NextGpus::Neighbours;
  return row;
}

constexpr Release v2_23() {
  Release row = v2_21();
  row.ll_sends = LlSends::UpToMostChannels;
  row.cell_traffic = std::int64_t{16} * 1024;
  row.peers = PeerRule::SwitchesOrAmdPairs;
  return row;
}

constexpr Release v2_19() {
  Release row = v2_20();
  row.fast_rings = FastRings::UpToMax;
  row.crosses_in_pairs = false;
  row.crossing_penalty = 0.15;
  row.tree_chunks = TreeChunks::ByNodes;
  return row;
}

constexpr Release v2_18() {
  Release row = v2_19();
  row.knows_amd_sockets = false;
  row.keeps_channels_alike_on_amd = false;
  row.search_budget = std::int64_t{5} << 16;
  row.next_gpus = NextGpus::ByScore;
  row.first_gpus = FirstGpus::Nearest;
  row.rotates_nics = false;
  row.doubles_last = true;
  return row;
}

constexpr Release v2_16() {
  Release row = v2_18();
  row.nvlink = {22.0F, 22.0F, 22.0F, 22.0F};
  row.skylake_sockets = 9.0F;
  row.bounds_channels_by_gpu = false;
  row.tries_tree_after_balanced = false;
  row.trees_are_as_many_as_rings = false;
  row.tree_asks_for_way_back = false;
  row.search_budget = std::int64_t{1} << 18;
  row.takes_own_nics = false;
  row.crosses_trees = true;
  row.crossing_penalty = 0.0;
  row.doubling = Doubling::FastButHopper;
  row.fast_rings = FastRings::Alike;
  return row;
}

constexpr Release v2_14() {
  Release row = v2_16();
  row.doubling = Doubling::Fast;
  return row;
}

constexpr Release v2_12() {
  Release row = v2_14();
  row.queues_each_channel = true;
  row.ll_sends = LlSends::None;
  return row;
}

constexpr Release v2_10() {
  Release row = v2_12();
  row.hands_over = false;
  return row;
}

constexpr Release v2_7() {
  Release row = v2_10();
  row.nvlink = {21.0F, 21.0F, 21.0F, 21.0F};
  row.peers = PeerRule::IntelWithinSocket;
  row.reduces_before_broadcast = true;
  row.launches_together = true;
  return row;
}

constexpr Release v2_6() {
  Release row = v2_7();
  row.channel_has_one_nvlink = true;
  row.doubling = Doubling::None;
  row.peers = PeerRule::NotBroadwell;
  return row;
}

constexpr Release v2_5() {
  Release row = v2_6();
  row.skylake_sockets = 12.0F;
  row.peers = PeerRule::WithinSocket;
  return row;
}

// 2.4 has no graph search: its rings come from distances between devices (src/misc/rings.cc). The
// search of 2.5 stands for it.
constexpr Release v2_4() {
  Release row = v2_5();
  row.max_channels = 16;
  row.copies_pcie_rings = false;
  return row;
}

constexpr Release rccl() {
  Release row = kV2_30;
  row.runtime = "RCCL";
  row.knows_topologies = true;
  row.has_tuning_models = true;
  row.copies_by_gpu = true;
  row.threads = 256;  // src/include/device.h: NCCL_MAX_NTHREADS.
  row.has_small_lines = true;
  row.decides_by_size = true;
  row.tree_chunks = TreeChunks::ByDepth;
  return row;
}

constexpr Release kRccl = rccl();

// Indexed by Version.
constexpr std::array kRows{v2_4(),  v2_5(),  v2_6(),  v2_7(),  v2_7(),  v2_10(), v2_12(), v2_14(),
                           v2_14(), v2_16(), v2_16(), v2_18(), v2_19(), v2_20(), v2_21(), v2_23(),
                           v2_23(), v2_25(), v2_26(), v2_27(), v2_28(), kV2_30,  kV2_30};
static_assert(kRows.size() == static_cast<std::size_t>(kNewestVersion) + 1);

// --- Speeds ------------------------------------------------------------------------------------

// One list for one node and several up to 2.9.
constexpr std::array kV6{24.0F, 21.0F, 18.0F, 15.0F, 12.0F, 10.0F, 9.0F,  7.0F,
                         6.0F,  5.0F,  4.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kV7{42.0F, 24.0F, 21.0F, 18.0F, 15.0F, 12.0F, 10.0F, 9.0F, 7.0F,
                         6.0F,  5.0F,  4.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kV8{42.0F, 30.0F, 24.0F, 21.0F, 18.0F, 15.0F, 12.0F, 10.0F, 9.0F,
                         7.0F,  6.0F,  5.0F,  4.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kIntraV10{44.0F, 30.0F, 22.0F, 18.0F, 15.0F, 12.0F, 10.0F,
                               9.0F,  7.0F,  6.0F,  5.0F,  4.0F,  3.0F};
constexpr std::array kInterV10{48.0F, 30.0F, 24.0F, 22.0F, 18.0F, 15.0F, 12.0F, 10.0F, 9.0F,
                               7.0F,  6.0F,  5.0F,  4.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kInterV15{48.0F, 30.0F, 28.0F, 24.0F, 22.0F, 18.0F, 15.0F, 12.0F, 10.0F, 9.0F,
                               7.0F,  6.0F,  5.0F,  4.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kIntra{40.0F, 30.0F, 20.0F, 18.0F, 15.0F, 12.0F, 10.0F,
                            9.0F,  7.0F,  6.0F,  5.0F,  4.0F,  3.0F};
constexpr std::array kInter{48.0F, 30.0F, 28.0F, 24.0F, 20.0F, 18.0F, 15.0F, 12.0F, 10.0F, 9.0F,
                            7.0F,  6.0F,  5.0F,  4.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kIntraSm90V16{66.0F, 33.0F, 24.0F, 20.0F, 15.0F, 12.0F, 6.0F, 3.0F};
constexpr std::array kInterSm90V16{48.0F, 45.0F, 30.0F, 24.0F, 15.0F, 12.0F,
                                   6.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kIntraSm90V18{60.0F, 40.0F, 30.0F, 24.0F, 20.0F, 15.0F, 12.0F, 6.0F, 3.0F};
constexpr std::array kInterSm90V18{48.0F, 45.0F, 42.0F, 40.0F, 30.0F, 24.0F, 20.0F, 17.5F,
                                   15.0F, 12.0F, 6.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kIntraSm90V19{60.0F, 50.0F, 40.0F, 30.0F, 24.0F,
                                   20.0F, 15.0F, 12.0F, 6.0F,  3.0F};
constexpr std::array kIntraSm90{60.0F, 50.0F, 40.0F, 30.0F, 24.0F, 20.0F,
                                15.0F, 12.0F, 11.0F, 6.0F,  3.0F};
constexpr std::array kInterSm90{48.0F, 45.0F, 42.0F, 40.0F, 30.0F, 24.0F, 22.0F, 20.0F, 17.5F,
                                15.0F, 12.0F, 6.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kIntraSm100V25{90.0F, 80.0F, 70.0F, 60.0F, 50.0F,
                                    40.0F, 30.0F, 24.0F, 20.0F, 19.0F};
constexpr std::array kIntraSm100V27{90.0F, 80.0F, 70.0F, 60.0F, 50.0F, 40.0F,
                                    30.0F, 24.0F, 20.0F, 19.0F, 18.0F};
constexpr std::array kInterSm100V27{96.0F, 48.0F, 45.1F, 42.0F, 40.0F, 30.0F, 24.0F, 22.0F, 20.0F,
                                    17.5F, 15.0F, 12.0F, 6.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kInterSm100V29{96.0F, 80.0F, 48.0F, 45.1F, 42.0F, 40.0F, 30.0F,
                                    24.0F, 22.0F, 20.0F, 17.5F, 15.0F, 12.0F, 6.0F,
                                    3.0F,  2.4F,  1.2F,  0.24F, 0.12F};
constexpr std::array kIntraSm100{90.0F, 80.0F, 70.0F, 60.0F, 50.0F, 45.0F,
                                 40.0F, 30.0F, 24.0F, 20.0F, 19.0F, 18.0F};
constexpr std::array kInterSm100{96.0F, 86.0F, 80.0F, 48.0F, 45.1F, 42.0F, 40.0F,
                                 30.0F, 24.0F, 22.0F, 20.0F, 17.5F, 15.0F, 12.0F,
                                 6.0F,  3.0F,  2.4F,  1.2F,  0.24F, 0.12F};

struct Speeds {
  Version from;
  std::span<const float> intra;
  std::span<const float> inter;
};

// Rising; the last row whose release is not newer holds.
constexpr std::array kFirstSpeeds{Speeds{Version::V2_4, kV6, kV6},
                                  Speeds{Version::V2_7, kV7, kV7},
                                  Speeds{Version::V2_8, kV8, kV8},
                                  Speeds{Version::V2_10, kIntraV10, kInterV10},
                                  Speeds{Version::V2_15, kIntraV10, kInterV15},
                                  Speeds{Version::V2_18, kIntra, kInter}};
constexpr std::array kHopperSpeeds{Speeds{Version::V2_16, kIntraSm90V16, kInterSm90V16},
                                   Speeds{Version::V2_18, kIntraSm90V18, kInterSm90V18},
                                   Speeds{Version::V2_19, kIntraSm90V19, kInterSm90},
                                   Speeds{Version::V2_21, kIntraSm90, kInterSm90}};
constexpr std::array kBlackwellSpeeds{Speeds{Version::V2_25, kIntraSm100V25, kInterSm90},
                                      Speeds{Version::V2_27, kIntraSm100V27, kInterSm100V27},
                                      Speeds{Version::V2_29, kIntraSm100, kInterSm100V29},
                                      Speeds{Version::V2_30, kIntraSm100, kInterSm100}};

// Newer GPUs on releases that do not know them have the list of the ones before.
const Speeds& speeds_of(Version version, std::size_t tuning_row) {
  constexpr std::size_t kHopperRow = 2;
  constexpr std::size_t kBlackwellRow = 3;
  const Speeds* found = kFirstSpeeds.data();
  const auto search = [&](std::span<const Speeds> rows) {
    for (const Speeds& row : rows) {
      found = row.from <= version ? &row : found;
    }
  };
  search(kFirstSpeeds);
  if (tuning_row >= kHopperRow) {
    search(kHopperSpeeds);
  }
  if (tuning_row >= kBlackwellRow) {
    search(kBlackwellSpeeds);
  }
  return *found;
}

}  // namespace

const Release& release(Version version) {
  return kRows[static_cast<std::size_t>(version)];
}

const Release& release(Version version, const GpuGeneration& generation) {
  return generation.is_amd() ? kRccl : release(version);
}

const Release& release(Version version, int compute_capability) {
  return release(version, gpu_generation(compute_capability));
}

float nvlink_bandwidth(Version version, const GpuGeneration& generation) {
  constexpr int kSmall = 86;
  constexpr float kSmallRate = 12.0F;  // SM86_NVLINK_BW, from 2.8 on.
  if (generation.own_link > 0.0F) {
    return generation.own_link;
  }
  return generation.compute_capability == kSmall && version >= Version::V2_8
             ? kSmallRate
             : release(version).nvlink[generation.tuning_row];
}

std::span<const float> search_speeds(Version version, const GpuGeneration& generation,
                                     bool several_nodes) {
  if (!generation.own_speeds.empty()) {
    return generation.own_speeds;
  }
  const Speeds& speeds = speeds_of(version, generation.tuning_row);
  return several_nodes ? speeds.inter : speeds.intra;
}

}  // namespace trainyard::nccl
