// SPDX-License-Identifier: Apache-2.0
// Plans of every kind on 1 to 64 GPUs: each runs with both runtimes on all three engines, and its
// folded graph takes what that of all ranks takes, to the picosecond.
#include "support/catch.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "parallelism/graph/graph_network.h"
#include "parallelism/lowering/step_graph.h"
#include "parallelism/operators/host_copies.h"
#include "parallelism/traffic/cluster_times.h"
#include "sim/config_error.h"
#include "sim/random.h"
#include "support/effort.h"
#include "support/nccl_timing.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

// Small, so that packets of 64 ranks are few.
Model small_model(bool has_experts) {
  Model model = load_model(kConfigsFolder / "workloads/models" /
                           (has_experts ? "mixtral-8x7b.yaml" : "llama-3-8b.yaml"));
  model.hidden = 256;
  model.vocabulary = 512;
  model.layers.resize(8);
  for (ModelLayer& layer : model.layers) {
    layer.attention.grouped = {.heads = 8, .kv_heads = 8, .head_size = 32};
    if (has_experts) {
      layer.experts->expert.size = 512;
    } else {
      layer.feed_forward->size = 512;
    }
  }
  return model;
}

// Beyond it, packets of a whole step take seconds.
constexpr int kMaxSharedPackets = 16;

struct DrawnPlan {
  ParallelPlan plan;
  Overlap overlap;
  bool has_experts = false;
  int gpus_of_server = 1;
  // Of leaves of two or four servers, instead of rails with leaves of 32.
  std::optional<int> servers_of_leaf = {};
  int oversubscription = 1;
};

class PlanDraw {
 public:
  explicit PlanDraw(std::uint64_t seed) : seed_(seed), random_(seed, "plans of every kind") {}

  DrawnPlan draw() {
    DrawnPlan drawn;
    ParallelPlan& plan = drawn.plan;
    int left = 1 + static_cast<int>(random_.below(64));
    drawn.gpus_of_server = divisor(left, 8);
    drawn.has_experts = flip();
    plan.tensor = power_of_two(left);
    plan.has_sequence_parallelism = plan.tensor > 1 && (drawn.has_experts || flip());
    left /= plan.tensor;
    plan.context = power_of_two(left);
    if (plan.context == 1 && left % 2 == 0 && seed_ % 2 == 0) {
      plan.context = 2;
    }
    plan.context_kind = seed_ / 2 % 2 == 0 || plan.tensor * plan.context > 8
                            ? ContextParallelism::Ring
                            : ContextParallelism::AllToAll;
    left /= plan.context;
    draw_pipeline(left, plan);
    draw_experts(drawn);
    draw_sharding(drawn);
    constexpr std::array kRecompute{Recompute::None, Recompute::Selective, Recompute::Full};
    plan.recompute = kRecompute[random_.below(kRecompute.size())];
    plan.offload = {.optimizer = random_.below(4) == 0, .activations = random_.below(4) == 0};
    draw_leaves(drawn);
    drawn.overlap = {.tensor = flip(), .data = flip(), .pipeline = flip(), .expert = flip()};
    plan.sequence = 256;
    plan.global_batch = 2 * std::max(2, plan.pipeline) * plan.data;
    return drawn;
  }

 private:
  bool flip() { return random_.below(2) == 0; }

  // Of `number`, at most `most`.
  int divisor(int number, int max) {
    std::vector<int> all;
    for (int each = 1; each <= std::min(number, max); ++each) {
      if (number % each == 0) {
        all.push_back(each);
      }
    }
    return all[random_.below(all.size())];
  }
  int power_of_two(int number) {
    int max = 1;
    while (number % (2 * max) == 0 && max < 8) {
      max *= 2;
    }
    return divisor(max, max);
  }

