// SPDX-License-Identifier: Apache-2.0
#include "calibration/plain_prediction.h"

#include <spdlog/fmt/fmt.h>

#include "collectives/run.h"
#include "nccl/types.h"

namespace trainyard {
namespace {

// Beyond this many ranks a ring's transfers take longer to simulate than they teach.
constexpr int kMostSimulatedRanks = 128;

Algorithm algorithm_for(const ValidationCase& item, Operation operation) {
  const std::string* const forced = item.variable("NCCL_ALGO");
  const bool tree = forced != nullptr && nccl::parse_algorithm(*forced) == nccl::Algorithm::Tree;
  const Algorithm wanted = tree ? Algorithm::Tree : Algorithm::Ring;
  return supports(wanted, operation) ? wanted : Algorithm::Direct;
}

}  // namespace

std::vector<PredictedTime> predict_plain(const ValidationCase& item, const Cluster& cluster,
                                         Operation operation, std::span<const Bytes> sizes) {
  const Algorithm algorithm = algorithm_for(item, operation);
  const Fidelity fidelity = item.fidelity.value_or(
      item.ranks > kMostSimulatedRanks ? Fidelity::Analytical : Fidelity::Flow);
  std::vector<PredictedTime> times;
  for (const Bytes size : sizes) {
    const CollectiveResult result = run_collective(
        cluster,
        {.operation = operation, .algorithm = algorithm, .size = size, .fidelity = fidelity});
    times.push_back(
        {.time = result.time,
         .how = fmt::format("plain {}, {} channels", to_string(algorithm), result.channels)});
  }
  return times;
}

}  // namespace trainyard
