// SPDX-License-Identifier: Apache-2.0
// Rings and chains. Where chunks or slices change with the size a larger call may be a little
// faster: two per cent are let through.
#include "support/catch.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "support/nccl_timing.h"

namespace trainyard::nccl {
namespace {

constexpr double kChunkTolerance = 0.02;

Cluster single_gpus_ring(int nodes) {
  return shipped_cluster("h100-1gpu-400g", {.nodes = nodes});
}

Cluster hopper_server(int gpus) {
  return shipped_cluster("dgx-h100", {.nodes = 1, .gpus_per_node = gpus});
}

// What limits an AllReduce of Simple in one direction: the slowest port, shared by all channels, or
// the blocks, which pay their cost once in each slice and in every loop do one primitive more than
// they send.
double simple_limit(const Timer::State& state, const CallPlan& plan) {
  double port = 1e9;
  for (const RingWires& ring : state.rings) {
    for (const Wire& wire : ring.wires) {
      for (const std::uint32_t number : wire.ports) {
        port = std::min(port, state.folded.ports()[number].rate.gigabytes_per_second());
      }
    }
  }
  const Bytes slice(plan.parts.front().chunk.count() / plan.slices);
  const SimTime copy = transfer_time(slice, state.block_rate(plan, plan.threads));
  const double sent = 2.0 * state.communicator.ranks - 2.0;
  const double block = bandwidth(slice, copy + state.gpu.simple_cost) * sent / (sent + 1.0);
  return std::min(port, block * plan.channels);
}

}  // namespace

TEST_CASE("a ring of LL with little to carry is its steps", "[nccl][timing]") {
  for (const int gpus : {2, 4, 8}) {
    const TimedJob job(hopper_server(gpus), forced("Ring", "LL", 1));
    Timer::State state = job.state();
    const CallPlan plan = job.plan(Function::AllReduce, Bytes(gpus * 16));
    const Profile& profile = default_profile();
    const SimTime primitive = state.gpu.ll_cost + state.gpu.ll_busy;
    const SimTime hop = state.gpu.link_latency[Protocol::LL] + profile.nvswitch;
    const SimTime expected = primitive * (2 * gpus - 1) + hop * (2 * gpus - 2);
    REQUIRE(state.ring(plan) / expected == Approx(1.0).margin(0.05));
    // One chunk of sixteen bytes goes round alone.
    const SimTime alone = expected - state.gpu.ll_busy * (2 * gpus - 1);
    REQUIRE(state.ring(job.plan(Function::AllReduce, Bytes(8))) / alone ==
            Approx(1.0).margin(0.05));
    // A gather has a chunk for each rank, so all of its chunks have bytes.
    const SimTime gather = primitive * gpus + hop * (gpus - 1);
    REQUIRE(state.ring(job.plan(Function::AllGather, Bytes(8))) / gather ==
            Approx(1.0).margin(0.05));
  }
}

TEST_CASE("more bytes in the same ring take no less time", "[nccl][timing]") {
  for (const char* const protocol : {"LL", "LL128", "Simple"}) {
    for (const Function function :
         {Function::AllReduce, Function::AllGather, Function::Broadcast}) {
      const TimedJob job(hopper_server(4), forced("Ring", protocol, 4));
      Timer timer = job.timer();
      CallPlan before;
      SimTime time_before;
      for (std::int64_t size = 1 << 12; size <= 1 << 28; size *= 4) {
        const CallPlan plan = job.plan(function, Bytes(size));
        const SimTime time = timer.collective(plan).device;
        INFO(protocol << " " << to_string(function) << " " << size);
        REQUIRE((!alike(plan, before) || time / time_before >= 1.0 - kChunkTolerance));
        before = plan;
        time_before = time;
      }
    }
  }
}

TEST_CASE("a large ring comes near to its slowest port and never above", "[nccl][timing]") {
  const auto require_near = [](Cluster cluster, const Variables& variables) {
    const TimedJob job(std::move(cluster), variables);
    Timer::State state = job.state();
    const Bytes size = gib(2);
    const CallPlan plan = job.plan(Function::AllReduce, size);
    const SimTime time = state.ring(plan);
    const double n = job.communicator.ranks;
    const double bus = bandwidth(size, time) * 2.0 * (n - 1.0) / n;
    const double limit = simple_limit(state, plan);
    INFO(bus << " of " << limit << " GB/s, " << plan.channels << " channels");
    REQUIRE(bus <= limit * 1.001);
    REQUIRE(bus >= limit * 0.9);
  };
  require_near(hopper_server(4), forced("Ring", "Simple"));
  require_near(hopper_server(4), forced("Ring", "Simple", 2));
  require_near(single_gpus_ring(4), forced("Ring", "Simple"));
}

TEST_CASE("a folded ring takes exactly as long as all of its nodes", "[nccl][timing]") {
  const auto require_same = [](Cluster cluster, const char* protocol, Bytes size) {
    const TimedJob job(std::move(cluster), forced("Ring", protocol));
    Timer::State folded = job.state();
    Timer::State whole = job.state();
    whole.folded.fold(job.communicator.nodes);
    whole.make_rings(whole.rings, whole.folded, job.communicator.nodes);
    const CallPlan plan = job.plan(Function::AllReduce, size);
    INFO(protocol << ", " << job.communicator.nodes << " nodes, " << plan.channels << " channels");
    const SimTime time = folded.ring(plan);
    REQUIRE(folded.rings.front().ranks.size() < whole.rings.front().ranks.size());
    REQUIRE(time == whole.ring(plan));
  };
  for (const char* const protocol : {"LL", "LL128", "Simple"}) {
    require_same(single_gpus_ring(4), protocol, mib(1));
    require_same(shipped_cluster("dgx-h100", {.nodes = 4}), protocol, mib(4));
  }
}

TEST_CASE("more nodes take longer", "[nccl][timing]") {
  for (const char* const protocol : {"LL", "LL128", "Simple"}) {
    SimTime before;
    for (const int nodes : {2, 3, 4, 6}) {
      const TimedJob job(single_gpus_ring(nodes), forced("Ring", protocol, 2));
      const SimTime time = job.timer().collective(job.plan(Function::AllReduce, mib(1))).device;
      INFO(protocol << ", " << nodes << " nodes");
      REQUIRE(time > before);
      before = time;
    }
  }
}

TEST_CASE("a fabric that is oversubscribed slows rings down", "[nccl][timing]") {
  const auto time = [](int oversubscription) {
    const TimedJob job(
        shipped_cluster(
            "hgx-h100-clos",
            {.nodes = 4,
             .settings = {"fabric.nodes_per_leaf=2", "fabric.routing=static",
                          "fabric.oversubscription=" + std::to_string(oversubscription)}}),
        forced("Ring", "Simple"));
    return job.timer().collective(job.plan(Function::AllReduce, gib(1))).device;
  };
  REQUIRE(time(8) / time(1) > 1.5);
}

TEST_CASE("blocks that read from their peers are in step at first", "[nccl][timing]") {
  // A100 read over NVLink, unless told to write.
  const auto time = [](const char* read, std::int64_t size) {
    Variables variables = forced("Ring", "Simple");
    variables["NCCL_P2P_READ_ENABLE"] = read;
    const TimedJob job(shipped_cluster("dgx-a100", {.nodes = 1}), variables);
    return job.state().ring(job.plan(Function::AllReduce, Bytes(size)));
  };
  const SimTime cost = default_profile().gpus.at("ampere").simple_cost;
  const std::int64_t units = 2 * (2 * 8 - 1);  // Of each block in a loop.
  REQUIRE(default_profile().units_in_step >= units);
  const SimTime once = time("1", 256 << 20) - time("0", 256 << 20);
  REQUIRE(once > cost * (units / 2));
  REQUIRE(once <= cost * (units + 2));
  // Later they are not.
  const SimTime later = time("1", std::int64_t{8} << 30) - time("0", std::int64_t{8} << 30);
  REQUIRE(later <= cost * (default_profile().units_in_step + 2));
}

TEST_CASE("over PCIe a slice waits until its stores are acknowledged", "[nccl][timing]") {
  const TimedJob job(shipped_cluster("rtx4090-pcie", {.nodes = 1}), forced("Ring", "Simple"));
  Timer::State state = job.state();
  const CallPlan plan = job.plan(Function::AllReduce, mib(1));
  const Wire wire = state.complete.connect({.to = 1});
  REQUIRE(wire.transport != Transport::NvLink);
  REQUIRE(state.unit_rule(plan, plan.threads, {wire}).unit_cost ==
          state.gpu.simple_cost + wire.latency);
  REQUIRE(state.unit_rule(plan, plan.threads, {}).unit_cost == state.gpu.simple_cost);
}

TEST_CASE("calls of a chain that follow one another overlap", "[nccl][timing]") {
  const TimedJob job(hopper_server(4), forced("Ring", "Simple"));
  const CallPlan plan = job.plan(Function::Broadcast, mib(256));
  const SimTime row = job.timer().collective(plan).device;
  const SimTime alone = job.timer({.back_to_back = false}).collective(plan).device;
  REQUIRE(row < alone);
  REQUIRE(row / alone > 0.5);
}

TEST_CASE("NICs of two ports carry as much as NICs of one at twice the rate", "[nccl][timing]") {
  const auto rate = [](const std::string& name, const std::vector<std::string>& settings,
                       const std::string& level, Function function) {
    Variables variables = forced("Ring", "Simple");
    variables["NCCL_NET_MERGE_LEVEL"] = level;
    const TimedJob job(shipped_cluster(name, {.nodes = 4, .settings = settings}), variables);
    return bandwidth(gib(4), job.timer().collective(job.plan(function, gib(4))).device);
  };
  const std::map<std::string, std::string> single = {{"oci-h100", "fabric.dual_tor=false"},
                                                     {"alibaba-hpn", "fabric.planes=1"}};
  for (const auto& [name, fabric] : single) {
    for (const Function function : {Function::AllReduce, Function::AllGather}) {
      INFO(name << " " << to_string(function));
      const double of_400g = rate(name,
                                  {"server.nic=ConnectX-7", "fabric.leaf=Quantum2-QM9700",
                                   "fabric.spine=Quantum2-QM9700", fabric},
                                  "PORT", function);
      REQUIRE(rate(name, {}, "PORT", function) == Approx(of_400g).epsilon(0.01));
      // Apart they are twice as many NICs, with channels of their own.
      const double of_200g =
          rate(name, {"server.nic=ConnectX-6", "server.nics=16", fabric}, "PORT", function);
      REQUIRE(rate(name, {}, "LOC", function) == Approx(of_200g).epsilon(0.01));
    }
  }
}

TEST_CASE("a ring goes on without the NICs of a dead leaf", "[nccl][timing]") {
  const auto bus_rate = [](const std::vector<std::string>& pulls) {
    const TimedJob job(shipped_cluster("dgx-h100", {.nodes = 4, .pulls = pulls}),
                       forced("Ring", "Simple"));
    const CallPlan plan = job.plan(Function::AllReduce, gib(1));
    return bandwidth(gib(1), job.timer().collective(plan).device) * 2.0 * 31.0 / 32.0;
  };
  const double whole = bus_rate({});
  for (const char* const pulled : {"leaf0", "server0/nic0,leaf0", "server0/nic0,server0/pcie0"}) {
    // Seven NICs of 48 GB/s are left.
    const double rate = bus_rate({pulled});
    REQUIRE(rate < 7 * 48.0);
    REQUIRE(rate > 0.9 * whole);
  }
}

}  // namespace trainyard::nccl
