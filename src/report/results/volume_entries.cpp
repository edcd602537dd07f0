// SPDX-License-Identifier: Apache-2.0
#include "report/results/volume_entries.h"

#include <spdlog/fmt/fmt.h>

namespace trainyard {
namespace {

Cell size_cell(Bytes bytes) {
  return {short_size(bytes), bytes.count()};
}

}  // namespace

std::string volumes_text(const std::vector<TierVolume>& volumes) {
  std::vector<std::string> parts;
  for (const TierVolume& volume : volumes) {
    parts.push_back(fmt::format("{} {}", volume.title, short_size(volume.bytes)));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Field volumes_field(const std::vector<TierVolume>& volumes) {
  std::vector<std::string> parts;
  for (const TierVolume& volume : volumes) {
    parts.push_back(fmt::format("{}={}", volume.key, volume.bytes.count()));
  }
  return {{.name = "volumes", .key = "volumes_bytes", .shown = Shown::Csv},
          Cell::any(fmt::format("{}", fmt::join(parts, ";")))};
}

std::vector<Field> tier_fields(const TierVolume& volume) {
  return {{column("links", "tier", Align::Left), {volume.title, volume.key}},
          {column("number", "links"), Cell::count(volume.links)},
          {column("bytes", "bytes"), size_cell(volume.bytes)},
          {column("busiest", "busiest_link_bytes"), size_cell(volume.busiest)}};
}

}  // namespace trainyard