  // Each schedule in its turn; of pipelines as few of one rank as can be.
  void draw_pipeline(int left, ParallelPlan& plan) {
    plan.schedule = pipeline_schedules()[seed_ % pipeline_schedules().size()];
    plan.chunks = plan.schedule->chunks.value_or(2);
    plan.pipeline = divisor(left, plan.chunks == 2 ? 4 : 8);
    if (plan.pipeline == 1 && left % 2 == 0) {
      plan.pipeline = 2;
    }
    if (plan.schedule->layout.directions == 2 && plan.pipeline % 2 != 0) {
      plan.schedule = &kOneForwardOneBackward;
      plan.chunks = 1;
    }
    plan.data = left / plan.pipeline;
  }

  void draw_experts(DrawnPlan& drawn) {
    if (drawn.has_experts) {
      ParallelPlan& plan = drawn.plan;
      plan.expert = power_of_two(plan.tensor * plan.context * plan.data);
    }
  }

  void draw_sharding(DrawnPlan& drawn) {
    ParallelPlan& plan = drawn.plan;
    plan.zero_stage = static_cast<int>(random_.below(4));
    if (plan.zero_stage > 0 && !drawn.has_experts && flip()) {
      plan.shard_group = divisor(plan.gradient_ranks(), 8);
    }
  }

  void draw_leaves(DrawnPlan& drawn) {
    if (flip()) {
      drawn.servers_of_leaf = flip() ? 2 : 4;
      drawn.oversubscription = flip() ? 1 : 2;
    }
  }

  std::uint64_t seed_;
  RandomStream random_;
};

Cluster cluster_for(const DrawnPlan& drawn) {
  ClusterOverrides overrides{.nodes = drawn.plan.ranks() / drawn.gpus_of_server,
                             .gpus_per_node = drawn.gpus_of_server};
  if (!drawn.servers_of_leaf) {
    return shipped_cluster("dgx-h100", overrides);
  }
  overrides.settings = {"fabric.nodes_per_leaf=" + std::to_string(*drawn.servers_of_leaf),
                        "fabric.oversubscription=" + std::to_string(drawn.oversubscription)};
  return shipped_cluster("hgx-h100-clos", overrides);
}

std::string name_of(const DrawnPlan& drawn) {
  const ParallelPlan& plan = drawn.plan;
  return std::string(drawn.has_experts ? "experts" : "dense") + ", " +
         std::string(to_string(plan.schedule)) + ": tensor " + std::to_string(plan.tensor) +
         ", context " + std::to_string(plan.context) + ", pipeline " +
         std::to_string(plan.pipeline) + ", data " + std::to_string(plan.data) + ", expert " +
         std::to_string(plan.expert) + ", zero " + std::to_string(plan.zero_stage) + " over " +
         std::to_string(plan.shards()) + ", " + std::to_string(drawn.gpus_of_server) +
         " GPUs a server, " +
         (drawn.servers_of_leaf ? std::to_string(*drawn.servers_of_leaf) : "32") +
         " servers a leaf, " + std::to_string(drawn.oversubscription) + ":1";
}

// What was drawn, so that none is forgotten.
void count_kinds(const DrawnPlan& drawn, std::map<std::string, int>& kinds) {
  const ParallelPlan& plan = drawn.plan;
  const auto count = [&](bool is_there, const std::string& kind) { kinds[kind] += is_there; };
  count(plan.tensor > 1 && !plan.has_sequence_parallelism, "tensor");
  count(plan.has_sequence_parallelism, "sequence");
  count(plan.context > 1 && plan.context_kind == ContextParallelism::Ring, "context ring");
  count(plan.context > 1 && plan.context_kind == ContextParallelism::AllToAll, "context alltoall");
  count(plan.expert > 1, "expert");
  count(plan.pipeline > 1, std::string(to_string(plan.schedule)));
  for (const int stage : {0, 1, 2, 3}) {
    count(plan.gradient_ranks() > 1 && plan.zero_stage == stage, "zero " + std::to_string(stage));
  }
  count(plan.zero_stage > 0 && plan.shards() > 1 && plan.shards() < plan.gradient_ranks(), "HSDP");
  count(plan.recompute == Recompute::Full, "recompute");
  count(plan.offload.optimizer, "offload of the optimizer");
  count(plan.offload.activations, "offload of activations");
  const int servers = plan.ranks() / drawn.gpus_of_server;
  count(servers > 32 && !drawn.servers_of_leaf, "rails with several leaves");
  count(servers > drawn.servers_of_leaf.value_or(servers), "leaves and spines");
}

