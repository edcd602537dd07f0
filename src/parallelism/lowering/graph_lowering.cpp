// SPDX-License-Identifier: Apache-2.0
#include "parallelism/lowering/graph_lowering.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "parallelism/lowering/lowered_copies.h"
#include "parallelism/lowering/lowered_rank.h"
#include "parallelism/lowering/lowered_units.h"
#include "parallelism/memory/scheduled_shape.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/walk/gradient_compression.h"
#include "parallelism/walk/step_traffic.h"
#include "parallelism/walk/unit_work.h"
#include "sim/ids.h"

namespace trainyard {
namespace {

// A reduction that waits to be written once something else is.
struct PendingReduce {
  std::vector<UnitCall> calls;
  std::string name;
  std::vector<OperationId> before;
};

class StepLowering {
 public:
  StepLowering(const StepJob& job, StepGraph& result)
      : job_(job),
        plan_(job.plan),
        shape_(scheduled_shape(job.model, plan_, memory_settings(job.software), job.loads)),
        result_(result),
        communicators_(plan_, job.server_of_rank, job.domains(), result.graph),
        units_(job, result.graph),
        slowest_(slowest_kinds(job)) {}

  void add_rank(int rank);

 private:
  // While a rank is written.
  struct Writing {
    LoweredRank& rank;
    StepUnits& timed;
    LoweredCopies copies;
    std::vector<int> pipeline;  // Ranks of its pipeline.
    int place = 0;              // In it.
    std::vector<UnitOfPass> units = {};
    std::size_t next_unit = 0;
    std::optional<OperationId> gathered = {};  // ZeRO 3: weights of the next unit.
    std::optional<PendingReduce> reduce = {};  // ZeRO 3: gradients of the last unit.
    std::optional<OperationId> reduced = {};   // ZeRO 3: the last one over its shards.
    RankParameters bucket = {};                // Gradients that are complete and not yet reduced.
    std::optional<OperationId> emptied = {};   // The end of the last bucket.
    // ZeRO 1 and 2: gathers that the first forward pass of a unit waits for, by chunk and unit.
    std::map<std::pair<int, ModelUnit>, OperationId> weights = {};
  };

  // The units as the GPU of the rank runs them, or where the rank stands for others the slowest of
  // theirs.
  [[nodiscard]] StepUnits& units_of(int rank, int place);
  // Only what runs overlapped with computation slows it down.
  [[nodiscard]] std::vector<UnitCall> data_traffic(const std::vector<GroupCall>& calls,
                                                   bool is_beside) const;

  void gather_first_weights(Writing& writing);
  void add_passes(Writing& writing, const Pass* first, std::size_t count);
  void add_pass(const Writing& writing, const Pass& pass, std::uint32_t begin);
  void add_unit(Writing& writing, const UnitOfPass& of_pass);
  void gather_weights(Writing& writing, const UnitOfPass& of_pass, bool is_beside);
  void write_reduce(Writing& writing);
  void add_sharded_reduce(Writing& writing, const UnitOfPass& of_pass);
  void add_gradients(Writing& writing, const UnitOfPass& of_pass);
  void reduce_bucket(Writing& writing, std::string_view name);
  [[nodiscard]] CompressionTimes compression(Writing& writing,
                                             const RankParameters& gradients) const {
    return compression_times(gradients, plan_, job_.software, writing.timed.operators());
  }
  static void add_kernels(Writing& writing, std::string_view name, SimTime time);
  void add_end(Writing& writing);

  // Messages of a pass: from the stage before it, or to the one behind.
  [[nodiscard]] std::optional<GraphMessage> message(const Writing& writing, const Pass& pass,
                                                    bool is_received) const;
  [[nodiscard]] bool shards_weights() const { return plan_.zero_stage == 3; }
  [[nodiscard]] bool gathers_beside() const {
    return job_.overlap.data && !owns_matrices(plan_, job_.software);
  }

