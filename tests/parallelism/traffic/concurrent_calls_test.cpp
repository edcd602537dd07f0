// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/traffic/concurrent_calls.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "parallelism/traffic/cluster_times.h"
#include "sim/config_error.h"
#include "support/nccl_timing.h"

namespace trainyard {
namespace {

// Each of k calls goes at a k-th of its pace.
std::vector<SimTime> shared_evenly(const std::vector<SimTime>& alone,
                                   std::span<const std::size_t> running) {
  std::vector<SimTime> times;
  for (const std::size_t call : running) {
    times.push_back(alone[call] * static_cast<std::int64_t>(running.size()));
  }
  return times;
}

std::vector<SimTime> ends_of(const std::vector<SimTime>& starts,
                             const std::vector<SimTime>& alone) {
  return ends_side_by_side(
      starts, [&](std::span<const std::size_t> running) { return shared_evenly(alone, running); });
}

// The same in small steps of time, each call done when its share of the steps makes up its time.
std::vector<double> ends_in_steps(const std::vector<SimTime>& starts,
                                  const std::vector<SimTime>& alone, double step) {
  std::vector<double> done(starts.size(), 0.0);
  std::vector<double> ends(starts.size(), 0.0);
  std::size_t left = starts.size();
  for (double now = 0.0; left > 0; now += step) {
    std::vector<std::size_t> running;
    for (std::size_t call = 0; call < starts.size(); ++call) {
      if (ends[call] == 0.0 && starts[call].microseconds() <= now) {
        running.push_back(call);
      }
    }
    for (const std::size_t call : running) {
      done[call] += step / static_cast<double>(running.size());
      if (done[call] >= alone[call].microseconds()) {
        ends[call] = now;
        --left;
      }
    }
  }
  return ends;
}

nccl::InitOptions options_of(const std::vector<std::string>& variables = {}) {
  return {.environment = nccl::Environment::parse(variables)};
}

std::vector<int> numbered(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

ConcurrentCalls::Settings settings_of(std::optional<nccl::EngineSettings> engine = {}) {
  return {.profile = nccl::default_profile(), .engine = std::move(engine)};
}

}  // namespace

TEST_CASE("two calls that share evenly end where the sum of their parts says", "[groups]") {
  const std::vector<SimTime> ends =
      ends_of({SimTime(), microseconds(700)}, {microseconds(1'400), microseconds(1'400)});
  REQUIRE(ends == std::vector{microseconds(2'100), microseconds(2'800)});
  // One that begins when the other has ended, and one that takes no time.
  REQUIRE(ends_of({SimTime(), microseconds(5), microseconds(7)},
                  {microseconds(5), microseconds(3), SimTime()}) ==
          std::vector{microseconds(5), microseconds(8), microseconds(7)});
}

TEST_CASE("calls side by side end as a walk in small steps has them", "[groups]") {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    std::vector<SimTime> starts;
    std::vector<SimTime> alone;
    const auto calls = 1 + random() % 6;
    for (std::size_t call = 0; call < calls; ++call) {
      starts.push_back(microseconds(static_cast<std::int64_t>(random() % 200)));
      alone.push_back(microseconds(1 + static_cast<std::int64_t>(random() % 100)));
    }
    const std::vector<SimTime> ends = ends_of(starts, alone);
    const std::vector<double> in_steps = ends_in_steps(starts, alone, 0.005);
    for (std::size_t call = 0; call < calls; ++call) {
      REQUIRE(ends[call].microseconds() == Approx(in_steps[call]).margin(0.1));
    }
  }
}

TEST_CASE("a call that is alone takes what its timer says, and so do calls without common links",
          "[groups]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  const nccl::InitOptions options = options_of();
  ConcurrentCalls calls(cluster, settings_of());
  const nccl::TimedJob job(cluster);
  const std::vector<ConcurrentCall> whole{
      {.ranks = numbered(16), .size = mib(64), .options = &options, .start = microseconds(3)}};
  const ConcurrentTime one = calls.run(whole).front();
  const SimTime expected =
      job.timer().collective(job.plan(nccl::Function::AllReduce, mib(64))).time;
  REQUIRE(one.alone == expected);
  REQUIRE(one.end == microseconds(3) + expected);
  std::vector<ConcurrentCall> rails;
  for (int rail = 0; rail < 8; ++rail) {
    rails.push_back({.ranks = {rail, rail + 8}, .size = mib(64), .options = &options});
  }
  for (const ConcurrentTime& time : calls.run(rails)) {
    REQUIRE(time.end == time.alone);
  }
}

TEST_CASE("calls over the same links have half of them each while both run", "[groups]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  struct Case {
    std::vector<int> ranks;
    std::vector<std::string> variables;
    std::optional<nccl::EngineSettings> engine;
  };
  const std::vector<Case> cases{
      {{0, 8}, {"NCCL_ALGO=Ring"}, {}},
      {{0, 8}, {"NCCL_ALGO=Ring"}, nccl::EngineSettings{.fidelity = Fidelity::Flow}},
      {numbered(8), {"NCCL_ALGO=Ring"}, {}},  // NVLink alone.
      {numbered(8), {"NCCL_ALGO=NVLS"}, {}},
      {numbered(16), {"NCCL_ALGO=NVLSTree"}, {}}};
  for (const Case& one : cases) {
    INFO(one.ranks.size() << " " << one.variables.front());
    const nccl::InitOptions options = options_of(one.variables);
    ConcurrentCalls calls(cluster, settings_of(one.engine));
    ConcurrentCall first{.ranks = one.ranks, .size = gib(1), .options = &options};
    ConcurrentCall second = first;
    const std::vector<ConcurrentTime> both = calls.run(std::vector{first, second});
    REQUIRE(both[0].end == both[1].end);
    REQUIRE(both[0].end / both[0].alone > 1.5);
    REQUIRE(both[0].end / both[0].alone < 2.25);
    // From half of the first on: it has 0.5 s left, s the slowdown, and so has the second then.
    const double slowdown = both[0].end / both[0].alone;
    second.start = SimTime(both[0].alone.picoseconds() / 2);
    const std::vector<ConcurrentTime> late = calls.run(std::vector{first, second});
    REQUIRE(late[0].end / both[0].alone == Approx(0.5 + 0.5 * slowdown).epsilon(1e-6));
    REQUIRE(late[1].end / both[0].alone == Approx(1.0 + 0.5 * slowdown).epsilon(1e-6));
    second.start = both[0].alone;
    for (const ConcurrentTime& time : calls.run(std::vector{first, second})) {
      REQUIRE(time.alone == both[0].alone);
    }
  }
}

