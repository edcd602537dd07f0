// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/traffic/cluster_times.h"

#include <cstddef>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "collectives/hccl/hccl_run.h"
#include "collectives/run/run.h"
#include "network/traffic/transfers.h"
#include "parallelism/model/rank_groups.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

const nccl::Profile& shipped_profile() {
  static const nccl::Profile instance =
      nccl::Profile::load(kConfigsFolder / "nccl" / "profile.yaml");
  return instance;
}

ClusterTimes::Nccl nccl_runtime() {
  return {.profile = shipped_profile()};
}

}  // namespace

TEST_CASE("all GPUs of a server as a group are the server", "[cluster-times]") {
  const Cluster one = shipped_cluster("dgx-h100", {.nodes = 1});
  const Cluster two = shipped_cluster("dgx-h100", {.nodes = 2});
  ClusterTimes alone(one, {}, Fidelity::Flow);
  ClusterTimes of_two(two, {}, Fidelity::Flow);
  const std::vector<int> first{0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<int> second{8, 9, 10, 11, 12, 13, 14, 15};
  const SimTime time = alone.collective(Operation::AllGather, first, mib(64));
  REQUIRE(of_two.collective(Operation::AllGather, first, mib(64)) == time);
  REQUIRE(of_two.collective(Operation::AllGather, second, mib(64)) == time);
  REQUIRE(time == run_collective(one, {.operation = Operation::AllGather, .size = mib(64)}).time);
  REQUIRE(of_two.servers()[7] == 0);
  REQUIRE(of_two.servers()[8] == 1);
}

TEST_CASE("with HCCL a group takes what its call takes", "[cluster-times][hccl]") {
  const Cluster two = shipped_cluster("ascend-910b", {.nodes = 2});
  const HcclProfile profile = HcclProfile::load(kConfigsFolder / "hccl" / "profile.yaml");
  ClusterTimes times(two, {}, Fidelity::Flow);
  times.use_hccl(&profile);
  std::vector<int> all(16);
  std::iota(all.begin(), all.end(), 0);
  const HcclMachine machine = hccl_machine(two);
  const HcclPlan plan = choose_hccl(machine, {}, Operation::AllReduce, mib(64));
  const SimTime time = time_hccl(two, machine, plan, profile, {.size = mib(64)}).time;
  REQUIRE(times.collective(Operation::AllReduce, all, mib(64)) == time);
  REQUIRE(times.collective(Operation::AllReduce, {0, 1, 2, 3}, mib(64)) > SimTime());
}

TEST_CASE("what was asked once is remembered", "[cluster-times]") {
  const Cluster cluster = shipped_cluster("dgx-a100", {.nodes = 2});
  ClusterTimes times(cluster, nccl_runtime(), Fidelity::Flow);
  for (int repeat = 0; repeat < 3; ++repeat) {
    REQUIRE(times.collective(Operation::AllReduce, {0, 8}, mib(16)) > SimTime());
    REQUIRE(times.transfer(0, 8, mib(1)) > SimTime());
  }
  REQUIRE(times.calls() == 6);
  REQUIRE(times.simulated() == 2);
}

TEST_CASE("more members of a group in a server bring more NICs", "[cluster-times]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 4});
  for (const bool is_nccl : {false, true}) {
    ClusterTimes times(cluster, is_nccl ? std::optional(nccl_runtime()) : std::nullopt,
                       Fidelity::Flow);
    const SimTime one = times.collective(Operation::ReduceScatter, {0, 8, 16, 24}, mib(512));
    const SimTime two =
        times.collective(Operation::ReduceScatter, {0, 1, 8, 9, 16, 17, 24, 25}, mib(512));
    REQUIRE(one / two > 1.6);
  }
}

TEST_CASE("an engine between nodes shows a group of NCCL's the fabric", "[cluster-times]") {
  const auto time = [](const std::string& oversubscription, std::optional<Fidelity> engine) {
    const Cluster cluster = shipped_cluster(
        "hgx-h100-clos", {.nodes = 4,
                          .settings = {"fabric.nodes_per_leaf=2", "fabric.routing=adaptive",
                                       "fabric.oversubscription=" + oversubscription}});
    ClusterTimes::Nccl runtime = nccl_runtime();
    runtime.engine = engine;
    ClusterTimes times(cluster, runtime, Fidelity::Flow);
    std::vector<int> all(32);
    std::iota(all.begin(), all.end(), 0);
    return times.collective(Operation::AllGather, all, mib(512));
  };
  REQUIRE(time("1", Fidelity::Flow) / time("1", {}) == Approx(1.0).margin(0.02));
  REQUIRE(time("4", {}) == time("1", {}));
  REQUIRE(time("4", Fidelity::Flow) / time("1", Fidelity::Flow) > 1.5);
}

TEST_CASE("the analytical fidelity is a lower bound, NCCL is slower than links",
          "[cluster-times]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  ClusterTimes bound(cluster, {}, Fidelity::Analytical);
  ClusterTimes flow(cluster, {}, Fidelity::Flow);
  ClusterTimes with_nccl(cluster, nccl_runtime(), Fidelity::Flow);
  const std::vector<int> ranks{0, 1, 2, 3, 8, 9, 10, 11};
  for (const Operation operation : {Operation::AllGather, Operation::ReduceScatter,
                                    Operation::AllToAll, Operation::SendReceive}) {
    INFO(to_string(operation));
    const SimTime min = bound.collective(operation, ranks, mib(32));
    REQUIRE(min <= flow.collective(operation, ranks, mib(32)));
  }
  REQUIRE(bound.collective(Operation::AllGather, ranks, mib(32)) <
          with_nccl.collective(Operation::AllGather, ranks, mib(32)));
  REQUIRE(flow.transfer(0, 9, mib(1)) ==
          run_transfers(cluster, std::vector<Transfer>{{cluster.gpus[0], cluster.gpus[9]}}, mib(1))
              .front());
}

TEST_CASE("groups that share no link take as long as alone, to the picosecond", "[cluster-times]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 4});
  const ParallelPlan plan{.tensor = 4, .pipeline = 2, .data = 4};
  const ParallelPlan experts{.data = 32, .expert = 32};
  std::vector<int> all(32);
  std::iota(all.begin(), all.end(), 0);
  for (const bool is_nccl : {false, true}) {
    const auto runtime = is_nccl ? std::optional(nccl_runtime()) : std::nullopt;
    ClusterTimes alone(cluster, runtime, Fidelity::Flow);
    ClusterTimes beside(cluster, runtime, Fidelity::Flow);
    beside.use_plan(plan);
    for (const std::vector<int>& ranks :
         {std::vector{0, 1, 2, 3}, group_of(plan, RankGroupKind::Gradient, 1)}) {
      for (const Operation operation : {Operation::AllReduce, Operation::AllToAll}) {
        REQUIRE(beside.collective(operation, ranks, mib(64)) ==
                alone.collective(operation, ranks, mib(64)));
      }
    }
    REQUIRE(beside.transfer(0, 16, mib(4)) == alone.transfer(0, 16, mib(4)));
    beside.use_plan(experts);
    REQUIRE(beside.collective(Operation::AllToAll, all, mib(64)) ==
            alone.collective(Operation::AllToAll, all, mib(64)));
    REQUIRE(beside.min_share() == 1.0);
  }
}

// Two GPUs below one NIC: data ranks of two tensor ranks have half of it each.
TEST_CASE("groups that share a NIC share its rate", "[cluster-times]") {
  const Cluster cluster = shipped_cluster("aws-p4d", {.nodes = 4});
  const ParallelPlan plan{.tensor = 8, .data = 4};
  for (const bool is_nccl : {false, true}) {
    const auto runtime = is_nccl ? std::optional(nccl_runtime()) : std::nullopt;
    ClusterTimes times(cluster, runtime, Fidelity::Flow);
    const std::vector<int> ranks = group_of(plan, RankGroupKind::Gradient, 0);
    const SimTime alone = times.collective(Operation::AllReduce, ranks, mib(512));
    times.use_plan(plan);
    REQUIRE(times.collective(Operation::AllReduce, ranks, mib(512)) / alone > 1.7);
    REQUIRE(times.min_share() == Approx(0.5));
  }
}

// What the event model sees of a fabric: the same factor as the flow engine.
TEST_CASE("concurrent groups slow a group of NCCL down as much as one of rings",
          "[cluster-times]") {
  const Cluster cluster = shipped_cluster(
      "hgx-h100-clos", {.nodes = 4,
                        .settings = {"fabric.nodes_per_leaf=2", "fabric.routing=static",
                                     "fabric.oversubscription=8"}});
  const ParallelPlan plan{.tensor = 8, .data = 4};
  const std::vector<int> ranks = group_of(plan, RankGroupKind::Gradient, 0);
  std::vector<double> factors;
  for (const bool is_nccl : {false, true}) {
    const auto runtime = is_nccl ? std::optional(nccl_runtime()) : std::nullopt;
    for (const Operation operation : {Operation::AllReduce, Operation::AllToAll}) {
      ClusterTimes times(cluster, runtime, Fidelity::Flow);
      const SimTime alone = times.collective(operation, ranks, gib(1));
      times.use_plan(plan);
      factors.push_back(times.collective(operation, ranks, gib(1)) / alone);
      REQUIRE(factors.back() > 2.0);
    }
  }
  REQUIRE(factors[2] / factors[0] == Approx(1.0).epsilon(0.15));
}

// DGX A100: two GPUs and two NICs below a PCIe switch.
TEST_CASE("until NCCL 2.28 the GPUs of a PCIe switch take one of its NICs each",
          "[cluster-times]") {
  const Cluster cluster = shipped_cluster("dgx-a100", {.nodes = 4});
  const ParallelPlan plan{.tensor = 8, .data = 4};
  const std::vector<int> ranks = group_of(plan, RankGroupKind::Gradient, 0);
  const auto min_share = [&](nccl::Version version) {
    ClusterTimes::Nccl runtime = nccl_runtime();
    runtime.version = version;
    ClusterTimes times(cluster, runtime, Fidelity::Flow);
    times.use_plan(plan);
    REQUIRE(times.collective(Operation::AllReduce, ranks, mib(512)) > SimTime());
    return times.min_share();
  };
  REQUIRE(min_share(nccl::Version::V2_28) == 1.0);
  REQUIRE(min_share(nccl::Version::V2_30) == Approx(0.5));
}

// What the bounds of a search rest on.
TEST_CASE("a plan makes no collective shorter", "[cluster-times]") {
  const Cluster cluster =
      shipped_cluster("aws-p4d", {.nodes = 4, .settings = {"fabric.routing=static"}});
  for (const ParallelPlan& plan :
       {ParallelPlan{.tensor = 16, .data = 2}, ParallelPlan{.tensor = 4, .data = 8},
        ParallelPlan{.tensor = 2, .context = 2, .pipeline = 2, .data = 4}}) {
    for (const bool is_nccl : {false, true}) {
      const auto runtime = is_nccl ? std::optional(nccl_runtime()) : std::nullopt;
      ClusterTimes alone(cluster, runtime, Fidelity::Flow);
      ClusterTimes beside(cluster, runtime, Fidelity::Flow);
      beside.use_plan(plan);
      for (const RankGroupKind kind : {RankGroupKind::Tensor, RankGroupKind::Gradient}) {
        const std::vector<int> ranks = group_of(plan, kind, 1);
        for (const Operation operation :
             {Operation::AllReduce, Operation::AllGather, Operation::AllToAll}) {
          for (const Bytes size : {kib(64), mib(64)}) {
            REQUIRE(beside.collective(operation, ranks, size) >=
                    alone.collective(operation, ranks, size));
          }
        }
      }
    }
  }
}

TEST_CASE("a plan that comes back has the answers that it had", "[cluster-times]") {
  const Cluster cluster = shipped_cluster("aws-p4d", {.nodes = 4});
  const ParallelPlan sharing{.tensor = 8, .data = 4};
  const ParallelPlan single{.data = 32};
  const std::vector<int> ranks = group_of(sharing, RankGroupKind::Gradient, 0);
  ClusterTimes times(cluster, {}, Fidelity::Flow);
  times.use_plan(sharing);
  const SimTime shared = times.collective(Operation::AllReduce, ranks, mib(64));
  times.use_plan(single);  // Of which no kind has these ranks.
  REQUIRE(times.collective(Operation::AllReduce, ranks, mib(64)) < shared);
  const std::size_t simulated = times.simulated();
  times.use_plan(sharing);
  REQUIRE(times.collective(Operation::AllReduce, ranks, mib(64)) == shared);
  REQUIRE(times.simulated() == simulated);
}

// Racks of 72 GPUs: of groups of 64 the first stays in its rack, the second has 8 GPUs there and 56
// in the next.
TEST_CASE("a group that leaves its rack counts for one that does not", "[cluster-times][long]") {
  const Cluster cluster =
      shipped_cluster("gb200-nvl72", {.nodes = 32, .settings = {"server.nvlink_domain=18"}});
  const ParallelPlan plan{.pipeline = 2, .data = 64, .expert = 64};
  const std::vector<int> first = group_of(plan, RankGroupKind::Expert, 0);
  const std::vector<int> second = group_of(plan, RankGroupKind::Expert, 64);
  ClusterTimes times(cluster, nccl_runtime(), Fidelity::Flow);
  const SimTime within = times.collective(Operation::AllToAll, first, mib(64));
  const SimTime across = times.collective(Operation::AllToAll, second, mib(64));
  REQUIRE(across / within > 2.0);
  times.use_plan(plan);
  REQUIRE(times.collective(Operation::AllToAll, first, mib(64)) == across);
  REQUIRE(times.collective(Operation::AllToAll, second, mib(64)) == across);
}

// Unequal concurrent groups: sizes at which NCCL decides differently for them, in every order of
// asking.
TEST_CASE("what was asked before changes no answer", "[cluster-times][long]") {
  const Cluster racks = shipped_cluster(
      "gb200-nvl72",
      {.nodes = 24, .settings = {"server.nvlink_domain=18", "fabric.routing=adaptive"}});
  const Cluster servers =
      shipped_cluster("aws-p4d", {.nodes = 6, .settings = {"fabric.routing=static"}});
  struct Question {
    Operation operation;
    int rank;
    Bytes size;
  };
  for (const Cluster* const cluster : {&racks, &servers}) {
    const ParallelPlan plan = cluster == &racks
                                  ? ParallelPlan{.tensor = 2, .data = 48}
                                  : ParallelPlan{.tensor = 4, .pipeline = 2, .data = 6};
    std::vector<Question> questions;
    for (const Operation operation :
         {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter}) {
      for (const int rank : {0, plan.tensor - 1, plan.ranks() - 1}) {
        for (const Bytes size : {kib(256), mib(4), mib(256)}) {
          questions.push_back({operation, rank, size});
        }
      }
    }
    const auto answer = [&](ClusterTimes& times, const Question& question) {
      return times.collective(question.operation,
                              group_of(plan, RankGroupKind::Gradient, question.rank),
                              question.size);
    };
    ClusterTimes forth(*cluster, nccl_runtime(), Fidelity::Flow);
    ClusterTimes back(*cluster, nccl_runtime(), Fidelity::Flow);
    forth.use_plan(plan);
    back.use_plan(plan);
    std::vector<SimTime> answers;
    for (const Question& question : questions) {
      answers.push_back(answer(forth, question));
    }
    for (std::size_t index = questions.size(); index-- > 0;) {
      INFO(cluster->name << " " << index);
      REQUIRE(answer(back, questions[index]) == answers[index]);
    }
    for (std::size_t index : {std::size_t{1}, questions.size() / 2}) {
      ClusterTimes alone(*cluster, nccl_runtime(), Fidelity::Flow);
      alone.use_plan(plan);
      REQUIRE(answer(alone, questions[index]) == answers[index]);
    }
  }
}

// Below leaves of two servers, pairs of neighbours and others.
TEST_CASE("all concurrent groups and all messages of a stage take as long", "[cluster-times]") {
  const Cluster cluster = shipped_cluster(
      "hgx-h100-clos", {.nodes = 6,
                        .settings = {"fabric.nodes_per_leaf=2", "fabric.routing=static",
                                     "fabric.oversubscription=2"}});
  const ParallelPlan plan{.tensor = 4, .pipeline = 3, .data = 4};
  for (const bool is_nccl : {false, true}) {
    const auto runtime = is_nccl ? std::optional(nccl_runtime()) : std::nullopt;
    ClusterTimes alone(cluster, runtime, Fidelity::Flow);
    ClusterTimes times(cluster, runtime, Fidelity::Flow);
    times.use_plan(plan);
    std::map<int, SimTime> of_stage;
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      const std::vector<int> ranks = group_of(plan, RankGroupKind::Gradient, rank);
      const SimTime time = times.collective(Operation::AllReduce, ranks, mib(64));
      REQUIRE(time == times.collective(Operation::AllReduce,
                                       group_of(plan, RankGroupKind::Gradient, 0), mib(64)));
      REQUIRE(time >= alone.collective(Operation::AllReduce, ranks, mib(64)));
      const std::vector<int> pipeline = group_of(plan, RankGroupKind::Pipeline, rank);
      for (int stage = 0; stage + 1 < plan.pipeline; ++stage) {
        const int from = pipeline[static_cast<std::size_t>(stage)];
        const int to = pipeline[static_cast<std::size_t>(stage) + 1];
        const SimTime message = times.transfer(from, to, mib(8));
        REQUIRE(message >= alone.transfer(from, to, mib(8)));
        REQUIRE(of_stage.try_emplace(stage, message).first->second == message);
      }
    }
  }
}

}  // namespace trainyard
