// SPDX-License-Identifier: Apache-2.0
#include "parallelism/run/tier_volumes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace trainyard {
namespace {

struct TierSum {
  std::map<std::uint32_t, Bytes> of_link;
  std::map<std::string, Bytes> of_purpose;
};

TierVolume volume_of(const Resource& tier, const TierSum& sum) {
  TierVolume volume{
      .key = tier.key, .title = tier.title, .links = static_cast<int>(sum.of_link.size())};
  for (const auto& [link, bytes] : sum.of_link) {
    volume.bytes += bytes;
    volume.busiest = std::max(volume.busiest, bytes);
  }
  for (const auto& [purpose, bytes] : sum.of_purpose) {
    volume.parts.push_back({.purpose = purpose, .bytes = bytes});
  }
  return volume;
}

}  // namespace

std::vector<TierVolume> tier_volumes(const LinkResources& resources,
                                     std::span<const LinkTraffic> traffic) {
  std::map<std::string, TierSum> sums;
  for (const LinkTraffic& link : traffic) {
    TierSum& sum = sums[resources.of(link.link).key];
    for (const PurposeBytes& part : link.parts) {
      if (part.bytes > Bytes(0)) {
        sum.of_link[link.link.value()] += part.bytes;
        sum.of_purpose[part.purpose] += part.bytes;
      }
    }
  }
  std::vector<TierVolume> volumes;
  for (const Resource& tier : resources.list()) {
    const auto found = sums.find(tier.key);
    if (found != sums.end() && !found->second.of_link.empty()) {
      volumes.push_back(volume_of(tier, found->second));
    }
  }
  return volumes;
}

}  // namespace trainyard
