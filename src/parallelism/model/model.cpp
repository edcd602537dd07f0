// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/model.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include "parallelism/model/model_ends.h"
#include "sim/units.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 24;
constexpr std::int64_t kMaxLayers = 100'000;
constexpr std::int64_t kMaxEdge = 8192;  // Edge of an image; products fit 64 bits.
constexpr std::int64_t kMaxChannels = 1024;
constexpr std::array<std::string_view, 2> kAttentionKinds{"grouped", "latent"};
constexpr std::array<std::string_view, 3> kNorms{"rms", "layer", "plain"};
constexpr std::array<std::string_view, 3> kBiases{"none", "all", "qkv"};

constexpr Whole kSize{1, kMaxSize};
constexpr Whole kCount{0, kMaxSize};

void attention_fields(Fields& fields, Attention& attention) {
  bool is_latent = false;
  fields.optional("qk_norm", attention.has_qk_norm, Flag{}, "Norms of queries and keys by head.");
  fields.optional("causal", attention.is_causal, Flag{}, "No token sees later ones: `true`.");
  fields.optional("window", attention.window, kCount, "Nearest tokens that are seen: all.");
  fields.optional("sinks", attention.has_sinks, Flag{}, "A number of each head in its softmax.");
  fields.optional("kind", is_latent, Choice{kAttentionKinds}, "Form of attention.");
  fields.where(is_latent, [&] {
    LatentAttention& latent = attention.latent.emplace();
    fields.required("heads", latent.heads, kSize, "Heads of queries.");
    fields.optional("query_rank", latent.query_rank, kCount, "Rank of queries, if `latent`.");
    fields.required("kv_rank", latent.kv_rank, kSize, "Rank of keys and values, if `latent`.");
    fields.required("head_size", latent.head_size, kSize, "Elements of a head's key.");
    fields.required("rope_size", latent.rope_size, kSize, "Positional elements, if `latent`.");
    fields.required("value_size", latent.value_size, kSize, "Elements of a value, if `latent`.");
  });
  fields.where(!is_latent, [&] {
    GroupedAttention& grouped = attention.grouped.emplace();
    fields.required("heads", grouped.heads, kSize, "Heads of queries.");
    fields.required("head_size", grouped.head_size, kSize, "Elements of a head's key.");
    grouped.kv_heads = grouped.heads;
    fields.optional("kv_heads", grouped.kv_heads, kCount, "Heads of keys and values: `heads`.");
    fields.check([&](const ConfigNode& node) {
      if (grouped.kv_heads == 0 || grouped.heads % grouped.kv_heads != 0) {
        node.required("kv_heads")
            .fail("a divisor of heads, " + std::to_string(grouped.heads),
                  std::to_string(grouped.kv_heads));
      }
    });
  });
}

void feed_forward_fields(Fields& fields, FeedForward& layer) {
  fields.required("size", layer.size, kSize, "Elements of the inner vector.");
  fields.required("gated", layer.is_gated, Flag{}, "Three matrices, as SwiGLU has.");
}

void check_experts(const ConfigNode& node, const Experts& experts) {
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
}

void expert_fields(Fields& fields, Experts& experts) {
  fields.required("count", experts.count, kSize, "Experts of a layer.");
  fields.required("active", experts.active, kSize, "Experts of a token.");
  fields.optional("groups", experts.groups, kCount, "Groups of experts: 1.");
  fields.optional("active_groups", experts.active_groups, kCount, "Groups of a token: 1.");
  fields.required("expert", experts.expert, Group{feed_forward_fields}, "Each expert.");
  fields.optional("router_bias", experts.has_router_bias, Flag{}, "A number for each expert.");
  fields.check([&](const ConfigNode& node) { check_experts(node, experts); });
  fields.optional("shared", experts.shared, Group{feed_forward_fields}, "Those of every token.");
}

// Equal layers, one after the other.
struct LayerRun {
  std::int64_t count = 0;
  ModelLayer layer;
};

void layer_fields(Fields& fields, LayerRun& run) {
  fields.required("count", run.count, Whole{1, kMaxLayers}, "So many equal layers.");
  fields.required("attention", run.layer.attention, Group{attention_fields}, "First block.");
  const bool is_dense = fields.optional("feed_forward", run.layer.feed_forward,
                                        Group{feed_forward_fields}, "Second block, or `experts`.");
  const bool has_experts =
      fields.optional("experts", run.layer.experts, Group{expert_fields}, "Experts.");
  fields.check([&](const ConfigNode& node) {
    if (is_dense == has_experts) {
      node.fail("expected either feed_forward or experts");
    }
  });
}

