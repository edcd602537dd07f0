// SPDX-License-Identifier: Apache-2.0
// A sweep file: a command, the options that all of its runs share, and those that vary.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/option_table.h"
#include "sim/config.h"
#include "sim/fields.h"

namespace trainyard {

// An option that takes one value after the other. The key is its name, or "NAME.REST" for an option
// that is given as REST=VALUE: "set.fabric.oversubscription".
struct SweepAxis {
  std::string key;
  std::vector<std::string> values;
};

struct SweepSpec {
  std::string title;
  std::string command;
  std::string positional = {};  // The option of the command that is given without its name, if any.
  // Name and values of each; an option without a value has none.
  std::vector<std::pair<std::string, std::vector<std::string>>> options;
  // Axes of a group go together and have equally many values; groups are combined, the last one
  // changing first.
  std::vector<std::vector<SweepAxis>> groups;

  [[nodiscard]] std::size_t points() const;
  // All axes, in order, and their values at a point.
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] std::vector<std::string> values_at(std::size_t point) const;
  // The arguments of the command at a point: options, then axes.
  [[nodiscard]] std::vector<std::string> arguments_at(std::size_t point) const;
};

inline constexpr std::size_t kMaxSweepPoints = 1'000'000;

// The rows of a sweep file, of which `commands` can be swept. Options are not looked up.
void sweep_fields(Fields& fields, SweepSpec& spec, std::span<const Command> commands);
// Throws ConfigError with the place of the mistake. Options are not looked up.
[[nodiscard]] SweepSpec read_sweep(ConfigDocument& document, std::span<const Command> commands);

}  // namespace trainyard
