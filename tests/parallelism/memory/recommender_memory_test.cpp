// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/memory/recommender_memory.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "support/recommenders.h"

namespace trainyard {
namespace {

MemoryUse use_of(const RecommenderWorkload& workload, int ranks, std::size_t rank) {
  const std::vector<int> servers(static_cast<std::size_t>(ranks), 0);
  const RecommenderSoftware software{.index_bytes = 8, .gradient_bytes = 2};
  const TableSharding sharding = shard_tables(workload.model, workload.rules, ranks,
                                              std::numeric_limits<std::int64_t>::max() / 4);
  return recommender_memory({.workload = workload,
                             .software = software,
                             .rates = unit_rates(),
                             .sharding = sharding,
                             .server_of_rank = servers},
                            rank);
}

}  // namespace

TEST_CASE("tables are held in 32 bits with the states of their optimizer", "[recommender]") {
  RecommenderWorkload workload = recommender_workload(small_recommender(), 64);
  const std::int64_t dense = workload.model.dense_parameters();
  const std::int64_t tables = 1110 * 16;
  REQUIRE(use_of(workload, 1, 0)[MemoryClass::Weights] == Bytes(4 * (tables + dense) + 2 * dense));
  REQUIRE(use_of(workload, 1, 0)[MemoryClass::OptimizerStates] == Bytes());
  REQUIRE(use_of(workload, 1, 0)[MemoryClass::Communication] == Bytes());
  workload.table_optimizer = RecommenderOptimizer::RowwiseAdagrad;
  REQUIRE(use_of(workload, 1, 0)[MemoryClass::OptimizerStates] == Bytes(4 * 1110));
  workload.table_optimizer = RecommenderOptimizer::Adagrad;
  workload.dense_optimizer = RecommenderOptimizer::Adam;
  REQUIRE(use_of(workload, 1, 0)[MemoryClass::OptimizerStates] == Bytes(4 * tables + 8 * dense));
  // Without a copy in 16 bits.
  workload.precision = Precision::Tf32;
  REQUIRE(use_of(workload, 1, 0)[MemoryClass::Weights] == Bytes(4 * (tables + dense)));
}

TEST_CASE("split tables are shared by all ranks, replicated ones are on each", "[recommender]") {
  RecommenderWorkload workload = recommender_workload(small_recommender(), 64);
  workload.rules = {.replicated_rows = 10, .split_rows = 100};
  const std::int64_t dense = workload.model.dense_parameters();
  for (const std::size_t rank : {std::size_t{0}, std::size_t{3}}) {
    const MemoryUse use = use_of(workload, 4, rank);
    REQUIRE(use[MemoryClass::Weights] == Bytes(4 * (1100 * 16 / 4 + 160 + dense) + 2 * dense));
    REQUIRE(use[MemoryClass::Gradients] == Bytes(2 * dense + 4 * 160));
    REQUIRE(use[MemoryClass::Communication] > Bytes());
  }
}

TEST_CASE("room for tables counts what the optimizer holds beside them", "[recommender]") {
  RecommenderWorkload workload = recommender_workload(small_recommender(), 64);
  REQUIRE(room_for_tables(workload, Bytes(1'000'000)) == 212'500);
  workload.table_optimizer = RecommenderOptimizer::Adagrad;
  REQUIRE(room_for_tables(workload, Bytes(1'000'000)) == 106'250);
  workload.table_optimizer = RecommenderOptimizer::RowwiseAdagrad;
  REQUIRE(room_for_tables(workload, Bytes(1'000'000)) == 200'000);
}

}  // namespace trainyard
