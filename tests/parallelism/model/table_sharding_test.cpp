// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/model/table_sharding.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "sim/random.h"
#include "support/recommenders.h"

namespace trainyard {
namespace {

constexpr std::int64_t kRoom = std::numeric_limits<std::int64_t>::max() / 4;

TableShare sum_of(const TableSharding& sharding) {
  TableShare sum;
  for (const TableShare& share : sharding.dealt) {
    sum.parameters += share.parameters;
    sum.looked_up += share.looked_up;
    sum.summed += share.summed;
  }
  return sum;
}

}  // namespace

TEST_CASE("tables are replicated, split or sharded by their rows", "[sharding]") {
  const TableSharding sharding = shard_tables(
      small_recommender(), {.replicated_rows = 10, .split_rows = 1000, .columns = 2}, 2, kRoom);
  REQUIRE(sharding.replicated.parameters == 160);
  REQUIRE(sharding.split.parameters == 16'000);
  REQUIRE(sharding.split.looked_up == 32);
  for (const TableShare& share : sharding.dealt) {
    REQUIRE(share.parameters == 800);
    REQUIRE(share.summed == 8);
    REQUIRE(share.lookups == 1);
  }
  REQUIRE(sharding.balance() == 1.0);
}

TEST_CASE("one rank has all tables to itself", "[sharding]") {
  const RecommenderModel model = small_recommender();
  const TableSharding sharding =
      shard_tables(model, {.replicated_rows = 10, .split_rows = 1000}, 1, kRoom);
  REQUIRE(sharding.dealt[0].parameters == model.table_parameters());
  REQUIRE(sharding.replicated.tables.empty());
  REQUIRE(sharding.split.tables.empty());
}

TEST_CASE("no rule loses or doubles a table, and no rank is far above the mean", "[sharding]") {
  RandomStream random(7, "sharding");
  const RecommenderModel shipped = shipped_recommender("dlrm-dcnv2");
  for (int round = 0; round < 200; ++round) {
    const TableRules rules{.replicated_rows = std::int64_t{1} << random.below(16),
                           .split_rows = std::int64_t{1} << (17 + random.below(10)),
                           .columns = std::int64_t{1} << random.below(5)};
    const int ranks = 2 + static_cast<int>(random.below(63));
    const TableSharding sharding = shard_tables(shipped, rules, ranks, kRoom);
    const TableShare dealt = sum_of(sharding);
    REQUIRE(dealt.parameters + sharding.split.parameters + sharding.replicated.parameters ==
            shipped.table_parameters());
    std::int64_t largest = 0;
    for (const TableShare& share : sharding.dealt) {
      for (const std::size_t index : share.tables) {
        largest = std::max(largest, shipped.tables[index].lookups * shipped.width / rules.columns);
      }
    }
    // Graham's bound for list scheduling.
    REQUIRE(sharding.dealt[sharding.busiest()].looked_up <= dealt.looked_up / ranks + largest);
  }
}

TEST_CASE("a rank without room gets no table while another has some", "[sharding]") {
  // Two large tables that are looked up least; all others first go to the emptier rank.
  RecommenderModel model = small_recommender();
  model.tables = {
      {.rows = 1000}, {.rows = 1000}, {.rows = 10, .lookups = 5}, {.rows = 10, .lookups = 1}};
  const TableSharding free = shard_tables(model, {}, 2, kRoom);
  REQUIRE(std::max(free.dealt[0].parameters, free.dealt[1].parameters) > 1500 * 16);
  const TableSharding tight = shard_tables(model, {}, 2, 1200 * 16);
  REQUIRE(std::max(tight.dealt[0].parameters, tight.dealt[1].parameters) <= 1200 * 16);
  // Without any room at all tables are where least is.
  const TableSharding full = shard_tables(model, {}, 2, 0);
  REQUIRE(sum_of(full).parameters == model.table_parameters());
}

}  // namespace trainyard
