// SPDX-License-Identifier: Apache-2.0
// Volumes of each kind of parallelism against their formulas, over random plans. In elements that a
// rank sends: b sequences of s tokens in a micro-batch, h hidden, t tensor, c context, d data and e
// expert ranks, P parameters of a rank.
#include "support/catch.h"

#include "parallelism/walk/step_traffic.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sim/random.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

constexpr int kSeeds = 300;

double sent_traffic(const std::vector<GroupCall>& calls, const ParallelPlan& plan,
                    RankGroupKind kind) {
  double sum = 0.0;
  for (const GroupCall& call : calls) {
    sum += call.group == kind ? sent_elements(call, group_size(plan, kind)) : 0.0;
  }
  return sum;
}

double others(int ranks) {
  return static_cast<double>(ranks - 1) / static_cast<double>(ranks);
}

int power(RandomStream& random, int max) {
  return 1 << random.below(static_cast<std::uint64_t>(max) + 1);
}

SoftwareProfile with_buckets(BucketRule rule) {
  SoftwareProfile software;
  software.gradient_bytes = 4;
  software.buckets = rule;
  return software;
}

struct Case {
  Model model;
  ParallelPlan plan;
  double bsh = 0.0;  // Of a rank: its context ranks share the sequence.
};

Case random_case(RandomStream& random) {
  Case one;
  one.model.hidden = 64 * power(random, 6);
  one.model.vocabulary = 1024;
  const std::int64_t heads = 16 * power(random, 2);
  const std::int64_t groups = heads / power(random, 1);
  ModelLayer layer;
  layer.attention.grouped =
      GroupedAttention{.heads = heads, .kv_heads = groups, .head_size = one.model.hidden / 16};
  layer.feed_forward = FeedForward{.size = 256 * power(random, 3), .is_gated = true};
  one.model.layers.assign(4, layer);
  one.plan.tensor = power(random, 3);
  one.plan.has_sequence_parallelism = one.plan.tensor > 1 && random.below(2) == 1;
  one.plan.context = power(random, 3);
  one.plan.data = power(random, 4);
  one.plan.micro_batch = 1 + static_cast<std::int64_t>(random.below(4));
  one.plan.sequence = 256 * power(random, 5);
  one.bsh = static_cast<double>(one.plan.tokens()) * static_cast<double>(one.model.hidden);
  return one;
}

template <typename Check>
void for_random_cases(const Check& check) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(static_cast<std::uint64_t>(seed), "plans");
    check(random_case(random), random);
  }
}

}  // namespace

TEST_CASE("tensor ranks send 8 b s h (t - 1) / t for a layer and micro-batch", "[traffic-volume]") {
  for_random_cases([](const Case& one, RandomStream&) {
    const PassCalls calls = layer_calls(one.model, one.model.layers[0], one.plan, {});
    const double forward = sent_traffic(calls.forward, one.plan, RankGroupKind::Tensor);
    const double backward = sent_traffic(calls.backward, one.plan, RankGroupKind::Tensor);
    const double share = one.bsh * others(one.plan.tensor);
    REQUIRE(forward == Approx(4.0 * share));
    // With sequence parallelism the inputs of both blocks are gathered once more.
    REQUIRE(backward == Approx((one.plan.has_sequence_parallelism ? 6.0 : 4.0) * share));
    double hidden = 0.0;
    for (const GroupCall& call : calls.backward) {
      hidden += call.is_hidden ? sent_elements(call, one.plan.tensor) : 0.0;
    }
    REQUIRE(forward + backward - hidden == Approx(8.0 * share));
  });
}

TEST_CASE("software may overlap tensor traffic of forward passes alone", "[traffic-volume]") {
  SoftwareProfile software;
  software.waits_backward = true;
  for_random_cases([&](const Case& one, RandomStream&) {
    const PassCalls calls = layer_calls(one.model, one.model.layers[0], one.plan, software);
    for (const GroupCall& call : calls.forward) {
      REQUIRE_FALSE(call.is_waited_for);
    }
    for (const GroupCall& call : calls.backward) {
      REQUIRE(call.is_waited_for == (call.group == RankGroupKind::Tensor));
    }
  });
}

