// SPDX-License-Identifier: Apache-2.0
#include "parallelism/walk/step_traffic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>

namespace trainyard {
namespace {

constexpr int kHalfBytes = 2;          // Bytes of a gradient of 16 bits.
constexpr int kRingGradientBytes = 4;  // Bytes of gradients of keys and values that were gathered.

std::int64_t divided_up(std::int64_t value, std::int64_t by) {
  return (value + by - 1) / by;
}

// One block whose first product is split by columns and whose last by rows: what comes out is
// summed up over the tensor ranks, and backward what goes in.
void add_tensor_block(std::int64_t elements, const ParallelPlan& plan, PassCalls& calls) {
  if (plan.tensor == 1) {
    return;
  }
  const auto call = [&](Operation operation, bool is_hidden = false) {
    return GroupCall{.group = RankGroupKind::Tensor,
                     .operation = operation,
                     .elements = elements,
                     .element_bytes = plan.element_bytes,
                     .is_hidden = is_hidden};
  };
  if (!plan.has_sequence_parallelism) {
    calls.forward.push_back(call(Operation::AllReduce));
    calls.backward.push_back(call(Operation::AllReduce));
    return;
  }
  for (std::vector<GroupCall>* pass : {&calls.forward, &calls.backward}) {
    pass->push_back(call(Operation::AllGather));
    pass->push_back(call(Operation::ReduceScatter));
  }
  // The input that was kept in parts, for the gradient of the weights.
  calls.backward.push_back(call(Operation::AllGather, true));
}

// As context_parallel of PyTorch has it (torch/distributed/tensor/experimental/_attention.py) under
// torchtitan, which repeats keys and values for all heads of queries before attention: gathered for
// each pass, their gradients sent round in FP32, once more than there are other ranks. In a layer
// that is compiled each call is followed by its wait; otherwise they run beside attention.
void add_gathered_ring(std::int64_t elements, const ParallelPlan& plan,
                       const SoftwareProfile& software, PassCalls& calls) {
  const bool is_beside = software.fusion != "compiled";
  const GroupCall gather{.group = RankGroupKind::Context,
                         .operation = Operation::AllGather,
                         .elements = elements * plan.context,
                         .element_bytes = plan.element_bytes,
                         .is_beside_attention = is_beside};
  calls.forward.push_back(gather);
  calls.backward.push_back(gather);
  calls.backward.push_back({.group = RankGroupKind::Context,
                            .operation = Operation::SendReceive,
                            .elements = elements,
                            .element_bytes = kRingGradientBytes,
                            .times = plan.context,
                            .is_beside_attention = is_beside});
}

void add_context(const Attention& attention, const ParallelPlan& plan,
                 const SoftwareProfile& software, PassCalls& calls) {
  if (plan.context == 1) {
    return;
  }
  const std::int64_t heads = attention.heads() / plan.tensor;
  const std::int64_t groups =
      attention.grouped ? std::max<std::int64_t>(1, attention.grouped->kv_heads / plan.tensor)
                        : heads;
  const std::int64_t of_group = attention.query_size() + attention.value_size();
  const std::int64_t keys_and_values = groups * of_group;
  GroupCall call{.group = RankGroupKind::Context, .element_bytes = plan.element_bytes};
  if (plan.context_kind == ContextParallelism::Ring) {
    if (software.gathers_keys) {
      add_gathered_ring(plan.tokens() * heads * of_group, plan, software, calls);
      return;
    }
    call.is_beside_attention = true;
    call.operation = Operation::SendReceive;
    call.elements = plan.tokens() * keys_and_values;
    call.times = plan.context - 1;
    calls.forward.push_back(call);
    call.times *= 2;  // Keys and values again, and their gradients.
    calls.backward.push_back(call);
    return;
  }
  call.operation = Operation::AllToAll;
  call.elements = plan.tokens() * (heads * attention.query_size() + keys_and_values);
  calls.forward.push_back(call);
  calls.backward.push_back(call);
  call.elements = plan.tokens() * heads * attention.value_size();
  calls.forward.push_back(call);
  calls.backward.push_back(call);
}

void add_experts(const Model& model, const Experts& experts, const ParallelPlan& plan,
                 PassCalls& calls) {
  const std::int64_t routed = plan.tokens() / plan.tensor * experts.active * model.hidden;
  for (std::vector<GroupCall>* pass : {&calls.forward, &calls.backward}) {
    if (plan.expert > 1) {  // Dispatch and combine.
      pass->push_back({.group = RankGroupKind::Expert,
                       .operation = Operation::AllToAll,
                       .elements = routed,
                       .element_bytes = plan.element_bytes,
                       .times = 2});
    }
    if (plan.expert_tensor > 1) {
      for (const Operation operation : {Operation::AllGather, Operation::ReduceScatter}) {
        pass->push_back({.group = RankGroupKind::ExpertTensor,
                         .operation = operation,
                         .elements = routed * plan.expert_tensor,
                         .element_bytes = plan.element_bytes});
      }
    }
  }
}

void add_call(RankGroupKind group, Operation operation, std::int64_t elements, int bytes,
              const ParallelPlan& plan, std::vector<GroupCall>& calls) {
  if (elements > 0 && group_size(plan, group) > 1) {
    calls.push_back(
        {.group = group, .operation = operation, .elements = elements, .element_bytes = bytes});
  }
}

// The sum of gradients over a group: whole, or what compression makes of it.
void add_sum(RankGroupKind group, std::int64_t elements, std::int64_t matrices,
             const ThinMatrices& thin, const ParallelPlan& plan, const SoftwareProfile& software,
             std::vector<GroupCall>& calls) {
  const int bytes = gradient_bytes(plan, software);
  const int times = bucket_calls(elements, matrices, plan, software);
  const auto add = [&](Operation operation, std::int64_t count, int each) {
    const std::size_t before = calls.size();
    add_call(group, operation, divided_up(count, times), each, plan, calls);
    if (calls.size() > before) {
      calls.back().times = times;
    }
  };
  const auto sum = [&](std::int64_t count, int each) { add(Operation::AllReduce, count, each); };
  const auto compression = compression_of(plan, software);
  if (!compression) {
    sum(elements, bytes);
    return;
  }
  switch (compression->method) {
    case CompressionMethod::Fp16:
    case CompressionMethod::Bf16:
      sum(elements, kHalfBytes);
      break;
    case CompressionMethod::PowerSgd:
      sum(elements - thin.whole, bytes);
      sum(thin.left, bytes);
      sum(thin.right, bytes);
      break;
    case CompressionMethod::TopK:
      add(Operation::AllGather,
          kept_elements(elements, compression->ratio) * group_size(plan, group),
          bytes + kPlaceBytes);
      break;
  }
}

// Each rank sends what it owns; those beyond the number of matrices own none.
void add_broadcasts(RankGroupKind group, std::int64_t elements, std::int64_t matrices,
                    const ParallelPlan& plan, std::vector<GroupCall>& calls) {
  const int ranks = group_size(plan, group);
  if (matrices == 0 || ranks == 1) {
    return;
  }
  const std::int64_t owners = std::min<std::int64_t>(matrices, ranks);
  calls.push_back({.group = group,
                   .operation = Operation::Broadcast,
                   .elements = divided_up(elements, owners),
                   .element_bytes = plan.element_bytes,
                   .times = static_cast<int>(owners)});
}

// Returns the calls of its forward pass that full recomputation makes again.
std::vector<GroupCall> recomputed_calls(const PassCalls& calls, const ModelLayer& layer,
                                        FullRecompute kind) {
  std::vector<GroupCall> again = calls.forward;
  if (kind == FullRecompute::Layer || !layer.feed_forward) {
    return again;
  }
  // The sum behind the last product.
  const auto last = std::find_if(again.rbegin(), again.rend(), [](const GroupCall& call) {
    return call.group == RankGroupKind::Tensor && call.operation != Operation::AllGather;
  });
  if (last != again.rend()) {
    again.erase(std::next(last).base());
  }
  return again;
}

}  // namespace

double sent_elements(const GroupCall& call, int ranks) {
  const double others = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  const double all = static_cast<double>(call.elements) * static_cast<double>(call.times);
  return call.operation == Operation::SendReceive ? all
         : call.operation == Operation::AllReduce ? 2.0 * all * others
                                                  : all * others;
}

PassCalls layer_calls(const Model& model, const ModelLayer& layer, const ParallelPlan& plan,
                      const SoftwareProfile& software) {
  PassCalls calls;
  const std::int64_t hidden = plan.tokens() * model.hidden;
  add_tensor_block(hidden, plan, calls);
  add_context(layer.attention, plan, software, calls);
  if (layer.feed_forward || layer.experts->shared) {
    add_tensor_block(hidden, plan, calls);
  }
  for (GroupCall& call : calls.backward) {
    call.is_waited_for = call.group == RankGroupKind::Tensor && software.waits_backward;
  }
  if (layer.experts) {
    add_experts(model, *layer.experts, plan, calls);
  }
  if (plan.recompute == Recompute::Full) {
    calls.again = recomputed_calls(calls, layer, software.full_recompute);
  }
  return calls;
}

PassCalls end_calls(const Model& model, const ParallelPlan& plan, StepPlace place) {
  PassCalls calls;
  const std::int64_t hidden = plan.tokens() * model.hidden;
  const bool split = plan.has_sequence_parallelism;
  const bool is_head = place == StepPlace::Head;
  // Each tensor rank makes all tokens of patches.
  if (model.vocabulary > 0 || (is_head && split)) {
    add_call(RankGroupKind::Tensor, split ? Operation::ReduceScatter : Operation::AllReduce, hidden,
             plan.element_bytes, plan, is_head ? calls.backward : calls.forward);
  }
  if (split) {
    add_call(RankGroupKind::Tensor, Operation::AllGather, hidden, plan.element_bytes, plan,
             is_head ? calls.forward : calls.backward);
  }
  return calls;
}

std::string_view purpose_of(RankGroupKind kind) {
  constexpr std::array<std::string_view, 10> kPurposes{
      "tensor", "context", "pipeline", "data", "data", "data", "expert", "expert", "data", "data"};
  return kPurposes[static_cast<std::size_t>(kind)];
}

PassCalls unit_calls(const Model& model, const ParallelPlan& plan, const SoftwareProfile& software,
                     const ModelUnit& unit) {
  return unit.place == StepPlace::Layer
             ? layer_calls(model, model.layers[static_cast<std::size_t>(unit.layer)], plan,
                           software)
             : end_calls(model, plan, unit.place);
}

std::optional<GroupCall> ends_call(const Model& model, const ParallelPlan& plan,
                                   const SoftwareProfile& software) {
  if (!model.has_tied_embeddings || plan.pipeline == 1 || model.adapters) {
    return std::nullopt;
  }
  return GroupCall{.group = RankGroupKind::Ends,
                   .operation = Operation::AllReduce,
                   .elements = rank_logit_parameters(model, plan),
                   .element_bytes = gradient_bytes(plan, software)};
}

DataCalls data_calls(const RankParameters& parameters, const ParallelPlan& plan,
                     const SoftwareProfile& software) {
  DataCalls calls;
  const int reduced = gradient_bytes(plan, software);
  const bool deals_out = owns_matrices(plan, software);
  add_call(RankGroupKind::Tensor, Operation::AllReduce, parameters.replicated, reduced, plan,
           calls.reduce);
  if (plan.zero_stage == 0 || deals_out) {
    add_sum(RankGroupKind::Gradient, parameters.dense, parameters.dense_matrices,
            parameters.dense_thin, plan, software, calls.reduce);
    add_sum(RankGroupKind::ExpertGradient, parameters.expert, parameters.expert_matrices,
            parameters.expert_thin, plan, software, calls.reduce);
    if (deals_out) {
      add_broadcasts(RankGroupKind::Shard, parameters.dense, parameters.dense_matrices, plan,
                     calls.gather);
      add_broadcasts(RankGroupKind::ExpertGradient, parameters.expert, parameters.expert_matrices,
                     plan, calls.gather);
    }
    return calls;
  }
  if (plan.zero_stage < 3) {
    const PassCalls of_shards = sharded_calls(parameters, plan, software);
    calls.gather = of_shards.forward;
    std::copy_if(of_shards.backward.begin(), of_shards.backward.end(),
                 std::back_inserter(calls.reduce),
                 [](const GroupCall& call) { return call.operation == Operation::ReduceScatter; });
  }
  add_call(RankGroupKind::Replica, Operation::AllReduce,
           divided_up(parameters.dense, plan.shards()), reduced, plan, calls.reduce);
  return calls;
}

int gradient_bytes(const ParallelPlan& plan, const SoftwareProfile& software) {
  return std::max(software.gradient_bytes, plan.element_bytes);
}

std::optional<GradientCompression> compression_of(const ParallelPlan& plan,
                                                  const SoftwareProfile& software) {
  const auto& given = plan.compression;
  const bool is_cast = given && (given->method == CompressionMethod::Fp16 ||
                                 given->method == CompressionMethod::Bf16);
  return is_cast && gradient_bytes(plan, software) <= kHalfBytes ? std::nullopt : given;
}

std::int64_t kept_elements(std::int64_t elements, double ratio) {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(elements) * ratio));
}

