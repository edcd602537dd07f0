// SPDX-License-Identifier: Apache-2.0
// AllReduce in the switches of the fabric. No measured table has it: these are properties that hold
// whatever the constants are.
#include "support/catch.h"

#include <string>

#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

Variables reducing(const std::string& algorithm) {
  return {{"NCCL_COLLNET_ENABLE", "1"}, {"NCCL_ALGO", algorithm}};
}

SimTime time_of(int nodes, const std::string& algorithm, Bytes size) {
  const TimedJob job(shipped_cluster("dgx-h100", {.nodes = nodes}), reducing(algorithm));
  const CallPlan plan = job.plan(Function::AllReduce, size);
  REQUIRE(to_string(plan.algorithm) == algorithm);
  return job.timer().collective(plan).device;
}

}  // namespace

TEST_CASE("a sum in the switches takes as long for many nodes as for few", "[nccl][timing]") {
  for (const char* const algorithm : {"CollNetDirect", "CollNetChain"}) {
    for (const Bytes size : {kib(64), mib(64)}) {
      INFO(algorithm << " " << to_string(size));
      REQUIRE(time_of(2, algorithm, size) == time_of(8, algorithm, size));
    }
  }
  REQUIRE(time_of(8, "CollNetDirect", kib(64)) < time_of(8, "Ring", kib(64)));
}

TEST_CASE("a sum in the switches goes through each NIC once", "[nccl][timing]") {
  // 8 NICs of 50 GB/s, of which a ring needs almost twice the bytes.
  for (const char* const algorithm : {"CollNetDirect", "CollNetChain"}) {
    const double rate = bandwidth(gib(4), time_of(8, algorithm, gib(4)));
    INFO(algorithm << ": " << rate << " GB/s");
    REQUIRE(rate < 8 * 50.0);
    REQUIRE(rate > bandwidth(gib(4), time_of(8, "Ring", gib(4))));
  }
  // With one GPU in a node there is nothing but the NIC.
  const TimedJob lone(shipped_cluster("h100-1gpu-400g", {.nodes = 8}), reducing("CollNetChain"));
  const SimTime time = lone.timer().collective(lone.plan(Function::AllReduce, gib(4))).device;
  REQUIRE(bandwidth(gib(4), time) < 50.0);
  REQUIRE(bandwidth(gib(4), time) > 0.8 * 50.0);
}

TEST_CASE("more bytes to add up in switches take no less time", "[nccl][timing]") {
  for (const char* const algorithm : {"CollNetDirect", "CollNetChain"}) {
    const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 4}), reducing(algorithm));
    Timer timer = job.timer();
    CallPlan before;
    SimTime time_before;
    for (std::int64_t size = 1 << 12; size <= 1 << 30; size *= 4) {
      const CallPlan plan = job.plan(Function::AllReduce, Bytes(size));
      const SimTime time = timer.collective(plan).device;
      INFO(algorithm << " " << size);
      REQUIRE((!alike(plan, before) || time >= time_before));
      before = plan;
      time_before = time;
    }
  }
}

TEST_CASE("switches that cannot add up leave CollNet out", "[nccl][timing]") {
  // Quantum-2 can (dgx-h100 above), Spectrum cannot.
  const auto all = [](const char* name) {
    const TimedJob job(shipped_cluster(name, {.nodes = 4}), {{"NCCL_COLLNET_ENABLE", "1"}});
    return job.communicator.tuning
               .cell(Function::AllReduce, Algorithm::CollNetChain, Protocol::Simple)
               .bandwidth > 0.0;
  };
  REQUIRE(all("dgx-h100"));
  REQUIRE_FALSE(all("oci-h100"));
}

TEST_CASE("sums in switches have no engine between nodes", "[nccl][engine]") {
  const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 2}), reducing("CollNetChain"));
  Timer timer(job.cluster, job.communicator, default_profile(), job.environment, {},
              EngineSettings{});
  REQUIRE_THROWS_WITH(
      timer.collective(job.plan(Function::AllReduce, mib(1))),
      Catch::Matchers::Equals(
          "--fidelity flow: expected another algorithm than CollNetChain (--algo, NCCL_ALGO), or "
          "ports, found one whose sums are made in the switches that the engine has"));
}

}  // namespace trainyard::nccl
