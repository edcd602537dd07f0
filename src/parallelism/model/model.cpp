// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/model.h"

#include <algorithm>
#include <array>
#include <utility>

#include "parallelism/model/model_ends.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 24;
constexpr std::int64_t kMostLayers = 100'000;
constexpr std::int64_t kMostEdge = 8192;  // Edge of an image; products fit 64 bits.
constexpr std::int64_t kMostChannels = 1024;
constexpr std::array<std::string_view, 2> kAttentionKinds{"grouped", "latent"};
constexpr std::array<std::string_view, 3> kNorms{"rms", "layer", "plain"};
constexpr std::array<std::string_view, 3> kBiases{"none", "all", "qkv"};

std::int64_t size(const ConfigNode& node, std::string_view key) {
  return node.required(key).as_integer(1, kMostSize);
}

std::int64_t size_or(const ConfigNode& node, std::string_view key, std::int64_t otherwise) {
  const auto found = node.optional(key);
  return found ? found->as_integer(0, kMostSize) : otherwise;
}

bool flag(const ConfigNode& node, std::string_view key, bool otherwise = false) {
  const auto found = node.optional(key);
  return found ? found->as_bool() : otherwise;
}

std::size_t choice(const ConfigNode& node, std::string_view key,
                   std::span<const std::string_view> choices) {
  const auto found = node.optional(key);
  return found ? found->as_choice(choices) : 0;
}

Attention read_attention(const ConfigNode& node) {
  Attention attention{.has_qk_norm = flag(node, "qk_norm"),
                      .is_causal = flag(node, "causal", true)};
  if (choice(node, "kind", kAttentionKinds) == 1) {
    attention.latent = LatentAttention{.heads = size(node, "heads"),
                                       .query_rank = size_or(node, "query_rank", 0),
                                       .kv_rank = size(node, "kv_rank"),
                                       .head_size = size(node, "head_size"),
                                       .rope_size = size(node, "rope_size"),
                                       .value_size = size(node, "value_size")};
    return attention;
  }
  GroupedAttention grouped{.heads = size(node, "heads"), .head_size = size(node, "head_size")};
  grouped.kv_heads = size_or(node, "kv_heads", grouped.heads);
  if (grouped.kv_heads == 0 || grouped.heads % grouped.kv_heads != 0) {
    node.required("kv_heads")
        .fail("a divisor of heads, " + std::to_string(grouped.heads),
              std::to_string(grouped.kv_heads));
  }
  attention.grouped = grouped;
  return attention;
}

FeedForward read_feed_forward(const ConfigNode& node) {
  return {.size = size(node, "size"), .is_gated = node.required("gated").as_bool()};
}

Experts read_experts(const ConfigNode& node) {
  Experts experts{.count = size(node, "count"),
                  .active = size(node, "active"),
                  .groups = size_or(node, "groups", 1),
                  .active_groups = size_or(node, "active_groups", 1),
                  .expert = read_feed_forward(node.required("expert")),
                  .has_router_bias = flag(node, "router_bias")};
  if (experts.active > experts.count) {
    node.required("active").fail("at most count, " + std::to_string(experts.count),
                                 std::to_string(experts.active));
  }
  if (experts.groups == 0 || experts.count % experts.groups != 0) {
    node.required("groups").fail("a divisor of count, " + std::to_string(experts.count),
                                 std::to_string(experts.groups));
  }
  const std::int64_t of_group = experts.count / experts.groups;
  if (experts.active_groups > experts.groups || experts.active_groups * of_group < experts.active) {
    node.fail("expected active_groups to be at most groups, with room for the active experts");
  }
  if (const auto shared = node.optional("shared")) {
    experts.shared = read_feed_forward(*shared);
  }
  return experts;
}

ModelLayer read_layer(const ConfigNode& node) {
  ModelLayer layer{.attention = read_attention(node.required("attention"))};
  const auto feed_forward = node.optional("feed_forward");
  const auto experts = node.optional("experts");
  if (feed_forward.has_value() == experts.has_value()) {
    node.fail("expected either feed_forward or experts");
  }
  if (feed_forward) {
    layer.feed_forward = read_feed_forward(*feed_forward);
  } else {
    layer.experts = read_experts(*experts);
  }
  return layer;
}

