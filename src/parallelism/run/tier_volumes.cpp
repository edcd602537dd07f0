// SPDX-License-Identifier: Apache-2.0
#include "parallelism/run/tier_volumes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>

namespace trainyard {
namespace {

// Adds up what each link carries, and what the links of each tier carry for each purpose.
struct Sums {
  explicit Sums(std::size_t tiers) : of_purpose(tiers) {}

  void add(LinkId link, std::size_t tier, const PurposeBytes& part) {
    if (link.value() >= of_link.size()) {
      of_link.resize(link.value() + 1);
    }
    of_link[link.value()] += part.bytes;
    of_purpose[tier][part.purpose] += part.bytes;
  }

  std::vector<Bytes> of_link;
  std::vector<std::map<std::string, Bytes>> of_purpose;
};

}  // namespace

std::vector<TierVolume> tier_volumes(const LinkResources& resources,
                                     std::span<const LinkTraffic> traffic) {
  const std::vector<Resource>& tiers = resources.list();
  const auto tier_of = [&](LinkId link) {
    return static_cast<std::size_t>(&resources.of(link) - tiers.data());
  };
  Sums sums(tiers.size());
  for (const LinkTraffic& link : traffic) {
    for (const PurposeBytes& part : link.parts) {
      if (part.bytes > Bytes(0)) {
        sums.add(link.link, tier_of(link.link), part);
      }
    }
  }
  std::vector<TierVolume> volumes;
  for (std::size_t tier = 0; tier < tiers.size(); ++tier) {
    volumes.push_back({.key = tiers[tier].key, .title = tiers[tier].title});
    for (const auto& [purpose, bytes] : sums.of_purpose[tier]) {
      volumes.back().parts.push_back({.purpose = purpose, .bytes = bytes});
    }
  }
  for (std::uint32_t index = 0; index < sums.of_link.size(); ++index) {
    const Bytes bytes = sums.of_link[index];
    if (bytes > Bytes(0)) {
      TierVolume& volume = volumes[tier_of(LinkId(index))];
      ++volume.links;
      volume.bytes += bytes;
      volume.busiest = std::max(volume.busiest, bytes);
    }
  }
  std::erase_if(volumes, [](const TierVolume& volume) { return volume.links == 0; });
  return volumes;
}

}  // namespace trainyard
