// SPDX-License-Identifier: Apache-2.0
#include "parallelism/lowering/pass_units.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

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
// attention's. An end of the model is one block.
std::array<Block, 2> blocks_of(const ModelUnit& unit, const StepParts& compute,
                               const std::vector<GroupCall>& calls) {
  if (unit.place != StepPlace::Layer) {
    return {Block{.compute = compute, .calls = calls}, Block{}};
  }
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
      } else if (call.group == RankGroupKind::Tensor && job_.overlap.tensor &&
                 !call.is_waited_for) {
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

std::vector<UnitPhase> forward_phases(UnitBuilder builder, const std::array<Block, 2>& blocks,
                                      const Exchanges& exchanges) {
  builder.add_block(blocks[0]);
  builder.add_exchange(exchanges.there);
  builder.add_block(blocks[1]);
  builder.add_exchange(exchanges.back);
  return std::move(builder).phases();
}

std::vector<UnitPhase> backward_phases(UnitBuilder builder, const std::array<Block, 2>& blocks,
                                       const Exchanges& exchanges) {
  builder.add_exchange(exchanges.there);
  builder.add_block(blocks[1]);
  builder.add_exchange(exchanges.back);
  builder.add_block(blocks[0]);
  return std::move(builder).phases();
}

// Adds the host's time as step_time.cpp does.
void add_host(const UnitWork& work, PassKind kind, PassUnit& unit) {
  const HostLaunches& launches = kind == PassKind::Forward ? work.forward_host : work.backward_host;
  unit.sync = launches.shown;
  unit.host = launches.all;
  if (kind == PassKind::InputGradient) {
    unit.host = difference_or_zero(unit.host, work.compute.weight_gradient.total());
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

PassUnit pass_unit(const StepJob& job, const OperatorTimes& operators, const ExpertDomains& places,
                   const ModelUnit& unit, PassKind kind) {
  const UnitWork work = work_of(job, operators, unit);
  const PassTimes& compute = work.compute;
  const UnitBuilder builder(job, {});
  PassUnit made;
  if (kind == PassKind::WeightGradient) {
    made.phases = backward_phases(builder, blocks_of(unit, compute.weight_gradient, {}), {});
    return made;
  }
  const bool is_recomputed = kind != PassKind::Forward && unit.place == StepPlace::Layer &&
                             job.plan.recompute == Recompute::Full;
  Exchanges exchanges = exchanges_of(job, unit, places);
  move_beside(job, exchanges, is_recomputed, made);
  if (kind == PassKind::Forward) {
    made.phases =
        forward_phases(builder, blocks_of(unit, compute.forward, work.calls.forward), exchanges);
  } else {
    StepParts backward = compute.input_gradient;
    if (is_recomputed) {
      made.phases = forward_phases(UnitBuilder(job, StepPart::Recompute),
                                   blocks_of(unit, work.again, work.calls.again), exchanges);
    } else {
      backward += work.again;
    }
    if (kind == PassKind::Backward) {
      backward += compute.weight_gradient;
    }
    const std::vector<UnitPhase> after =
        backward_phases(builder, blocks_of(unit, backward, work.calls.backward), exchanges);
    made.phases.insert(made.phases.end(), after.begin(), after.end());
  }
  add_host(work, kind, made);
  return made;
}

}  // namespace trainyard