void patch_fields(Fields& fields, Patches& patches) {
  constexpr Whole kEdge{1, kMaxEdge};
  fields.required("image", patches.image, kEdge, "Edge of an image.");
  fields.required("size", patches.size, kEdge, "Edge of a patch.");
  fields.required("channels", patches.channels, Whole{1, kMaxChannels}, "Channels of an image.");
  fields.optional("class_token", patches.has_class_token, Flag{}, "One more token.");
  fields.check([&](const ConfigNode& node) {
    if (patches.image % patches.size != 0) {
      node.required("size").fail("a divisor of image, " + std::to_string(patches.image),
                                 std::to_string(patches.size));
    }
  });
}

void modulation_fields(Fields& fields, Modulation& modulation) {
  fields.required("frequencies", modulation.frequencies, kSize, "Frequencies of a time step.");
  fields.optional("labels", modulation.labels, kCount, "Labels of a table.");
}

void head_fields(Fields& fields, ModelHead& head) {
  fields.optional("transform", head.has_transform, Flag{}, "A linear layer before the logits.");
  fields.optional("bias", head.has_bias, Flag{}, "A bias of the logits.");
  fields.optional("pooler", head.has_pooler, Flag{}, "A linear layer before the classes.");
  fields.optional("classes", head.classes, kCount, "Classes of a sample.");
  fields.optional("channels", head.channels, Whole{1, kMaxChannels}, "Channels of a patch.");
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

// `depth`: the layers that there are if the list is repeated up to them; 0: it is not.
void set_layers(const ConfigNode& node, const std::vector<LayerRun>& runs, std::int64_t depth,
                Model& model) {
  for (const LayerRun& run : runs) {
    model.layers.insert(model.layers.end(), static_cast<std::size_t>(run.count), run.layer);
    if (model.layers.size() > static_cast<std::size_t>(kMaxLayers)) {
      node.items()[static_cast<std::size_t>(&run - runs.data())].fail(
          "expected at most " + std::to_string(kMaxLayers) + " layers, found more");
    }
  }
  if (model.layers.empty()) {
    node.fail("at least one kind of layer", "none");
  }
  const std::size_t listed = model.layers.size();
  if (depth != 0 && std::cmp_less(depth, listed)) {
    node.fail("at most depth, " + std::to_string(depth) + ", layers", std::to_string(listed));
  }
  while (std::cmp_less(model.layers.size(), depth)) {
    model.layers.push_back(ModelLayer(model.layers[model.layers.size() - listed]));
  }
}

std::int64_t feed_forward_parameters(const Model& model, const FeedForward& layer) {
  return layer.matrices() * model.hidden * layer.size + feed_forward_biases(model, layer, 1);
}

}  // namespace

std::int64_t Attention::heads() const {
  return grouped ? grouped->heads : latent->heads;
}

double Attention::window_share(std::int64_t sequence) const {
  if (window == 0 || window >= sequence) {
    return 1.0;
  }
  // With a mask, w s - w^2 / 2 of s^2 / 2 scores: the first tokens have fewer before them.
  const double share = static_cast<double>(window) / static_cast<double>(sequence);
  return is_causal ? share * (2.0 - share) : share;
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
  constexpr std::array<std::int64_t, kNorms.size()> kVectors{1, 2, 0};
  return kVectors.at(static_cast<std::size_t>(model.norm)) * elements;
}

std::int64_t layer_norms(const Model& model) {
  return model.has_output_norms ? 4 : 2;
}

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

bool has_experts(const Model& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const ModelLayer& layer) { return layer.experts.has_value(); });
}

std::vector<WeightMatrix> attention_matrices(const Model& model, const Attention& attention,
                                             std::int64_t tensor) {
  if (attention.grouped) {
    const auto& [heads, kv_heads, head_size] = *attention.grouped;
    // A group is on several ranks where there are fewer groups than ranks.
    const std::int64_t groups = ceil_divide(kv_heads, tensor);
    return {{.inputs = model.hidden, .outputs = (heads / tensor + 2 * groups) * head_size},
            {.inputs = heads / tensor * head_size, .outputs = model.hidden}};
  }
  const LatentAttention& latent = *attention.latent;
  const std::int64_t heads = latent.heads / tensor;
  const std::int64_t queries = heads * (latent.head_size + latent.rope_size);
  std::vector<WeightMatrix> matrices;
  if (latent.query_rank == 0) {
    matrices.push_back({.inputs = model.hidden, .outputs = queries});
  } else {
    matrices.push_back({.inputs = model.hidden, .outputs = latent.query_rank});
    matrices.push_back({.inputs = latent.query_rank, .outputs = queries});
  }
  matrices.push_back({.inputs = model.hidden, .outputs = latent.kv_rank + latent.rope_size});
  matrices.push_back(
      {.inputs = latent.kv_rank, .outputs = heads * (latent.head_size + latent.value_size)});
  matrices.push_back({.inputs = heads * latent.value_size, .outputs = model.hidden});
  return matrices;
}