class PlanRun {
 public:
  explicit PlanRun(const DrawnPlan& drawn)
      : drawn_(drawn),
        model_(small_model(drawn.has_experts)),
        cluster_(cluster_for(drawn)),
        host_(host_rates_for(drawn.plan, cluster_)) {
    check(drawn.plan, model_, drawn.plan.ranks());
  }

  // By the runtime and engine.
  void compare(std::optional<ClusterTimes::Nccl> runtime, Fidelity fidelity) const {
    INFO((runtime ? "nccl, " : "plain, ") << to_string(fidelity));
    if (runtime) {
      runtime->engine = fidelity;
    }
    ClusterTimes times(cluster_, runtime, fidelity);
    times.use_plan(drawn_.plan);
    const StepJob job = job_on(times);
    const StepGraphRun folded = run_step_graph(job, times, Folding::Folded);
    const StepGraphRun whole = run_step_graph(job, times, Folding::Unfolded);
    REQUIRE(folded.run.finish == whole.run.finish);
    REQUIRE(folded.step.parts == whole.step.parts);
    const StepTime closed = step_time(job, times);
    REQUIRE(closed.parts.total() == closed.time);
  }

  // With everything at once on one network.
  void share(Fidelity fidelity) const {
    INFO("shared, " << to_string(fidelity));
    ClusterTimes places(cluster_, {}, fidelity);
    Simulator simulator;
    SharedNetwork network(simulator, cluster_, fidelity);
    NetworkTraffic traffic(simulator, cluster_, network);
    const StepGraphRun run = run_step_graph(job_on(places), simulator, traffic, Folding::Unfolded);
    REQUIRE(run.step.parts.total() == run.step.time);
  }

 private:
  [[nodiscard]] StepJob job_on(const ClusterTimes& places) const {
    return {.model = model_,
            .plan = drawn_.plan,
            .rates = rates_,
            .software = software_,
            .overlap = drawn_.overlap,
            .server_of_rank = places.servers(),
            .domain_of_rank = places.domains(),
            .host = host_};
  }

  const DrawnPlan& drawn_;
  Model model_;
  Cluster cluster_;
  std::optional<HostRates> host_;
  ComputeRates rates_ = shipped_compute("H100-SXM", "nemo");
  SoftwareProfile software_ = shipped_software("nemo");
};

}  // namespace

TEST_CASE("every kind of plan is the same folded and whole on all engines, with both runtimes",
          "[plans][long]") {
  const nccl::Profile profile = nccl::Profile::load(kConfigsFolder / "nccl/profile.yaml");
  std::map<std::string, int> kinds;
  for (std::uint64_t seed = 0; seed < cases(6 * pipeline_schedules().size()); ++seed) {
    PlanDraw draw(seed);
    const DrawnPlan drawn = draw.draw();
    INFO("seed=" << seed << ": " << name_of(drawn));
    count_kinds(drawn, kinds);
    const PlanRun run(drawn);
    for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow, Fidelity::Packet}) {
      run.compare({}, fidelity);
      run.compare(ClusterTimes::Nccl{.profile = profile}, fidelity);
    }
    run.share(Fidelity::Flow);
    if (drawn.plan.ranks() <= kMaxSharedPackets) {
      run.share(Fidelity::Packet);
    }
  }
  for (const auto& [kind, count] : kinds) {
    INFO(kind);
    REQUIRE((kIsSanitized || count > 0));
  }
}

}  // namespace trainyard
