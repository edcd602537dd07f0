// SPDX-License-Identifier: Apache-2.0
// Adapters of low rank beside frozen weights. LoRA: Hu et al., arXiv 2106.09685; with a base of 4
// bits, QLoRA: Dettmers et al., arXiv 2305.14314. docs/models/step.md says what they change.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "parallelism/model/model.h"
#include "sim/fields.h"

namespace trainyard {

// The names of AdapterTarget, in its order.
inline constexpr std::array<std::string_view, 7> kAdapterTargets{"query", "key", "value", "output",
                                                                 "gate",  "up",  "down"};

// A matrix with an adapter, as one of so many tensor ranks has it.
struct AdaptedMatrix {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  bool splits_inputs = false;  // Tensor ranks share its inputs, not its outputs.

  // Returns the parameters of its adapter, and those that every tensor rank has alike: the half on
  // the side that is not split. Each rank has a part of the sum that is their gradient.
  [[nodiscard]] std::int64_t parameters(std::int64_t rank) const {
    return rank * (inputs + outputs);
  }
  [[nodiscard]] std::int64_t replicated(std::int64_t rank) const {
    return rank * (splits_inputs ? outputs : inputs);
  }
};

// Returns nothing for a model without adapters.
[[nodiscard]] std::vector<AdaptedMatrix> adapted_matrices(const Model& model,
                                                          const ModelLayer& layer,
                                                          std::int64_t tensor);
// Returns whether the input of a linear layer is kept for the gradient of a weight: without
// adapters always, with them if one of these has one.
[[nodiscard]] bool trains_any(const Model& model, std::initializer_list<AdapterTarget> targets);
[[nodiscard]] bool has_quantised_base(const Model& model);

// Bytes of so many weights in NF4: 4 bits each, a scale of 8 bits for each block of 64, and one of
// 32 bits for 256 such scales. arXiv 2305.14314, section 3: 0.127 bits for each parameter.
[[nodiscard]] std::int64_t nf4_bytes(std::int64_t weights);
// Returns the same for each weight.
inline constexpr double kNf4BytesOfWeight = (4.0 + 8.0 / 64.0 + 32.0 / (64.0 * 256.0)) / 8.0;

// Returns what is trained and how the rest lies, for people.
[[nodiscard]] std::string describe_adapters(const Model& model);

// Adds the rows of "adapters". Reading throws ConfigError, too, where the model has no such target.
void adapter_fields(Fields& fields, Adapters& adapters, const Model& model);

}  // namespace trainyard
