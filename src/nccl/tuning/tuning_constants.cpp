// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/tuning_constants.h"
namespace trainyard::nccl {
namespace {

constexpr auto index(Algorithm algorithm) {
  return static_cast<std::size_t>(algorithm);
}

constexpr ByScale equal(double value) {
  return {value, value, value};
}

constexpr ByProtocol simple_only(double value) {
  return {0.0, 0.0, value};
}

constexpr ByGenerationAndScale equal_rows(double value) {
  return {{equal(value), equal(value), equal(value), equal(value)}};
}

constexpr ByFunction equal_functions(double value) {
  return {value, value, value, value, value};
}

constexpr std::size_t kAmpere = 1;
constexpr std::size_t kHopper = 2;
constexpr std::size_t kBlackwell = 3;
constexpr auto kTree = index(Algorithm::Tree);
constexpr auto kRing = index(Algorithm::Ring);
constexpr auto kNvls = index(Algorithm::Nvls);
constexpr auto kNvlsTree = index(Algorithm::NvlsTree);
constexpr std::size_t kSimple = 2;

constexpr std::array kVoltaAlone{70};
constexpr std::array kUpToAmpere{70, 80};
constexpr std::array kUpToHopper{70, 80, 90};
constexpr std::array kUpToBlackwell{70, 80, 90, 100, 120};

// Rows in the order of Algorithm: Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT.
constexpr TuningConstants newest() {
  TuningConstants constants;
  constants.base_latency = {{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}, {}, {}, {}, {}, {8.0, 8.0, 8.0}}};
  constants.nvlink_latency = {{{0.6, 1.25, 4.0},
                               {0.6, 1.9, 3.4},
                               simple_only(3.7),
                               simple_only(2.8),
                               simple_only(25.0),
                               simple_only(25.0),
                               simple_only(4.0)}};
  constants.pci_latency = {{{1.0, 1.9, 4.0},
                            {1.0, 2.5, 5.7},
                            simple_only(3.7),
                            simple_only(2.8),
                            {},
                            {},
                            simple_only(4.0)}};
  constants.net_latency = {{{5.0, 8.5, 14.0},
                            {2.7, 4.0, 14.0},
                            simple_only(31.0),
                            simple_only(30.0),
                            simple_only(18.0),
                            simple_only(20.9),
                            simple_only(14.0)}};
  constants.ll_max = {
      {{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141.0, 45.0, 35.0}, {282.0, 90.0, 70.0}}};
  constants.ring_ll128_max = {{equal(20.0), equal(20.0), equal(36.7), equal(40.0)}};
  constants.tree_ll128_max = {{equal(20.0), equal(20.0), {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}};
  constants.tree_simple_max = {
      {{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};
  constants.nvls_tree_max = {{{}, {}, {0.0, 57.7, 45.5}, {0.0, 96.0, 80.0}}};
  constants.nvls_efficiency = {0.0, 0.0, 0.85, 0.74};
  constants.corrects_nvls_tree = true;
  return constants;
}

// 2.29.2 and 2.29.3 have 34.5 GB/s for LL128 with rings on Blackwell.
constexpr TuningConstants release_2_29() {
  TuningConstants constants = newest();
  constants.nvls_tree_max[kBlackwell][2] = 43.8;
  constants.ll128.mixes = false;
  return constants;
}

constexpr TuningConstants release_2_28() {
  TuningConstants constants = release_2_29();
  constants.ring_ll128_max[kBlackwell] = {73.4, 34.6, 73.4};
  constants.corrects_nvls_tree = false;
  return constants;
}

constexpr TuningConstants release_2_27() {
  TuningConstants constants = release_2_28();
  constants.net_latency[kNvlsTree] = simple_only(14.0);
  constants.ring_ll128_max[kBlackwell] = equal(73.4);
  constants.tree_ll128_max[kBlackwell] = {73.4, 73.4, 58.0};
  constants.tree_simple_max[kBlackwell] = {77.4, 82.8, 72.0};
  constants.nvls_model = NvlsModel::OtherGpus;
  return constants;
}

constexpr TuningConstants release_2_25() {
  TuningConstants constants = release_2_27();
  constants.nvls_model = NvlsModel::WholeGather;
  constants.ll128.compute_capabilities = kUpToBlackwell;
  return constants;
}

// Gives GPUs newer than `row` its numbers.
constexpr void end_rows(TuningConstants& constants, std::size_t row) {
  for (ByGenerationAndScale* rows : {&constants.ll_max, &constants.ring_ll128_max,
                                     &constants.tree_ll128_max, &constants.tree_simple_max}) {
    for (std::size_t newer = row + 1; newer < rows->size(); ++newer) {
      (*rows)[newer] = (*rows)[row];
    }
  }
}

constexpr TuningConstants release_2_24() {
  TuningConstants constants = release_2_25();
  end_rows(constants, kHopper);
  constants.ll128.compute_capabilities = kUpToHopper;
  return constants;
}

constexpr TuningConstants release_2_23() {
  TuningConstants constants = release_2_24();
  constants.pat_share = 0.85;
  return constants;
}

constexpr TuningConstants release_2_21() {
  TuningConstants constants = release_2_23();
  constants.base_latency[kTree][kSimple] = 0.0;
  constants.nvlink_latency[kTree][kSimple] = 28.0;
  constants.pci_latency[kTree][kSimple] = 28.0;
  constants.net_latency[kTree][kSimple] = 28.0;
  constants.ring_ll128_share_alone = 0.7;
  constants.nvls_model = NvlsModel::Slower;
  constants.has_pat = false;
  constants.more_network_steps = 2;
  constants.alone_waits_as_tree = false;
  return constants;
}

constexpr TuningConstants release_2_19() {
  TuningConstants constants = release_2_21();
  constants.nvlink_latency[kNvls][kSimple] = 23.0;
  constants.nvlink_latency[kNvlsTree][kSimple] = 23.0;
  constants.ll_max[kHopper] = constants.ll_max[kAmpere];
  end_rows(constants, kHopper);
  constants.ring_ll_share = 0.25;
  constants.ring_ll_share_one_way = 1.0 / 3.0;
  return constants;
}

constexpr TuningConstants release_2_18() {
  TuningConstants constants = release_2_19();
  constants.base_latency[kNvls] = constants.base_latency[kNvlsTree] = simple_only(23.0);
  constants.nvlink_latency[kTree][kSimple] = 4.0;
  constants.pci_latency[kTree][kSimple] = 6.0;
  constants.net_latency[kTree][kSimple] = 14.0;
  constants.nvlink_latency[kNvls] = constants.nvlink_latency[kNvlsTree] = {};
  constants.net_latency[kNvlsTree] = simple_only(19.0);
  constants.nvls_model = NvlsModel::OwnGraph;
  return constants;
}

constexpr TuningConstants release_2_17() {
  TuningConstants constants = release_2_18();
  constants.base_latency[kTree] = {4.4, 4.4, 0.0};
  constants.base_latency[kRing] = {3.6, 10.0, 8.4};
  constants.base_latency[kNvls] = simple_only(40.0);
  constants.nvlink_latency[kTree] = {0.52, 1.25, 28.0};
  constants.nvlink_latency[kRing] = {0.47, 1.9, 3.4};
  constants.pci_latency[kTree] = {1.0, 1.9, 28.0};
  constants.net_latency[kTree] = {5.0, 8.5, 28.0};
  constants.net_latency[kRing] = {2.7, 4.0, 9.6};
  constants.net_latency[kNvls] = {};
  constants.bus_max = {kNoLimit, 235.0, 370.0, 370.0};
  constants.tree_ll128_max[kHopper] = equal(36.7);
  constants.tree_simple_max[kHopper] = {38.7, 41.4, 33.0};
  end_rows(constants, kHopper);
  constants.simple_tree_share = 1.0;
  constants.nvls_model = NvlsModel::RingGraph;
  constants.ll_hop_factor = 1.8;
  constants.has_host_overhead = false;
  constants.nic_latency = NicLatency::Replaces;
  constants.plateau = Plateau::BySizeHopper;
  constants.ll128.intra = PathType::Nvl;
  return constants;
}

constexpr TuningConstants release_2_15() {
  TuningConstants constants = release_2_17();
  constants.has_exact_rows = true;
  constants.bus_max = {kNoLimit, 235.0, kNoLimit, kNoLimit};
  constants.ring_ll128_max = constants.tree_ll128_max = equal_rows(20.0);
  constants.tree_simple_max[kHopper] = constants.tree_simple_max[kAmpere];
  end_rows(constants, kHopper);
  constants.nvls_model = NvlsModel::None;
  constants.plateau = Plateau::BySize;
  constants.ll128.reaches_pxn = false;
  return constants;
}

constexpr TuningConstants release_2_14() {
  TuningConstants constants = release_2_15();
  constants.ll_max[kHopper] = constants.ll_max[0];
  constants.tree_simple_max[kHopper] = constants.tree_simple_max[0];
  end_rows(constants, kHopper);
  constants.ll128.compute_capabilities = kUpToAmpere;
  return constants;
}

constexpr TuningConstants release_2_12() {
  TuningConstants constants = release_2_14();
  constants.net_latency[kRing][kSimple] = 28.0;
  return constants;
}

constexpr TuningConstants release_2_10() {
  TuningConstants constants = release_2_14();
  constants.more_network_steps = 0;
  constants.nic_latency = NicLatency::Ignored;
  return constants;
}

constexpr TuningConstants release_2_8() {
  TuningConstants constants = release_2_10();
  constants.ring_ll128_channel = {18.8, 12.0, 18.3, 15.2, 16.9};
  constants.ring_ll128_max = equal_rows(kNoLimit);
  constants.tree_ll128_max = equal_rows(16.9);
  constants.tree_ll128_share = 0.915;
  constants.tree_simple_max[kAmpere] = {24.0, 22.5, 16.0};
  return constants;
}

constexpr TuningConstants release_2_7() {
  TuningConstants constants = release_2_8();
  constants.nvlink_latency[kTree][1] = 1.2;
  constants.net_latency[kTree][kSimple] = 50.0;
  constants.ll_max = equal_rows(kNoLimit);
  constants.tree_share = 0.9;
  constants.tree_total = {110.0, 110.0, 80.0};
  constants.tree_total_ll128_ampere = {130.0, 130.0, 105.0};
  constants.ring_ll128_channel[4] = 16.7;
  constants.tree_ll128_max = equal_rows(16.7 * 7.0 / 9.0);
  constants.tree_simple_max = equal_rows(kNoLimit);
  return constants;
}

constexpr TuningConstants release_2_6() {
  TuningConstants constants = release_2_7();
  constants.base_latency[kRing] = {3.6, 3.6, 8.4};
  constants.nvlink_latency[kTree] = {0.5, 1.9, 28.0};
  constants.nvlink_latency[kRing] = {0.4, 2.5, 5.7};
  constants.net_latency[kTree] = {5.0, 7.5, 50.0};
  constants.net_latency[kRing] = {0.9, 2.5, 6.6};
  constants.bus_max[kAmpere] = kNoLimit;
  constants.ring_ll_share_one_way = 0.25;
  constants.ring_ll128_share = constants.ring_ll128_share_alone = 120.0 / 128.0;
  constants.ring_ll128_total = {113.0, 72.0, 110.0, 91.0, 100.0};
  constants.ring_ll128_channel = equal_functions(kNoLimit);
  constants.tree_ll_share = 1.0 / 3.0;
  constants.tree_ll128_share = 7.0 / 9.0;
  constants.tree_ll128_max = equal_rows(kNoLimit);
  constants.tree_total_ll128_ampere = equal(kNoLimit);
  constants.ll_hop_factor = 1.0;
  constants.is_network_everywhere = true;
  constants.plateau = Plateau::None;
  constants.ll128 = {.compute_capabilities = kVoltaAlone,
                     .intra = PathType::Nvl,
                     .inter = PathType::Pix,
                     .reaches_pxn = false,
                     .mixes = false};
  return constants;
}

constexpr TuningConstants release_2_5() {
  TuningConstants constants = release_2_6();
  constants.tree_total = {90.0, 70.0, 70.0};
  constants.ll128.inter = PathType::Phb;
  return constants;
}

// Indexed by Version; 2.4 has no tuning model, and 2.9, 2.11, 2.13 and 2.22 that of the release
// before them.
constexpr std::array kReleases{
    release_2_5(),  release_2_5(),  release_2_6(),  release_2_7(),  release_2_8(),  release_2_10(),
    release_2_12(), release_2_14(), release_2_15(), release_2_15(), release_2_17(), release_2_18(),
    release_2_19(), release_2_19(), release_2_21(), release_2_23(), release_2_24(), release_2_25(),
    release_2_25(), release_2_27(), release_2_28(), release_2_29(), newest()};
static_assert(kReleases.size() == static_cast<std::size_t>(kNewestVersion) + 1);

using Corrections = std::array<std::array<float, kTreeCorrections>, 3>;  // [protocol]

// Sizes beyond those that a release lists have no correction.
constexpr Corrections kCorrection{{
    {1.0F, 1.0F, 1.0F, 1.0F, 0.9F, 0.8F, 0.7F, 0.7F, 0.7F, 0.7F, 0.6F, 0.5F,
     0.4F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F, 0.9F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F},
    {1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 0.9F, 0.8F, 0.8F, 0.8F, 0.7F, 0.6F, 0.6F,
     0.6F, 0.6F, 0.6F, 0.6F, 0.8F, 0.9F, 0.9F, 0.9F, 0.9F, 1.0F, 1.0F, 1.0F},
    {0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.8F, 0.7F, 0.6F, 0.6F, 0.5F,
     0.5F, 0.5F, 0.5F, 0.6F, 0.7F, 0.8F, 0.7F, 0.7F, 0.8F, 0.9F, 0.9F, 0.9F},
}};
constexpr Corrections kCorrectionV8{{
    kCorrection[0],
    {1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 0.9F, 0.8F, 0.8F, 0.8F, 0.7F,  0.6F,  0.6F,
     0.6F, 0.5F, 0.6F, 0.6F, 0.7F, 0.7F, 0.8F, 0.9F, 0.9F, 0.92F, 0.92F, 1.0F},
    kCorrection[2],
}};
constexpr Corrections kCorrectionV7{{
    kCorrection[0],
    {1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 0.9F, 0.8F, 0.8F, 0.8F, 0.7F, 0.6F, 0.6F,
     0.6F, 0.5F, 0.6F, 0.6F, 0.7F, 0.7F, 0.8F, 0.9F, 0.9F, 1.0F, 1.0F, 1.0F},
    {0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.8F, 0.7F, 0.6F, 0.6F, 0.5F,
     0.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.6F, 0.6F, 0.7F, 0.8F, 0.9F, 1.0F, 1.0F},
}};
constexpr Corrections kCorrectionV6{{
    {1.0F, 1.0F, 1.0F, 1.0F, 0.9F, 0.8F, 0.7F, 0.7F, 0.7F, 0.7F, 0.6F, 0.5F,
     0.5F, 0.5F, 0.6F, 0.7F, 0.8F, 0.9F, 0.9F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F},
    {1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 0.9F, 0.8F, 0.8F, 0.8F, 0.8F, 0.7F, 0.7F,
     0.7F, 0.6F, 0.6F, 0.7F, 0.7F, 0.8F, 0.8F, 0.9F, 0.9F, 1.0F, 1.0F, 1.0F},
    kCorrectionV7[2],
}};

constexpr std::array<float, kTreeCorrections> kUncorrected = [] {
  std::array<float, kTreeCorrections> ones{};
  ones.fill(1.0F);
  return ones;
}();

}  // namespace

const TuningConstants& tuning_constants(Version version) {
  return kReleases[static_cast<std::size_t>(version)];
}

double plateau_factor(Plateau plateau, const GpuGeneration& generation, int ranks, int channels,
                      std::int64_t size) {
  const bool is_large = static_cast<double>(size) >= ranks / 16.0 * 65536.0;
  switch (plateau) {
    case Plateau::None:
      return 1.0;
    case Plateau::BySize:
      return is_large ? 1.9 : 1.0;
    case Plateau::BySizeHopper:
      return !is_large ? 1.0 : generation.has_nvls ? 1.5 : 1.9;
    case Plateau::ByChannel:
      break;
  }
  const std::int64_t parts = static_cast<std::int64_t>(channels) * ranks;
  return size / parts >= 64 ? generation.ring_latency_factor : 1.0;
}

const std::array<float, kTreeCorrections>& tree_correction(Protocol protocol, Version version) {
  const auto row = static_cast<std::size_t>(protocol);
  return version <= Version::V2_5   ? kUncorrected
         : version <= Version::V2_6 ? kCorrectionV6[row]
         : version <= Version::V2_7 ? kCorrectionV7[row]
         : version < Version::V2_10 ? kCorrectionV8[row]
                                    : kCorrection[row];
}

}  // namespace trainyard::nccl