PassCalls sharded_calls(const RankParameters& parameters, const ParallelPlan& plan,
                        const SoftwareProfile& software) {
  const int reduced = gradient_bytes(plan, software);
  PassCalls calls;
  const auto add = [&](RankGroupKind group, std::int64_t elements) {
    add_call(group, Operation::AllGather, elements, plan.element_bytes, plan, calls.forward);
    add_call(group, Operation::AllGather, elements, plan.element_bytes, plan, calls.backward);
    add_call(group, Operation::ReduceScatter, elements, reduced, plan, calls.backward);
  };
  add(RankGroupKind::Shard, parameters.dense);
  add(RankGroupKind::ExpertGradient, parameters.expert);
  if (plan.zero_stage >= 3) {
    for (std::vector<GroupCall>* pass : {&calls.forward, &calls.backward}) {
      add_call(RankGroupKind::Shard, Operation::AllGather, parameters.frozen_bytes, 1, plan, *pass);
    }
  }
  return calls;
}

std::int64_t bucket_parameters(const ParallelPlan& plan, const SoftwareProfile& software,
                               bool is_first) {
  constexpr std::int64_t kMegatronMin = 40'000'000;
  constexpr std::int64_t kMegatronOfRank = 1'000'000;
  constexpr std::int64_t kDeepSpeed = 500'000'000;
  const bool is_torch = software.buckets == BucketRule::PyTorch && !plan.servers;
  if (reduces_units(plan, software)) {
    return 1;
  }
  if (plan.bucket || is_torch) {
    const Bytes whole = plan.bucket.value_or(kDataBucket);
    const Bytes limit = is_first && is_torch ? std::min(whole, kFirstBucket) : whole;
    return divided_up(limit.count(), gradient_bytes(plan, software));
  }
  return software.buckets == BucketRule::DeepSpeed && !plan.servers
             ? kDeepSpeed
             : std::max(kMegatronMin, kMegatronOfRank * plan.gradient_ranks());
}

int bucket_calls(std::int64_t elements, std::int64_t matrices, const ParallelPlan& plan,
                 const SoftwareProfile& software) {
  if (!plan.bucket && software.buckets != BucketRule::PyTorch) {
    return 1;
  }
  const std::int64_t full = elements / bucket_parameters(plan, software);
  return static_cast<int>(std::max<std::int64_t>(1, std::min(full, matrices)));
}

std::int64_t transfer_elements(const Model& model, const ParallelPlan& plan, bool scatter_gather) {
  const std::int64_t hidden = plan.tokens() * model.hidden;
  const std::int64_t vectors = model.modulation ? plan.micro_batch * model.hidden : 0;
  return vectors + (plan.has_sequence_parallelism || scatter_gather
                        ? divided_up(hidden, plan.tensor)
                        : hidden);
}

}  // namespace trainyard