  const StepJob& job_;
  const ParallelPlan& plan_;
  PipelineShape shape_;
  StepGraph& result_;
  PlanCommunicators communicators_;
  StepUnits units_;
  std::vector<int> slowest_;  // Kind of GPU by place in the pipeline.
  std::map<int, std::pair<StepJob, std::optional<StepUnits>>> other_units_ = {};
};

StepUnits& StepLowering::units_of(int rank, int place) {
  const bool is_folded = result_.graph.present().size() < as_index(result_.graph.ranks());
  const int kind = is_folded || job_.kind_of_rank.empty() ? slowest_[as_index(place)]
                                                          : job_.kind_of_rank[as_index(rank)];
  if (kind == 0) {
    return units_;
  }
  const auto [known, is_new] = other_units_.try_emplace(kind, on_kind(job_, kind), std::nullopt);
  auto& [of_kind, units] = known->second;
  if (is_new) {
    units.emplace(of_kind, result_.graph);
  }
  return *units;
}

std::vector<UnitCall> StepLowering::data_traffic(const std::vector<GroupCall>& calls,
                                                 bool is_beside) const {
  std::vector<UnitCall> traffic;
  for (const GroupCall& call : calls) {
    traffic.push_back({.call = call,
                       .part = StepPart::Data,
                       .slowdown_ppm = is_beside ? slowdown_of(job_.rates.overlapped_data) : 0});
  }
  return traffic;
}

void StepLowering::add_rank(int rank) {
  std::vector<int> pipeline = group_of(plan_, RankGroupKind::Pipeline, rank);
  const auto place = std::find(pipeline.begin(), pipeline.end(), rank) - pipeline.begin();
  LoweredRank lowered(rank, result_.graph, communicators_);
  Writing writing{.rank = lowered,
                  .timed = units_of(rank, static_cast<int>(place)),
                  .copies = LoweredCopies(job_, lowered),
                  .pipeline = std::move(pipeline),
                  .place = static_cast<int>(place)};
  const std::vector<Pass> passes = passes_of(shape_, writing.place);
  writing.units = units_.units_of_rank(passes, writing.place);
  gather_first_weights(writing);
  for (std::size_t index = 0; index < passes.size();) {
    const std::size_t count = passes[index].with_next ? 2 : 1;
    add_passes(writing, &passes[index], count);
    index += count;
  }
  add_end(writing);
}

// Gathers, with ZeRO 1 and 2 and overlap, what the last step's optimizer left in shards.
void StepLowering::gather_first_weights(Writing& writing) {
  if (!gathers_beside() || plan_.zero_stage < 1 || shards_weights()) {
    return;
  }
  RankParameters bucket;
  std::vector<std::pair<int, ModelUnit>> members;
  int number = 0;
  for (const UnitOfPass& each : writing.units) {
    if (!each.is_first_forward) {
      continue;
    }
    bucket += units_.gradients_of(units_.stage_of(writing.place, each.chunk), each.unit);
    members.emplace_back(each.chunk, each.unit);
    if (bucket.total() < bucket_parameters(plan_, job_.software) && !each.ends_pass) {
      continue;
    }
    const DataCalls calls = data_calls(bucket, plan_, job_.software);
    const std::optional<OperationId> last = writing.rank.calls_beside(
        data_traffic(calls.gather, true), fmt::format("weights {}", number++), {});
    for (const auto& member : members) {
      if (last) {
        writing.weights.emplace(member, *last);
      }
    }
    bucket = {};
    members.clear();
  }
}

// A pass, or a pair of which both begin and end together.
void StepLowering::add_passes(Writing& writing, const Pass* first, std::size_t count) {
  const auto message_name = [](const Pass& pass) {
    return pass.kind == PassKind::Forward ? "activation" : "gradient";
  };
  for (std::size_t index = 0; index < count; ++index) {
    if (const auto received = message(writing, first[index], true)) {
      writing.rank.receive(message_name(first[index]), *received, job_.overlap.pipeline);
    }
  }
  for (std::size_t index = 0; index < count; ++index) {
    const Pass& pass = first[index];
    const auto begin = static_cast<std::uint32_t>(result_.graph.operations().size());
    const std::size_t units = units_.units_of(units_.stage_of(writing.place, pass.chunk)).size();
    for (std::size_t number = 0; number < units; ++number) {
      add_unit(writing, writing.units[writing.next_unit++]);
    }
    add_pass(writing, pass, begin);
  }
  for (std::size_t index = 0; index < count; ++index) {
    if (const auto sent = message(writing, first[index], false)) {
      writing.rank.send(message_name(first[index]), *sent, job_.overlap.pipeline);
    }
  }
}

// Adds the pass whose operations were added from `begin` on.
void StepLowering::add_pass(const Writing& writing, const Pass& pass, std::uint32_t begin) {
  std::optional<LoweredPass> added;
  for (std::uint32_t id = begin; id < result_.graph.operations().size(); ++id) {
    if (result_.graph.operations()[id].kind == GraphOperationKind::Compute) {
      if (!added) {
        added = LoweredPass{.rank = writing.rank.rank(),
                            .place = writing.place,
                            .pass = pass,
                            .first = OperationId(id),
                            .last = OperationId(id)};
      }
      added->last = OperationId(id);
    }
  }
  if (added) {
    result_.passes.push_back(*added);
  }
}

void StepLowering::add_unit(Writing& writing, const UnitOfPass& of_pass) {
  if (shards_weights()) {
    if (job_.overlap.data) {
      if (writing.next_unit == 1) {
        gather_weights(writing, of_pass, true);
      }
      const std::optional<OperationId> gathered = writing.gathered;
      writing.gathered.reset();
      if (writing.next_unit < writing.units.size()) {
        gather_weights(writing, writing.units[writing.next_unit], true);
      }
      write_reduce(writing);
      if (gathered) {
        writing.rank.require(*gathered);
      }
    } else {
      gather_weights(writing, of_pass, false);
    }
  } else if (of_pass.is_first_forward) {
    const auto found = writing.weights.find({of_pass.chunk, of_pass.unit});
    if (found != writing.weights.end()) {
      writing.rank.require(found->second);
    }
  }
  const bool is_last = writing.next_unit == writing.units.size();
  writing.copies.begin_unit(of_pass, is_last ? nullptr : &writing.units[writing.next_unit]);
  writing.rank.unit(writing.timed.unit(of_pass.unit, of_pass.kind));
  writing.copies.end_unit(of_pass);
  if (shards_weights() && makes_weight_gradients(of_pass.kind)) {
    add_sharded_reduce(writing, of_pass);
  }
  if (job_.overlap.data && of_pass.is_last_gradient) {
    add_gradients(writing, of_pass);
  }
}

// ZeRO 3: of a unit, before it runs.
void StepLowering::gather_weights(Writing& writing, const UnitOfPass& of_pass, bool is_beside) {
  if (of_pass.kind == PassKind::WeightGradient) {
    return;
  }
  const PassCalls calls =
      sharded_calls(gathered_parameters(job_.model, plan_, of_pass.unit), plan_, job_.software);
  const std::vector<UnitCall> traffic = data_traffic(calls.forward, is_beside);
  const std::string name = "weights of " + name_of(of_pass.unit);
  if (is_beside) {
    writing.gathered = writing.rank.calls_beside(traffic, name, writing.rank.front());
  } else {
    writing.rank.calls(traffic, name);
  }
}

void StepLowering::write_reduce(Writing& writing) {
  if (writing.reduce) {
    writing.reduced = writing.rank.calls_beside(writing.reduce->calls, writing.reduce->name,
                                                writing.reduce->before);
    writing.reduce.reset();
  }
}

// ZeRO 3: of a unit that has just run.
void StepLowering::add_sharded_reduce(Writing& writing, const UnitOfPass& of_pass) {
  const PassCalls calls =
      sharded_calls(gathered_parameters(job_.model, plan_, of_pass.unit), plan_, job_.software);
  std::vector<GroupCall> reduce;
  std::copy_if(calls.backward.begin(), calls.backward.end(), std::back_inserter(reduce),
               [](const GroupCall& call) { return call.operation == Operation::ReduceScatter; });
  const std::string name = "gradients of " + name_of(of_pass.unit);
  if (job_.overlap.data) {
    writing.reduce = PendingReduce{
        .calls = data_traffic(reduce, true), .name = name, .before = writing.rank.front()};
  } else {
    writing.rank.calls(data_traffic(reduce, false), name);
  }
}

void StepLowering::add_gradients(Writing& writing, const UnitOfPass& of_pass) {
  writing.bucket +=
      units_.gradients_of(units_.stage_of(writing.place, of_pass.chunk), of_pass.unit);
  const bool is_first = !writing.emptied;
  if (writing.bucket.total() >= bucket_parameters(plan_, job_.software, is_first) ||
      of_pass.ends_pass) {
    write_reduce(writing);
    reduce_bucket(writing, name_of(of_pass.unit));
  }
}

void StepLowering::reduce_bucket(Writing& writing, std::string_view name) {
  const DataCalls calls = data_calls(writing.bucket, plan_, job_.software);
  add_kernels(writing, "compress gradients", compression(writing, writing.bucket).before);
  std::vector<OperationId> before = writing.rank.front();
  // With ZeRO 3 its shards come first, else a bucket waits for the one before it.
  if (const auto& earlier = shards_weights() ? writing.reduced : writing.emptied) {
    before.push_back(*earlier);
  }
  const std::optional<OperationId> reduced = writing.rank.calls_beside(
      data_traffic(calls.reduce, true), fmt::format("gradients to {}", name), before);
  writing.emptied = reduced ? reduced : writing.emptied;
  writing.copies.send_gradients(writing.bucket, name, reduced ? reduced : writing.reduced);
  writing.bucket = {};
}

// Kernels of gradient compression; most plans have none.
void StepLowering::add_kernels(Writing& writing, std::string_view name, SimTime time) {
  if (time > SimTime()) {
    writing.rank.compute(name, StepPart::Casts, time);
  }
}

void StepLowering::add_end(Writing& writing) {
  const RankParameters parameters = units_.parameters_of_rank(writing.place);
  const CompressionTimes kernels = compression(writing, parameters);
  const DataCalls calls = data_calls(parameters, plan_, job_.software);
  write_reduce(writing);
  if (!job_.overlap.data) {
    add_kernels(writing, "compress gradients", kernels.before);
    writing.rank.calls(data_traffic(calls.reduce, false), "gradients");
    writing.copies.send_all_gradients(parameters);
  }
  const auto ends = ends_call(job_.model, plan_, job_.software);
  if (ends && (writing.place == 0 || writing.place == plan_.pipeline - 1)) {
    writing.rank.calls(data_traffic({*ends}, false), "gradients of tied embeddings");
  }
  if (writing.emptied) {
    writing.rank.require(*writing.emptied);
  }
  add_kernels(writing, "decompress gradients", kernels.behind);
  if (plan_.ranks() > 1) {
    writing.rank.barrier("norm of gradients");
  }
  if (plan_.offload.optimizer) {
    writing.copies.update(parameters);
  } else {
    const double owned = updated_parameters(parameters, plan_);
    writing.rank.compute("optimizer", StepPart::Optimizer,
                         writing.timed.operators().memory(owned * job_.software.optimizer_bytes));
  }
  if (!gathers_beside()) {
    writing.rank.calls(data_traffic(calls.gather, false), "weights");
  }
}

// Returns nothing where there is no stage, or it is on the same rank.
std::optional<GraphMessage> StepLowering::message(const Writing& writing, const Pass& pass,
                                                  bool is_received) const {
  if (pass.kind == PassKind::WeightGradient) {
    return std::nullopt;
  }
  const bool is_forward = pass.kind == PassKind::Forward;
  const int stage = shape_.stage_of(writing.place, pass.chunk);
  const int other = is_forward == is_received ? stage - 1 : stage + 1;
  if (other < 0 || other >= shape_.stages()) {
    return std::nullopt;
  }
  const int place = shape_.rank_of(other, pass);
  if (place == writing.place) {
    return std::nullopt;
  }
  // The key is kind, direction, micro-batch and the lower stage of the two.
  const int lower = std::min(stage, other);
  const int row = (2 * shape_.direction_of(pass) + (is_forward ? 0 : 1)) * shape_.micro_batches +
                  pass.micro_batch;
  return GraphMessage{.peer = writing.pipeline[static_cast<std::size_t>(place)],
                      .size = transfer_size(job_.model, plan_, job_.software.scatter_gather),
                      .tag = static_cast<std::uint32_t>(row * shape_.stages() + lower)};
}

}  // namespace

StepGraph lower_step(const StepJob& job, Folding folding) {
  check_modelled(job);
  const ParallelPlan& plan = job.plan;
  StepGraph result{
      .graph = folding == Folding::Folded
                   ? OperationGraph(plan.ranks(),
                                    widest_group(plan, RankGroupKind::Pipeline, job.server_of_rank))
                   : OperationGraph(plan.ranks())};
  StepLowering lowering(job, result);
  for (const int rank : result.graph.present()) {
    lowering.add_rank(rank);
  }
  return result;
}

}  // namespace trainyard
