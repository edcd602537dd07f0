// SPDX-License-Identifier: Apache-2.0
#include "report/results/volume_entries.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "report/formats/json.h"

namespace trainyard {
namespace {

Cell size_cell(Bytes bytes) {
  return {short_size(bytes), bytes.count()};
}

// "tensor 97.5 %, data 2.5 %", the greatest first.
std::string purposes_text(const TierVolume& volume) {
  std::vector<PurposeBytes> parts = volume.parts;
  std::ranges::stable_sort(parts, std::ranges::greater(), &PurposeBytes::bytes);
  std::vector<std::string> texts;
  for (const PurposeBytes& part : parts) {
    texts.push_back(fmt::format("{} {:.1f} %", part.purpose,
                                100.0 * gibibytes(part.bytes) / gibibytes(volume.bytes)));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
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

void add_volumes(const std::string& title, const std::vector<TierVolume>& volumes,
                 Document& document) {
  const Field of_csv = volumes_field(volumes);
  document.add(Figure{.key = of_csv.column.key, .cell = of_csv.cell, .shown = Shown::Csv});
  document.add_table(
      title,
      table_of(
          volumes,
          [](const TierVolume& volume) {
            std::vector<Field> fields = tier_fields(volume);
            fields.push_back(
                {{.name = "for", .key = "purposes", .align = Align::Left, .shown = Shown::People},
                 Cell::of(purposes_text(volume))});
            return fields;
          }),
      Shown::People | Shown::Json, "volumes");
  Json purposes = Json::object();
  for (const TierVolume& volume : volumes) {
    for (const PurposeBytes& part : volume.parts) {
      purposes[volume.key][part.purpose] = part.bytes.count();
    }
  }
  document.add_detail("volumes_by_purpose", std::move(purposes));
}

}  // namespace trainyard
