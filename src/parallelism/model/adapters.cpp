// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/adapters.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/units.h"

namespace trainyard {
namespace {

constexpr std::array<std::string_view, 2> kBases{"unquantised", "nf4"};

bool is_target(const Adapters& adapters, AdapterTarget target) {
  const auto& targets = adapters.targets;
  return targets.empty() || std::find(targets.begin(), targets.end(), target) != targets.end();
}

bool has_gate(const Model& model) {
  return std::any_of(model.layers.begin(), model.layers.end(), [](const ModelLayer& layer) {
    return layer.feed_forward && layer.feed_forward->is_gated;
  });
}

bool has_latent_attention(const Model& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const ModelLayer& layer) { return layer.attention.latent.has_value(); });
}

void check_adapters(const ConfigNode& node, const Adapters& adapters, const Model& model) {
  if (has_experts(model) || has_latent_attention(model)) {
    node.fail("no adapters for models with experts or latent attention", model.title);
  }
  if (adapters.targets.empty()) {
    return;
  }
  const std::vector<ConfigNode> items = node.required("targets").items();
  for (std::size_t index = 0; index < items.size(); ++index) {
    const AdapterTarget target = adapters.targets[index];
    const auto earlier = adapters.targets.begin() + static_cast<std::ptrdiff_t>(index);
    if (std::find(adapters.targets.begin(), earlier, target) != earlier) {
      items[index].fail("each target once", items[index].found());
    }
    if (target == AdapterTarget::Gate && !has_gate(model)) {
      items[index].fail("a matrix that layers without a gate have", items[index].found());
    }
  }
}

}  // namespace

std::vector<AdaptedMatrix> adapted_matrices(const Model& model, const ModelLayer& layer,
                                            std::int64_t tensor) {
  std::vector<AdaptedMatrix> matrices;
  if (!model.adapters) {
    return matrices;
  }
  const auto add = [&](AdapterTarget target, const AdaptedMatrix& matrix) {
    if (is_target(*model.adapters, target)) {
      matrices.push_back(matrix);
    }
  };
  const auto& [heads, kv_heads, head_size] = *layer.attention.grouped;
  const std::int64_t queries = heads / tensor * head_size;
  const std::int64_t groups = ceil_divide(kv_heads, tensor) * head_size;
  const std::int64_t inner = layer.feed_forward->size / tensor;
  add(AdapterTarget::Query, {.inputs = model.hidden, .outputs = queries});
  add(AdapterTarget::Key, {.inputs = model.hidden, .outputs = groups});
  add(AdapterTarget::Value, {.inputs = model.hidden, .outputs = groups});
  add(AdapterTarget::Output, {.inputs = queries, .outputs = model.hidden, .splits_inputs = true});
  if (layer.feed_forward->is_gated) {
    add(AdapterTarget::Gate, {.inputs = model.hidden, .outputs = inner});
  }
  add(AdapterTarget::Up, {.inputs = model.hidden, .outputs = inner});
  add(AdapterTarget::Down, {.inputs = inner, .outputs = model.hidden, .splits_inputs = true});
  return matrices;
}

bool trains_any(const Model& model, std::initializer_list<AdapterTarget> targets) {
  return !model.adapters || std::any_of(targets.begin(), targets.end(), [&](AdapterTarget target) {
    return is_target(*model.adapters, target);
  });
}

bool has_quantised_base(const Model& model) {
  return model.adapters && model.adapters->is_quantised;
}

std::int64_t nf4_bytes(std::int64_t weights) {
  constexpr std::int64_t kBlock = 64;
  constexpr std::int64_t kScales = 256;
  constexpr std::int64_t kScaleBytes = 4;
  return ceil_divide(weights, 2) + ceil_divide(weights, kBlock) +
         kScaleBytes * ceil_divide(weights, kBlock * kScales);
}

std::string describe_adapters(const Model& model) {
  constexpr double kMillion = 1e6;
  const Adapters& adapters = *model.adapters;
  std::int64_t trained = 0;
  for (const ModelLayer& layer : model.layers) {
    for (const AdaptedMatrix& matrix : adapted_matrices(model, layer, 1)) {
      trained += matrix.parameters(adapters.rank);
    }
  }
  std::string targets = adapters.targets.empty() ? "all linear layers" : "";
  for (const AdapterTarget target : adapters.targets) {
    targets += (targets.empty() ? "" : ", ");
    targets += kAdapterTargets.at(static_cast<std::size_t>(target));
  }
  return fmt::format(
      "adapters of rank {} beside {}: {:.1f} million parameters are trained, {:.0f} million are "
      "frozen{}; model FLOPs have no gradients of frozen weights (docs/models/step.md)",
      adapters.rank, targets, static_cast<double>(trained) / kMillion,
      static_cast<double>(parameters_of(model).total()) / kMillion,
      adapters.is_quantised ? ", those of linear layers in NF4" : "");
}

void adapter_fields(Fields& fields, Adapters& adapters, const Model& model) {
  constexpr std::int64_t kMaxRank = 65'536;
  fields.required("rank", adapters.rank, Whole{1, kMaxRank}, "Size of the vector between the two.");
  const auto target = [](const ConfigNode& node) {
    return static_cast<AdapterTarget>(node.as_choice(kAdapterTargets));
  };
  fields.optional("targets", adapters.targets, List{Via{Choice{kAdapterTargets}, target}},
                  "Matrices with an adapter: all linear layers.");
  fields.optional("base", adapters.is_quantised, Choice{kBases},
                  "Frozen weights: `unquantised`, as layers use them.");
  fields.check([&](const ConfigNode& node) { check_adapters(node, adapters, model); });
}

}  // namespace trainyard