Patches read_patches(const ConfigNode& node) {
  const auto edge = [&](std::string_view key) {
    return node.required(key).as_integer(1, kMostEdge);
  };
  const Patches patches{.image = edge("image"),
                        .size = edge("size"),
                        .channels = node.required("channels").as_integer(1, kMostChannels),
                        .has_class_token = flag(node, "class_token")};
  if (patches.image % patches.size != 0) {
    node.required("size").fail("a divisor of image, " + std::to_string(patches.image),
                               std::to_string(patches.size));
  }
  return patches;
}

ModelHead read_head(const ConfigNode& node) {
  const auto channels = node.optional("channels");
  return {.has_transform = flag(node, "transform"),
          .has_bias = flag(node, "bias"),
          .has_pooler = flag(node, "pooler"),
          .classes = size_or(node, "classes", 0),
          .channels = channels ? channels->as_integer(1, kMostChannels) : 0};
}

// The keys of text stand in no model of images, and the other way round.
void check_ends(const ConfigNode& node, const Model& model) {
  const auto head = node.optional("head");
  const auto refuse = [](const std::optional<ConfigNode>& parent, std::string_view key,
                         const std::string& why) {
    if (const auto found = parent ? parent->optional(key) : std::nullopt) {
      found->fail("no such key " + why, found->found());
    }
  };
  if (!model.patches) {
    refuse(head, "channels", "without patches");
    return;
  }
  for (const std::string_view key : {"vocabulary", "tied_embeddings", "token_types"}) {
    refuse(node, key, "beside patches");
  }
  for (const std::string_view key : {"transform", "bias"}) {
    refuse(head, key, "beside patches, which have no vocabulary");
  }
  if (model.head.classes + model.head.channels == 0) {
    node.fail("expected a head with classes or channels, as patches have no vocabulary");
  }
  if (model.learned_positions != 0 && model.learned_positions < model.patches->tokens()) {
    node.required("learned_positions")
        .fail("at least the " + std::to_string(model.patches->tokens()) + " tokens of an image",
              std::to_string(model.learned_positions));
  }
}

// Everything but the layers.
Model read_shapes(const ConfigNode& node, const std::string& name) {
  const auto patches = node.optional("patches");
  const auto modulation = node.optional("modulation");
  const auto head = node.optional("head");
  Model model{.name = name,
              .title = node.required("title").as_string(),
              .hidden = size(node, "hidden"),
              .vocabulary = patches ? 0 : size(node, "vocabulary"),
              .has_tied_embeddings = flag(node, "tied_embeddings"),
              .learned_positions = size_or(node, "learned_positions", 0),
              .token_types = size_or(node, "token_types", 0),
              .has_embedding_norm = flag(node, "embedding_norm"),
              .norm = static_cast<Norm>(choice(node, "norm", kNorms)),
              .is_post_norm = flag(node, "post_norm"),
              .bias = static_cast<Bias>(choice(node, "bias", kBiases)),
              .layers = {}};
  if (patches) {
    model.patches = read_patches(*patches);
  }
  if (modulation) {
    model.modulation = Modulation{.frequencies = size(*modulation, "frequencies"),
                                  .labels = size_or(*modulation, "labels", 0)};
  }
  if (head) {
    model.head = read_head(*head);
  }
  check_ends(node, model);
  return model;
}

// Returns the parameters of a linear layer with a bias where the model has one.
std::int64_t linear(std::int64_t inputs, std::int64_t outputs, bool has_bias) {
  return inputs * outputs + (has_bias ? outputs : 0);
}

std::int64_t feed_forward_parameters(const Model& model, const FeedForward& layer) {
  const bool bias = model.bias == Bias::All;
  return (layer.matrices() - 1) * linear(model.hidden, layer.size, bias) +
         linear(layer.size, model.hidden, bias);
}

std::int64_t attention_parameters(const Model& model, const Attention& attention) {
  const bool bias = model.bias != Bias::None;
  const bool output_bias = model.bias == Bias::All;
  if (attention.grouped) {
    const auto& [heads, kv_heads, head_size] = *attention.grouped;
    return linear(model.hidden, (heads + 2 * kv_heads) * head_size, bias) +
           linear(heads * head_size, model.hidden, output_bias);
  }
  const LatentAttention& latent = *attention.latent;
  const std::int64_t queries = latent.heads * (latent.head_size + latent.rope_size);
  const std::int64_t keys_and_values = latent.heads * (latent.head_size + latent.value_size);
  const std::int64_t of_queries = latent.query_rank == 0
                                      ? linear(model.hidden, queries, bias)
                                      : linear(model.hidden, latent.query_rank, bias) +
                                            linear(latent.query_rank, queries, false);
  return of_queries + linear(model.hidden, latent.kv_rank + latent.rope_size, bias) +
         linear(latent.kv_rank, keys_and_values, false) +
         linear(latent.heads * latent.value_size, model.hidden, output_bias);
}