TEST_CASE("context ranks pass keys and values round, or exchange heads", "[traffic-volume]") {
  for_random_cases([](Case one, RandomStream&) {
    // Of all tokens of the sequence, and of this tensor rank's heads.
    const Attention& attention = one.model.layers[0].attention;
    const double tokens = static_cast<double>(one.plan.micro_batch * one.plan.sequence);
    const double size = static_cast<double>(attention.grouped->head_size) / one.plan.tensor;
    const double groups = static_cast<double>(attention.grouped->kv_heads) * size;
    const double heads = static_cast<double>(attention.grouped->heads) * size;
    const PassCalls ring = layer_calls(one.model, one.model.layers[0], one.plan, {});
    const double expected = 2.0 * tokens * groups * others(one.plan.context);
    REQUIRE(sent_traffic(ring.forward, one.plan, RankGroupKind::Context) == Approx(expected));
    REQUIRE(sent_traffic(ring.backward, one.plan, RankGroupKind::Context) ==
            Approx(2.0 * expected));

    // PyTorch's: those of all heads are gathered in each pass, and their gradients sent c times.
    SoftwareProfile pytorch;
    pytorch.gathers_keys = true;
    const PassCalls gathered = layer_calls(one.model, one.model.layers[0], one.plan, pytorch);
    const double of_all = 2.0 * tokens * heads * others(one.plan.context);
    const double gradients = one.plan.context == 1 ? 0.0 : 2.0 * tokens * heads;
    REQUIRE(sent_traffic(gathered.forward, one.plan, RankGroupKind::Context) == Approx(of_all));
    REQUIRE(sent_traffic(gathered.backward, one.plan, RankGroupKind::Context) ==
            Approx(of_all + gradients));

    one.plan.context_kind = ContextParallelism::AllToAll;
    const PassCalls exchange = layer_calls(one.model, one.model.layers[0], one.plan, {});
    const double of_heads =
        2.0 * tokens * (heads + groups) / one.plan.context * others(one.plan.context);
    REQUIRE(sent_traffic(exchange.forward, one.plan, RankGroupKind::Context) == Approx(of_heads));
    REQUIRE(sent_traffic(exchange.backward, one.plan, RankGroupKind::Context) == Approx(of_heads));
  });
}

TEST_CASE("expert ranks send 2 k T h (e - 1) / e each way", "[traffic-volume]") {
  for_random_cases([](Case one, RandomStream& random) {
    one.plan.has_sequence_parallelism = one.plan.tensor > 1;
    one.plan.data = 16;
    one.plan.expert = power(random, 3);
    ModelLayer& layer = one.model.layers[0];
    layer.feed_forward.reset();
    layer.experts = Experts{.count = 16,
                            .active = 1 + static_cast<std::int64_t>(random.below(4)),
                            .expert = {.size = 256, .is_gated = true}};
    const std::int64_t of_rank = one.plan.tokens() / one.plan.tensor;
    const auto tokens = static_cast<double>(of_rank);
    const double expected = 2.0 * static_cast<double>(layer.experts->active) * tokens *
                            static_cast<double>(one.model.hidden) * others(one.plan.expert);
    const PassCalls calls = layer_calls(one.model, layer, one.plan, {});
    REQUIRE(sent_traffic(calls.forward, one.plan, RankGroupKind::Expert) == Approx(expected));
    REQUIRE(sent_traffic(calls.backward, one.plan, RankGroupKind::Expert) == Approx(expected));
    // Attention alone has products of tensor ranks.
    REQUIRE(sent_traffic(calls.forward, one.plan, RankGroupKind::Tensor) ==
            Approx(2.0 * one.bsh * others(one.plan.tensor)));
  });
}

