// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/tuning_constants.h"

#include <limits>

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

constexpr std::size_t kBlackwell = 3;

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

constexpr TuningConstants release_2_28() {
  TuningConstants constants = newest();
  constants.ring_ll128_max[kBlackwell] = {73.4, 34.6, 73.4};
  constants.nvls_tree_max[kBlackwell][2] = 43.8;
  constants.corrects_nvls_tree = false;
  return constants;
}

constexpr TuningConstants release_2_27() {
  TuningConstants constants = release_2_28();
  constants.base_latency[index(Algorithm::Pat)] = {};
  constants.net_latency[index(Algorithm::NvlsTree)] = simple_only(14.0);
  constants.ring_ll128_max[kBlackwell] = equal(73.4);
  constants.tree_ll128_max[kBlackwell] = {73.4, 73.4, 58.0};
  constants.tree_simple_max[kBlackwell] = {77.4, 82.8, 72.0};
  constants.nvls_tree_max.fill(equal(std::numeric_limits<double>::infinity()));
  return constants;
}

// Indexed by Version.
constexpr std::array kReleases{release_2_27(), release_2_28(), newest()};

constexpr std::array<std::array<float, kTreeCorrections>, 3> kTreeCorrection{{
    {1.0F, 1.0F, 1.0F, 1.0F, 0.9F, 0.8F, 0.7F, 0.7F, 0.7F, 0.7F, 0.6F, 0.5F,
     0.4F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F, 0.9F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F},
    {1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 0.9F, 0.8F, 0.8F, 0.8F, 0.7F, 0.6F, 0.6F,
     0.6F, 0.6F, 0.6F, 0.6F, 0.8F, 0.9F, 0.9F, 0.9F, 0.9F, 1.0F, 1.0F, 1.0F},
    {0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.9F, 0.8F, 0.7F, 0.6F, 0.6F, 0.5F,
     0.5F, 0.5F, 0.5F, 0.6F, 0.7F, 0.8F, 0.7F, 0.7F, 0.8F, 0.9F, 0.9F, 0.9F},
}};

}  // namespace

const TuningConstants& tuning_constants(Version version) {
  return kReleases[static_cast<std::size_t>(version)];
}

const std::array<float, kTreeCorrections>& tree_correction(Protocol protocol) {
  return kTreeCorrection[static_cast<std::size_t>(protocol)];
}

}  // namespace trainyard::nccl
