// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/run/job_mix.h"

#include <vector>

#include "sim/config_error.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

// A small model on as many servers as it is given, data parallel.
struct SmallMix {
  Workload workload;
  SoftwareProfile software = shipped_software("nemo");

  SmallMix() {
    workload.name = "small";
    workload.model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
    workload.model.layers.resize(2);
    workload.software = "nemo";
    workload.plan = {.tensor = 8, .global_batch = 8, .sequence = 1024};
    workload.data_fills_cluster = true;
  }

  [[nodiscard]] JobMix run(const Cluster& cluster, const std::vector<std::vector<int>>& servers,
                           int steps = 2) const {
    return run_with({.rates = shipped_rates()}, cluster, servers, steps);
  }
  [[nodiscard]] JobMix run_with(const StepTables& tables, const Cluster& cluster,
                                const std::vector<std::vector<int>>& servers, int steps) const {
    std::vector<MixedJob> jobs;
    for (std::size_t index = 0; index < servers.size(); ++index) {
      jobs.push_back({.name = "job " + std::to_string(index),
                      .workload = workload,
                      .software = software,
                      .servers = servers[index]});
    }
    return run_job_mix(cluster, jobs, tables, steps);
  }
};

// Two leaves of two servers; all that crosses them goes over a quarter of what the servers have.
Cluster narrow_cluster() {
  return shipped_cluster(
      "hgx-h100-clos",
      {.nodes = 4, .settings = {"fabric.oversubscription=4", "fabric.nodes_per_leaf=2"}});
}

std::string refusal(const SmallMix& mix, const Cluster& cluster,
                    const std::vector<std::vector<int>>& servers) {
  try {
    (void)mix.run(cluster, servers);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("jobs with packets take with fast-forward what they take without", "[job_mix][long]") {
  const SmallMix small;
  const Cluster cluster = narrow_cluster();
  StepTables tables{.rates = shipped_rates(), .fidelity = Fidelity::Packet};
  const JobMix plain = small.run_with(tables, cluster, {{0, 2}, {1, 3}}, 1);
  tables.packets.fast_forward = FastForward::Exact;
  const JobMix fast = small.run_with(tables, cluster, {{0, 2}, {1, 3}}, 1);
  REQUIRE(fast.jobs.size() == plain.jobs.size());
  for (std::size_t index = 0; index < plain.jobs.size(); ++index) {
    REQUIRE(fast.jobs[index].alone == plain.jobs[index].alone);
    REQUIRE(fast.jobs[index].together == plain.jobs[index].together);
  }
  REQUIRE(plain.network.packets.skipped_hops == 0);
  REQUIRE(fast.network.packets.skipped_hops > 0);
}

TEST_CASE("jobs on a fabric with room for all take nothing from each other", "[job_mix]") {
  const SmallMix small;
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 4});
  const JobMix mix = small.run(cluster, {{0, 2}, {1, 3}});
  for (const MixedJobTimes& job : mix.jobs) {
    REQUIRE(job.gpus == 16);
    REQUIRE(job.together.size() >= 2);
    REQUIRE(job.slowdown() == Approx(1.0).epsilon(1e-6));
  }
}

TEST_CASE("jobs that cross the same uplinks slow each other down, jobs below a leaf do not",
          "[job_mix]") {
  const SmallMix small;
  const Cluster cluster = narrow_cluster();
  const JobMix below = small.run(cluster, {{0, 1}, {2, 3}});
  const JobMix across = small.run(cluster, {{0, 2}, {1, 3}});
  for (std::size_t job = 0; job < 2; ++job) {
    REQUIRE(below.jobs[job].slowdown() == Approx(1.0).epsilon(1e-6));
    REQUIRE(across.jobs[job].alone > below.jobs[job].alone);
    REQUIRE(across.jobs[job].slowdown() > 1.1);
    REQUIRE(across.jobs[job].slowdown() < 2.0);
    REQUIRE(across.jobs[job].longest().seconds() >= across.jobs[job].mean_seconds());
  }
  REQUIRE_FALSE(across.link_use.empty());
}

TEST_CASE("servers are checked before anything runs", "[job_mix]") {
  const SmallMix small;
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 4});
  REQUIRE(refusal(small, cluster, {{0, 4}}) == "job 0: expected servers from 0 to 3, found 4");
  REQUIRE(refusal(small, cluster, {{0, 0}}) ==
          "job 0: expected servers of its own, found server 0, which is named twice");
  REQUIRE(refusal(small, cluster, {{0, 1}, {2, 1}}) ==
          "job 1: expected servers of its own, found server 1, which job 0 has");
}

}  // namespace trainyard
