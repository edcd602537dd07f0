// SPDX-License-Identifier: Apache-2.0
// A transformer as its shapes, from configs/workloads/models/*.yaml: parameters are exact, and
// every cost of a step follows from the shapes. Decoders and encoders of text, and those of images,
// whose tokens are patches.
//
// Sizes count elements; h is the size of the hidden state, one vector of which represents a token.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/fields.h"

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
  std::int64_t head_size = 0;   // Size of queries and keys without the positional part.
  std::int64_t rope_size = 0;   // Size of the positional part.
  std::int64_t value_size = 0;  // Size of a head's value.
  bool operator==(const LatentAttention&) const = default;
};

struct Attention {
  std::optional<GroupedAttention> grouped = {};
  std::optional<LatentAttention> latent = {};  // Exactly one of the two.
  bool has_qk_norm = false;  // Queries and keys are normalised head by head (Qwen 3).
  bool is_causal = true;
  std::int64_t window = 0;  // Each token attends to so many of the nearest ones; 0: to all.
  bool has_sinks = false;   // A learned number of each head, in the sum of its softmax (gpt-oss).

  // Returns the share of the scores that the window leaves, of those that the mask leaves.
  [[nodiscard]] double window_share(std::int64_t sequence) const;
  [[nodiscard]] std::int64_t heads() const;
  // Return the size of one head's query and key, and of its value.
  [[nodiscard]] std::int64_t query_size() const;
  [[nodiscard]] std::int64_t value_size() const;
  bool operator==(const Attention&) const = default;
};

struct FeedForward {
  std::int64_t size = 0;  // Size of the inner vector.
  bool is_gated = false;  // SwiGLU and its like: three matrices, not two.

  [[nodiscard]] std::int64_t matrices() const { return is_gated ? 3 : 2; }
  bool operator==(const FeedForward&) const = default;
};

// Mixture of experts in the place of one feed-forward.
struct Experts {
  std::int64_t count = 0;
  std::int64_t active = 0;  // Experts of a token (top-k).
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

enum class Norm : std::uint8_t {
  Rms,
  Layer,  // With a bias too.
  Plain,  // As Layer, with neither weights nor bias (DiT).
};

enum class Bias : std::uint8_t {
  None,
  All,  // Biases of every linear layer but the logits over the vocabulary.
  Qkv,  // Biases of queries, keys and values alone.
};

// Patches of square images, or of what an encoder has made of them: each patch is a token. ViT:
// Dosovitskiy et al., arXiv 2010.11929.
struct Patches {
  std::int64_t image = 0;  // Edge of the image, as `size` is the edge of a patch.
  std::int64_t size = 0;
  std::int64_t channels = 0;
  bool has_class_token = false;  // One more token, which is learned.

