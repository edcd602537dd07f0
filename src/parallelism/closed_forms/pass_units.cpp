// SPDX-License-Identifier: Apache-2.0
#include "parallelism/closed_forms/pass_units.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "parallelism/closed_forms/host_launches.h"
#include "parallelism/operators/layer_time.h"
#include "parallelism/operators/time_arithmetic.h"

namespace trainyard {
namespace {

struct Block {
  StepParts compute;
  std::vector<GroupCall> calls;
};

StepPart part_of(const GroupCall& call) {
  return call.group == RankGroupKind::Tensor    ? StepPart::Tensor
         : call.group == RankGroupKind::Context ? StepPart::Context
                                                : StepPart::Expert;
}

// Calls of tensor ranks up to the first that ends a block, and those of context ranks, are
// attention's.
std::array<Block, 2> blocks_of(const StepParts& compute, const std::vector<GroupCall>& calls) {
  std::array<Block, 2> blocks;
  for (std::size_t index = 0; index < kStepParts; ++index) {
    const auto part = static_cast<StepPart>(index);
    const bool whole = part == StepPart::Attention || part == StepPart::Recompute;
    const SimTime half(compute.times[index].picoseconds() / 2);
    blocks[0].compute[part] = whole ? compute[part] : half;
    blocks[1].compute[part] = compute[part] - blocks[0].compute[part];
  }
  bool first_is_over = false;
  for (const GroupCall& call : calls) {
    if (call.is_hidden || call.group == RankGroupKind::Expert) {
      continue;  // Experts: exchange().
    }
    const bool is_first = call.group == RankGroupKind::Context ||
                          (call.group == RankGroupKind::Tensor && !first_is_over);
    blocks[is_first ? 0 : 1].calls.push_back(call);
    first_is_over |= call.group == RankGroupKind::Tensor && call.operation != Operation::AllGather;
  }
  return blocks;
}

// Tokens on their way to experts and back, in one direction of a pass; the same as step_time.cpp.
struct Exchanges {
  std::vector<UnitCall> there;  // At once.
  std::vector<UnitCall> back;
};

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

Exchanges exchanges_of(const StepJob& job, const ModelLayer& layer, const ExpertDomains& places,
                       double load) {
  if (!layer.experts || job.plan.expert == 1) {
    return {};
  }
  const bool in_fp8 = job.software.dispatches_fp8 && job.rates.fp8_cast > 0.0;
  return {.there = exchange(job, *layer.experts, places, in_fp8 ? 1 : job.plan.element_bytes, load),
          .back = exchange(job, *layer.experts, places, job.plan.element_bytes, load)};
}

class UnitBuilder {
 public:
  // `as`: what everything counts as, instead of its own part.
  UnitBuilder(const StepJob& job, std::optional<StepPart> as) : job_(job), as_(as) {}

  // All at once, counted as their own part.
  void add_exchange(std::vector<UnitCall> calls) {
    for (UnitCall& call : calls) {
      call.part = as_.value_or(call.part);
    }
    add_phase({.compute = {}, .calls = std::move(calls)});
  }

  void add_block(const Block& block) {
    std::vector<GroupCall> before;
    std::vector<GroupCall> after;
    UnitPhase main{.compute = block.compute, .calls = {}};
    UnitPhase ring;
    split_exchanges(block, before, after);
    for (const GroupCall& call : block.calls) {
      if (call.is_beside_attention) {
        ring.calls.push_back(unit_call(call));
      } else if (call.group == RankGroupKind::Tensor && job_.overlap.tensor) {
        main.calls.push_back(unit_call(call));
        main.calls.back().slowdown_ppm = slowdown_of(job_.rates.overlapped_tensor);
      } else if (call.operation == Operation::AllGather) {
        before.insert(before.begin(), call);
      } else if (call.operation != Operation::AllToAll) {
        after.push_back(call);
      }
    }
    if (!ring.calls.empty()) {
      std::swap(ring.compute[StepPart::Attention], main.compute[StepPart::Attention]);
    }
    add_calls(before);
    add_phase(std::move(main));
    add_phase(std::move(ring));
    add_calls(after);
  }

  [[nodiscard]] std::vector<UnitPhase> phases() && { return std::move(phases_); }

