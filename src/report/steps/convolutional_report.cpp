// SPDX-License-Identifier: Apache-2.0
#include "report/steps/convolutional_report.h"

#include <spdlog/fmt/fmt.h>

#include "parallelism/lowering/convolutional_graph.h"
#include "report/formats/json.h"
#include "report/results/volume_entries.h"

namespace trainyard {
namespace {

constexpr std::string_view optimizer_name(ConvolutionalOptimizer optimizer) {
  return optimizer == ConvolutionalOptimizer::Sgd ? "sgd" : "adam";
}

void add_network(const ConvolutionalReport& report, Document& document) {
  const ConvolutionalWorkload& workload = *report.workload;
  const ConvolutionalModel& model = workload.model;
  const ImageShape& image = model.image;
  document.heading.push_back(
      fmt::format("{} layers of {:.4g} parameters, {:.4g} products for an image of {} x {} x {}",
                  model.layers.size(), static_cast<double>(model.parameters()), model.products(),
                  image.channels, image.height, image.width));
  document.heading.push_back(fmt::format("{} images on each GPU, optimizer {}", workload.batch,
                                         optimizer_name(workload.optimizer)));
  document.heading.emplace_back();
  document.add_detail("plan", {{"data", report.run->gpus()},
                               {"micro_batch", workload.batch},
                               {"global_batch", workload.batch * report.run->gpus()},
                               {"optimizer", std::string(optimizer_name(workload.optimizer))},
                               {"buckets", report.run->buckets}});
  document.add_detail("network", {{"parameters", model.parameters()},
                                  {"products", model.products()},
                                  {"layers", model.layers.size()}});
  document.add_detail("overlap", {{"data", workload.overlap_data}});
  add_compression(report.run->compression, document);
}

void add_image_figures(const ConvolutionalReport& report, Document& document) {
  const ConvolutionalRun& run = *report.run;
  const ModelFlops flops{.of_gpu = report.flops_per_gpu(),
                         .mfu = report.mfu(),
                         .peak = run.peak,
                         .convention = "3 x forward, without the gradient of images"};
  add_step_time(run.step.time, report.interval, TimeUnit::Milliseconds, document);
  add_lowered_figures("images", report.images_per_second(), flops, run, document);
}

}  // namespace

double ConvolutionalReport::images_per_second() const {
  return static_cast<double>(workload->batch) * run->gpus() / run->step.time.seconds();
}

double ConvolutionalReport::flops_per_gpu() const {
  return images_per_second() * training_flops(workload->model) / run->gpus();
}

Document document_of(const ConvolutionalReport& report) {
  Document document{.estimates = report.estimates, .notes = report.notes};
  add_setup(report.setup, document);
  add_network(report, document);
  add_graph_method(report.setup, document);
  document.add(report.inputs);
  add_image_figures(report, document);
  add_lowered_parts(report.run->step, convolutional_part_name, document);
  add_volumes("Bytes of a step on links, by tier", report.volumes, document);
  return document;
}

}  // namespace trainyard
