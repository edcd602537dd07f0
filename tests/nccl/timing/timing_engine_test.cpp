// SPDX-License-Identifier: Apache-2.0
// NCCL's calls with an engine between nodes, against the event model's own ports.
#include "support/catch.h"

#include <string>
#include <vector>

#include "nccl/timing/network_replay.h"
#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

// Without contention: rings and chains, and trees, where messages of several children meet in
// another order.
constexpr double kRingTolerance = 0.002;
constexpr double kTreeTolerance = 0.05;
constexpr double kPacketTolerance = 0.03;

Timing timed(const TimedJob& job, const CallPlan& plan, std::optional<Fidelity> fidelity) {
  std::optional<EngineSettings> engine;
  if (fidelity) {
    engine = EngineSettings{.fidelity = *fidelity};
  }
  Timer timer(job.cluster, job.communicator, default_profile(), job.environment, {}, engine);
  return timer.collective(plan);
}

// Over the engine, as a share of the time on ports.
double share(const TimedJob& job, Function function, Bytes size, Fidelity fidelity) {
  const CallPlan plan = job.plan(function, size);
  const Timing over = timed(job, plan, fidelity);
  REQUIRE(over.engine.has_value());
  REQUIRE(over.engine->network.messages > 0);
  return over.device / timed(job, plan, {}).device;
}

Cluster clos(const std::string& routing, int oversubscription) {
  return shipped_cluster(
      "hgx-h100-clos",
      {.nodes = 4,
       .settings = {"fabric.nodes_per_leaf=2", "fabric.routing=" + routing,
                    "fabric.oversubscription=" + std::to_string(oversubscription)}});
}

}  // namespace

TEST_CASE("without contention an engine gives the times of ports", "[nccl][engine]") {
  for (const int nodes : {2, 4, 8}) {
    const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = nodes});
    for (const char* const protocol : {"LL", "LL128", "Simple"}) {
      // LL has most units of a byte.
      for (const Bytes size : {kib(64), protocol == std::string("LL") ? mib(1) : mib(16)}) {
        INFO(nodes << " nodes, " << protocol << ", " << to_string(size));
        const TimedJob ring(cluster, forced("Ring", protocol));
        REQUIRE(share(ring, Function::AllReduce, size, Fidelity::Flow) ==
                Approx(1.0).margin(kRingTolerance));
        REQUIRE(share(ring, Function::Broadcast, size, Fidelity::Flow) ==
                Approx(1.0).margin(kRingTolerance));
        const TimedJob tree(cluster, forced("Tree", protocol));
        REQUIRE(share(tree, Function::AllReduce, size, Fidelity::Flow) ==
                Approx(1.0).margin(kTreeTolerance));
      }
    }
  }
}

TEST_CASE("without contention packets take little longer than flows", "[nccl][engine]") {
  for (const char* const protocol : {"LL", "LL128", "Simple"}) {
    const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 2}), forced("Ring", protocol));
    const Bytes size = mib(64);
    const CallPlan plan = job.plan(Function::AllReduce, size);
    const double ratio =
        timed(job, plan, Fidelity::Packet).device / timed(job, plan, Fidelity::Flow).device;
    INFO(protocol);
    REQUIRE(ratio == Approx(1.0).margin(kPacketTolerance));
  }
}

TEST_CASE("what plugins reach of a NIC is charged once", "[nccl][engine]") {
  // The share is in the ports, headers are in the packets: over 100 Gb/s of EFA at 0.96 as over
  // InfiniBand, packets change nothing.
  for (const char* const name : {"aws-p4d", "gcp-a3-high"}) {
    const TimedJob job(shipped_cluster(name, {.nodes = 2}), forced("Ring", "Simple"));
    INFO(name);
    REQUIRE(share(job, Function::AllReduce, mib(256), Fidelity::Packet) ==
            Approx(1.0).margin(kPacketTolerance));
  }
}

TEST_CASE("flows that collide in the fabric slow NCCL down", "[nccl][engine]") {
  const Bytes size = gib(1);
  const TimedJob calm(clos("static", 1), forced("Ring", "Simple"));
  REQUIRE(share(calm, Function::AllReduce, size, Fidelity::Flow) ==
          Approx(1.0).margin(kRingTolerance));
  const CallPlan plan = calm.plan(Function::AllReduce, size);
  const double before = timed(calm, plan, Fidelity::Flow).device.microseconds();
  // Two of 32 connections meet on an uplink by the hash, or all have a quarter of the fabric.
  const TimedJob hashed(clos("ecmp", 1), forced("Ring", "Simple"));
  REQUIRE(timed(hashed, plan, Fidelity::Flow).device.microseconds() / before > 1.5);
  const TimedJob narrow(clos("static", 4), forced("Ring", "Simple"));
  REQUIRE(timed(narrow, plan, Fidelity::Flow).device.microseconds() / before > 1.5);
  // Ports have their max-min share for good, which for a ring is the same; but adaptive routing is
  // without limit there.
  REQUIRE(share(narrow, Function::AllReduce, size, Fidelity::Flow) == Approx(1.0).margin(0.01));
  const TimedJob adaptive(clos("adaptive", 4), forced("Ring", "Simple"));
  REQUIRE(share(adaptive, Function::AllReduce, size, Fidelity::Flow) > 1.5);
}

TEST_CASE("an engine on one node is none", "[nccl][engine]") {
  const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 1}), forced("Ring", "Simple"));
  const CallPlan plan = job.plan(Function::AllReduce, mib(16));
  const Timing over = timed(job, plan, Fidelity::Flow);
  REQUIRE_FALSE(over.engine.has_value());
  REQUIRE(over.time == timed(job, plan, {}).time);
}

TEST_CASE("calls over an engine do not depend on those before them", "[nccl][engine]") {
  const TimedJob job(clos("ecmp", 2), forced("Ring", "Simple"));
  Timer timer(job.cluster, job.communicator, default_profile(), job.environment, {},
              EngineSettings{.fidelity = Fidelity::Packet});
  const CallPlan plan = job.plan(Function::AllReduce, mib(16));
  const Timing first = timer.collective(plan);
  const Timing other = timer.collective(job.plan(Function::AllReduce, mib(1)));
  const Timing again = timer.collective(plan);
  REQUIRE(again.time == first.time);
  REQUIRE(again.engine->fingerprint == first.engine->fingerprint);
  REQUIRE(again.engine->network.packets.hops == first.engine->network.packets.hops);
  REQUIRE(other.engine->fingerprint != first.engine->fingerprint);
}

}  // namespace trainyard::nccl