 private:
  // Half of the exchanges lead to the computation of the block, half back.
  static void split_exchanges(const Block& block, std::vector<GroupCall>& before,
                              std::vector<GroupCall>& after) {
    int count = 0;
    for (const GroupCall& call : block.calls) {
      count += call.operation == Operation::AllToAll ? call.times : 0;
    }
    int seen = 0;
    for (const GroupCall& call : block.calls) {
      if (call.operation != Operation::AllToAll) {
        continue;
      }
      GroupCall first = call;
      first.times = std::clamp((count + 1) / 2 - seen, 0, call.times);
      GroupCall second = call;
      second.times = call.times - first.times;
      seen += call.times;
      if (first.times > 0) {
        before.push_back(first);
      }
      if (second.times > 0) {
        after.push_back(second);
      }
    }
  }

  [[nodiscard]] UnitCall unit_call(const GroupCall& call) const {
    return {.call = call, .part = as_.value_or(part_of(call))};
  }

  void add_calls(const std::vector<GroupCall>& calls) {
    for (const GroupCall& call : calls) {
      add_phase({.compute = {}, .calls = {unit_call(call)}});
    }
  }

  void add_phase(UnitPhase phase) {
    if (as_) {
      const SimTime total = phase.compute.total();
      phase.compute = {};
      phase.compute[*as_] = total;
    }
    const bool computes = phase.compute.total() > SimTime();
    const bool joins =
        computes && phase.calls.empty() && !phases_.empty() && phases_.back().calls.empty();
    if (joins) {
      phases_.back().compute += phase.compute;
    } else if (computes || !phase.calls.empty()) {
      phases_.push_back(std::move(phase));
    }
  }