TEST_CASE("gradients and weights: 2 P with ZeRO up to stage 2, 3 P for each micro-batch with 3",
          "[traffic-volume]") {
  for_random_cases([](Case one, RandomStream& random) {
    SoftwareProfile software;
    software.gradient_bytes = 4;
    const RankParameters parameters{.dense = 1 + static_cast<std::int64_t>(random.below(1 << 20))};
    const auto size = static_cast<double>(parameters.dense);
    const int ranks = one.plan.gradient_ranks();
    const DataCalls summed = data_calls(parameters, one.plan, software);
    REQUIRE(sent_traffic(summed.reduce, one.plan, RankGroupKind::Gradient) ==
            Approx(2.0 * size * others(ranks)));
    REQUIRE(summed.gather.empty());
    for (const int stage : {1, 2}) {
      one.plan.zero_stage = stage;
      const DataCalls sharded = data_calls(parameters, one.plan, software);
      REQUIRE(sent_traffic(sharded.reduce, one.plan, RankGroupKind::Shard) ==
              Approx(size * others(ranks)));
      REQUIRE(sent_traffic(sharded.gather, one.plan, RankGroupKind::Shard) ==
              Approx(size * others(ranks)));
    }
    one.plan.zero_stage = 3;
    const PassCalls each = sharded_calls(parameters, one.plan, software);
    REQUIRE(sent_traffic(each.forward, one.plan, RankGroupKind::Shard) ==
            Approx(size * others(ranks)));
    REQUIRE(sent_traffic(each.backward, one.plan, RankGroupKind::Shard) ==
            Approx(2.0 * size * others(ranks)));
    REQUIRE(data_calls(parameters, one.plan, software).gather.empty());
    // Sharded over a part of the ranks, gradients are summed up between the parts.
    one.plan.shard_group = std::max(1, ranks / 2);
    const std::int64_t of_shard = (parameters.dense + one.plan.shards() - 1) / one.plan.shards();
    const auto shard = static_cast<double>(of_shard);
    REQUIRE(sent_traffic(data_calls(parameters, one.plan, software).reduce, one.plan,
                         RankGroupKind::Replica) ==
            Approx(2.0 * shard * others(ranks / one.plan.shards())));
  });
}

TEST_CASE("ranks that own whole matrices sum all gradients and broadcast what they own",
          "[traffic-volume]") {
  for_random_cases([](Case one, RandomStream& random) {
    SoftwareProfile software;
    software.deals_out_matrices = true;
    const RankParameters parameters{
        .dense = 1 << 20, .dense_matrices = 1 + static_cast<std::int64_t>(random.below(64))};
    const int ranks = one.plan.gradient_ranks();
    one.plan.zero_stage = 1;
    const DataCalls calls = data_calls(parameters, one.plan, software);
    REQUIRE(sent_traffic(calls.reduce, one.plan, RankGroupKind::Gradient) ==
            Approx(2.0 * static_cast<double>(parameters.dense) * others(ranks)));
    if (ranks == 1) {
      REQUIRE(calls.gather.empty());
      return;
    }
    REQUIRE(calls.gather.size() == 1);
    const GroupCall& call = calls.gather.front();
    REQUIRE(call.operation == Operation::Broadcast);
    REQUIRE(call.times == std::min<std::int64_t>(parameters.dense_matrices, ranks));
    REQUIRE(call.elements * call.times >= parameters.dense);
    REQUIRE((call.elements - 1) * call.times < parameters.dense);
    // Even slices where the software has them, and with ZeRO 2 and 3.
    one.plan.zero_stage = 2;
    REQUIRE(data_calls(parameters, one.plan, software).gather.front().operation ==
            Operation::AllGather);
  });
}

TEST_CASE("buckets grow with the ranks that share gradients", "[step_traffic]") {
  REQUIRE(bucket_parameters({.data = 8}, {}) == 40'000'000);
  REQUIRE(bucket_parameters({.context = 2, .data = 64}, {}) == 128'000'000);
}

