// SPDX-License-Identifier: Apache-2.0
#include "collectives/mpi/mpi_rules.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "sim/check.h"
#include "sim/config.h"
#include "sim/fields.h"

namespace trainyard {
namespace {

void band_fields(Fields& fields, MpiRules::Band& band) {
  fields.optional("ranks_below", band.ranks_below, Whole{1, 1'000'000},
                  "Numbers of ranks below this, and not of a band before; all others if missing.");
  fields.optional("sizes_below", band.sizes_below, List{Amount{}}, "Bounds of sizes, rising.");
  fields.required("use", band.use, List{Text{}},
                  "The algorithm below each bound, and one for all greater sizes.");
  fields.check([&](const ConfigNode& node) {
    if (band.use.size() != band.sizes_below.size() + 1) {
      node.required("use").fail(
          fmt::format("{} algorithms, one more than sizes", band.sizes_below.size() + 1),
          std::to_string(band.use.size()));
    }
    if (!std::ranges::is_sorted(band.sizes_below)) {
      node.required("sizes_below").fail("sizes that rise", "others");
    }
  });
}

void rule_fields(Fields& fields, MpiRules::Rule& rule) {
  fields.required("function", rule.function, Text{}, "The function of Open MPI that decides.");
  fields.required("algorithms", rule.algorithms, List{Text{}},
                  "What Open MPI has, in the order of its numbers from 1 on.");
  fields.required("bands", rule.bands, List{Group{band_fields}}, "Numbers of ranks, rising.");
  fields.check([&](const ConfigNode& node) {
    const ConfigNode bands = node.required("bands");
    if (rule.bands.empty() ||
        !std::ranges::is_sorted(rule.bands, {}, &MpiRules::Band::ranks_below) ||
        rule.bands.back().ranks_below != MpiRules::Band{}.ranks_below) {
      bands.fail("bands that rise, the last without a bound", "others");
    }
    for (const MpiRules::Band& band : rule.bands) {
      for (const std::string& name : band.use) {
        if (std::ranges::find(rule.algorithms, name) == rule.algorithms.end()) {
          bands.fail("algorithms of the list above", name);
        }
      }
    }
  });
}

// The bytes by which Open MPI decides.
Bytes deciding_size(Operation operation, int ranks, Bytes size) {
  const bool by_block = row_of(operation).splits && operation != Operation::ReduceScatter;
  return by_block ? Bytes(size.count() / ranks) : size;
}

}  // namespace

void mpi_rule_fields(Fields& fields, MpiRules& rules) {
  std::string source;
  fields.required("source", source, Text{}, "Where the rules are from.");
  fields.required("rules", rules.rules, Named{Group{rule_fields}}, "By operation.");
  fields.check([&](const ConfigNode& node) {
    for (const auto& [name, rule] : rules.rules) {
      if (!parse_operation(name)) {
        node.required("rules").fail(fmt::format("operations, some of {}", operation_names()), name);
      }
    }
  });
}

MpiRules MpiRules::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  MpiRules rules;
  read_fields(document.root(), rules, mpi_rule_fields);
  return rules;
}

const MpiRules::Rule* MpiRules::rule(Operation operation) const {
  const auto found = rules.find(std::string(to_string(operation)));
  return found == rules.end() ? nullptr : &found->second;
}

const std::string& MpiRules::choose(Operation operation, int ranks, Bytes size) const {
  const Rule* const found = rule(operation);
  CHECK(found != nullptr, "an operation with a rule");
  const Band& band = *std::ranges::find_if(
      found->bands, [&](const Band& each) { return ranks < each.ranks_below; });
  const auto bound =
      std::ranges::upper_bound(band.sizes_below, deciding_size(operation, ranks, size));
  return band.use[static_cast<std::size_t>(bound - band.sizes_below.begin())];
}

}  // namespace trainyard
