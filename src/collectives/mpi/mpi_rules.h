// SPDX-License-Identifier: Apache-2.0
// Which algorithm Open MPI takes for a call, as its fixed decisions have it: by the number of ranks
// and the size, for operations that commute. The rules are data, configs/mpi/open-mpi-4.1.yaml,
// whose source is named there. They say nothing about segments: fixed decisions ask for none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule/operation.h"
#include "sim/units.h"

namespace trainyard {

class Fields;

struct MpiRules {
  // The numbers of ranks from the band before up to here.
  struct Band {
    std::int64_t ranks_below = std::numeric_limits<std::int64_t>::max();
    std::vector<Bytes> sizes_below = {};  // Rising.
    std::vector<std::string> use = {};    // One more: the last is of all greater sizes.
  };
  struct Rule {
    std::string function = {};                 // Open MPI's, which decides.
    std::vector<std::string> algorithms = {};  // All that it has, by their numbers, from 1 on.
    std::vector<Band> bands = {};
  };
  std::map<std::string, Rule> rules;  // Keys are names of operations.

  // Throws ConfigError.
  [[nodiscard]] static MpiRules load(const std::filesystem::path& file);

  // Returns nothing for an operation without a rule.
  [[nodiscard]] const Rule* rule(Operation operation) const;
  // The operation has a rule. The size is that of nccl-tests; Open MPI decides by the bytes of a
  // block where each rank has its own, which is 1 of `ranks` of it, except for reduce_scatter.
  [[nodiscard]] const std::string& choose(Operation operation, int ranks, Bytes size) const;
};

void mpi_rule_fields(Fields& fields, MpiRules& rules);

}  // namespace trainyard
