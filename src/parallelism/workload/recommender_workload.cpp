// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/recommender_workload.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <span>

#include "hw/parts/sourced_reader.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMostSamples = std::int64_t{1} << 32;
constexpr std::int64_t kMostRows = std::int64_t{1} << 40;

constexpr std::array<std::string_view, 4> kOptimizers{"sgd", "adagrad", "rowwise-adagrad", "adam"};

TableRules read_rules(const ConfigNode& plan, const RecommenderModel& model) {
  TableRules rules;
  if (const auto rows = plan.optional("replicated_rows")) {
    rules.replicated_rows = rows->as_integer(0, kMostRows);
  }
  if (const auto rows = plan.optional("split_rows")) {
    rules.split_rows = rows->as_integer(0, kMostRows);
    if (rules.split_rows > 0 && rules.split_rows <= rules.replicated_rows) {
      rows->fail(fmt::format("more rows than replicated_rows, {}, or 0", rules.replicated_rows),
                 rows->found());
    }
  }
  if (const auto columns = plan.optional("columns")) {
    rules.columns = columns->as_integer(1, model.width);
    if (model.width % rules.columns != 0) {
      columns->fail(fmt::format("a divisor of the width, {}", model.width), columns->found());
    }
  }
  return rules;
}

Precision read_precision(const ConfigNode& root) {
  std::vector<std::string_view> names;
  for (const Precision precision : kRecommenderPrecisions) {
    names.push_back(to_string(precision));
  }
  return kRecommenderPrecisions.at(root.choice_or_first("precision", names));
}

RecommenderOptimizer read_dense_optimizer(const ConfigNode& node) {
  const auto optimizer =
      static_cast<RecommenderOptimizer>(node.choice_or_first("dense", kOptimizers));
  if (optimizer == RecommenderOptimizer::RowwiseAdagrad) {
    const ConfigNode dense = node.required("dense");
    dense.fail("sgd, adagrad or adam, as MLPs have no rows to look up", dense.found());
  }
  return optimizer;
}

}  // namespace

std::string_view to_string(RecommenderOptimizer optimizer) {
  return kOptimizers.at(static_cast<std::size_t>(optimizer));
}

RecommenderSoftware RecommenderSoftware::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  const ConfigNode root = document.root();
  const SourcedReader reader(root);
  const auto flag_of = [&](std::string_view key) { return reader.value(root, key).as_bool(); };
  const auto bytes_of = [&](std::string_view key) {
    return static_cast<int>(reader.value(root, key).as_integer(1, 8));
  };
  RecommenderSoftware software{.name = file.stem().string(),
                               .title = root.required("title").as_string(),
                               .fusion = reader.value(root, "fusion").as_string(),
                               .fuses_interaction = flag_of("fuses_interaction"),
                               .pads_inputs = flag_of("pads_inputs"),
                               .index_bytes = bytes_of("index_bytes"),
                               .gradient_bytes = bytes_of("gradient_bytes"),
                               .overlap_input = flag_of("overlap_input"),
                               .overlap_tables = flag_of("overlap_tables"),
                               .overlap_data = flag_of("overlap_data"),
                               .fixed = reader.value(root, "fixed").as_time()};
  document.finish();
  return software;
}

bool is_recommender_workload(const std::filesystem::path& file) {
  if (file.extension() != ".yaml" && file.extension() != ".yml") {
    return false;
  }
  ConfigDocument document = ConfigDocument::load(file);
  const ConfigNode root = document.root();
  return root.is_map() && root.choice_or_first("kind", kWorkloadKinds) == 1;
}

RecommenderWorkload load_recommender_workload(const std::filesystem::path& file,
                                              const std::filesystem::path& models,
                                              const std::vector<std::string>& settings) {
  ConfigDocument document = ConfigDocument::load(file);
  const std::string model_name = compose_workload(document, models, settings);
  const ConfigNode root = document.root();
  root.required("source").skip();
  (void)root.required("kind").as_choice(kWorkloadKinds);
  RecommenderWorkload workload{
      .name = file.stem().string(),
      .title = root.required("title").as_string(),
      .model = read_recommender(root.required("model"), model_name),
      .software = root.required("software").as_string(),
      .precision = read_precision(root),
      .batch = root.required("batch").required("global").as_integer(1, kMostSamples),
      .rules = {}};
  if (const auto plan = root.optional("plan")) {
    workload.rules = read_rules(*plan, workload.model);
  }
  const ConfigNode optimizer = root.required("optimizer");
  workload.table_optimizer =
      static_cast<RecommenderOptimizer>(optimizer.choice_or_first("tables", kOptimizers));
  workload.dense_optimizer = read_dense_optimizer(optimizer);
  if (const auto overlap = root.optional("overlap")) {
    workload.overlap_input = overlap->optional_bool("input");
    workload.overlap_tables = overlap->optional_bool("tables");
    workload.overlap_data = overlap->optional_bool("data");
  }
  document.finish();
  return workload;
}

}  // namespace trainyard
