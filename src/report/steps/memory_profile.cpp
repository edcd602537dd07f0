// SPDX-License-Identifier: Apache-2.0
#include "report/steps/memory_profile.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "report/formats/table.h"

namespace trainyard {
namespace {

std::string key_of(MemoryClass memory_class) {
  std::string key(to_string(memory_class));
  std::replace(key.begin(), key.end(), ' ', '_');
  return key + "_gib";
}

}  // namespace

std::string memory_profile_csv(const StepMemory& memory) {
  std::vector<Column> columns = key_columns({"rank", "position", "moment"});
  for (const MemoryClass each : kMemoryClasses) {
    columns.push_back({.name = key_of(each), .key = key_of(each)});
  }
  Table table(std::move(columns));
  for (const RankMemory& rank : memory.ranks) {
    for (const MemoryMoment& moment : rank.profile) {
      std::vector<Cell> cells{Cell::count(rank.rank), Cell::count(moment.position),
                              Cell::of(moment.where())};
      for (const MemoryClass each : kMemoryClasses) {
        cells.push_back({"", gibibytes(moment.use[each])});
      }
      table.add_row(std::move(cells));
    }
  }
  return render_csv(table);
}

}  // namespace trainyard