// Counts the parameters of norms beside the two norms of each layer.
std::int64_t inner_norm_parameters(const Model& model, const Attention& attention) {
  std::int64_t count = 0;
  if (attention.has_qk_norm) {
    count += 2 * norm_parameters(model, attention.query_size());
  }
  if (attention.latent) {
    count += norm_parameters(model, attention.latent->kv_rank);
    count += norm_parameters(model, attention.latent->query_rank);
  }
  return count;
}

}  // namespace

std::int64_t Attention::heads() const {
  return grouped ? grouped->heads : latent->heads;
}

std::int64_t Attention::query_size() const {
  return grouped ? grouped->head_size : latent->head_size + latent->rope_size;
}

std::int64_t Attention::value_size() const {
  return grouped ? grouped->head_size : latent->value_size;
}

ParameterCount& ParameterCount::operator+=(const ParameterCount& other) {
  embedding += other.embedding;
  attention += other.attention;
  feed_forward += other.feed_forward;
  experts += other.experts;
  routers += other.routers;
  modulation += other.modulation;
  norms += other.norms;
  head += other.head;
  return *this;
}

std::int64_t norm_parameters(const Model& model, std::int64_t elements) {
  switch (model.norm) {
    case Norm::Rms:
      break;
    case Norm::Layer:
      return 2 * elements;
    case Norm::Plain:
      return 0;
  }
  return elements;
}

bool has_experts(const Model& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const ModelLayer& layer) { return layer.experts.has_value(); });
}

ParameterCount parameters_of(const Model& model, const ModelLayer& layer) {
  ParameterCount count;
  count.attention = attention_parameters(model, layer.attention);
  count.modulation = parameters_of(layer_modulation(model));
  count.norms =
      2 * norm_parameters(model, model.hidden) + inner_norm_parameters(model, layer.attention);
  if (layer.feed_forward) {
    count.feed_forward = feed_forward_parameters(model, *layer.feed_forward);
    return count;
  }
  const Experts& experts = *layer.experts;
  count.experts = experts.count * feed_forward_parameters(model, experts.expert);
  count.routers = linear(model.hidden, experts.count, experts.has_router_bias);
  if (experts.shared) {
    count.feed_forward = feed_forward_parameters(model, *experts.shared);
  }
  return count;
}

ParameterCount parameters_of(const Model& model) {
  ParameterCount count;
  count.embedding = (model.vocabulary + learned_vectors(model)) * model.hidden +
                    parameters_of(input_linears(model));
  const int norms = (model.has_embedding_norm ? 1 : 0) + (model.is_post_norm ? 0 : 1) +
                    (model.head.has_transform ? 1 : 0);
  count.norms = norms * norm_parameters(model, model.hidden);
  count.head = (model.has_tied_embeddings ? 0 : model.vocabulary * model.hidden) +
               (model.head.has_bias ? model.vocabulary : 0) + parameters_of(output_linears(model));
  for (const ModelLayer& layer : model.layers) {
    count += parameters_of(model, layer);
  }
  return count;
}

std::int64_t active_parameters_of(const Model& model) {
  std::int64_t count = parameters_of(model).total();
  for (const ModelLayer& layer : model.layers) {
    if (layer.experts) {
      count -= (layer.experts->count - layer.experts->active) *
               feed_forward_parameters(model, layer.experts->expert);
    }
  }
  return count;
}

Model read_model(const ConfigNode& node, const std::string& name) {
  if (const auto source = node.optional("source")) {
    source->skip();
  }
  Model model = read_shapes(node, name);
  for (const ConfigNode& item : node.required("layers").items()) {
    const std::int64_t count = item.required("count").as_integer(1, kMostLayers);
    model.layers.insert(model.layers.end(), static_cast<std::size_t>(count), read_layer(item));
    if (model.layers.size() > static_cast<std::size_t>(kMostLayers)) {
      item.fail("expected at most " + std::to_string(kMostLayers) + " layers, found more");
    }
  }
  if (model.layers.empty()) {
    node.required("layers").fail("at least one kind of layer", "none");
  }
  return model;
}

Model load_model(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  document.root().required("source").skip();
  Model model = read_model(document.root(), file.stem().string());
  document.finish();
  return model;
}

}  // namespace trainyard
