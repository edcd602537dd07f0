// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/recommender_model.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <numeric>
#include <string_view>
#include <tuple>

namespace trainyard {
namespace {

constexpr std::int64_t kMaxRows = std::int64_t{1} << 40;
constexpr std::int64_t kMaxTableSize = std::int64_t{1} << 20;
constexpr std::int64_t kMaxTables = 100'000;
constexpr std::int64_t kMaxLookups = 100'000;
constexpr double kMaxParameters = 1e15;  // So that bytes of all of them fit 64 bits.

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

// The last layer of an MLP has `last` outputs.
void check_mlp(const ConfigNode& node, const std::vector<std::int64_t>& outputs, std::int64_t last,
               std::string_view why) {
  if (outputs.empty() || outputs.back() != last) {
    node.fail(std::to_string(last) + " as outputs of the last layer, " + std::string(why),
              outputs.empty() ? "no layer" : std::to_string(outputs.back()));
  }
}

constexpr Whole kElements{1, kMaxTableSize};

// Equal tables.
struct TableRun {
  EmbeddingTable table;
  std::int64_t count = 1;
};

void table_fields(Fields& fields, TableRun& run) {
  fields.required("rows", run.table.rows, Whole{1, kMaxRows}, "Rows of a table.");
  fields.optional("lookups", run.table.lookups, Whole{1, kMaxLookups}, "Of a sample: 1.");
  fields.optional("count", run.count, Whole{1, kMaxTables}, "So many equal tables: 1.");
}

void set_tables(const ConfigNode& node, const std::vector<TableRun>& runs,
                RecommenderModel& model) {
  for (const TableRun& run : runs) {
    if (static_cast<std::int64_t>(model.tables.size()) + run.count > kMaxTables) {
      node.items()[static_cast<std::size_t>(&run - runs.data())].fail(
          "expected at most " + std::to_string(kMaxTables) + " tables, found more");
    }
    model.tables.insert(model.tables.end(), static_cast<std::size_t>(run.count), run.table);
  }
  if (model.tables.empty()) {
    node.fail("at least one table", "none");
  }
  const double parameters = std::accumulate(
      model.tables.begin(), model.tables.end(), 0.0, [&](double sum, const EmbeddingTable& table) {
        return sum + static_cast<double>(table.rows) * static_cast<double>(model.width);
      });
  if (parameters > kMaxParameters) {
    node.fail("at most 10^15 elements", fmt::format("{:.3g}", parameters));
  }
}

void interaction_fields(Fields& fields, RecommenderModel& model) {
  static constexpr std::array<std::string_view, 2> kKinds{"dot", "cross"};
  bool is_cross = false;
  fields.required("kind", is_cross, Choice{kKinds}, "Dot products of pairs, or a cross network.");
  fields.where(is_cross, [&] {
    CrossNetwork& network = model.cross.emplace();
    fields.required("layers", network.layers, Whole{1, 1000}, "Layers, if `cross`.");
    fields.required("rank", network.rank, kElements, "Rank of their products, if `cross`.");
  });
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

void recommender_fields(Fields& fields, RecommenderModel& model) {
  std::vector<TableRun> runs;
  fields.optional("source", std::ignore, Unread{}, "Where the shapes are from; files need it.");
  fields.required("title", model.title, Text{}, "Name for people.");
  fields.required("dense_features", model.dense_features, kElements, "Numbers of a sample.");
  fields.required("width", model.width, kElements, "Elements of a vector of a table.");
  fields.required("tables", runs, List{Group{table_fields}}, "Embedding tables.");
  fields.required("top", model.top, List{kElements}, "Outputs of layers; the last has 1.");
  fields.required("interaction", model, Group{interaction_fields}, "How vectors interact.");
  fields.required("bottom", model.bottom, List{kElements}, "The same; the last has `width`.");
  fields.check([&](const ConfigNode& node) {
    check_mlp(node.required("top"), model.top, 1, "the prediction");
    check_mlp(node.required("bottom"), model.bottom, model.width, "the width");
    set_tables(node.required("tables"), runs, model);
  });
}

}  // namespace trainyard