TEST_CASE("buckets are those of the software, or of the size that was given", "[step_traffic]") {
  const SoftwareProfile torch = with_buckets(BucketRule::PyTorch);
  const SoftwareProfile deep_speed = with_buckets(BucketRule::DeepSpeed);
  ParallelPlan plan{.data = 8};
  REQUIRE(bucket_parameters(plan, torch) == mib(25).count() / 4);
  REQUIRE(bucket_parameters(plan, torch, true) == mib(1).count() / 4);
  REQUIRE(bucket_parameters(plan, deep_speed) == 500'000'000);
  REQUIRE(bucket_parameters({.data = 8, .zero_stage = 2}, torch) == 1);
  REQUIRE(bucket_parameters({.servers = ParameterServers()}, torch) == 40'000'000);
  plan.bucket = mib(100);
  REQUIRE(bucket_parameters(plan, torch) == mib(25).count());
  REQUIRE(bucket_parameters(plan, {}) == mib(50).count());
  plan.bucket = Bytes(4000);
  REQUIRE(bucket_parameters(plan, torch, true) == 1000);
}

TEST_CASE("each bucket of DistributedDataParallel is a call of its own", "[step_traffic]") {
  const SoftwareProfile torch = with_buckets(BucketRule::PyTorch);
  const ParallelPlan plan{.data = 8};
  const std::int64_t bucket = mib(25).count() / 4;
  const auto call_of = [&](const RankParameters& parameters) {
    return data_calls(parameters, plan, torch).reduce.front();
  };
  // As many as fill up, but no more than tensors, of which each is in one.
  REQUIRE(call_of({.dense = 10 * bucket, .dense_matrices = 40}).times == 10);
  REQUIRE(call_of({.dense = 10 * bucket, .dense_matrices = 40}).elements == bucket);
  REQUIRE(call_of({.dense = 10 * bucket, .dense_matrices = 2}).times == 2);
  REQUIRE(call_of({.dense = bucket / 2, .dense_matrices = 40}).times == 1);
  // Megatron's closed forms have one.
  REQUIRE(data_calls({.dense = 10 * bucket, .dense_matrices = 40}, plan, {}).reduce.front().times ==
          1);
}

TEST_CASE("a stage sends b s h to the next, a part of it where tensor ranks have parts",
          "[traffic-volume]") {
  for_random_cases([](const Case& one, RandomStream&) {
    const double parts = one.plan.has_sequence_parallelism ? one.plan.tensor : 1;
    REQUIRE(static_cast<double>(transfer_elements(one.model, one.plan, false)) ==
            Approx(one.bsh / parts));
    REQUIRE(static_cast<double>(transfer_elements(one.model, one.plan, true)) ==
            Approx(one.bsh / one.plan.tensor));
  });
}

TEST_CASE("tensor ranks of a model of images exchange nothing at its ends", "[traffic-volume]") {
  const Model dit = load_model(kConfigsFolder / "workloads" / "models" / "dit-xl-2.yaml");
  ParallelPlan plan{.tensor = 4, .micro_batch = 8, .sequence = 256};
  REQUIRE(end_calls(dit, plan, StepPlace::Embedding).forward.empty());
  REQUIRE(end_calls(dit, plan, StepPlace::Embedding).backward.empty());
  REQUIRE(end_calls(dit, plan, StepPlace::Head).forward.empty());
  REQUIRE(end_calls(dit, plan, StepPlace::Head).backward.empty());
  // Every rank takes its tokens of those that it made, and gathers their gradients.
  plan.has_sequence_parallelism = true;
  REQUIRE(end_calls(dit, plan, StepPlace::Embedding).forward.empty());
  REQUIRE(end_calls(dit, plan, StepPlace::Embedding).backward.front().operation ==
          Operation::AllGather);
  REQUIRE(end_calls(dit, plan, StepPlace::Head).forward.front().operation == Operation::AllGather);
  // Vectors of the samples go to the next stage with the tokens, in full.
  REQUIRE(transfer_elements(dit, plan, false) == 8 * 256 * 1152 / 4 + 8 * 1152);
}

