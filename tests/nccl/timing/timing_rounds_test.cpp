// SPDX-License-Identifier: Apache-2.0
// Sends and receives over engines, round by round, against the closed form and against each other.
#include "support/catch.h"

#include <string>

#include "nccl/tuning/point_to_point.h"
#include "sim/config_error.h"
#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

Timing exchanged_rounds(const TimedJob& job, Operation operation, Bytes size,
                        std::optional<Fidelity> fidelity) {
  std::optional<EngineSettings> engine;
  if (fidelity) {
    engine = EngineSettings{.fidelity = *fidelity};
  }
  Timer timer(job.cluster, job.communicator, default_profile(), job.environment, {}, engine);
  return timer.point_to_point(operation, size);
}

Cluster lone_gpus(int nodes) {
  return shipped_cluster("h100-1gpu-400g", {.nodes = nodes});
}

// GB/s that a rank sends to others.
double sent_by_rank(Bytes size, int ranks, SimTime time) {
  return bandwidth(size, time) * (ranks - 1) / ranks;
}

}  // namespace

TEST_CASE("large exchanges over an engine take what the closed form says", "[nccl][engine]") {
  for (const int nodes : {2, 4, 10}) {
    const TimedJob job(lone_gpus(nodes));
    const Bytes size(std::int64_t{nodes} * (mib(512).count() / nodes / 16 * 16));
    for (const Operation operation : {Operation::AllToAll, Operation::SendReceive}) {
      const SimTime closed = exchanged_rounds(job, operation, size, {}).device;
      const SimTime flow = exchanged_rounds(job, operation, size, Fidelity::Flow).device;
      INFO(nodes << " nodes, " << to_string(operation));
      REQUIRE(flow / closed == Approx(1.0).margin(0.05));
      REQUIRE(exchanged_rounds(job, operation, size, Fidelity::Packet).device / flow ==
              Approx(1.0).margin(0.03));
    }
  }
  const TimedJob servers(shipped_cluster("dgx-h100", {.nodes = 2}));
  const SimTime flow =
      exchanged_rounds(servers, Operation::AllToAll, mib(512), Fidelity::Flow).device;
  REQUIRE(flow / exchanged_rounds(servers, Operation::AllToAll, mib(512), {}).device ==
          Approx(1.0).margin(0.08));
}

TEST_CASE("every message of every pair crosses the fabric once", "[nccl][engine]") {
  const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 2}));
  const Bytes size = mib(4);
  const Timing timing = exchanged_rounds(job, Operation::AllToAll, size, Fidelity::Flow);
  // 64 pairs each way between the servers; they are not cut at this size.
  REQUIRE(timing.engine->network.bytes == Bytes(size.count() / 16 * 128));
  const PointToPointPlan plan =
      plan_point_to_point(job.communicator, job.environment, Bytes(size.count() / 16), true);
  const auto messages = static_cast<std::uint64_t>(size.count() / 16 / plan.chunk.count());
  REQUIRE(timing.engine->network.messages == 128 * messages);
}

TEST_CASE("long sends go on as their beginning does", "[nccl][engine]") {
  // From some size on only the beginning of each send is run; up to there all of it.
  const TimedJob job(lone_gpus(4));
  const auto rate = [&](Bytes size) {
    return sent_by_rank(size, 4,
                        exchanged_rounds(job, Operation::AllToAll, size, Fidelity::Flow).device);
  };
  const double nic = 50.0;
  REQUIRE(rate(mib(256)) > 0.9 * nic * 0.96);
  REQUIRE(rate(gib(8)) < nic);
  REQUIRE(rate(gib(8)) / rate(gib(1)) == Approx(1.0).margin(0.02));
}

TEST_CASE("senders that meet at one receiver wait for each other", "[nccl][engine]") {
  // A gather: all but one of them send to the NIC of the root, whose rate they share.
  const TimedJob job(lone_gpus(8));
  const Bytes size = mib(256);
  const Timing gather = exchanged_rounds(job, Operation::Gather, size, Fidelity::Packet);
  REQUIRE(sent_by_rank(size, 8, gather.device) < 50.0);
  REQUIRE(gather.engine->network.packets.pauses + gather.engine->network.packets.marks > 0);
  // In the fabric, each sender alone would need a seventh of the time.
  const Timing alone =
      exchanged_rounds(job, Operation::SendReceive, Bytes(size.count() / 8), Fidelity::Packet);
  REQUIRE(gather.device / alone.device > 5.0);
}

TEST_CASE("an exchange over a narrow fabric is as slow as the fabric", "[nccl][engine]") {
  const auto time = [](int oversubscription, std::optional<Fidelity> fidelity) {
    const TimedJob job(shipped_cluster(
        "hgx-h100-clos",
        {.nodes = 4,
         .settings = {"fabric.nodes_per_leaf=2", "fabric.routing=adaptive",
                      "fabric.oversubscription=" + std::to_string(oversubscription)}}));
    return exchanged_rounds(job, Operation::AllToAll, mib(64), fidelity).device;
  };
  // Two thirds of what leaves a node goes through a fabric of a quarter of the rate.
  REQUIRE(time(4, Fidelity::Flow) / time(1, Fidelity::Flow) > 2.0);
  REQUIRE(time(4, {}) / time(1, {}) > 2.0);
  REQUIRE(time(4, {}) / time(4, Fidelity::Flow) == Approx(1.0).margin(0.15));
}

TEST_CASE("what is sent to another server leaves by the NIC of its receiver's rail",
          "[nccl][engine]") {
  const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 2}));
  Wiring wiring(job.cluster, job.communicator, job.environment);
  wiring.fold(2);
  REQUIRE(wiring.sending_rank(0, 8 + 3) == 3);
  REQUIRE(wiring.sending_rank(3, 8 + 3) == 3);
  REQUIRE(wiring.connect({.to = 8 + 3, .is_pair = true}).sender ==
          wiring.connect({.from = 3, .to = 8 + 3, .is_pair = true}).sender);
  const TimedJob own(shipped_cluster("dgx-h100", {.nodes = 2}), {{"NCCL_P2P_PXN_LEVEL", "0"}});
  Wiring direct(own.cluster, own.communicator, own.environment);
  REQUIRE(direct.sending_rank(0, 8 + 3) == 0);
}

TEST_CASE("exchanges that are too large for an engine are refused in one line", "[nccl][engine]") {
  const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 80}));
  REQUIRE_THROWS_WITH(
      exchanged_rounds(job, Operation::AllToAll, gib(1), Fidelity::Flow),
      Catch::Matchers::Contains("alltoall over the flow engine: expected at most 300000 parts"));
}

}  // namespace trainyard::nccl
