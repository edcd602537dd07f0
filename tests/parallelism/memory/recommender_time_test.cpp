// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/memory/recommender_time.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "parallelism/operators/operator_time.h"
#include "support/recommenders.h"

namespace trainyard {
namespace {

constexpr std::int64_t kRoom = std::numeric_limits<std::int64_t>::max() / 4;

struct TimedCase {
  explicit TimedCase(int ranks, std::int64_t batch = 64, const TableRules& rules = {})
      : workload(recommender_workload(small_recommender(), batch)),
        sharding(shard_tables(workload.model, rules, ranks, kRoom)),
        servers(static_cast<std::size_t>(ranks), 0) {}

  [[nodiscard]] RecommenderJob job() const {
    return {.workload = workload,
            .software = software,
            .rates = unit_rates(),
            .sharding = sharding,
            .server_of_rank = servers};
  }

  RecommenderWorkload workload;
  RecommenderSoftware software{.index_bytes = 8, .gradient_bytes = 4};
  TableSharding sharding;
  std::vector<int> servers;
};

}  // namespace

TEST_CASE("look-ups read a row for each index and write a sum for each table", "[recommender]") {
  // At 1 GB/s: 64 samples, six vectors of 16 elements of 4 bytes, three sums of 16 of 2 bytes.
  const TimedCase one(1);
  REQUIRE(recommender_times(one.job(), 0).lookups[StepPart::Attention] ==
          nanoseconds(64 * (6 * 16 * 4 + 3 * 16 * 2)));
  // Of a split table a rank reads half of the rows, and writes sums of all samples; of a replicated
  // one it serves its own half of the samples.
  const TimedCase two(2, 64, {.replicated_rows = 10, .split_rows = 1000});
  const std::size_t rank = two.sharding.busiest();
  REQUIRE(recommender_times(two.job(), rank).lookups[StepPart::Attention] ==
          nanoseconds(64 * (16 * 4 + 16 * 2) + 32 * 2 * 16 * 4 + 64 * 16 * 2 +
                      32 * (3 * 16 * 4 + 16 * 2)));
}

TEST_CASE("pieces of a vector that do not fill a sector of memory read it whole", "[recommender]") {
  // 16 and 8 elements of 4 bytes are whole sectors of 32; 4, 2 and 1 are less than one.
  const auto lookups = [](std::int64_t columns) {
    const TimedCase pieces(1, 64, {.columns = columns});
    return recommender_times(pieces.job(), 0).lookups[StepPart::Attention];
  };
  REQUIRE(lookups(2) == lookups(1));
  REQUIRE(lookups(4) - lookups(2) == nanoseconds(64 * 6 * 4 * (32 - 16)));
  REQUIRE(lookups(16) == nanoseconds(64 * (6 * 16 * 32 + 3 * 16 * 2)));
}

TEST_CASE("traffic of tables is what leaves the rank that holds most", "[recommender]") {
  const RecommenderTraffic alone = recommender_traffic(TimedCase(1).job());
  REQUIRE(alone.vectors == Bytes());
  REQUIRE(alone.top_gradients == Bytes());
  // Three tables on two ranks: two on one of them.
  const TimedCase two(2);
  const RecommenderTraffic traffic = recommender_traffic(two.job());
  REQUIRE(traffic.vectors == Bytes(64 * 2 * 16 * 2));
  REQUIRE(traffic.split_vectors == Bytes());
  REQUIRE(traffic.indices == Bytes(32 * 6 * 8));
  REQUIRE(traffic.top_gradients == Bytes((22 * 32 + 32 + 32 + 1) * 4));
  REQUIRE(traffic.bottom_gradients == Bytes((16 * 32 + 32 + 32 * 16 + 16) * 4));
  const TimedCase mixed(2, 64, {.replicated_rows = 10, .split_rows = 1000});
  const RecommenderTraffic other = recommender_traffic(mixed.job());
  REQUIRE(other.split_vectors == Bytes(64 * 16 * 2));
  REQUIRE(other.indices == Bytes(32 * 3 * 8));
  REQUIRE(other.bottom_gradients == traffic.bottom_gradients + Bytes(160 * 4));
}

TEST_CASE("many draws name all rows of a table, few name different ones", "[recommender]") {
  REQUIRE(distinct_rows(1, 5.0) == 1.0);
  REQUIRE(distinct_rows(10, 1.0) == Approx(1.0));
  REQUIRE(distinct_rows(10, 2.0) == Approx(1.9));
  REQUIRE(distinct_rows(10, 1e6) == Approx(10.0));
  REQUIRE(distinct_rows(40'000'000, 65536.0) == Approx(65536.0).epsilon(1e-3));
}

TEST_CASE("states of optimizers make updates longer, pooled ones least", "[recommender]") {
  TimedCase one(1);
  const auto updates = [&](RecommenderOptimizer optimizer) {
    one.workload.table_optimizer = optimizer;
    return recommender_times(one.job(), 0).updates[StepPart::Casts];
  };
  const SimTime sgd = updates(RecommenderOptimizer::Sgd);
  REQUIRE(updates(RecommenderOptimizer::RowwiseAdagrad) > sgd);
  REQUIRE(updates(RecommenderOptimizer::Adagrad) > updates(RecommenderOptimizer::RowwiseAdagrad));
  REQUIRE(updates(RecommenderOptimizer::Adam) > updates(RecommenderOptimizer::Adagrad));
}

TEST_CASE("a small output over a long K is cut into parts until multiprocessors are filled",
          "[recommender]") {
  ComputeRates rates = unit_rates();
  rates.memory_rate = 1e18;
  const OperatorTimes operators(rates);
  // One tile on four multiprocessors: a quarter of the time with four parts.
  const Gemm gemm{.m = 64, .n = 64, .k = 8192};
  const SimTime whole = operators.linear(gemm);
  const SimTime cut = operators.linear_over_long_k(gemm);
  REQUIRE(cut * 4 >= whole);
  REQUIRE(cut * 400 < whole * 101);
  // Enough tiles, or a short K: nothing to gain.
  const Gemm wide{.m = 4096, .n = 4096, .k = 8192};
  REQUIRE(operators.linear_over_long_k(wide) == operators.linear(wide));
  const Gemm shallow{.m = 64, .n = 64, .k = 512};
  REQUIRE(operators.linear_over_long_k(shallow) == operators.linear(shallow));
}

TEST_CASE("TF32 has the rate of its peak and twice the bytes", "[recommender]") {
  const GpuModel& gpu = shipped_catalogue().gpus().at("A100-SXM-80GB");
  const RecommenderSoftware software = recommender_software("torchrec");
  const ComputeRates half = recommender_rates(gpu, shipped_rates(), software, Precision::Fp16);
  const ComputeRates tf32 = recommender_rates(gpu, shipped_rates(), software, Precision::Tf32);
  REQUIRE(tf32.peak == 156e12);
  REQUIRE(tf32.linear_rate == Approx(half.linear_rate / 2.0));
  REQUIRE(row_of(Precision::Tf32).element_bytes == 4);
  REQUIRE(row_of(Precision::Bf16).element_bytes == 2);
}

}  // namespace trainyard
