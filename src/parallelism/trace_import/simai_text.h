// SPDX-License-Identifier: Apache-2.0
// The text of SimAI's and ASTRA-sim's workloads: a policy, parameters, and a line for each layer
// (simai_workload.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule/operation.h"
#include "parallelism/workload/imported_files.h"
#include "sim/units.h"

namespace trainyard {

enum SimAiPass : std::size_t { kForward, kInputs, kWeights, kPasses };
inline constexpr std::array<std::string_view, kPasses> kPassNames{"forward", "gradients of inputs",
                                                                  "gradients of weights"};

enum class SimAiGroup : std::uint8_t { Tensor, Data, Expert, DataOfExperts, All };

enum class SimAiOrder : std::uint8_t {
  Transformer,   // Gradients of inputs, whose call holds computation up, then of weights.
  Hybrid,        // The same, but that call runs beside the gradients of weights.
  WeightsFirst,  // Gradients of weights, then of inputs, which the first layer has not.
  Recommender,   // The same, with exchanges of the first layer beside the bottom layers.
  Inference,     // Forward alone.
  Calls,         // Calls of gradients of weights alone.
};

// How the layers are trained (Workload.cc: decode_parallelism, decode_involved_dimensions and
// iterate_...).
struct SimAiPolicy {
  std::string_view name;
  SimAiOrder order;
  std::array<std::optional<SimAiGroup>, kPasses> groups;  // Nothing: no collective there.
};

struct SimAiCall {
  std::optional<Operation> operation = {};  // Nothing: NONE.
  SimAiGroup group = SimAiGroup::Tensor;
  Bytes size{};
};

struct SimAiLayer {
  std::string name;
  std::array<SimTime, kPasses> times;
  std::array<SimAiCall, kPasses> calls;
  SimTime update;
};

struct SimAiHeader {
  const SimAiPolicy* policy = nullptr;
  std::map<std::string, std::int64_t, std::less<>> values;
  std::vector<std::int64_t> checkpoints;
  std::vector<std::int64_t> initiators;

  [[nodiscard]] std::int64_t value(std::string_view key, std::int64_t otherwise) const {
    const auto found = values.find(key);
    return found == values.end() ? otherwise : found->second;
  }
};

// Throws ConfigError "FILE:LINE: ...".
struct SimAiText {
  std::string name;  // Name of the file.
  SimAiHeader header;
  std::vector<SimAiLayer> layers;

  // Throws for a field of the first line.
  [[noreturn]] void fail(std::string_view field, std::string_view expected,
                         std::string_view found) const;
};

[[nodiscard]] SimAiText read_simai_text(const ImportedFile& file);

}  // namespace trainyard
