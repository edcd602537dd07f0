// SPDX-License-Identifier: Apache-2.0
#include "report/steps/recommender_report.h"

#include <spdlog/fmt/fmt.h>

#include <cstddef>

#include "parallelism/lowering/recommender_graph.h"
#include "report/formats/json.h"
#include "report/results/volume_entries.h"

namespace trainyard {
namespace {

std::size_t dealt_tables(const TableSharding& sharding, const RecommenderModel& model) {
  return model.tables.size() - sharding.split.tables.size() - sharding.replicated.tables.size();
}

Json plan_json(const RecommenderReport& report) {
  const RecommenderWorkload& workload = *report.workload;
  const RecommenderRun& run = *report.run;
  return {{"data", run.gpus()},
          {"global_batch", workload.batch},
          {"replicated_rows", workload.rules.replicated_rows},
          {"split_rows", workload.rules.split_rows},
          {"columns", workload.rules.columns},
          {"table_optimizer", std::string(to_string(workload.table_optimizer))},
          {"dense_optimizer", std::string(to_string(workload.dense_optimizer))}};
}

Json tables_json(const RecommenderReport& report) {
  const TableSharding& sharding = report.run->sharding;
  Json json{{"dealt", dealt_tables(sharding, report.workload->model)},
            {"split", sharding.split.tables.size()},
            {"replicated", sharding.replicated.tables.size()},
            {"balance", sharding.balance()}};
  for (const TableShare& share : sharding.dealt) {
    json["of_rank"].push_back(share.tables);
  }
  return json;
}

void add_heading(const RecommenderReport& report, Document& document) {
  const RecommenderWorkload& workload = *report.workload;
  const RecommenderModel& model = workload.model;
  const RecommenderRun& run = *report.run;
  document.heading.push_back(fmt::format(
      "{} tables of {:.4g} parameters: {} sharded, {} split, {} replicated; MLPs of {:.4g}",
      model.tables.size(), static_cast<double>(model.table_parameters()),
      dealt_tables(run.sharding, model), run.sharding.split.tables.size(),
      run.sharding.replicated.tables.size(), static_cast<double>(model.dense_parameters())));
  document.heading.push_back(
      fmt::format("{} samples, {} of each rank; optimizers {} of tables, {} of MLPs",
                  workload.batch, workload.batch / run.gpus(), to_string(workload.table_optimizer),
                  to_string(workload.dense_optimizer)));
  document.heading.emplace_back();
}

void add_recommender_figures(const RecommenderReport& report, Document& document) {
  const RecommenderRun& run = *report.run;
  const ModelFlops flops{.of_gpu = report.flops_per_gpu(),
                         .mfu = report.mfu(),
                         .peak = run.peak,
                         .convention = "3 x forward, without look-ups"};
  add_step_time(run.step.time, report.interval, TimeUnit::Milliseconds, document);
  add_lowered_figures("samples", report.samples_per_second(), flops, run, document);
}

}  // namespace

double RecommenderReport::samples_per_second() const {
  return static_cast<double>(workload->batch) / run->step.time.seconds();
}

double RecommenderReport::flops_per_gpu() const {
  return samples_per_second() * training_flops(workload->model) / run->gpus();
}

Document document_of(const RecommenderReport& report) {
  Document document{.estimates = report.estimates, .notes = report.notes};
  add_setup(report.setup, document);
  add_heading(report, document);
  document.add_detail("plan", plan_json(report));
  document.add_detail("tables", tables_json(report));
  add_graph_method(report.setup, document);
  document.add_detail("overlap", {{"input", report.run->overlaps_input},
                                  {"tables", report.run->overlaps_tables},
                                  {"data", report.run->overlaps_data}});
  document.add(report.inputs);
  add_recommender_figures(report, document);
  add_lowered_parts(report.run->step, recommender_part_name, document);
  add_volumes("Bytes of a step on links, by tier", report.volumes, document);
  return document;
}

}  // namespace trainyard
