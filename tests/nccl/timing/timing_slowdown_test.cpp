// SPDX-License-Identifier: Apache-2.0
// NVLSTree and PAT over engines.
#include "support/catch.h"

#include <algorithm>
#include <map>
#include <string>

#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

// What the engine makes of the time on ports.
double engine_factor(const TimedJob& job, const CallPlan& plan, Fidelity fidelity) {
  Timer timer(job.cluster, job.communicator, default_profile(), job.environment, {},
              EngineSettings{.fidelity = fidelity});
  const Timing timing = timer.collective(plan);
  REQUIRE(timing.engine->network.messages > 0);
  return timing.device / job.timer().collective(plan).device;
}

Cluster below_spines(int oversubscription) {
  return shipped_cluster(
      "hgx-h100-clos",
      {.nodes = 4,
       .settings = {"fabric.nodes_per_leaf=2", "fabric.routing=static",
                    "fabric.oversubscription=" + std::to_string(oversubscription)}});
}

}  // namespace

TEST_CASE("trees of NVLS without contention are as fast over an engine", "[nccl][engine]") {
  for (const int nodes : {2, 4}) {
    const TimedJob job(shipped_cluster("dgx-h100", {.nodes = nodes}), forced("NVLSTree", "Simple"));
    for (const Bytes size : {kib(64), gib(1)}) {
      INFO(nodes << " nodes, " << to_string(size));
      const double factor = engine_factor(job, job.plan(Function::AllReduce, size), Fidelity::Flow);
      REQUIRE(factor >= 1.0);
      REQUIRE(factor < 1.02);
    }
  }
}

TEST_CASE("trees of NVLS are slower where the fabric is narrow, over an engine as over ports",
          "[nccl][engine]") {
  const TimedJob wide(below_spines(1), forced("NVLSTree", "Simple"));
  const CallPlan plan = wide.plan(Function::AllReduce, mib(256));
  const SimTime free = wide.timer().collective(plan).device;
  for (const int oversubscription : {4, 8}) {
    const TimedJob job(below_spines(oversubscription), forced("NVLSTree", "Simple"));
    REQUIRE(job.timer().collective(plan).device / free > 1.5);
    REQUIRE(engine_factor(job, plan, Fidelity::Flow) == Approx(1.0).margin(0.03));
  }
}

TEST_CASE("the trees of NVLS carry every byte up and down each edge", "[nccl][engine]") {
  const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 4}), forced("NVLSTree", "Simple"));
  const Timer::State state = job.state();
  const CallPlan plan = job.plan(Function::AllReduce, mib(512));
  const std::vector<NodeFlow> flows = state.nvls_tree_flows(plan);
  REQUIRE(flows.size() == static_cast<std::size_t>(plan.channels * 3 * 8 * 2));
  std::int64_t sum = 0;
  for (const NodeFlow& flow : flows) {
    REQUIRE(state.complete.local_rank(flow.from) == state.complete.local_rank(flow.to));
    sum += flow.bytes.count();
  }
  REQUIRE(sum == 3 * 2 * mib(512).count());
}

TEST_CASE("a rank sends all blocks but one in a PAT", "[nccl][engine]") {
  for (const int nodes : {2, 5, 8, 12}) {
    const TimedJob job(shipped_cluster("h100-1gpu-400g", {.nodes = nodes}),
                       forced("PAT", "Simple"));
    const CallPlan plan = job.plan(Function::AllGather, Bytes(nodes) * (std::int64_t{8} << 20));
    std::map<int, std::int64_t> sent;
    for (const NodeFlow& flow : job.state().pat_flows(plan)) {
      sent[flow.from] += flow.bytes.count();
    }
    REQUIRE(sent.size() == static_cast<std::size_t>(nodes));
    for (const auto& [rank, bytes] : sent) {
      REQUIRE(bytes == (nodes - 1) * plan.bytes.count());
    }
    REQUIRE(engine_factor(job, plan, Fidelity::Flow) == Approx(1.0).margin(0.03));
  }
}

}  // namespace trainyard::nccl
