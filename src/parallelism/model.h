// SPDX-License-Identifier: Apache-2.0
// A transformer as its shapes, from configs/workloads/models/*.yaml: parameters are exact, and
// every cost of a step follows from the shapes.
//
// Sizes count elements; h is the size of the hidden state, one vector of which stands for a token.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/config.h"

namespace trainyard {

// Heads whose queries, keys and values are projections of the hidden state. Groups of query heads
// share keys and values (GQA): as many groups as heads is plain multi-head attention, one is MQA.
struct GroupedAttention {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;
  bool operator==(const GroupedAttention&) const = default;
};

// Multi-head latent attention: queries and keys with values are projected through vectors of low
// rank, and a part of each key that carries the position is shared by all heads. DeepSeek-V2,
// arXiv 2405.04434, section 2.1.
struct LatentAttention {
  std::int64_t heads = 0;
  std::int64_t query_rank = 0;  // 0: queries come straight from the hidden state.
  std::int64_t kv_rank = 0;
  std::int64_t head_size = 0;   // Of queries and keys without the positional part.
  std::int64_t rope_size = 0;   // Of the positional part.
  std::int64_t value_size = 0;  // Of a head's value.
  bool operator==(const LatentAttention&) const = default;
};

struct Attention {
  std::optional<GroupedAttention> grouped = {};
  std::optional<LatentAttention> latent = {};  // Exactly one of the two.
  bool has_qk_norm = false;  // Queries and keys are normalised head by head (Qwen 3).
  bool is_causal = true;

  [[nodiscard]] std::int64_t heads() const;
  // Of one head's query and key, and of its value.
  [[nodiscard]] std::int64_t query_size() const;
  [[nodiscard]] std::int64_t value_size() const;
  bool operator==(const Attention&) const = default;
};

struct FeedForward {
  std::int64_t size = 0;  // Of the inner vector.
  bool is_gated = false;  // SwiGLU and its like: three matrices, not two.

  [[nodiscard]] std::int64_t matrices() const { return is_gated ? 3 : 2; }
  bool operator==(const FeedForward&) const = default;
};

// Mixture of experts in the place of one feed-forward.
struct Experts {
  std::int64_t count = 0;
  std::int64_t active = 0;  // Of a token (top-k).
  // Equal groups of neighbouring experts, of which a token takes these many first (DeepSeek-V2 and
  // V3, limits on the devices that a token visits: arXiv 2405.04434, 2412.19437).
  std::int64_t groups = 1;
  std::int64_t active_groups = 1;
  FeedForward expert;
  std::optional<FeedForward> shared = {};  // For every token; several shared ones count as one.
  bool has_router_bias = false;            // A number for each expert (DeepSeek-V3).
  bool operator==(const Experts&) const = default;
};

struct ModelLayer {
  Attention attention;
  std::optional<FeedForward> feed_forward = {};
  std::optional<Experts> experts = {};  // Exactly one of the two.
  bool operator==(const ModelLayer&) const = default;
};

enum class Norm : std::uint8_t { Rms, Layer };  // The latter has a bias too.

enum class Bias : std::uint8_t {
  None,
  All,  // Of every linear layer but the head.
  Qkv,  // Of queries, keys and values alone.
};

struct Model {
  std::string name;  // Of the file.
  std::string title;
  std::int64_t hidden = 0;
  std::int64_t vocabulary = 0;  // With padding, if the source trains with it.
  bool has_tied_embeddings = false;
  std::int64_t learned_positions = 0;  // 0: rotary or none.
  bool has_embedding_norm = false;     // BLOOM.
  Norm norm = Norm::Rms;
  Bias bias = Bias::None;
  std::vector<ModelLayer> layers;
};

// Parameters by where they are.
struct ParameterCount {
  std::int64_t embedding = 0;  // Tokens and positions.
  std::int64_t attention = 0;
  std::int64_t feed_forward = 0;  // With the shared experts.
  std::int64_t experts = 0;       // Routed ones.
  std::int64_t routers = 0;
  std::int64_t norms = 0;
  std::int64_t head = 0;  // 0 if tied.

  [[nodiscard]] std::int64_t total() const {
    return embedding + attention + feed_forward + experts + routers + norms + head;
  }
  ParameterCount& operator+=(const ParameterCount& other);
};

// Of one layer, its two norms among them.
[[nodiscard]] ParameterCount parameters_of(const Model& model, const ModelLayer& layer);
// Of everything, the last norm among it.
[[nodiscard]] ParameterCount parameters_of(const Model& model);
// Those that a token meets: of the routed experts only the active ones.
[[nodiscard]] std::int64_t active_parameters_of(const Model& model);

// In any of its layers.
[[nodiscard]] bool has_experts(const Model& model);

// Strict; throws ConfigError with the place of the mistake. Files must have a source.
[[nodiscard]] Model read_model(const ConfigNode& node, const std::string& name);
[[nodiscard]] Model load_model(const std::filesystem::path& file);

}  // namespace trainyard
