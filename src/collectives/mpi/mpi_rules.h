// SPDX-License-Identifier: Apache-2.0
// Which algorithm a library takes for a call, as its own decisions have it: by the number of ranks
// and the size, for operations that commute. The rules are data, configs/mpi/open-mpi-4.1.yaml,
// mpich-4.1.yaml and gloo.yaml, whose sources are named there. They say nothing about segments:
// Open MPI's fixed decisions ask for none, and those of Gloo follow from the size.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/mpi/mpi_call.h"
#include "collectives/schedule/operation.h"
#include "sim/units.h"

namespace trainyard {

class Fields;

struct MpiRules {
  // The numbers of ranks from the band before up to here.
  struct Band {
    std::int64_t ranks_below = std::numeric_limits<std::int64_t>::max();
    bool powers_of_two = false;           // The others of them are left out.
    std::vector<Bytes> sizes_below = {};  // Rising.
    std::vector<std::string> use = {};    // One more: the last is of all greater sizes.
  };
  struct Rule {
    std::string function = {};                 // The library's, which decides,
    bool by_block = false;                     // by the bytes of one rank's block, or of all.
    std::vector<std::string> algorithms = {};  // Those that may be asked for.
    std::vector<Band> bands = {};
  };
  MpiLibrary library = MpiLibrary::OpenMpi;
  std::string release;                // "Open MPI 4.1"
  std::map<std::string, Rule> rules;  // Keys are names of operations.

  // Throws ConfigError.
  [[nodiscard]] static MpiRules load(const std::filesystem::path& file);

  // Returns nothing for an operation without a rule.
  [[nodiscard]] const Rule* rule(Operation operation) const;
  // The operation has a rule. The size is that of nccl-tests, of which a block is 1 of `ranks`.
  [[nodiscard]] const std::string& choose(Operation operation, int ranks, Bytes size) const;
};

void mpi_rule_fields(Fields& fields, MpiRules& rules);

}  // namespace trainyard
