// SPDX-License-Identifier: Apache-2.0
#include "calibration/training/training_model.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "calibration/training/training_run.h"

namespace trainyard {
namespace {

struct FormTraits {
  bool is_gated = false;
  bool is_tied = true;
  bool has_positions = false;
  bool has_embedding_norm = false;
  Norm norm = Norm::Layer;
  Bias bias = Bias::All;
};

FormTraits traits_of(ModelForm form) {
  switch (form) {
    case ModelForm::Gpt:
      return {.has_positions = true};
    case ModelForm::Bloom:
      return {.has_embedding_norm = true};
    case ModelForm::Llama:
      return {.is_gated = true, .is_tied = false, .norm = Norm::Rms, .bias = Bias::None};
  }
  return {};
}

class FormModel {
 public:
  explicit FormModel(const ModelFields& fields) : fields_(fields) {}

  [[nodiscard]] ModelResolution build() {
    const std::int64_t layers = needed(fields_.layers, "model.layers");
    const std::int64_t hidden = needed(fields_.hidden, "model.hidden");
    const std::int64_t heads = needed(fields_.heads, "model.heads");
    const std::int64_t vocabulary = needed(fields_.vocabulary, "model.vocab");
    if (!fields_.form) {
      missing_.emplace_back("model.form");
    }
    const FormTraits traits = traits_of(fields_.form.value_or(ModelForm::Gpt));
    const ModelLayer layer = layer_of(hidden, heads, traits);
    Model model{.name = fields_.name.value_or(""),
                .title = fields_.name.value_or("the model of the row"),
                .hidden = hidden,
                .vocabulary = vocabulary,
                .has_tied_embeddings = traits.is_tied,
                .learned_positions = traits.has_positions ? fields_.sequence.value_or(0) : 0,
                .has_embedding_norm = traits.has_embedding_norm,
                .norm = traits.norm,
                .bias = traits.bias,
                .layers = {static_cast<std::size_t>(layers), layer}};
    return {.model = std::move(model), .missing = std::move(missing_)};
  }

 private:
  // 1 stands in for what is missing, so that nothing is divided by zero.
  std::int64_t needed(const std::optional<std::int64_t>& field, std::string_view name) {
    if (!field) {
      missing_.emplace_back(name);
    }
    return field.value_or(1);
  }

  ModelLayer layer_of(std::int64_t hidden, std::int64_t heads, const FormTraits& traits) {
    GroupedAttention grouped{.heads = heads,
                             .kv_heads = fields_.kv_heads.value_or(heads),
                             .head_size = fields_.head_size.value_or(hidden / heads)};
    if (fields_.latent_attention.value_or(false)) {
      missing_.emplace_back("model.file (latent attention)");
    } else if (!fields_.head_size && hidden % heads != 0) {
      missing_.emplace_back("model.head_dim");
    }
    ModelLayer layer{.attention = {.grouped = grouped}};
    if (fields_.experts) {
      const std::int64_t active = needed(fields_.active_experts, "model.moe.topk");
      const std::int64_t size = needed(
          fields_.expert_size ? fields_.expert_size : fields_.feed_forward, "model.moe.expert_ffn");
      layer.experts = Experts{.count = *fields_.experts,
                              .active = active,
                              .expert = {.size = size, .is_gated = traits.is_gated}};
      return layer;
    }
    std::optional<std::int64_t> size = fields_.feed_forward;
    if (!size && fields_.feed_forward_ratio) {
      size = *fields_.feed_forward_ratio * hidden;
    }
    layer.feed_forward =
        FeedForward{.size = needed(size, "model.ffn_hidden"), .is_gated = traits.is_gated};
    return layer;
  }

  const ModelFields& fields_;
  std::vector<std::string> missing_;
};

// Names a difference between a file and a row that says something too.
std::string difference(const ModelFields& fields, const Model& model) {
  std::string found;
  const auto compare = [&](std::string_view name, const std::optional<std::int64_t>& row,
                           std::int64_t file) {
    if (found.empty() && row && *row != file) {
      found = fmt::format("expected {} of {}, as in {}, found {}", name, file, model.name, *row);
    }
  };
  const ModelLayer& last = model.layers.back();
  compare("model.hidden", fields.hidden, model.hidden);
  compare("model.heads", fields.heads, last.attention.heads());
  if (last.attention.grouped) {
    compare("model.kv_heads", fields.kv_heads, last.attention.grouped->kv_heads);
  }
  if (last.experts) {
    compare("model.moe.experts", fields.experts, last.experts->count);
    compare("model.moe.topk", fields.active_experts, last.experts->active);
    compare("model.moe.expert_ffn", fields.expert_size, last.experts->expert.size);
  } else if (last.feed_forward) {
    compare("model.ffn_hidden", fields.feed_forward, last.feed_forward->size);
  }
  if (found.empty() && fields.vocabulary && model.patches) {
    found =
        fmt::format("expected no model.vocab, as in {}, found {}", model.name, *fields.vocabulary);
  }
  if (found.empty() && fields.dense_layers && model.layers.front().experts) {
    found = fmt::format("expected no model.moe.dense_layers, as in {}, found {}", model.name,
                        *fields.dense_layers);
  }
  const auto layers = static_cast<std::int64_t>(model.layers.size());
  if (found.empty() && fields.layers.value_or(layers) > layers) {
    found = fmt::format("expected at most {} model.layers, as in {}, found {}", layers, model.name,
                        *fields.layers);
  }
  return found;
}

// The first layers stay; where the row says how many of them have no experts, as many.
void cut_layers(const ModelFields& fields, Model& model) {
  const auto layers = static_cast<std::size_t>(fields.layers.value_or(std::ssize(model.layers)));
  if (!fields.dense_layers) {
    model.layers.resize(layers, model.layers.back());
    return;
  }
  const auto dense = std::min(layers, static_cast<std::size_t>(*fields.dense_layers));
  const ModelLayer with_experts = model.layers.back();
  model.layers.resize(dense, model.layers.front());
  model.layers.resize(layers, with_experts);
}

ModelResolution model_of_file(const ModelFields& fields, ModelFolder& models) {
  ModelResolution result{.model = models.model(*fields.file)};
  result.clash = difference(fields, result.model);
  if (!result.clash.empty()) {
    return result;
  }
  cut_layers(fields, result.model);
  result.model.vocabulary = fields.vocabulary.value_or(result.model.vocabulary);
  return result;
}

}  // namespace

ModelResolution model_of(const ModelFields& fields, ModelFolder& models) {
  ModelResolution result = fields.file ? model_of_file(fields, models) : FormModel(fields).build();
  if (!fields.adapter_rank || !result.clash.empty()) {
    return result;
  }
  if (has_experts(result.model)) {
    result.clash = "expected no model.lora_rank with experts, found both";
    return result;
  }
  result.model.adapters =
      Adapters{.rank = *fields.adapter_rank,
               .targets = fields.adapter_targets.value_or(std::vector<AdapterTarget>())};
  return result;
}

}  // namespace trainyard
