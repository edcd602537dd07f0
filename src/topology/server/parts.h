// SPDX-License-Identifier: Apache-2.0
// Leads from the parts of the catalogue to the links of a topology, and notes what was used of
// them.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "hw/parts/catalogue.h"
#include "sim/fields.h"
#include "sim/units.h"
#include "topology/graph/topology.h"

namespace trainyard {

// Remembers which parts were used, and which of the values that it hands out are parts.
class PartLog {
 public:
  // The index of a part in names(), where it is entered if it is new.
  std::uint16_t part(std::string_view name);
  // Names of parts in the order of first use, after an empty one that represents none.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  // The value; `part` and `key` say where it stands in the catalogue.
  template <typename T>
  const T& use(std::string_view part, std::string_view key, const Sourced<T>& sourced) {
    if (sourced.evidence == Evidence::Estimate) {
      if constexpr (std::is_arithmetic_v<T>) {
        add(part, key, fmt::format("{}", sourced.value), sourced.source);
      } else {
        add(part, key, to_string(sourced.value), sourced.source);
      }
    }
    return sourced.value;
  }
  // "PART: KEY = VALUE: SOURCE", each once, in the order of first use.
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  void add(std::string_view part, std::string_view key, std::string_view value,
           std::string_view source);

  std::vector<std::string> names_ = {""};
  std::vector<std::string> lines_;
};

// One physical link or PCIe lane, of which bundles are made.
struct PhysicalLink {
  LinkKind kind = LinkKind::Network;
  Bandwidth rate;  // Before `efficiency`.
  double efficiency = 1.0;
  SimTime latency;
  std::uint16_t part = 0;

  [[nodiscard]] LinkSpec bundle(int lanes) const;
};

[[nodiscard]] PhysicalLink physical_link(const LinkModel& model, PartLog& parts);
// The same with a GPU at one end: its part of the latency is added.
[[nodiscard]] PhysicalLink gpu_link(const LinkModel& model, PartLog& parts);

// A signal takes 5 ns a metre, which covers copper (4.3 to 4.6) and fibre (4.96 to 5).
inline constexpr double kCablePicosecondsPerMetre = 5'000.0;
// A length such as "10 m" or "2.5m", as the time that a signal takes.
[[nodiscard]] SimTime cable_delay(const ConfigNode& length);

// Kinds of values in tables of fields. Those that look parts up take a catalogue that is null only
// where nothing is read.
inline constexpr Via kLength{Text{}, cable_delay};
struct PartKind {
  static void describe(Schema& schema) { describe_part(schema); }
};
template <typename Model>
auto part_named(Catalogue* catalogue, const Model& (Catalogue::*find)(const ConfigNode& part)) {
  return Via{PartKind{}, [=](const ConfigNode& part) { return &(catalogue->*find)(part); }};
}
// A link of one family, which errors call `expected`.
inline auto link_named(Catalogue* catalogue, LinkFamily family, std::string_view expected) {
  return Via{PartKind{}, [=](const ConfigNode& part) {
               const LinkModel& model = catalogue->link(part);
               if (model.family != family) {
                 part.fail(expected, part.found());
               }
               return &model;
             }};
}

}  // namespace trainyard
