// SPDX-License-Identifier: Apache-2.0
// Lists what a rank keeps of a forward pass for the backward pass, tensor by tensor. The list is
// that of Korthikanti et al., arXiv 2205.05198, section 4, written for layers of any shape; its
// sums are the closed forms of that paper. docs/models/memory.md has the table.
//
// Left out as in that paper: what has a few numbers a token, such as the statistics of norms.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "sim/units.h"

namespace trainyard {

enum class AttentionKernel : std::uint8_t {
  // Keeps scores and their dropout, head by head.
  Unfused,
  // Keeps the logarithm of each row's sum instead and computes scores again. Dao et al., arXiv
  // 2205.14135.
  Flash,
};

enum class LossKernel : std::uint8_t {
  // Logits in 16 bits, whose gradient takes their place. Transformer Engine's cross entropy
  // (transformer_engine/pytorch/triton/cross_entropy.py).
  Fused,
  // The softmax in 32 bits is kept, logits and then their gradient in 16 bits stand beside it.
  // Megatron-LM, megatron/core/tensor_parallel/cross_entropy.py.
  VocabParallel,
  // Beside the logarithm of the softmax in 32 bits, two more of its size: the gradients of it and
  // of the logits. torch.nn.functional.cross_entropy on logits in 32 bits.
  PyTorch,
  // The same on logits in 16 bits, which the caller holds beside their softmax, and the gradients
  // of both.
  PyTorch16,
};

// The tensors that selective recomputation computes again.
enum class SelectiveRecompute : std::uint8_t {
  // Scores, their softmax and dropout. arXiv 2205.05198, section 5.
  AttentionCore,
  // Everything but the layer's input, the output of attention and every other matrix product from
  // the first on. torchtitan's checkpointing of operators as of 2025,
  // torchtitan/distributed/activation_checkpoint.py.
  AlternateProducts,
};

struct ActivationOptions {
  AttentionKernel attention = AttentionKernel::Flash;
  SelectiveRecompute selective = SelectiveRecompute::AttentionCore;
  LossKernel loss = LossKernel::VocabParallel;
  bool has_split_logits = true;  // Over tensor ranks; otherwise each gathers all of them.
  bool has_dropout = false;      // Masks of a byte for each element.
  // The activation function is a rectifier, which needs its output alone: the input of the second
  // linear layer. torch.nn.functional.relu.
  bool has_rectifier = false;
  // Tokens of the fullest expert rank over the mean of all: of a layer, as expert_routing.h has it.
  double expert_imbalance = 1.0;
  // With full recomputation queries, keys and values of layers without experts are kept.
  bool keeps_projections = false;
};

enum class Lifetime : std::uint8_t {
  UntilInputGradient,
  // Inputs of linear layers.
  UntilWeightGradient,
  // Gradients of outputs of linear layers: kept only where the schedule parts the two halves of a
  // backward.
  BetweenGradients,
};

struct SavedTensor {
  std::string_view operation;
  std::string_view tensor;
  // Bytes of all ranks together, for each token of the micro-batch.
  std::int64_t bytes_per_token = 0;
  std::int64_t split = 1;  // Ranks that share it.
  Lifetime lifetime = Lifetime::UntilInputGradient;
  bool is_attention_core = false;  // Scores and what is made of them.

  // Rounded up. `tokens` as ParallelPlan::tokens().
  [[nodiscard]] Bytes bytes(std::int64_t tokens) const;
};

// Everything that the layer needs in its backward, as if nothing were computed again.
[[nodiscard]] std::vector<SavedTensor> saved_tensors(const Model& model, const ModelLayer& layer,
                                                     const ParallelPlan& plan,
                                                     const ActivationOptions& options);
// Returns what is left of it from the forward to the backward under plan.recompute.
// AlternateProducts is not defined for experts: CHECKed.
[[nodiscard]] std::vector<SavedTensor> kept_tensors(const Model& model, const ModelLayer& layer,
                                                    const ParallelPlan& plan,
                                                    const ActivationOptions& options);
// Return the tensors beside the layers: of the stage that has the embedding, and of the one that
// has the head.
[[nodiscard]] std::vector<SavedTensor> embedding_tensors(const Model& model,
                                                         const ParallelPlan& plan,
                                                         const ActivationOptions& options);
[[nodiscard]] std::vector<SavedTensor> head_tensors(const Model& model, const ParallelPlan& plan,
                                                    const ActivationOptions& options);

// Sums by lifetime.
struct SavedBytes {
  Bytes forward;  // From the forward to the gradient of the inputs.
  Bytes weight;   // From there to the gradient of the weights.
};
[[nodiscard]] SavedBytes saved_bytes(const std::vector<SavedTensor>& tensors, std::int64_t tokens);

// The largest set of gradients and gathered inputs that stands beside the kept tensors while the
// layer's backward runs.
[[nodiscard]] Bytes backward_working_bytes(const Model& model, const ModelLayer& layer,
                                           const ParallelPlan& plan,
                                           const ActivationOptions& options);
// The same for head and loss.
[[nodiscard]] Bytes loss_working_bytes(const Model& model, const ParallelPlan& plan,
                                       const ActivationOptions& options);

}  // namespace trainyard
