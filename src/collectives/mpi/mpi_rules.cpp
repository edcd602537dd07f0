// SPDX-License-Identifier: Apache-2.0
#include "collectives/mpi/mpi_rules.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "sim/check.h"
#include "sim/config.h"
#include "sim/fields.h"

namespace trainyard {
namespace {

void band_fields(Fields& fields, MpiRules::Band& band) {
  fields.optional("ranks_below", band.ranks_below, Whole{1, 1'000'000},
                  "Numbers of ranks below this, and not of a band before; all others if missing.");
  fields.optional("powers_of_two", band.powers_of_two, Flag{},
                  "Of these, powers of two alone, and not of a band before.");
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
  fields.required("function", rule.function, Text{},
                  "The function of the library, or its table, that decides.");
  static constexpr std::array<std::string_view, 2> kBytes{"whole", "block"};
  fields.required("bytes", rule.by_block, Choice{kBytes},
                  "Whether the bytes of all ranks' blocks decide, or those of one.");
  fields.required("algorithms", rule.algorithms, List{Text{}},
                  "What `--algo` may ask for; Open MPI numbers them in this order from 1 on.");
  fields.required("bands", rule.bands, List{Group{band_fields}}, "Numbers of ranks, rising.");
  fields.check([&](const ConfigNode& node) {
    const ConfigNode bands = node.required("bands");
    if (rule.bands.empty() ||
        !std::ranges::is_sorted(rule.bands, {}, &MpiRules::Band::ranks_below) ||
        rule.bands.back().ranks_below != MpiRules::Band{}.ranks_below ||
        rule.bands.back().powers_of_two) {
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

}  // namespace

void mpi_rule_fields(Fields& fields, MpiRules& rules) {
  std::string source;
  fields.required("source", source, Text{}, "Where the rules are from.");
  static constexpr auto kNames = row_names(kMpiLibraries);
  fields.required("library", rules.library, Choice{kNames}, "Whose algorithms these names are.");
  fields.required("release", rules.release, Text{}, "Its name and release for notes.");
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
  const Band& band = *std::ranges::find_if(found->bands, [&](const Band& each) {
    const bool is_power = std::has_single_bit(static_cast<unsigned>(ranks));
    return ranks < each.ranks_below && (is_power || !each.powers_of_two);
  });
  const auto bound = std::ranges::upper_bound(band.sizes_below,
                                              found->by_block ? Bytes(size.count() / ranks) : size);
  return band.use[static_cast<std::size_t>(bound - band.sizes_below.begin())];
}

}  // namespace trainyard
