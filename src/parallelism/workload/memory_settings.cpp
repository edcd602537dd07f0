// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/memory_settings.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/config_error.h"

namespace trainyard {
namespace {

// Dettmers et al., arXiv 2110.02861: one scale for each block. bitsandbytes/functional.py:
// quantize_blockwise has blocks of 256 for the states of optimizers.
constexpr std::int64_t kMomentBlock = 256;

// PyTorch's fully sharded data parallelism: the shards are the master copy.
constexpr StateFormat kFp32{.weight = 4, .gradient = 4, .master = 0};
constexpr StateFormat kBf16{
    .weight = 2, .gradient = 2, .master = 0, .first_moment = 2, .second_moment = 2};
// deepspeed/runtime/zero/stage_1_and_2.py: the partition's gradients in 32 bits for the step.
constexpr StateFormat kDeepSpeedFp16{.gradient = 2, .gradient_copy = 4};
// deepspeed/runtime/bf16_optimizer.py: gradients in 16 bits, and accumulated in 32 beside them.
constexpr StateFormat kDeepSpeedBf16{.gradient = 6};

constexpr std::array<std::pair<std::string_view, StateFormat>, 6> kFormats{
    {{"adam-fp32-gradients", {}},
     {"adam-16bit-gradients", {.gradient = 2}},
     {"adam-16bit-moments", {.first_moment = 2, .second_moment = 2}},
     {"adam-8bit", {.first_moment = 1, .second_moment = 1, .moment_block = kMomentBlock}},
     {"adam-fp32", kFp32},
     {"adam-bf16", kBf16}}};

// reduce_bucket_size and allgather_bucket_size, 5e8 elements each, of 2 bytes:
// www.deepspeed.ai/docs/config-json, zero_optimization.
constexpr Bytes kDeepSpeedBuckets{2'000'000'000};

constexpr ActivationOptions k2022{.attention = AttentionKernel::Unfused, .has_dropout = true};
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
       .buckets = kDeepSpeedBuckets}},
     {"megatron-deepspeed-bf16",
      {.states = kDeepSpeedBf16,
       .activations = k2022,
       .weight_gradients = WeightGradientBuffer::Transient,
       .buckets = kDeepSpeedBuckets}},
     {"pytorch-fsdp",
      {.states = kFp32,
       .activations = kPyTorch,
       .weight_gradients = WeightGradientBuffer::Transient}},
     {"pytorch-fsdp-bf16",
      {.states = kBf16,
       .activations = kPyTorch,
       .weight_gradients = WeightGradientBuffer::Transient}},
     {"kempnerforge",
      {.states = kBf16,
       .activations = kKempnerForge,
       .weight_gradients = WeightGradientBuffer::Transient,
       .has_split_embedding = false,
       .unsharded_gradient = 4}}}};

template <typename Table>
std::vector<std::string_view> names_in(const Table& table) {
  std::vector<std::string_view> names;
  for (const auto& [name, setting] : table) {
    names.push_back(name);
  }
  return names;
}

template <typename Table>
const auto& find_setting(const Table& table, std::string_view what, std::string_view name) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.first == name; });
  if (found == table.end()) {
    throw ConfigError(fmt::format("memory: expected {} among {}, found {}", what,
                                  fmt::join(names_in(table), ", "), name));
  }
  return found->second;
}

}  // namespace

Bytes StateFormat::optimizer_bytes(std::int64_t parameters) const {
  const std::int64_t scales =
      moment_block == 0 ? 0 : 2 * 4 * ((parameters + moment_block - 1) / moment_block);
  return Bytes(parameters) * (master + first_moment + second_moment + gradient_copy) +
         Bytes(scales);
}

StateFormat state_format(std::string_view name) {
  return find_setting(kFormats, "a format of states", name);
}

MemorySettings memory_settings(std::string_view name) {
  return find_setting(kSettings, "settings", name);
}

std::vector<std::string_view> memory_settings_names() {
  return names_in(kSettings);
}

}  // namespace trainyard
