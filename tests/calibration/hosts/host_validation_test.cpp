// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/hosts/host_validation.h"

#include "calibration/hosts/host_calibration.h"
#include "support/built_clusters.h"
#include "support/mpi.h"

namespace trainyard {
namespace {

void one_by_one(std::size_t count, const std::function<void(std::size_t)>& task) {
  for (std::size_t index = 0; index < count; ++index) {
    task(index);
  }
}

HostRow host_row(const char* test, const char* path, int ranks, Bytes size) {
  return {.test = test, .path = path, .ranks = ranks, .size = size, .least = 2.0, .median = 3.0};
}

}  // namespace

TEST_CASE("all rows of a host are predicted that the model knows, whatever was fitted",
          "[calibration][mpi]") {
  const MpiProfile profile = shipped_mpi_profile();
  const HostSet set{.name = "host.yaml",
                    .cpu = "some CPU",
                    .cores = 4,
                    .mpi = "Open MPI",
                    .rows = {host_row("ping-pong", "shared", 2, kib(64)),
                             host_row("rewrite-sum", "memory", 2, kib(64)),
                             host_row("socket-stream", "tcp", 2, kib(64)),
                             host_row("all_reduce", "shared", 4, kib(64)),
                             host_row("all_reduce", "shared", 2, kib(64)),
                             host_row("all_reduce", "shared", 8, kib(64))}};
  const Cluster cluster = shipped_cluster("dgx-a100", {.nodes = 1});
  const HostPredictions made = predict_host(set, cluster, shipped_mpi_rules(), profile, one_by_one);
  REQUIRE(made.rows.size() == 4);
  REQUIRE(made.rows[0].measured_us == 2.0);
  REQUIRE(made.rows[0].predicted_us == *host_time(set.rows[0], profile) * 1e6);
  REQUIRE(made.rows[1].measured_us == 3.0);  // The median.
  REQUIRE(made.rows[2].row.ranks == 4);
  REQUIRE(made.rows[2].predicted_us > made.rows[3].predicted_us);
  REQUIRE(made.crowded == 1);
  REQUIRE(made.silent == 1);
  REQUIRE(notes_of(made).size() == 2);
  const MpiRules rules = shipped_mpi_rules();
  const HostPredictions calls =
      predict_unfitted(set, HostCollectives(set, cluster, rules), profile, one_by_one);
  REQUIRE(calls.rows.size() == 2);
  REQUIRE(calls.rows[1].predicted_us == made.rows[3].predicted_us);
}

}  // namespace trainyard
