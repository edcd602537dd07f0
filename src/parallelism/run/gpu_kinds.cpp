// SPDX-License-Identifier: Apache-2.0
#include "parallelism/run/gpu_kinds.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>

#include "parallelism/walk/unit_work.h"
#include "sim/config_error.h"
#include "sim/ids.h"

namespace trainyard {
namespace {

// "pipeline ranks 0 to 3 for H100-SXM, 4 for A100-SXM-80GB".
std::string waits_of(const GpuKinds& kinds, const std::vector<int>& slowest) {
  std::vector<std::string> all;
  for (std::size_t first = 0; first < slowest.size();) {
    std::size_t next = first + 1;
    while (next < slowest.size() && slowest[next] == slowest[first]) {
      ++next;
    }
    all.push_back(fmt::format("{}{} for {}", first,
                              next - first > 1 ? fmt::format(" to {}", next - 1) : "",
                              kinds.models[as_index(slowest[first])]->name));
    first = next;
  }
  return fmt::format("pipeline rank{} {}", slowest.size() > 1 ? "s" : "", fmt::join(all, ", "));
}

}  // namespace

std::vector<ComputeRates> GpuKinds::rates(const GpuRates& all, const SoftwareProfile& software,
                                          Precision precision) const {
  std::vector<ComputeRates> made;
  double tensor = 0.0;
  double data = 0.0;
  for (const GpuModel* const model : models) {
    made.push_back(compute_rates(*model, all, software, precision));
    tensor = std::max(tensor, made.back().overlapped_tensor);
    data = std::max(data, made.back().overlapped_data);
  }
  for (ComputeRates& one : made) {
    one.overlapped_tensor = tensor;
    one.overlapped_data = data;
  }
  return made;
}

double GpuKinds::mean_peak(std::span<const ComputeRates> rates) const {
  if (of_rank.empty()) {
    return rates.front().peak;
  }
  double sum = 0.0;
  for (const int kind : of_rank) {
    sum += rates[as_index(kind)].peak;
  }
  return sum / static_cast<double>(of_rank.size());
}

const GpuModel& GpuKinds::smallest() const {
  return **std::ranges::min_element(models, {},
                                    [](const GpuModel* model) { return model->memory.value; });
}

std::vector<const GpuModel*> GpuKinds::smallest_by_place(const ParallelPlan& plan) const {
  std::vector<const GpuModel*> smallest_of;
  for (const std::vector<int>& kinds : kinds_by_place(plan, of_rank)) {
    GpuKinds of_place;
    for (const int kind : kinds) {
      of_place.models.push_back(models[as_index(kind)]);
    }
    smallest_of.push_back(&of_place.smallest());
  }
  return smallest_of;
}

GpuKinds gpu_kinds(const Cluster& cluster) {
  const Topology& topology = cluster.topology;
  GpuKinds kinds;
  for (const NodeId gpu : cluster.gpus) {
    const std::string& name = topology.parts()[topology.node(gpu).part];
    const auto known = std::ranges::find_if(
        kinds.models, [&](const GpuModel* model) { return model->name == name; });
    kinds.of_rank.push_back(static_cast<int>(known - kinds.models.begin()));
    if (known == kinds.models.end()) {
      kinds.models.push_back(&cluster.catalogue.gpus().at(name));
    }
  }
  if (kinds.models.size() == 1) {
    kinds.of_rank.clear();
  }
  return kinds;
}

const GpuModel& gpu_of(const Cluster& cluster, const std::string& what) {
  const GpuKinds kinds = gpu_kinds(cluster);
  if (kinds.models.size() > 1) {
    throw ConfigError(fmt::format("{}: expected GPUs of one kind, found {} and {}", what,
                                  kinds.models[0]->name, kinds.models[1]->name));
  }
  return *kinds.models.front();
}

std::optional<std::string> kinds_note(const GpuKinds& kinds, const StepJob& job) {
  if (kinds.of_rank.empty()) {
    return std::nullopt;
  }
  std::vector<std::string> counts;
  for (std::size_t kind = 0; kind < kinds.models.size(); ++kind) {
    counts.push_back(fmt::format("{} {}", std::ranges::count(kinds.of_rank, static_cast<int>(kind)),
                                 kinds.models[kind]->name));
  }
  return fmt::format(
      "GPUs of {} kinds, {}: passes take as long as on the slowest GPU of a stage ({}), and the "
      "peak is the mean of all (docs/models/step.md)",
      kinds.models.size(), fmt::join(counts, ", "), waits_of(kinds, slowest_kinds(job)));
}

}  // namespace trainyard
