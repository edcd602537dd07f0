// SPDX-License-Identifier: Apache-2.0
// Parameters that one rank of a plan holds, before anything is sharded over data ranks: matrices
// are cut over tensor and expert ranks, what is small is on all of them. As Megatron-LM cuts them
// (arXiv 1909.08053, section 3; 2104.04473).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "parallelism/model/image_layers.h"
#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/model/pipeline_stages.h"

namespace trainyard {

// Matrices that PowerSGD sends as two thin ones, P and Q (arXiv 1905.13727, algorithm 1).
struct ThinMatrices {
  std::int64_t count = 0;
  std::int64_t whole = 0;  // Elements of the matrices themselves,
  std::int64_t left = 0;   // of P, a row for each of theirs,
  std::int64_t right = 0;  // and of Q, a row for each of their columns.

  ThinMatrices& operator+=(const ThinMatrices& other);
};

struct RankParameters {
  std::int64_t dense = 0;
  std::int64_t expert = 0;  // Parameters of routed experts.
  // Weights of linear layers, a gate for itself, the embedding and the head among them; vectors are
  // not counted.
  std::int64_t dense_matrices = 0;
  std::int64_t expert_matrices = 0;
  // With adapters all of the above is theirs alone. Bytes of the weights that are frozen, and
  // parameters that tensor ranks have alike, each with a part of their gradient.
  std::int64_t frozen_bytes = 0;
  std::int64_t replicated = 0;
  // With PowerSGD: which of the matrices become thin ones. Others are summed up as they are.
  ThinMatrices dense_thin = {};
  ThinMatrices expert_thin = {};

  [[nodiscard]] std::int64_t total() const { return dense + expert; }
  RankParameters& operator+=(const RankParameters& other);
};

[[nodiscard]] std::vector<WeightMatrix> rank_matrices(const Model& model, const ModelLayer& layer,
                                                      const ParallelPlan& plan);
[[nodiscard]] RankParameters rank_parameters(const Model& model, const ModelLayer& layer,
                                             const ParallelPlan& plan);
// Everything before the layers: tokens or patches, positions, the norm behind them.
[[nodiscard]] std::int64_t rank_embedding_parameters(const Model& model, const ParallelPlan& plan);
// The matrix of logits alone: a tied one needs a copy of the embedding where that is on another
// rank. None of a model of images.
[[nodiscard]] std::int64_t rank_logit_parameters(const Model& model, const ParallelPlan& plan);
// Counts the head with what else stands behind the layers, but the last norm.
[[nodiscard]] std::int64_t rank_head_parameters(const Model& model, const ParallelPlan& plan);
// Returns the parameters of the head with its last norm, and the matrix of logits if it is not
// shared with the embedding of the same rank.
[[nodiscard]] RankParameters rank_head(const Model& model, const ParallelPlan& plan,
                                       bool shares_logits);
// Returns what is trained of `all` that a unit of the model has, and what is frozen.
[[nodiscard]] RankParameters trained_parameters(const Model& model, const ParallelPlan& plan,
                                                const ModelUnit& unit, const RankParameters& all);
// Returns what ZeRO stage 3 gathers for a unit of the model.
[[nodiscard]] RankParameters gathered_parameters(const Model& model, const ParallelPlan& plan,
                                                 const ModelUnit& unit);
// Returns the parameters of a unit that the stage has, with what belongs to it for the sum of
// gradients: a tied head has weights of its own behind another stage than the embedding's.
[[nodiscard]] RankParameters held_parameters(const Model& model, const ParallelPlan& plan,
                                             const PipelineStage& stage, const ModelUnit& unit);
[[nodiscard]] RankParameters stage_parameters(const Model& model, const PipelineStage& stage,
                                              const ParallelPlan& plan);
// Returns the parameters of all stages that a rank of the pipeline has.
[[nodiscard]] RankParameters place_parameters(const Model& model,
                                              const std::vector<PipelineStage>& stages,
                                              const ParallelPlan& plan, int place);
// Returns those of one tensor of a layer of a convolutional network, which every rank has: the
// first of a convolution is a matrix with a row for each channel that comes out.
[[nodiscard]] RankParameters tensor_parameters(const ImageLayer& layer, std::size_t tensor,
                                               const ParallelPlan& plan);
[[nodiscard]] RankParameters network_parameters(const std::vector<ImageLayer>& layers,
                                                const ParallelPlan& plan);
// Returns the parameters that the optimizer of the rank updates, as a mean of its shards.
[[nodiscard]] double updated_parameters(const RankParameters& parameters, const ParallelPlan& plan);

}  // namespace trainyard
