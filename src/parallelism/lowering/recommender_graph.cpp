// SPDX-License-Identifier: Apache-2.0
#include "parallelism/lowering/recommender_graph.h"

#include <array>
#include <cstddef>
#include <vector>

#include "parallelism/lowering/pass_units.h"

namespace trainyard {
namespace {

class RecommenderLowering {
 public:
  explicit RecommenderLowering(const RecommenderJob& job)
      : job_(job), traffic_(recommender_traffic(job)), graph_(job.ranks()) {
    const std::vector<int> all(graph_.present().begin(), graph_.present().end());
    indices_ = graph_.add_communicator("indices", all);
    tables_ = graph_.add_communicator("tables", all);
    data_ = graph_.add_communicator("data", all);
  }

  OperationGraph all() && {
    for (int rank = 0; rank < job_.ranks(); ++rank) {
      add_rank(rank);
    }
    return std::move(graph_);
  }

 private:
  using Operations = std::vector<OperationId>;
  struct Channel {
    StreamId stream;
    CommunicatorId communicator;
  };
  struct Streams {
    StreamId compute;
    Channel indices;
    Channel tables;
    Channel data;
  };

  void add_rank(int rank);
  OperationId compute(const Streams& streams, std::string_view name, const StepParts& parts,
                      const Operations& after = {}) {
    const OperationId id = graph_.add_compute(streams.compute, name, graph_.add_mix(parts));
    link(after, id);
    return id;
  }
  // Returns nothing where there is nothing to send. Only what is beside computation slows it down.
  Operations call(const Channel& on, std::string_view name, StepPart part, Operation operation,
                  Bytes size, bool is_beside, const Operations& after) {
    if (size == Bytes()) {
      return {};
    }
    const OperationId id = graph_.add_collective(
        on.stream, name, part,
        {.communicator = on.communicator,
         .operation = operation,
         .size = size,
         .slowdown_ppm = is_beside ? slowdown_of(job_.rates.overlapped_data) : 0});
    link(after, id);
    return {id};
  }
  void link(const Operations& before, OperationId id) {
    for (const OperationId each : before) {
      graph_.add_dependency(each, id);
    }
  }
  // Sums of tables to their samples, or their gradients back.
  Operations exchange(const Streams& streams, bool is_forward, const Operations& after) {
    Operations calls =
        call(streams.tables, is_forward ? "vectors" : "gradients of vectors", StepPart::Expert,
             Operation::AllToAll, traffic_.vectors, job_.overlaps_tables(), after);
    const Operations split =
        call(streams.tables, is_forward ? "vectors of split tables" : "gradients of split tables",
             StepPart::Expert, is_forward ? Operation::ReduceScatter : Operation::AllGather,
             traffic_.split_vectors, job_.overlaps_tables(), after);
    calls.insert(calls.end(), split.begin(), split.end());
    return calls;
  }
  Operations reduce(const Streams& streams, std::string_view name, Bytes size,
                    const Operations& after) {
    return call(streams.data, name, StepPart::Data, Operation::AllReduce, size,
                job_.overlaps_data(), after);
  }

  const RecommenderJob& job_;
  RecommenderTraffic traffic_;
  OperationGraph graph_;
  CommunicatorId indices_;
  CommunicatorId tables_;
  CommunicatorId data_;
};

void RecommenderLowering::add_rank(int rank) {
  const Streams streams{.compute = graph_.add_stream(rank, "compute"),
                        .indices = {graph_.add_stream(rank, "indices"), indices_},
                        .tables = {graph_.add_stream(rank, "tables"), tables_},
                        .data = {graph_.add_stream(rank, "data"), data_}};
  const RecommenderTimes times = recommender_times(job_, static_cast<std::size_t>(rank));
  const Operations indices = call(streams.indices, "indices", StepPart::Context,
                                  Operation::AllToAll, traffic_.indices, job_.overlaps_input(), {});
  const OperationId lookups =
      compute(streams, "look up", times.lookups, job_.overlaps_input() ? Operations() : indices);
  const Operations vectors = exchange(streams, true, {lookups});
  compute(streams, "bottom MLP", times.bottom_forward,
          job_.overlaps_tables() ? Operations() : vectors);
  compute(streams, "interaction", times.interaction_forward, vectors);
  compute(streams, "top MLP", times.top_forward);
  const OperationId top = compute(streams, "top MLP backward", times.top_backward);
  Operations reduced;
  // Gradients of cross layers are there only behind the interaction.
  const bool is_early = job_.overlaps_data() && !job_.workload.model.cross;
  if (is_early) {
    reduced = reduce(streams, "gradients of the top MLP", traffic_.top_gradients, {top});
  }
  const OperationId interaction =
      compute(streams, "interaction backward", times.interaction_backward);
  const Operations gradients = exchange(streams, false, {interaction});
  if (job_.overlaps_data() && !is_early) {
    reduced = reduce(streams, "gradients of the top MLP", traffic_.top_gradients, {interaction});
  }
  const OperationId bottom = compute(streams, "bottom MLP backward", times.bottom_backward,
                                     job_.overlaps_tables() ? Operations() : gradients);
  const OperationId updates = compute(streams, "update tables", times.updates, gradients);
  const OperationId ready = job_.overlaps_data() ? bottom : updates;
  if (!job_.overlaps_data()) {
    reduced = reduce(streams, "gradients of the top MLP", traffic_.top_gradients, {ready});
  }
  // Gradients of replicated tables are written with the updates.
  const Operations rest = reduce(streams, "other gradients", traffic_.bottom_gradients,
                                 {job_.sharding.replicated.parameters > 0 ? updates : ready});
  reduced.insert(reduced.end(), rest.begin(), rest.end());
  compute(streams, "optimizer", times.optimizer, reduced);
}

}  // namespace

OperationGraph lower_recommender(const RecommenderJob& job) {
  return RecommenderLowering(job).all();
}

std::string_view recommender_part_name(StepPart part) {
  constexpr std::array<std::string_view, kStepParts> kNames{
      "linear", "lookups", "memory_bound", "updates", "interaction", "",
      "",       "",        "indices",      "vectors", "data",        "",
      "",       "bubble",  "optimizer",    "jitter",  "fixed"};
  return kNames[static_cast<std::size_t>(part)];
}

}  // namespace trainyard
