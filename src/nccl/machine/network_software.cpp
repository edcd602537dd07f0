// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine/network_software.h"

#include <algorithm>
#include <array>

namespace trainyard::nccl {
namespace {

// AWS sets chunks of NVLS from 1.9 on; it stated 75 us for p5en up to 1.13.
constexpr std::array kRows{
    NetworkSoftware{.nic = "EFA-100G-v1",
                    .network = "AWS Libfabric",
                    .latency_us = 75.0,
                    .protocols = "Simple"},
    NetworkSoftware{
        .nic = "EFA-100G", .network = "AWS Libfabric", .latency_us = 75.0, .nvls_chunk = kib(512)},
    NetworkSoftware{
        .nic = "EFA-200G", .network = "AWS Libfabric", .latency_us = 35.0, .nvls_chunk = kib(512)},
    NetworkSoftware{
        .nic = "EFA-400G", .network = "AWS Libfabric", .latency_us = 35.0, .nvls_chunk = kib(512)},
    NetworkSoftware{.nic = "gVNIC-200G",
                    .network = "FasTrak",
                    .algorithms = "Ring,Tree",
                    .protocols = "Simple",
                    .nvls_enable = false,
                    .cross_nic = 0,
                    .min_channels = 4,
                    .buffer = mib(8),
                    .p2p_chunk = kib(512)},
};

template <typename Value>
void set_if_unset(std::optional<Value>& value, const std::optional<Value>& to) {
  if (!value) {
    value = to;
  }
}

}  // namespace

void NetworkSoftware::apply(Environment& environment) const {
  if (!environment.network.empty() && environment.network != network) {
    return;
  }
  const Environment unset;
  SelectionFilter& selection = environment.selection;
  if (!algorithms.empty() && !selection.has_algorithms()) {
    selection.set_algorithms(algorithms);
  }
  if (!protocols.empty() && !selection.has_protocols()) {
    selection.set_protocols(protocols);
  }
  if (nvls_enable && environment.nvls_enable == unset.nvls_enable) {
    environment.nvls_enable = *nvls_enable ? 1 : 0;
  }
  if (cross_nic && environment.cross_nic == unset.cross_nic) {
    environment.cross_nic = *cross_nic;
  }
  if (environment.min_channels == unset.min_channels) {
    environment.min_channels = min_channels;
  }
  if (buffer && environment.simple_buffer == unset.simple_buffer) {
    environment.simple_buffer = *buffer;
  }
  set_if_unset(environment.p2p_net_chunk, p2p_chunk);
  set_if_unset(environment.nvls_chunk, nvls_chunk);
  set_if_unset(environment.nvls_tree_max_chunk, nvls_chunk);
}

const NetworkSoftware* network_software(std::string_view nic_part) {
  const auto* const row = std::find_if(
      kRows.begin(), kRows.end(), [&](const NetworkSoftware& one) { return one.nic == nic_part; });
  return row == kRows.end() ? nullptr : row;
}

bool is_driven_by_verbs(std::string_view nic_part, const Environment& environment) {
  // Slingshot has libfabric alone, the other one sockets.
  constexpr std::array<std::string_view, 2> kWithoutVerbs{"Cassini", "Ethernet-10G"};
  return !environment.ib_disable && (environment.network.empty() || environment.network == "IB") &&
         network_software(nic_part) == nullptr &&
         std::ranges::find(kWithoutVerbs, nic_part) == kWithoutVerbs.end();
}

}  // namespace trainyard::nccl