TEST_CASE("groups that begin together end as those of a kind in a step do", "[groups]") {
  const Cluster cluster = shipped_cluster(
      "hgx-h100-clos",
      {.nodes = 4, .settings = {"fabric.nodes_per_leaf=2", "fabric.oversubscription=4"}});
  const nccl::InitOptions options = options_of();
  ClusterTimes step(cluster, ClusterTimes::Nccl{.profile = nccl::default_profile()},
                    Fidelity::Flow);
  step.use_plan({.tensor = 8, .data = 4});
  ConcurrentCalls calls(cluster, settings_of());
  std::vector<ConcurrentCall> rails;
  for (int rail = 0; rail < 8; ++rail) {
    rails.push_back({.ranks = {rail, rail + 8, rail + 16, rail + 24},
                     .operation = Operation::AllGather,
                     .size = mib(256),
                     .options = &options});
  }
  SimTime last;
  for (const ConcurrentTime& time : calls.run(rails)) {
    last = std::max(last, time.end);
    REQUIRE(time.end >= time.alone);
  }
  // Some end before, so that the last are not slowed down to their ends. Of groups that are alike
  // a step runs one, whose channels may have other rates than those of the last here.
  const SimTime of_step = step.collective(Operation::AllGather, rails[0].ranks, mib(256));
  REQUIRE(last / of_step < 1.02);
  REQUIRE(last / of_step > 0.5);
}

}  // namespace trainyard
