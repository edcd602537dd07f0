// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/table_sharding.h"

#include <algorithm>
#include <cstddef>
#include <tuple>

namespace trainyard {
namespace {

// A piece of one table, `width` elements of each vector.
struct TablePiece {
  std::size_t table = 0;
  std::int64_t work = 0;  // Elements looked up for a sample.
  std::int64_t parameters = 0;
};

void deal(const RecommenderModel& model, std::vector<TablePiece> pieces, std::int64_t width,
          std::int64_t room, std::vector<TableShare>& ranks) {
  std::stable_sort(pieces.begin(), pieces.end(), [](const TablePiece& a, const TablePiece& b) {
    return std::tie(a.work, a.parameters) > std::tie(b.work, b.parameters);
  });
  for (const TablePiece& piece : pieces) {
    const auto before = [&](const TableShare& a, const TableShare& b) {
      const bool a_full = a.parameters + piece.parameters > room;
      const bool b_full = b.parameters + piece.parameters > room;
      if (a_full && b_full) {
        return a.parameters < b.parameters;
      }
      return std::tie(a_full, a.looked_up, a.parameters) <
             std::tie(b_full, b.looked_up, b.parameters);
    };
    std::min_element(ranks.begin(), ranks.end(), before)
        ->add(piece.table, model.tables[piece.table], width);
  }
}

}  // namespace

void TableShare::add(std::size_t index, const EmbeddingTable& table, std::int64_t width) {
  rows += table.rows;
  parameters += table.rows * width;
  lookups += table.lookups;
  looked_up += table.lookups * width;
  summed += width;
  tables.push_back(index);
}

std::size_t TableSharding::busiest() const {
  const auto max = std::ranges::max_element(dealt, {}, &TableShare::looked_up);
  return static_cast<std::size_t>(max - dealt.begin());
}

std::int64_t TableSharding::max_summed() const {
  return std::ranges::max_element(dealt, {}, &TableShare::summed)->summed;
}

double TableSharding::balance() const {
  std::int64_t sum = 0;
  for (const TableShare& share : dealt) {
    sum += share.looked_up;
  }
  const std::int64_t max = dealt[busiest()].looked_up;
  return max == 0 ? 1.0
                  : static_cast<double>(sum) / static_cast<double>(dealt.size()) /
                        static_cast<double>(max);
}

TableSharding shard_tables(const RecommenderModel& model, const TableRules& rules, int ranks,
                           std::int64_t room) {
  TableSharding sharding;
  sharding.dealt.resize(static_cast<std::size_t>(ranks));
  const std::int64_t width = model.width / rules.columns;
  std::vector<TablePiece> pieces;
  for (std::size_t index = 0; index < model.tables.size(); ++index) {
    const EmbeddingTable& table = model.tables[index];
    if (ranks > 1 && table.rows <= rules.replicated_rows) {
      sharding.replicated.add(index, table, model.width);
    } else if (ranks > 1 && rules.split_rows > 0 && table.rows >= rules.split_rows) {
      sharding.split.add(index, table, model.width);
    } else {
      pieces.insert(
          pieces.end(), static_cast<std::size_t>(rules.columns),
          {.table = index, .work = table.lookups * width, .parameters = table.rows * width});
    }
  }
  for (TableShare& share : sharding.dealt) {
    share.columns = rules.columns;
  }
  deal(model, std::move(pieces), width,
       room - sharding.replicated.parameters - sharding.split.parameters / ranks, sharding.dealt);
  return sharding;
}

}  // namespace trainyard