// Projections up of latent attention have none.
std::int64_t attention_biases(const Model& model, const Attention& attention, std::int64_t tensor) {
  const std::int64_t sinks = attention.has_sinks ? attention.heads() / tensor : 0;
  if (model.bias == Bias::None) {
    return sinks;
  }
  const std::int64_t output = model.bias == Bias::All ? model.hidden : 0;
  const std::int64_t first = attention_matrices(model, attention, tensor).front().outputs;
  return sinks + output + first +
         (attention.latent ? attention.latent->kv_rank + attention.latent->rope_size : 0);
}

std::int64_t feed_forward_biases(const Model& model, const FeedForward& layer,
                                 std::int64_t tensor) {
  return model.bias == Bias::All ? (layer.matrices() - 1) * layer.size / tensor + model.hidden : 0;
}

ParameterCount parameters_of(const Model& model, const ModelLayer& layer) {
  ParameterCount count;
  count.attention = attention_biases(model, layer.attention, 1);
  for (const WeightMatrix& matrix : attention_matrices(model, layer.attention, 1)) {
    count.attention += matrix.elements();
  }
  count.modulation = parameters_of(layer_modulation(model));
  count.norms = layer_norms(model) * norm_parameters(model, model.hidden) +
                inner_norm_parameters(model, layer.attention);
  if (layer.feed_forward) {
    count.feed_forward = feed_forward_parameters(model, *layer.feed_forward);
    return count;
  }
  const Experts& experts = *layer.experts;
  count.experts = experts.count * feed_forward_parameters(model, experts.expert);
  count.routers = experts.count * (model.hidden + (experts.has_router_bias ? 1 : 0));
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

void model_fields(Fields& fields, Model& model) {
  std::vector<LayerRun> runs;
  fields.optional("source", std::ignore, Unread{}, "Where the shapes are from; files need it.");
  fields.required("title", model.title, Text{}, "Name for people.");
  fields.optional("patches", model.patches, Group{patch_fields}, "Tokens are patches of images.");
  fields.optional("modulation", model.modulation, Group{modulation_fields}, "adaLN-Zero.");
  fields.optional("head", model.head, Group{head_fields}, "What follows the last layer.");
  fields.required("hidden", model.hidden, kSize, "Elements of a token.");
  fields.where(!model.patches, [&] {
    fields.required("vocabulary", model.vocabulary, kSize, "Tokens that there are, if no patches.");
  });
  fields.optional("tied_embeddings", model.has_tied_embeddings, Flag{}, "Logits share weights.");
  fields.optional("learned_positions", model.learned_positions, kCount, "Positions of a table.");
  fields.optional("token_types", model.token_types, kCount, "Types of tokens of a table.");
  fields.optional("embedding_norm", model.has_embedding_norm, Flag{}, "A norm before all layers.");
  fields.optional("norm", model.norm, Choice{kNorms}, "Kind of norm.");
  fields.optional("post_norm", model.is_post_norm, Flag{}, "Norms stand behind residuals.");
  fields.optional("output_norms", model.has_output_norms, Flag{}, "Norms of blocks' outputs too.");
  fields.optional("bias", model.bias, Choice{kBiases}, "Linear layers that have a bias.");
  fields.check([&](const ConfigNode& node) { check_ends(node, model); });
  std::int64_t depth = 0;
  fields.optional("depth", depth, Whole{1, kMaxLayers}, "Layers, if `layers` are repeated.");
  fields.required("layers", runs, List{Group{layer_fields}}, "Layers, first to last.");
  fields.check(
      [&](const ConfigNode& node) { set_layers(node.required("layers"), runs, depth, model); });
}

Model read_model(const ConfigNode& node, const std::string& name) {
  Model model;
  model.name = name;
  read_fields(node, model, model_fields);
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
