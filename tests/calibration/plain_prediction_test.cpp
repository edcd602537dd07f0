// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <vector>

#include "calibration/plain_prediction.h"
#include "collectives/run.h"
#include "support/case_files.h"

namespace trainyard {
namespace {

using namespace literals;

TEST_CASE("the plain predictor gives what the plain runtime does") {
  const CaseFolder folder;
  const LoadedCase ring = folder.load("");
  const LoadedCase tree = folder.load("env: {NCCL_ALGO: tree}\nfidelity: analytical\n");
  const Cluster cluster = load_cluster(
      ring.item.cluster,
      Catalogue::load(std::filesystem::path(TRAINYARD_SOURCE_DIR) / "configs/hardware"),
      ring.item.overrides());
  const std::vector<Bytes> sizes{1_KiB, 1_MiB};
  const auto expected = [&](Algorithm algorithm, Operation operation, Fidelity fidelity) {
    return run_collective(cluster, {.operation = operation,
                                    .algorithm = algorithm,
                                    .size = 1_MiB,
                                    .fidelity = fidelity})
        .time;
  };
  const auto times = predict_plain(ring.item, cluster, Operation::AllReduce, sizes);
  REQUIRE(times.size() == 2);
  REQUIRE(times[1].time == expected(Algorithm::Ring, Operation::AllReduce, Fidelity::Flow));
  REQUIRE(times[1].how.find("ring") != std::string::npos);
  REQUIRE(predict_plain(tree.item, cluster, Operation::AllReduce, sizes)[1].time ==
          expected(Algorithm::Tree, Operation::AllReduce, Fidelity::Analytical));
  REQUIRE(predict_plain(ring.item, cluster, Operation::AllToAll, sizes)[1].time ==
          expected(Algorithm::Direct, Operation::AllToAll, Fidelity::Flow));
}

}  // namespace
}  // namespace trainyard
