// SPDX-License-Identifier: Apache-2.0
// Adds up the bytes that links carry by tiers: all links of a kind within servers, all links of
// NICs, all links between switches of one tier and the next (resources.h). A message that crosses
// three links of a tier counts three times, as it takes the bandwidth of three.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "parallelism/run/resources.h"
#include "parallelism/traffic/link_bytes.h"
#include "sim/units.h"

namespace trainyard {

struct TierVolume {
  std::string key = {};    // Key of the resource: "nvlink", "nic", "tier_0".
  std::string title = {};  // "NVLink", "links of NICs".
  int links = 0;           // Directed links that carry anything.
  Bytes bytes = {};        // Bytes of all of them.
  Bytes busiest = {};      // Bytes of the one that carries most.
  // Bytes of each purpose, the names in rising order.
  std::vector<PurposeBytes> parts = {};
};

// In the order of `resources`, without tiers that carry nothing. A link may occur several times in
// `traffic`.
[[nodiscard]] std::vector<TierVolume> tier_volumes(const LinkResources& resources,
                                                   std::span<const LinkTraffic> traffic);

}  // namespace trainyard
