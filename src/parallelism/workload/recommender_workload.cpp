// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/recommender_workload.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <tuple>

#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMaxSamples = std::int64_t{1} << 32;
constexpr std::int64_t kMaxRows = std::int64_t{1} << 40;
constexpr std::int64_t kMaxColumns = std::int64_t{1} << 20;

constexpr std::array<std::string_view, 4> kOptimizers{"sgd", "adagrad", "rowwise-adagrad", "adam"};

void rule_fields(Fields& fields, TableRules& rules) {
  fields.optional("replicated_rows", rules.replicated_rows, Whole{0, kMaxRows},
                  "Tables with at most so many rows are on every rank.");
  fields.optional("split_rows", rules.split_rows, Whole{0, kMaxRows},
                  "Tables with at least so many rows are cut by rows.");
  fields.optional("columns", rules.columns, Whole{1, kMaxColumns}, "Pieces of other tables.");
}

void check_rules(const ConfigNode& plan, const RecommenderWorkload& workload) {
  const TableRules& rules = workload.rules;
  if (rules.split_rows > 0 && rules.split_rows <= rules.replicated_rows) {
    const ConfigNode rows = plan.required("split_rows");
    rows.fail(fmt::format("more rows than replicated_rows, {}, or 0", rules.replicated_rows),
              rows.found());
  }
  if (const auto columns = plan.optional("columns")) {
    if (workload.model.width % columns->as_integer(1, workload.model.width) != 0) {
      columns->fail(fmt::format("a divisor of the width, {}", workload.model.width),
                    columns->found());
    }
  }
}

void optimizer_fields(Fields& fields, RecommenderWorkload& workload) {
  fields.optional("tables", workload.table_optimizer, Choice{kOptimizers}, "That of tables.");
  fields.optional("dense", workload.dense_optimizer, Choice{kOptimizers}, "That of MLPs.");
  fields.check([&](const ConfigNode& node) {
    if (workload.dense_optimizer == RecommenderOptimizer::RowwiseAdagrad) {
      const ConfigNode dense = node.required("dense");
      dense.fail("sgd, adagrad or adam, as MLPs have no rows to look up", dense.found());
    }
  });
}

void overlap_fields(Fields& fields, RecommenderWorkload& workload) {
  fields.optional("input", workload.overlap_input, Flag{}, "Indices of the next batch.");
  fields.optional("tables", workload.overlap_tables, Flag{}, "Traffic of tables.");
  fields.optional("data", workload.overlap_data, Flag{}, "Sums of gradients.");
}

void batch_fields(Fields& fields, RecommenderWorkload& workload) {
  fields.required("global", workload.batch, Whole{1, kMaxSamples}, "Samples of a step.");
}

}  // namespace

std::string_view to_string(RecommenderOptimizer optimizer) {
  return kOptimizers.at(static_cast<std::size_t>(optimizer));
}

void recommender_software_fields(Fields& fields, RecommenderSoftware& software) {
  constexpr Cited kFlag{Flag{}};
  constexpr Cited kBytes{Whole{1, 8}};
  fields.cite_sources();
  fields.required("title", software.title, Text{}, "Name for people.");
  fields.required("fusion", software.fusion, Cited{Text{}}, "Fusion of memory-bound operators.");
  fields.required("fuses_interaction", software.fuses_interaction, kFlag,
                  "One kernel reads vectors and writes products.");
  fields.required("pads_inputs", software.pads_inputs, kFlag, "Inputs are multiples of 16.");
  fields.required("index_bytes", software.index_bytes, kBytes, "Bytes of an index.");
  fields.required("gradient_bytes", software.gradient_bytes, kBytes,
                  "Bytes of an element in the sum of dense gradients.");
  fields.required("overlap_input", software.overlap_input, kFlag, "Indices of the next batch.");
  fields.required("overlap_tables", software.overlap_tables, kFlag, "Traffic of tables.");
  fields.required("overlap_data", software.overlap_data, kFlag, "Sums of gradients.");
  fields.required("fixed", software.fixed, Cited{Duration{}}, "Time of a step of any size.");
}

RecommenderSoftware RecommenderSoftware::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  RecommenderSoftware software{.name = file.stem().string()};
  read_fields(document.root(), software, recommender_software_fields);
  document.finish();
  return software;
}

void recommender_workload_fields(Fields& fields, RecommenderWorkload& workload) {
  fields.required("source", std::ignore, Unread{}, "Where the run is from.");
  std::size_t kind = 0;
  fields.required("kind", kind, Choice{kWorkloadKinds}, "`recommender`.");
  fields.required("title", workload.title, Text{}, "Name for people.");
  fields.required("model", workload.model, Composed{recommender_fields}, "Model.");
  fields.required("software", workload.software, Text{}, "Name of a profile of software.");
  plain_precision_field(fields, workload.precision, "Precision of MLPs.");
  fields.required("batch", workload, Group{batch_fields}, "Samples.");
  fields.optional("plan", workload.rules, Group{rule_fields}, "How tables are sharded.");
  fields.check([&](const ConfigNode& node) {
    if (const auto plan = node.optional("plan")) {
      check_rules(*plan, workload);
    }
  });
  fields.required("optimizer", workload, Group{optimizer_fields}, "Optimizers.");
  fields.optional("overlap", workload, Group{overlap_fields},
                  "What is overlapped: as software says.");
}

RecommenderWorkload load_recommender_workload(const std::filesystem::path& file,
                                              const std::filesystem::path& models,
                                              const std::vector<std::string>& settings) {
  ConfigDocument document = ConfigDocument::load(file);
  const std::string model_name = compose_workload(document, models, settings);
  RecommenderWorkload workload;
  workload.name = file.stem().string();
  read_fields(document.root(), workload, recommender_workload_fields);
  workload.model.name = model_name;
  document.finish();
  return workload;
}

}  // namespace trainyard
