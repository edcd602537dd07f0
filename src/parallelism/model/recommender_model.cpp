// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/recommender_model.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <numeric>
#include <string_view>

namespace trainyard {
namespace {

constexpr std::int64_t kMostRows = std::int64_t{1} << 40;
constexpr std::int64_t kMostSize = std::int64_t{1} << 20;
constexpr std::int64_t kMostTables = 100'000;
constexpr std::int64_t kMostLookups = 100'000;
constexpr double kMostParameters = 1e15;  // So that bytes of all of them fit 64 bits.

std::vector<MlpLayer> layers_of(std::int64_t inputs, const std::vector<std::int64_t>& outputs) {
  std::vector<MlpLayer> layers;
  for (const std::int64_t each : outputs) {
    layers.push_back({.inputs = inputs, .outputs = each});
    inputs = each;
  }
  return layers;
}

std::int64_t parameters_of(const std::vector<MlpLayer>& layers) {
  return std::accumulate(
      layers.begin(), layers.end(), std::int64_t{0},
      [](std::int64_t sum, const MlpLayer& layer) { return sum + layer.parameters(); });
}

double products_of(const std::vector<MlpLayer>& layers) {
  return std::accumulate(layers.begin(), layers.end(), 0.0, [](double sum, const MlpLayer& layer) {
    return sum + static_cast<double>(layer.inputs) * static_cast<double>(layer.outputs);
  });
}

// Outputs of the layers of an MLP, the last of which has `last`.
std::vector<std::int64_t> read_mlp(const ConfigNode& node, std::int64_t last,
                                   std::string_view why) {
  std::vector<std::int64_t> outputs;
  for (const ConfigNode& item : node.items()) {
    outputs.push_back(item.as_integer(1, kMostSize));
  }
  if (outputs.empty() || outputs.back() != last) {
    node.fail(std::to_string(last) + " as outputs of the last layer, " + std::string(why),
              outputs.empty() ? "no layer" : std::to_string(outputs.back()));
  }
  return outputs;
}

std::vector<EmbeddingTable> read_tables(const ConfigNode& node) {
  std::vector<EmbeddingTable> tables;
  for (const ConfigNode& item : node.items()) {
    EmbeddingTable table{.rows = item.required("rows").as_integer(1, kMostRows)};
    if (const auto lookups = item.optional("lookups")) {
      table.lookups = lookups->as_integer(1, kMostLookups);
    }
    const auto count = item.optional("count");
    const std::int64_t copies = count ? count->as_integer(1, kMostTables) : 1;
    if (static_cast<std::int64_t>(tables.size()) + copies > kMostTables) {
      item.fail("expected at most " + std::to_string(kMostTables) + " tables, found more");
    }
    tables.insert(tables.end(), static_cast<std::size_t>(copies), table);
  }
  if (tables.empty()) {
    node.fail("at least one table", "none");
  }
  return tables;
}

std::optional<CrossNetwork> read_interaction(const ConfigNode& node) {
  static constexpr std::array<std::string_view, 2> kKinds{"dot", "cross"};
  if (node.required("kind").as_choice(kKinds) == 0) {
    return std::nullopt;
  }
  return CrossNetwork{.layers = node.required("layers").as_integer(1, 1000),
                      .rank = node.required("rank").as_integer(1, kMostSize)};
}

}  // namespace

std::int64_t RecommenderModel::interacted() const {
  return cross ? vectors() * width : width + pairs();
}

std::vector<MlpLayer> RecommenderModel::bottom_layers() const {
  return layers_of(dense_features, bottom);
}

std::vector<MlpLayer> RecommenderModel::top_layers() const {
  return layers_of(interacted(), top);
}

std::int64_t RecommenderModel::table_parameters() const {
  return width * std::accumulate(tables.begin(), tables.end(), std::int64_t{0},
                                 [](std::int64_t sum, const EmbeddingTable& table) {
                                   return sum + table.rows;
                                 });
}

std::int64_t RecommenderModel::bottom_parameters() const {
  return parameters_of(bottom_layers());
}

std::int64_t RecommenderModel::cross_parameters() const {
  // W has no bias.
  return cross ? cross->layers * (2 * interacted() * cross->rank + interacted()) : 0;
}

std::int64_t RecommenderModel::top_parameters() const {
  return parameters_of(top_layers());
}

double training_flops(const RecommenderModel& model) {
  double products = products_of(model.bottom_layers()) + products_of(model.top_layers());
  if (model.cross) {
    products += 2.0 * static_cast<double>(model.cross->layers * model.cross->rank) *
                static_cast<double>(model.interacted());
  } else {
    products += static_cast<double>(model.pairs()) * static_cast<double>(model.width);
  }
  return 3.0 * 2.0 * products;
}

RecommenderModel read_recommender(const ConfigNode& node, const std::string& name) {
  if (const auto source = node.optional("source")) {
    source->skip();
  }
  RecommenderModel model{.name = name,
                         .title = node.required("title").as_string(),
                         .dense_features = node.required("dense_features").as_integer(1, kMostSize),
                         .width = node.required("width").as_integer(1, kMostSize),
                         .tables = read_tables(node.required("tables")),
                         .bottom = {},
                         .top = read_mlp(node.required("top"), 1, "the prediction"),
                         .cross = read_interaction(node.required("interaction"))};
  model.bottom = read_mlp(node.required("bottom"), model.width, "the width");
  const double parameters = std::accumulate(
      model.tables.begin(), model.tables.end(), 0.0, [&](double sum, const EmbeddingTable& table) {
        return sum + static_cast<double>(table.rows) * static_cast<double>(model.width);
      });
  if (parameters > kMostParameters) {
    node.required("tables").fail("at most 10^15 elements", fmt::format("{:.3g}", parameters));
  }
  return model;
}

RecommenderModel load_recommender(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  document.root().required("source").skip();
  RecommenderModel model = read_recommender(document.root(), file.stem().string());
  document.finish();
  return model;
}

}  // namespace trainyard
