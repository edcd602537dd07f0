// SPDX-License-Identifier: Apache-2.0
#include "parallelism/lowering/lowered_units.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "parallelism/lowering/pass_units.h"
#include "parallelism/walk/step_traffic.h"

namespace trainyard {

std::string_view pass_name(PassKind kind) {
  switch (kind) {
    case PassKind::Forward:
      return "forward";
    case PassKind::Backward:
      return "backward";
    case PassKind::InputGradient:
      return "input gradient";
    case PassKind::WeightGradient:
      return "weight gradient";
  }
  return "";
}

bool makes_weight_gradients(PassKind kind) {
  return kind == PassKind::Backward || kind == PassKind::WeightGradient;
}

std::vector<UnitIndex> StepUnits::units_of(const PipelineStage& stage) const {
  std::vector<UnitIndex> units;
  if (stage.has_embedding) {
    units.push_back(embedding());
  }
  for (int index = 0; index < stage.layers; ++index) {
    const int layer = stage.first_layer + index;
    units.push_back(static_cast<std::size_t>(layer));
  }
  if (stage.has_head) {
    units.push_back(head());
  }
  return units;
}

std::string StepUnits::name_of(UnitIndex index) const {
  return index == embedding() ? "embedding"
         : index == head()    ? "head"
                              : fmt::format("layer {}", index);
}

const NamedUnit& StepUnits::unit(UnitIndex index, PassKind kind) {
  std::optional<NamedUnit>& cached = cache_[index * 4 + static_cast<std::size_t>(kind)];
  if (cached) {
    return *cached;
  }
  const PassUnit made = index == embedding() ? embedding_unit(job_, operators_, kind)
                        : index == head()
                            ? head_unit(job_, operators_, kind)
                            : layer_unit(job_, operators_, places_, static_cast<int>(index), kind);
  NamedUnit& named = cached.emplace();
  named.name = fmt::format("{} {}", pass_name(kind), name_of(index));
  named.sync = made.sync;
  named.host = made.host;
  const auto with_name = [&](const UnitCall& call) {
    return NamedUnit::Call{
        .call = call, .name = fmt::format("{} {}", to_string(call.call.operation), named.name)};
  };
  for (const UnitCall& call : made.beside) {
    named.beside.push_back(with_name(call));
  }
  for (const UnitPhase& phase : made.phases) {
    NamedUnit::Phase& added = named.phases.emplace_back();
    if (phase.compute.total() > SimTime()) {
      added.mix = graph_.add_mix(phase.compute);
    }
    for (const UnitCall& call : phase.calls) {
      added.calls.push_back(with_name(call));
    }
  }
  return named;
}

RankParameters StepUnits::parameters_of(UnitIndex index) const {
  if (index == embedding()) {
    return {.dense = rank_embedding_parameters(job_.model, plan_)};
  }
  if (index == head()) {
    return {.dense = rank_head_parameters(job_.model, plan_)};
  }
  return rank_parameters(job_.model, job_.model.layers[index], plan_);
}

RankParameters StepUnits::gradients_of(const PipelineStage& stage, UnitIndex index) const {
  if (index != head()) {
    return parameters_of(index);
  }
  PipelineStage alone{.first_layer = 0, .layers = 0, .has_head = true};
  alone.has_embedding = stage.has_embedding;
  RankParameters sum = stage_parameters(job_.model, alone, plan_);
  if (stage.has_embedding) {
    const RankParameters embedding = rank_embedding(job_.model, plan_);
    sum.dense -= embedding.dense;
    sum.dense_matrices -= embedding.dense_matrices;
  }
  return sum;
}

RankParameters StepUnits::parameters_of_rank(int place) const {
  RankParameters sum;
  for (int chunk = 0; chunk < shape_.chunks; ++chunk) {
    sum += stage_parameters(job_.model, stage_of(place, chunk), plan_);
  }
  return sum;
}

// Everything that the rank runs, in order.
std::vector<UnitOfPass> StepUnits::units_of_rank(const std::vector<Pass>& passes, int place) const {
  const auto chunks = static_cast<std::size_t>(shape_.chunks);
  std::vector<std::size_t> last(chunks);
  std::vector<std::size_t> first(chunks, passes.size());
  for (std::size_t index = 0; index < passes.size(); ++index) {
    const auto chunk = static_cast<std::size_t>(passes[index].chunk);
    if (makes_weight_gradients(passes[index].kind)) {
      last[chunk] = index;
    } else if (passes[index].kind == PassKind::Forward) {
      first[chunk] = std::min(first[chunk], index);
    }
  }
  std::vector<UnitOfPass> all;
  for (std::size_t index = 0; index < passes.size(); ++index) {
    const Pass& pass = passes[index];
    const auto chunk = static_cast<std::size_t>(pass.chunk);
    std::vector<UnitIndex> units = units_of(stage_of(place, pass.chunk));
    if (pass.kind != PassKind::Forward) {
      std::reverse(units.begin(), units.end());
    }
    for (const UnitIndex each : units) {
      all.push_back(
          {.unit = each,
           .kind = pass.kind,
           .chunk = pass.chunk,
           .micro_batch = pass.micro_batch,
           .is_first_forward = first[chunk] == index,
           .is_last_gradient = makes_weight_gradients(pass.kind) && last[chunk] == index});
    }
    if (!units.empty()) {
      all.back().ends_pass = true;
    }
  }
  return all;
}

}  // namespace trainyard
