// SPDX-License-Identifier: Apache-2.0
#include "parallelism/walk/unit_work.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "parallelism/model/rank_groups.h"
#include "parallelism/operators/softmax_kernel.h"
#include "parallelism/operators/time_arithmetic.h"
#include "sim/ids.h"

namespace trainyard {
namespace {

const ModelLayer& layer_at(const StepJob& job, const ModelUnit& unit) {
  return job.model.layers[static_cast<std::size_t>(unit.layer)];
}

double load_of(const StepJob& job, const ModelUnit& unit) {
  const ModelLayer& layer = layer_at(job, unit);
  return layer.experts ? fullest_rank(job.loads, unit.layer, *layer.experts, job.plan.expert) : 1.0;
}

// Five kernels instead of one, over the 40 of a layer (host_launches.cpp); three where nothing is
// cast.
constexpr double kEagerSoftmaxLaunches = 4.0 / 40.0;
constexpr double kWideSoftmaxLaunches = 2.0 / 40.0;

void add_layer_work(const StepJob& job, const OperatorTimes& operators, const ModelUnit& unit,
                    UnitWork& work) {
  const ModelLayer& layer = layer_at(job, unit);
  work.compute = layer_times(job.model, layer, job.plan, operators, load_of(job, unit));
  if (job.plan.recompute == Recompute::Full) {
    work.again = recomputed_fully(work.compute, job.software.full_recompute);
  } else if (job.plan.recompute == Recompute::Selective) {
    work.again[StepPart::Recompute] =
        recomputed_selectively(work.compute, job.software.recomputes_products);
  }
  ComputeRates rates = job.rates;
  if (job.model.adapters) {
    rates.host_layer = scaled(rates.host_layer, 1.0 + adapter_launches(job.model, layer));
  }
  const std::int64_t heads = layer.attention.heads() / job.plan.tensor;
  const int element_bytes = job.rates.element_bytes;
  if (!job.rates.has_fused_attention &&
      !has_softmax_kernel(job.plan.micro_batch * heads, element_bytes)) {
    rates.host_layer = scaled(rates.host_layer, 1.0 + (element_bytes == 2 ? kEagerSoftmaxLaunches
                                                                          : kWideSoftmaxLaunches));
  }
  work.forward_host = forward_launches(rates, job.software, layer, work.calls);
  work.backward_host =
      backward_launches(rates, job.software, layer, work.calls, job.plan.recompute);
}

std::vector<UnitCall> exchange(const StepJob& job, const Experts& experts,
                               const ExpertDomains& places, int element_bytes, double load) {
  const ParallelPlan& plan = job.plan;
  const std::int64_t tokens = plan.tokens() / plan.tensor;
  const double elements =
      load * static_cast<double>(tokens) * static_cast<double>(job.model.hidden);
  std::vector<UnitCall> calls;
  const auto add = [&](double copies, ExpertPath path) {
    calls.push_back({.call = {.group = RankGroupKind::Expert,
                              .operation = Operation::AllToAll,
                              .elements = std::llround(elements * copies),
                              .element_bytes = element_bytes},
                     .path = path,
                     .part = StepPart::Expert});
  };
  if (!job.software.dispatches_by_domain) {
    add(static_cast<double>(experts.active), ExpertPath::Group);
    return calls;
  }
  if (places.domain.size() > 1) {
    add(expected_places(experts, plan.expert), ExpertPath::Domain);
  }
  if (places.rail.size() > 1) {
    const auto count = static_cast<std::int64_t>(places.rail.size());
    add(expected_places(experts, count), ExpertPath::Rail);
  }
  return calls;
}

// Returns how long each place in the pipeline computes for a micro-batch.
std::vector<SimTime> computing_times(const StepJob& job) {
  const PipelineShape shape = job.plan.pipeline_shape();
  const std::vector<PipelineStage> stages = pipeline_stages(job.plan, job.model);
  const OperatorTimes operators(job.rates);
  std::vector<SimTime> times(as_index(shape.ranks));
  for (int place = 0; place < shape.ranks; ++place) {
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      for_each_unit(stages[as_index(shape.stage_of(place, chunk))], [&](const ModelUnit& unit) {
        const UnitWork work = work_of(job, operators, unit);
        times[as_index(place)] += work.compute.forward.total() +
                                  work.compute.input_gradient.total() +
                                  work.compute.weight_gradient.total() + work.again.total();
      });
    }
  }
  return times;
}

}  // namespace

UnitWork work_of(const StepJob& job, const OperatorTimes& operators, const ModelUnit& unit) {
  UnitWork work{.calls = unit_calls(job.model, job.plan, job.software, unit)};
  if (unit.place == StepPlace::Layer) {
    add_layer_work(job, operators, unit, work);
  } else {
    work.compute = unit.place == StepPlace::Embedding
                       ? embedding_times(job.model, job.plan, operators)
                       : head_times(job.model, job.plan, operators);
  }
  return work;
}

std::vector<int> slowest_kinds(const StepJob& job) {
  std::vector<int> slowest(as_index(job.plan.pipeline), 0);
  if (job.kind_of_rank.empty()) {
    return slowest;
  }
  const std::vector<std::vector<int>> kinds = kinds_by_place(job.plan, job.kind_of_rank);
  std::vector<SimTime> longest(slowest.size(), SimTime(-1));
  for (int kind = 0; kind < job.kind_count(); ++kind) {
    const std::vector<SimTime> times = computing_times(on_kind(job, kind));
    for (std::size_t place = 0; place < slowest.size(); ++place) {
      if (std::ranges::binary_search(kinds[place], kind) && times[place] > longest[place]) {
        longest[place] = times[place];
        slowest[place] = kind;
      }
    }
  }
  return slowest;
}

ExpertDomains expert_places(const StepJob& job) {
  if (job.plan.expert == 1) {
    return {};
  }
  return expert_domains(widest_group(job.plan, RankGroupKind::Expert, job.server_of_rank),
                        job.domains());
}

Exchanges exchanges_of(const StepJob& job, const ModelUnit& unit, const ExpertDomains& places) {
  if (unit.place != StepPlace::Layer || !layer_at(job, unit).experts || job.plan.expert == 1) {
    return {};
  }
  const Experts& experts = *layer_at(job, unit).experts;
  const double load = load_of(job, unit);
  const bool in_fp8 = job.software.dispatches_fp8 && job.rates.fp8_cast > 0.0;
  return {.there = exchange(job, experts, places, in_fp8 ? 1 : job.plan.element_bytes, load),
          .back = exchange(job, experts, places, job.plan.element_bytes, load)};
}

}  // namespace trainyard