TEST_CASE("parameters of the stages add up to those of the model", "[traffic-volume]") {
  for (const std::string name : {"gpt-3-175b", "llama-3-405b", "deepseek-v3", "bloom-176b",
                                 "bert-large", "vit-large-16", "dit-xl-2"}) {
    INFO(name);
    const Model model = load_model(kConfigsFolder / "workloads" / "models" / (name + ".yaml"));
    const ParallelPlan plan{.pipeline = 8};
    RankParameters sum;
    for (const PipelineStage& stage : pipeline_stages(plan, model)) {
      sum += stage_parameters(model, stage, plan);
    }
    // A tied head is there twice, once at each end.
    const std::int64_t copy = model.has_tied_embeddings ? model.vocabulary * model.hidden : 0;
    REQUIRE(sum.total() == parameters_of(model).total() + copy);
    const ParallelPlan single{};
    REQUIRE(stage_parameters(model, pipeline_stages(single, model)[0], single).total() ==
            parameters_of(model).total());
  }
}

TEST_CASE("elements of 32 bits make all traffic twice as large", "[step_traffic]") {
  const Model model = load_model(kConfigsFolder / "workloads/models/mixtral-8x7b.yaml");
  ParallelPlan plan{.tensor = 2, .context = 2, .pipeline = 2, .data = 4, .expert = 4};
  plan.zero_stage = 3;
  SoftwareProfile software;
  software.gradient_bytes = 2;
  const RankParameters parameters{.dense = 1000, .expert = 100};
  ParallelPlan wide = plan;
  wide.element_bytes = 4;
  const auto require_double = [](const PassCalls& narrow, const PassCalls& twice) {
    for (const auto pass : {&PassCalls::forward, &PassCalls::backward}) {
      REQUIRE((narrow.*pass).size() == (twice.*pass).size());
      for (std::size_t index = 0; index < (narrow.*pass).size(); ++index) {
        REQUIRE((narrow.*pass)[index].element_bytes == 2);
        REQUIRE((twice.*pass)[index].element_bytes == 4);
        REQUIRE((narrow.*pass)[index].elements == (twice.*pass)[index].elements);
      }
    }
  };
  require_double(layer_calls(model, model.layers.front(), plan, {}),
                 layer_calls(model, model.layers.front(), wide, {}));
  require_double(sharded_calls(parameters, plan, software),
                 sharded_calls(parameters, wide, software));
  REQUIRE(transfer_size(model, wide, false) == transfer_size(model, plan, false) * 2);
  // Where gradients are added up in 32 bits already, they stay so.
  software.gradient_bytes = 4;
  REQUIRE(gradient_bytes(plan, software) == 4);
  REQUIRE(gradient_bytes(wide, software) == 4);
}

TEST_CASE("frozen weights are gathered by ZeRO 3 alone, and never reduced", "[traffic]") {
  const RankParameters parameters{.dense = 100, .frozen_bytes = 7000, .replicated = 40};
  const SoftwareProfile software;
  ParallelPlan plan{.tensor = 2, .data = 4};
  const DataCalls plain = data_calls(parameters, plan, software);
  REQUIRE(plain.gather.empty());
  REQUIRE(plain.reduce.size() == 2);
  REQUIRE(plain.reduce.front().group == RankGroupKind::Tensor);
  REQUIRE(plain.reduce.front().elements == 40);
  REQUIRE(plain.reduce.back().elements == 100);
  plan.zero_stage = 2;
  REQUIRE(sharded_calls(parameters, plan, software).forward.size() == 1);
  plan.zero_stage = 3;
  const PassCalls sharded = sharded_calls(parameters, plan, software);
  REQUIRE(sharded.forward.size() == 2);
  REQUIRE(sharded.forward.back().elements == 7000);
  REQUIRE(sharded.forward.back().element_bytes == 1);
  REQUIRE(sharded.backward.back() == sharded.forward.back());
}

}  // namespace trainyard
