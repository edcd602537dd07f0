// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/fit/nccl_fit_model.h"

#include <cmath>
#include <vector>

#include "support/built_clusters.h"
#include "support/synthetic_cases.h"

namespace trainyard {

TEST_CASE("the event model as the model of a fit says what a session says") {
  ValidationCase item;
  item.cluster = kConfigsFolder / "clusters" / "dgx-h100.yaml";
  item.nodes = 1;
  item.gpus_per_node = 4;
  item.ranks = 4;
  const Cluster cluster = shipped_cluster("dgx-h100", item.overrides());
  const std::vector<Bytes> sizes{kib(1), mib(4)};
  const nccl::Profile shipped = nccl::Profile::load(kConfigsFolder / "nccl" / "profile.yaml");
  const auto session = [&] {
    return std::make_unique<NcclSession>(item, cluster, shipped, Operation::AllGather, sizes);
  };
  std::vector<std::unique_ptr<NcclSession>> sessions;
  sessions.push_back(session());
  NcclFitModel model(shipped_constants(), std::move(sessions));
  std::vector<FitParameter> parameters = fit_parameters(shipped_constants().all());
  std::vector<double> point;
  for (const FitParameter& parameter : parameters) {
    point.push_back(parameter.start);
  }
  model.set_points(std::vector<std::vector<double>>{point});
  std::vector<double> times(2);
  model.log_times(0, 0, std::vector<std::size_t>{0, 1}, times);
  const nccl::Profile assumed = shipped_constants().profile(exponentials(point));
  const auto other = session();
  other->use(assumed);
  for (std::size_t row = 0; row < 2; ++row) {
    REQUIRE(times[row] == Approx(std::log(other->time(row).seconds())));
    REQUIRE(model.time(0, row, assumed) == other->time(row));
  }
}

}  // namespace trainyard