  // Returns the patches of a sample.
  [[nodiscard]] std::int64_t count() const { return (image / size) * (image / size); }
  [[nodiscard]] std::int64_t tokens() const { return count() + (has_class_token ? 1 : 0); }
  // Returns the elements of a patch.
  [[nodiscard]] std::int64_t elements() const { return size * size * channels; }
};

// adaLN-Zero: a vector that represents a sample, of its time step and its label, gives each layer
// shift, scale and gate of both its blocks, and shift and scale of what is behind the last norm.
// DiT: Peebles and Xie, arXiv 2212.09748, section 3.2.
struct Modulation {
  std::int64_t frequencies = 0;  // Frequencies of a time step, the input of two linear layers.
  std::int64_t labels = 0;       // In a table, that of no label among them; 0: none.
};

// The layers behind the last one beside logits over the vocabulary.
struct ModelHead {
  bool has_transform = false;  // A linear layer, an activation function and a norm before logits.
  bool has_bias = false;       // Whether the logits have a bias.
  bool has_pooler = false;     // A linear layer for each sample, before its classes.
  std::int64_t classes = 0;    // Classes of a sample.
  std::int64_t channels = 0;   // Channels of each element of a patch.
};

// The matrices of a layer beside which adapters stand.
enum class AdapterTarget : std::uint8_t { Query, Key, Value, Output, Gate, Up, Down };

// Fine-tuning with frozen weights: beside each target stand a matrix from its inputs to a vector of
// low rank and one from there to its outputs, and these alone are trained (adapters.h).
struct Adapters {
  std::int64_t rank = 0;
  std::vector<AdapterTarget> targets = {};  // Empty: all linear layers of a layer.
  // Linear layers of layers rest in 4 bits, NF4, and are brought to 16 bits for each product.
  bool is_quantised = false;
};

struct Model {
  std::string name;  // Name of the file.
  std::string title;
  std::int64_t hidden = 0;
  // Tokens of the vocabulary, with padding, if the source trains with it; 0: tokens are patches.
  std::int64_t vocabulary = 0;
  bool has_tied_embeddings = false;
  std::int64_t learned_positions = 0;  // 0: rotary or none.
  std::int64_t token_types = 0;        // BERT: embedded, beside tokens and positions.
  bool has_embedding_norm = false;     // BLOOM, BERT.
  std::optional<Patches> patches = {};
  std::optional<Modulation> modulation = {};
  Norm norm = Norm::Rms;
  bool is_post_norm = false;  // Norms stand behind the residuals, and there is no last one (BERT).
  bool has_output_norms = false;  // The output of each block is normalised too (Gemma 2).
  Bias bias = Bias::None;
  std::vector<ModelLayer> layers;
  ModelHead head = {};
  std::optional<Adapters> adapters = {};  // With them all else is frozen; the workload says it.
};

// A weight of a linear layer, as a rank has it.
struct WeightMatrix {
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t count = 1;  // Number of experts of this shape.
  bool is_expert = false;  // Its copies are on expert_gradient_ranks() instead of gradient_ranks().

  [[nodiscard]] std::int64_t elements() const { return inputs * outputs; }
};

// Parameters by where they are.
struct ParameterCount {
  std::int64_t embedding = 0;  // Everything before the layers but norms.
  std::int64_t attention = 0;
  std::int64_t feed_forward = 0;  // With the shared experts.
  std::int64_t experts = 0;       // Routed ones.
  std::int64_t routers = 0;
  std::int64_t modulation = 0;  // Parameters of the modulation of layers.
  std::int64_t norms = 0;
  std::int64_t head = 0;  // Without a matrix of logits if that is tied.

  [[nodiscard]] std::int64_t total() const {
    return embedding + attention + feed_forward + experts + routers + modulation + norms + head;
  }
  ParameterCount& operator+=(const ParameterCount& other);
};

// Returns the parameters of a norm of so many elements.
[[nodiscard]] std::int64_t norm_parameters(const Model& model, std::int64_t elements);
// Returns the norms of a layer that have as many elements as the hidden state.
[[nodiscard]] std::int64_t layer_norms(const Model& model);
// Returns the parameters of norms within attention, beside those of layer_norms().
[[nodiscard]] std::int64_t inner_norm_parameters(const Model& model, const Attention& attention);
// Return the matrices of attention on one of so many tensor ranks, and the elements of its biases,
// sinks among them.
[[nodiscard]] std::vector<WeightMatrix> attention_matrices(const Model& model,
                                                           const Attention& attention,
                                                           std::int64_t tensor);
[[nodiscard]] std::int64_t attention_biases(const Model& model, const Attention& attention,
                                            std::int64_t tensor);
// Returns the same of the biases of a feed-forward.
[[nodiscard]] std::int64_t feed_forward_biases(const Model& model, const FeedForward& layer,
                                               std::int64_t tensor);
// Returns the parameters of one layer, its norms among them.
[[nodiscard]] ParameterCount parameters_of(const Model& model, const ModelLayer& layer);
// Returns the parameters of everything, the last norm among it.
[[nodiscard]] ParameterCount parameters_of(const Model& model);
// Returns the parameters that a token meets: of the routed experts only the active ones.
[[nodiscard]] std::int64_t active_parameters_of(const Model& model);

// Returns whether any of its layers has experts.
[[nodiscard]] bool has_experts(const Model& model);

// Strict; throws ConfigError with the place of the mistake. Files must have a source.
void model_fields(Fields& fields, Model& model);  // All but its name.
[[nodiscard]] Model read_model(const ConfigNode& node, const std::string& name);
[[nodiscard]] Model load_model(const std::filesystem::path& file);

}  // namespace trainyard
