// SPDX-License-Identifier: Apache-2.0
#include "parallelism/lowering/lowered_units.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "parallelism/lowering/pass_units.h"

namespace trainyard {

std::string_view pass_name(PassKind kind) {
  constexpr std::array<std::string_view, 4> kNames{"forward", "backward", "input gradient",
                                                   "weight gradient"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool makes_weight_gradients(PassKind kind) {
  return kind == PassKind::Backward || kind == PassKind::WeightGradient;
}

std::vector<ModelUnit> StepUnits::units_of(const PipelineStage& stage) {
  std::vector<ModelUnit> units;
  for_each_unit(stage, [&](const ModelUnit& unit) { units.push_back(unit); });
  return units;
}

const NamedUnit& StepUnits::unit(const ModelUnit& unit, PassKind kind) {
  const auto [known, is_new] = cache_.try_emplace({unit, kind});
  NamedUnit& named = known->second;
  if (!is_new) {
    return named;
  }
  named = {.name = fmt::format("{} {}", pass_name(kind), name_of(unit)),
           .work = pass_unit(job_, operators_, places_, unit, kind),
           .mixes = {}};
  for (const UnitPhase& phase : named.work.phases) {
    const bool computes = phase.compute.total() > SimTime();
    named.mixes.push_back(computes ? std::optional(graph_.add_mix(phase.compute)) : std::nullopt);
  }
  return named;
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
    std::vector<ModelUnit> units = units_of(stage_of(place, pass.chunk));
    if (pass.kind != PassKind::Forward) {
      std::reverse(units.begin(), units.end());
    }
    for (const ModelUnit& each : units) {
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
