// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/run/recommender_run.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/run/run.h"
#include "collectives/schedule/traffic_matrix.h"
#include "parallelism/memory/recommender_time.h"
#include "sim/config_error.h"
#include "support/recommenders.h"

namespace trainyard {
namespace {

const nccl::Profile& shipped_profile() {
  static const nccl::Profile instance =
      nccl::Profile::load(kConfigsFolder / "nccl" / "profile.yaml");
  return instance;
}

// ln of predicted over measured time.
double error_of(const MeasuredRecommender& row) {
  RecommenderWorkload workload = recommender_workload(shipped_recommender(row.model), row.batch);
  workload.precision = row.precision;
  StepTables tables = plain_tables();
  tables.nccl = &shipped_profile();
  const auto gpus = static_cast<int>(row.gpus);
  const RecommenderRun run =
      run_recommender(shipped_cluster(row.cluster, {.nodes = 1, .gpus_per_node = gpus}), workload,
                      recommender_software(row.software), tables);
  const double measured =
      row.step ? row.step->seconds() : static_cast<double>(row.batch) / row.samples_per_s;
  return std::log(run.step.time.seconds() / measured);
}

std::string refusal_of(const RecommenderWorkload& workload) {
  try {
    (void)run_recommender(shipped_cluster("dgx-h100", {.nodes = 1}), workload,
                          recommender_software("torchrec"), plain_tables());
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("measured steps of recommendation models are as far off as recorded", "[recommender]") {
  ConfigDocument document =
      ConfigDocument::load(source_dir() / "validation/recommenders/rows.yaml");
  std::vector<MeasuredRecommender> rows;
  read_fields(document.root(), rows, measured_recommender_fields);
  document.finish();
  std::vector<double> errors;
  for (const MeasuredRecommender& row : rows) {
    const double error = error_of(row);
    INFO(row.id);
    REQUIRE(error == Approx(row.error).margin(0.0006));
    if (!row.is_fitted) {
      errors.push_back(std::abs(error));
    }
  }
  std::sort(errors.begin(), errors.end());
  REQUIRE(errors[errors.size() / 2] < 0.18);
}

TEST_CASE("all traffic on an idle network takes as long as each call alone", "[recommender]") {
  RecommenderWorkload workload = recommender_workload(shipped_recommender("dlrm-mlperf"), 65536);
  workload.overlap_input = false;
  workload.overlap_tables = false;
  workload.overlap_data = false;
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  const RecommenderSoftware software = recommender_software("torchrec");
  StepTables tables = plain_tables();
  const RecommenderRun alone = run_recommender(cluster, workload, software, tables);
  tables.shares_network = true;
  const RecommenderRun shared = run_recommender(cluster, workload, software, tables);
  REQUIRE(shared.step.time == alone.step.time);
  // Beside computation, calls on the network are not slowed down by it.
  workload.overlap_data = true;
  REQUIRE(run_recommender(cluster, workload, software, tables).step.time < shared.step.time);
}

// What recommender_traffic() states, against the engine and the sizes that ranks have.
TEST_CASE("an uneven exchange takes as long as an even one of the largest sender",
          "[recommender]") {
  const RecommenderModel model = shipped_recommender("dlrm-mlperf");
  constexpr std::int64_t kSamples = 4096;
  for (const int nodes : {1, 2}) {
    const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = nodes});
    const int ranks = 8 * nodes;
    const TableSharding sharding = shard_tables(model, {}, ranks, std::int64_t{1} << 60);
    TrafficMatrix matrix{.ranks = ranks, .bytes = {}};
    for (const TableShare& share : sharding.dealt) {
      matrix.bytes.insert(matrix.bytes.end(), static_cast<std::size_t>(ranks),
                          kSamples * share.summed * 2);
    }
    const SimTime uneven = run_collective(cluster, {.operation = Operation::AllToAllV,
                                                    .algorithm = &kDirect,
                                                    .size = matrix.largest(),
                                                    .matrix = &matrix})
                               .time;
    const SimTime even =
        run_collective(cluster, {.operation = Operation::AllToAll,
                                 .algorithm = &kDirect,
                                 .size = Bytes(kSamples * ranks * sharding.max_summed() * 2)})
            .time;
    INFO(nodes << " nodes: " << uneven.seconds() << " and " << even.seconds());
    REQUIRE(even >= uneven);
    REQUIRE(even / uneven < 1.03);
  }
}

TEST_CASE("a slow GPU and jitter make a step longer, and what it takes without is kept",
          "[recommender]") {
  const RecommenderWorkload workload =
      recommender_workload(shipped_recommender("dlrm-mlperf"), 65536);
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  const RecommenderSoftware software = recommender_software("hugectr");
  StepTables tables = plain_tables();
  const SimTime usual = run_recommender(cluster, workload, software, tables).step.time;
  tables.slow_rank = SlowRank{.rank = 3, .ppm = 1'500'000};
  const RecommenderRun slow = run_recommender(cluster, workload, software, tables);
  REQUIRE(slow.usual_time == usual);
  REQUIRE(slow.step.time > usual);
  tables.slow_rank.reset();
  tables.jitter = {.rank_ppm = 100'000, .operation_ppm = 100'000, .seed = 1};
  REQUIRE(run_recommender(cluster, workload, software, tables).step.time > usual);
}

TEST_CASE("batches that ranks cannot share evenly, or that nothing could count, are refused",
          "[recommender]") {
  REQUIRE(refusal_of(recommender_workload(small_recommender(), 65537)) ==
          "batch.global: expected a multiple of the number of GPUs, found 65537 and 8");
  RecommenderModel huge = small_recommender();
  huge.tables.assign(100'000, {.rows = 10, .lookups = 100'000});
  REQUIRE(refusal_of(recommender_workload(huge, std::int64_t{1} << 32)) ==
          "batch.global: expected at most 1e+16 elements of looked-up vectors, found 6.87e+20");
}

}  // namespace trainyard
