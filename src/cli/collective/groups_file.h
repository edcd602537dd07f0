// SPDX-License-Identifier: Apache-2.0
// The communicators of `trainyard collective --groups`: all ranks in equal groups, or those of a
// file (docs/commands/collective.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "sim/config.h"
#include "sim/fields.h"
#include "sim/units.h"

namespace trainyard {

struct GroupSpec {
  std::string name = {};
  std::vector<int> ranks = {};  // Rising, each once, at least two.
  // Where one is missing, that of the command line counts.
  std::optional<Operation> operation = {};
  std::optional<Bytes> size = {};
  std::optional<Algorithm> algorithm = {};
  SimTime start = {};
};

struct GroupsFile {
  std::vector<GroupSpec> groups;
};

// The rows of such a file.
void groups_fields(Fields& fields, GroupsFile& file);

// `text` is "8", groups of 8 ranks that follow each other; ":8", 8 groups of every eighth rank; or
// the name of a file. Throws ConfigError where a group is not one of `ranks` ranks.
[[nodiscard]] std::vector<GroupSpec> read_groups(const std::string& text, int ranks);

// Ranks of a list such as "0,8,16" or "0-63:8", or nothing where they do not rise.
[[nodiscard]] std::vector<int> rising_ranks(const std::string& text);
// The same in short form.
[[nodiscard]] std::string ranks_text(const std::vector<int>& ranks);

}  // namespace trainyard
