// SPDX-License-Identifier: Apache-2.0
// Describes how a model is spread over GPUs: the degrees of each kind of parallelism, what is
// sharded, and what is computed again instead of kept.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "parallelism/model/model.h"
#include "parallelism/model/pipeline_schedule.h"
#include "sim/units.h"

namespace trainyard {

enum class Recompute : std::uint8_t {
  None,
  Selective,  // The core of attention: scores, their softmax and dropout. arXiv 2205.05198.
  Full,       // A layer keeps its input alone.
};

enum class ContextParallelism : std::uint8_t {
  Ring,      // Keys and values go round. Liu et al., arXiv 2310.01889.
  AllToAll,  // Heads are sharded for attention. Ulysses: Jacobs et al., arXiv 2309.14509.
};

enum class CompressionMethod : std::uint8_t {
  Fp16,  // Casts before and behind the sum.
  Bf16,
  PowerSgd,  // Sums of two thin matrices for each one. Vogels et al., arXiv 1905.13727.
  TopK,      // The largest elements, each with its place. Lin et al., arXiv 1712.01887.
};

enum class PlanAxis : std::uint8_t { Tensor, Context, Data, Pipeline };

inline constexpr std::array kMegatronOrder{PlanAxis::Tensor, PlanAxis::Context, PlanAxis::Data,
                                           PlanAxis::Pipeline};

// The words of workload files.
inline constexpr std::array<std::string_view, 3> kRecomputes{"none", "selective", "full"};
inline constexpr std::array<std::string_view, 4> kCompressions{"fp16", "bf16", "powersgd", "topk"};
inline constexpr std::array<std::string_view, 2> kContextKinds{"ring", "alltoall"};
inline constexpr std::array<std::string_view, 4> kAxes{"tensor", "context", "data", "pipeline"};

[[nodiscard]] std::string_view to_string(Recompute recompute);
[[nodiscard]] std::string_view to_string(ContextParallelism kind);
[[nodiscard]] std::string_view to_string(PlanAxis axis);
[[nodiscard]] std::string_view to_string(CompressionMethod method);

// The data that is in host memory instead of on the GPU (offload.h).
struct PlanOffload {
  bool optimizer = false;    // Its states, and gradients for it; the CPU updates the weights.
  bool activations = false;  // Activations of layers, between forward and backward.

  [[nodiscard]] bool any() const { return optimizer || activations; }
  friend bool operator==(const PlanOffload&, const PlanOffload&) = default;
};

// Servers add gradients to weights, instead of collectives that sum them up
// (parameter_servers.h).
struct ParameterServers {
  int count = 1;
  bool on_workers = false;  // On the hosts of workers; otherwise on hosts of their own.
  // Steps by which the weights of a worker may lack what others have done; nothing: any number.
  std::optional<int> bound = 0;
  int steps = 8;  // Steps that are run one after the other.
  friend bool operator==(const ParameterServers&, const ParameterServers&) = default;
};

// Buckets of gradients of PyTorch's DistributedDataParallel close at this size, the first of a step
// at less: `bucket_cap_mb`, in MiB, and kDefaultFirstBucketBytes (torch/nn/parallel/distributed.py,
// torch/csrc/distributed/c10d/reducer.hpp).
inline constexpr Bytes kDataBucket = mib(25);
inline constexpr Bytes kFirstBucket = mib(1);

// Data ranks sum up less than their gradients (gradient_compression.h).
struct GradientCompression {
  CompressionMethod method = CompressionMethod::Fp16;
  int rank = 1;        // Columns of the thin matrices: matrix_approximation_rank of PyTorch.
  double ratio = 0.0;  // Share of the elements that top-k sends.
  friend bool operator==(const GradientCompression&, const GradientCompression&) = default;
};

// Ranks are tensor * context * pipeline * data; each GPU is one.
struct ParallelPlan {
  int tensor = 1;
  bool has_sequence_parallelism = false;  // Whether what tensor ranks do alike is split by tokens.
  int context = 1;
  ContextParallelism context_kind = ContextParallelism::Ring;
  int pipeline = 1;
  const PipelineSchedule* schedule = &kOneForwardOneBackward;
  int chunks = 1;         // Chunks of a pipeline rank.
  int data = 1;           // Without context ranks, which share gradients too.
  int expert = 1;         // Ranks, of the data and context ones, over which experts are sharded.
  int expert_tensor = 1;  // Within an expert.
  // 0: nothing, 1: states of the optimizer, 2: gradients too, 3: weights too. ZeRO: Rajbhandari et
  // al., arXiv 1910.02054.
  int zero_stage = 0;
  int shard_group = 0;            // Ranks over which it shards; 0: all data and context ranks.
  std::int64_t micro_batch = 1;   // Sequences.
  std::int64_t global_batch = 1;  // Sequences.
  std::int64_t sequence = 2048;   // Tokens.
  // Bytes of an element of activations, and of weights as layers use them: 2, or 4 with a precision
  // of 32 bits (workload.h).
  int element_bytes = 2;
  Recompute recompute = Recompute::None;
  PlanOffload offload = {};
  std::optional<ParameterServers> servers = {};
  std::optional<GradientCompression> compression = {};
  std::optional<Bytes> bucket = {};  // Size of a bucket of gradients; nothing: as software has it.
  // Layers of each stage of the model; empty: as pipeline_stages.h deals them out.
  std::vector<int> stage_layers = {};
  // Axes from the one whose ranks are neighbours to the one whose ranks are furthest apart; each
  // once. Expert ranks are sharded over all but the pipeline, in the same order.
  std::array<PlanAxis, 4> order = kMegatronOrder;

  [[nodiscard]] int ranks() const { return tensor * context * pipeline * data; }
  // The degree of each PlanAxis.
  [[nodiscard]] std::array<int, 4> degrees() const { return {tensor, context, data, pipeline}; }
  // Ranks with the same dense weights, which add up their gradients.
  [[nodiscard]] int gradient_ranks() const { return data * context; }
  // The same for a routed expert.
  [[nodiscard]] int expert_gradient_ranks() const {
    return data * context * tensor / (expert * expert_tensor);
  }
  [[nodiscard]] int shards() const { return shard_group == 0 ? gradient_ranks() : shard_group; }
  [[nodiscard]] std::int64_t micro_batches() const { return global_batch / (micro_batch * data); }
  friend bool operator==(const ParallelPlan&, const ParallelPlan&) = default;
  // Returns the tokens of a micro-batch on one rank.
  [[nodiscard]] std::int64_t tokens() const { return micro_batch * sequence / context; }
  [[nodiscard]] PipelineShape pipeline_shape() const {
    return {.schedule = schedule,
            .ranks = pipeline,
            .micro_batches = static_cast<int>(micro_batches()),
            .chunks = chunks};
  }
};

// Throws ConfigError with one line that names the numbers that clash, for `gpus` GPUs.
void check(const ParallelPlan& plan, const Model& model, int gpus);
// The part of it that concerns ParallelPlan::stage_layers.
void check_stage_layers(const ParallelPlan& plan, const Model& model);

}  // namespace trainyard
