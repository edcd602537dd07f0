// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/memory_settings.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <array>
#include <utility>
#include <vector>

#include "sim/config_error.h"

namespace trainyard {
namespace {

// PyTorch's fully sharded data parallelism: the shards are the master copy.
constexpr StateFormat kFp32{.weight = 4, .gradient = 4, .optimizer = 8};
constexpr StateFormat kBf16{.gradient = 2, .optimizer = 4};
// deepspeed/runtime/zero/stage_1_and_2.py: the partition's gradients in 32 bits for the step.
constexpr StateFormat kDeepSpeedFp16{.gradient = 2, .optimizer = 16};
// deepspeed/runtime/bf16_optimizer.py: gradients in 16 bits, and accumulated in 32 beside them.
constexpr StateFormat kDeepSpeedBf16{.gradient = 6};

// Everything in 32 bits: weights are their own master copy.
constexpr StateFormat kPlainFp32{.weight = 4, .compute = 4, .optimizer = 8};

// reduce_bucket_size and allgather_bucket_size, 5e8 elements each, of 2 bytes:
// www.deepspeed.ai/docs/config-json, zero_optimization.
constexpr Bytes kDeepSpeedBuckets{2'000'000'000};

constexpr ActivationOptions k2022{.attention = AttentionKernel::Unfused, .has_dropout = true};
// The models of eth-easl/sailor (third_party/Megatron-DeepSpeed/megatron/model/opt_model.py) call
// no dropout and no fused kernel, and have rectifiers.
constexpr ActivationOptions kSailor{.attention = AttentionKernel::Unfused, .has_rectifier = true};
// NCCL 2.22, which the container of the source has, connects an algorithm when it is first called
// (NCCL_RUNTIME_CONNECT): of each of 24 channels the ring.
constexpr int kLazyConnections = 24;
constexpr ActivationOptions kPyTorch{.selective = SelectiveRecompute::AlternateProducts,
                                     .loss = LossKernel::PyTorch};

// KempnerInstitute/KempnerForge: states in bf16 (distributed/parallel.py), embedding whole and
// logits gathered on each tensor rank (distributed/tensor_parallel.py), loss on logits as they are
// (training/loss.py), no synchronisation before the last micro-batch (training/grad.py). FSDP2
// then keeps gradients unsharded, in the format of their reduction:
// torch/distributed/fsdp/_fully_shard/_fsdp_param.py.
constexpr ActivationOptions kKempnerForge{.loss = LossKernel::PyTorch16, .has_split_logits = false};

constexpr std::array<std::pair<std::string_view, MemorySettings>, 8> kSettings{
    {{"megatron-core", {}},
     {"megatron-core-fused-loss", {.activations = {.loss = LossKernel::Fused}}},
     {"megatron-2022", {.activations = k2022, .weight_gradients = WeightGradientBuffer::InPlace}},
     {"megatron-deepspeed-fp16",
      {.states = kDeepSpeedFp16,
       .activations = k2022,
       .weight_gradients = WeightGradientBuffer::Transient,
       .has_deepspeed_groups = true,
       .buckets = kDeepSpeedBuckets}},
     {"megatron-deepspeed-bf16",
      {.states = kDeepSpeedBf16,
       .activations = k2022,
       .weight_gradients = WeightGradientBuffer::Transient,
       .has_deepspeed_groups = true,
       .buckets = kDeepSpeedBuckets}},
     {"pytorch-fsdp",
      {.states = kFp32,
       .activations = kPyTorch,
       .weight_gradients = WeightGradientBuffer::Transient}},
     {"kempnerforge",
      {.states = kBf16,
       .activations = kKempnerForge,
       .weight_gradients = WeightGradientBuffer::Transient,
       .has_split_embedding = false,
       .unsharded_gradient = 4,
       .wraps_one_shard = true}},
     {"sailor",
      {.states = kPlainFp32,
       .activations = kSailor,
       .weight_gradients = WeightGradientBuffer::Transient,
       .has_deepspeed_groups = true,
       .connections = kLazyConnections}}}};

}  // namespace

MemorySettings memory_settings(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& [known, settings] : kSettings) {
    if (known == name) {
      return settings;
    }
    names.push_back(known);
  }
  throw ConfigError(
      fmt::format("memory: expected settings among {}, found {}", fmt::join(names, ", "), name));
}

}  // namespace trainyard
