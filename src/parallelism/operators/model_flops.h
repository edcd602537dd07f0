// SPDX-License-Identifier: Apache-2.0
// Floating-point operations of a training step, by each convention that published figures use. They
// differ by up to a factor of two, so that every utilisation names the one that it was computed
// with. docs/models/models.md has the formulas.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "parallelism/model/model.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/workload/software_profile.h"

namespace trainyard {

// The operations of one token in one pass forward; a multiplication and an addition are two.
struct TokenFlops {
  // Matrices of the layers with weights; of experts the active ones. Work that is done once for
  // each sample counts in parts, one for each of its tokens.
  double linear = 0.0;
  double attention = 0.0;  // Scores and their sums over values, as if no mask were there.
  double ends = 0.0;       // The head, and what makes tokens of patches. A look-up is none.
};

// `sequence`: tokens that a token can attend to.
[[nodiscard]] TokenFlops token_flops(const Model& model, std::int64_t sequence);

enum class FlopsConvention : std::uint8_t {
  // The work of the hardware with everything recomputed, the head excepted. Narayanan et al., arXiv
  // 2104.04473, equation 3.
  HardwareFullRecompute,
  // The work that the model needs: three passes, attention without its mask. Korthikanti et al.,
  // arXiv 2205.05198; Megatron-LM and NeMo until 2024.
  Model,
  // The same with the attention of selective recomputation counted twice, as that paper does.
  HardwareSelectiveRecompute,
  // As Model with half of the attention, for its causal mask. Megatron-Core since 2025.
  ModelCausal,
  // 6 for each parameter and 12 L a d s. Chowdhery et al., arXiv 2204.02311, appendix B.
  Palm,
};

inline constexpr std::array kFlopsConventions{FlopsConvention::HardwareFullRecompute,
                                              FlopsConvention::Model,
                                              FlopsConvention::HardwareSelectiveRecompute,
                                              FlopsConvention::ModelCausal, FlopsConvention::Palm};

[[nodiscard]] std::string_view to_string(FlopsConvention convention);

// Returns the operations of one token in a whole training step, forward and backward. A frozen
// weight has no gradient: with adapters its products are two passes, not three.
[[nodiscard]] double training_flops(const Model& model, std::int64_t sequence,
                                    FlopsConvention convention);

// The same, of what a plan computes again with that software. The head is not recomputed.
[[nodiscard]] double recomputed_flops(const Model& model, std::int64_t sequence,
                                      Recompute recompute, const SoftwareProfile& software);

}  // namespace trainyard