  const StepJob& job_;
  std::optional<StepPart> as_;
  std::vector<UnitPhase> phases_;
};

void append(std::vector<UnitPhase> more, std::vector<UnitPhase>& phases) {
  phases.insert(phases.end(), more.begin(), more.end());
}

std::vector<UnitPhase> forward_phases(const StepJob& job, const StepParts& compute,
                                      const std::vector<GroupCall>& calls,
                                      const Exchanges& exchanges, std::optional<StepPart> as) {
  UnitBuilder builder(job, as);
  const std::array<Block, 2> blocks = blocks_of(compute, calls);
  builder.add_block(blocks[0]);
  builder.add_exchange(exchanges.there);
  builder.add_block(blocks[1]);
  builder.add_exchange(exchanges.back);
  return std::move(builder).phases();
}

std::vector<UnitPhase> backward_phases(const StepJob& job, const StepParts& compute,
                                       const std::vector<GroupCall>& calls,
                                       const Exchanges& exchanges) {
  UnitBuilder builder(job, {});
  const std::array<Block, 2> blocks = blocks_of(compute, calls);
  builder.add_exchange(exchanges.there);
  builder.add_block(blocks[1]);
  builder.add_exchange(exchanges.back);
  builder.add_block(blocks[0]);
  return std::move(builder).phases();
}

PassUnit end_unit(const StepJob& job, const PassTimes& compute, const PassCalls& calls,
                  PassKind kind) {
  Block block;
  switch (kind) {
    case PassKind::Forward:
      block = {.compute = compute.forward, .calls = calls.forward};
      break;
    case PassKind::Backward:
      block = {.compute = compute.input_gradient, .calls = calls.backward};
      block.compute += compute.weight_gradient;
      break;
    case PassKind::InputGradient:
      block = {.compute = compute.input_gradient, .calls = calls.backward};
      break;
    case PassKind::WeightGradient:
      block = {.compute = compute.weight_gradient, .calls = {}};
      break;
  }
  UnitBuilder builder(job, {});
  builder.add_block(block);
  return {.sync = {}, .phases = std::move(builder).phases(), .beside = {}, .host = {}};
}

// Returns what a whole backward pass computes again without traffic of its own.
SimTime recomputed(const StepJob& job, const PassTimes& compute) {
  if (job.plan.recompute != Recompute::Selective) {
    return {};
  }
  return recomputed_selectively(compute, job.software.recomputes_products);
}

// Adds the host's time as step_time.cpp does.
void add_host(const StepJob& job, const ModelLayer& layer, const PassTimes& compute,
              const PassCalls& calls, PassKind kind, PassUnit& unit) {
  if (kind == PassKind::WeightGradient) {
    return;
  }
  const HostLaunches launches =
      kind == PassKind::Forward
          ? forward_launches(job.rates, job.software, layer, calls)
          : backward_launches(job.rates, job.software, layer, calls, job.plan.recompute);
  unit.sync = launches.shown;
  unit.host = launches.all;
  if (kind == PassKind::InputGradient) {
    unit.host = difference_or_zero(unit.host, compute.weight_gradient.total());
  }
  unit.host = difference_or_zero(unit.host, unit.sync);
  SimTime computes;
  for (const UnitPhase& phase : unit.phases) {
    computes += phase.compute.total();
  }
  if (unit.host <= computes) {
    unit.host = {};  // Never shows.
  }
}

// Overlapped exchanges, of all phases of a pass.
void move_beside(const StepJob& job, Exchanges& exchanges, bool is_recomputed, PassUnit& unit) {
  if (!job.overlap.expert) {
    return;
  }
  const auto move = [&](const std::vector<UnitCall>& calls, StepPart part) {
    for (UnitCall call : calls) {
      call.part = part;
      call.slowdown_ppm = slowdown_of(job.rates.overlapped_data);
      unit.beside.push_back(call);
    }
  };
  if (is_recomputed) {
    move(exchanges.there, StepPart::Recompute);
    move(exchanges.back, StepPart::Recompute);
  }
  move(exchanges.there, StepPart::Expert);
  move(exchanges.back, StepPart::Expert);
  exchanges = {};
}

}  // namespace

std::int32_t slowdown_of(double share) {
  return static_cast<std::int32_t>(std::llround(share * 1e6));
}

ExpertDomains expert_places(const StepJob& job) {
  if (job.plan.expert == 1) {
    return {};
  }
  return expert_domains(widest_group(job.plan, RankGroupKind::Expert, job.server_of_rank),
                        job.domain_of_rank.empty() ? job.server_of_rank : job.domain_of_rank);
}

PassUnit layer_unit(const StepJob& job, const OperatorTimes& operators, const ExpertDomains& places,
                    int of_model, PassKind kind) {
  const ModelLayer& layer = job.model.layers[static_cast<std::size_t>(of_model)];
  const double load =
      layer.experts ? fullest_rank(job.loads, of_model, *layer.experts, job.plan.expert) : 1.0;
  const PassTimes compute = layer_times(job.model, layer, job.plan, operators, load);
  const PassCalls calls = layer_calls(job.model, layer, job.plan, job.software);
  PassUnit unit;
  if (kind == PassKind::WeightGradient) {
    unit.phases = backward_phases(job, compute.weight_gradient, {}, {});
    return unit;
  }
  const bool is_recomputed = kind != PassKind::Forward && job.plan.recompute == Recompute::Full;
  Exchanges exchanges = exchanges_of(job, layer, places, load);
  move_beside(job, exchanges, is_recomputed, unit);
  if (kind == PassKind::Forward) {
    unit.phases = forward_phases(job, compute.forward, calls.forward, exchanges, {});
  } else {
    if (is_recomputed) {
      const FullRecompute full = job.software.full_recompute;
      unit.phases =
          forward_phases(job, recomputed_fully(compute, full), recomputed_calls(calls, layer, full),
                         exchanges, StepPart::Recompute);
    }
    StepParts backward = compute.input_gradient;
    backward[StepPart::Recompute] += recomputed(job, compute);
    if (kind == PassKind::Backward) {
      backward += compute.weight_gradient;
    }
    append(backward_phases(job, backward, calls.backward, exchanges), unit.phases);
  }
  add_host(job, layer, compute, calls, kind, unit);
  return unit;
}

PassUnit embedding_unit(const StepJob& job, const OperatorTimes& operators, PassKind kind) {
  return end_unit(job, embedding_times(job.model, job.plan, operators),
                  embedding_calls(job.model, job.plan), kind);
}

PassUnit head_unit(const StepJob& job, const OperatorTimes& operators, PassKind kind) {
  return end_unit(job, head_times(job.model, job.plan, operators), head_calls(job.model, job.plan),
                  kind);
}

}  // namespace trainyard
