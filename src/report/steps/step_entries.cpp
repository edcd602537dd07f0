// SPDX-License-Identifier: Apache-2.0
#include "report/steps/step_entries.h"

#include <spdlog/fmt/fmt.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "report/formats/json.h"
#include "sim/check.h"

namespace trainyard {

void add_setup(const StepSetup& setup, Document& document) {
  // The model that was run, which need not be that of the workload's name.
  document.title =
      fmt::format("{} on {}", setup.model.empty() ? setup.workload : setup.model, setup.cluster);
  document.subtitle =
      fmt::format("A step of {}, predicted by Trainyard: {} GPUs", setup.workload, setup.gpus);
  const std::pair<const char*, const std::string&> said[] = {{"runtime ", setup.runtime},
                                                             {"fidelity ", setup.fidelity},
                                                             {"software ", setup.software},
                                                             {"", setup.precision}};
  for (const auto& [what, value] : said) {
    document.subtitle += value.empty() ? "" : fmt::format(", {}{}", what, value);
  }
  document.heading.push_back(fmt::format(
      "Simulated by Trainyard: cluster {}, {} GPUs, runtime {}{}", setup.cluster, setup.gpus,
      setup.runtime, setup.fidelity.empty() ? "" : ", fidelity " + setup.fidelity));
  if (!setup.model.empty()) {
    document.heading.push_back(fmt::format("{}: {}, software {}, {}", setup.workload, setup.model,
                                           setup.software, setup.precision));
  }
  document.add("cluster", setup.cluster);
  document.add("workload", setup.workload);
  document.add("gpus", std::int64_t{setup.gpus});
  const std::pair<const char*, const std::string&> others[] = {
      {"kind", setup.kind},           {"model", setup.model},     {"software", setup.software},
      {"precision", setup.precision}, {"runtime", setup.runtime}, {"fidelity", setup.fidelity}};
  for (const auto& [key, value] : others) {
    if (!value.empty()) {
      document.add(key, value, Shown::Json);
    }
  }
}

void add_noise(const StepSetup& setup, Document& document) {
  constexpr double kPartsPerMillion = 1e6;
  const std::optional<SlowRank>& slow_rank = setup.slow_rank;
  const ComputeJitter& jitter = setup.jitter;
  if (slow_rank) {
    document.add_detail("slow_rank",
                        {{"rank", slow_rank->rank},
                         {"factor", static_cast<double>(slow_rank->ppm) / kPartsPerMillion}});
  }
  if (jitter.has_any()) {
    document.add_detail(
        "jitter", {{"ranks", static_cast<double>(jitter.rank_ppm) / kPartsPerMillion},
                   {"operations", static_cast<double>(jitter.operation_ppm) / kPartsPerMillion},
                   {"seed", jitter.seed}});
  }
}

void add_rate(const std::string& what, double rate, int gpus, Document& document) {
  const double each = rate / gpus;
  document.add(Figure{.key = what + "_per_s",
                      .cell = Cell::number(rate, 1),
                      .label = what,
                      .unit = "/s",
                      .remark = fmt::format(", {:.1f} /s for each GPU", each),
                      .shown = Shown::NotPage});
  document.add(what + "_per_s_per_gpu", each);
}

void add_flops(const ModelFlops& flops, Document& document) {
  document.add(
      Figure{.key = "model_tflops_per_gpu",
             .cell = Cell::number(flops.of_gpu / 1e12, 1),
             .label = "model FLOP/s",
             .unit = "T",
             .remark = fmt::format(" for each GPU, MFU {:.2f} % of {:.1f} T (convention: {})",
                                   100.0 * flops.mfu, flops.peak / 1e12, flops.convention),
             .shown = Shown::NotPage});
  document.add("mfu", flops.mfu);
}

void add_convention(const ModelFlops& flops, Document& document) {
  document.add("mfu_convention", std::string(flops.convention));
  document.add("mfu_peak_tflops", flops.peak / 1e12, Shown::Json);
}

void add_memory(const MemoryUse& memory, Bytes size, bool fits, const std::string& remark,
                Document& document) {
  document.add(Figure{.key = "memory_peak_gib",
                      .cell = Cell::number(gibibytes(memory.device()), 2),
                      .label = "memory peak",
                      .unit = "GiB",
                      .remark = fmt::format(" of {:.2f}{}", gibibytes(size), remark),
                      .shown = Shown::NotPage});
  document.add("memory_size_gib", gibibytes(size));
  document.add("memory_fits", fits);
}

void add_memory_classes(const MemoryUse& memory, Document& document) {
  Json classes;
  for (const MemoryClass each : kMemoryClasses) {
    classes[std::string(to_string(each))] = gibibytes(memory[each]);
  }
  document.add_detail("memory_peak_by_class_gib", std::move(classes));
}

std::vector<NamedTime> named_parts(const StepParts& parts,
                                   const std::function<std::string_view(StepPart)>& name_of) {
  std::vector<NamedTime> named;
  for (std::size_t index = 0; index < kStepParts; ++index) {
    const std::string_view name = name_of(static_cast<StepPart>(index));
    const SimTime time = parts.times[index];
    CHECK(!name.empty() || time == SimTime(), "a part that takes time has a name");
    if (!name.empty()) {
      named.push_back({.name = std::string(name), .time = time});
    }
  }
  return named;
}

void add_step_time(SimTime time, const std::optional<TimeInterval>& interval, TimeUnit unit,
                   Document& document) {
  const bool is_milli = unit == TimeUnit::Milliseconds;
  const auto cell = [&](std::optional<SimTime> value) -> Cell {
    return value && is_milli ? Cell{fmt::format("{:.4f}", 1e3 * value->seconds()), value->seconds()}
           : value           ? Cell::number(value->seconds(), 4)
                             : Cell::none();
  };
  const Cell low = cell(interval ? std::optional(interval->low) : std::nullopt);
  const Cell high = cell(interval ? std::optional(interval->high) : std::nullopt);
  document.add(Figure{
      .key = "step_time_s",
      .cell = cell(time),
      .label = "step time",
      .unit = is_milli ? "ms" : "s",
      .remark = interval ? fmt::format(", {} to {} in nine of ten", low.text, high.text) : "",
      .shown = Shown::NotPage});
  document.add(Figure{.key = "step_time_low_s", .cell = low, .shown = Shown::Programs});
  document.add(Figure{.key = "step_time_high_s", .cell = high, .shown = Shown::Programs});
}

void add_graph_method(const StepSetup& setup, Document& document) {
  document.add("method", "graph", Shown::Json);
  document.add("traffic", setup.traffic(), Shown::Json);
  add_noise(setup, document);
}

void add_lowered_figures(const std::string& what, double rate, const ModelFlops& flops,
                         const LoweredRun& run, Document& document) {
  add_rate(what, rate, run.gpus(), document);
  add_flops(flops, document);
  add_memory(run.memory, run.memory_size, run.fits(), run.fits() ? "" : ": DOES NOT FIT", document);
  add_convention(flops, document);
  add_memory_classes(run.memory, document);
}

void add_lowered_parts(const StepTime& step,
                       const std::function<std::string_view(StepPart)>& name_of,
                       Document& document) {
  document.add(Parts{.key = "step_time",
                     .whole = step.time,
                     .times = named_parts(step.parts, name_of),
                     .unit = TimeUnit::Milliseconds,
                     .rank = step.critical_rank});
}

void add_compression(const std::optional<CompressionFigures>& figures, Document& document) {
  if (!figures) {
    return;
  }
  document.add_detail("gradient_compression",
                      {{"method", std::string(to_string(figures->compression.method))},
                       {"gradients_sent_gib", gibibytes(figures->sent)},
                       {"uncompressed_gib", gibibytes(figures->uncompressed)},
                       {"kernels_s", figures->kernels.seconds()},
                       {"buffers_gib", gibibytes(figures->buffers)}});
}

}  // namespace trainyard
