// SPDX-License-Identifier: Apache-2.0
// Writes the operations of one rank into a graph (graph_lowering.h): its streams, its groups, and
// what the next operation has to wait for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "parallelism/graph/operation_graph.h"
#include "parallelism/lowering/pass_units.h"
#include "parallelism/model/parallel_plan.h"
#include "parallelism/model/rank_groups.h"

namespace trainyard {

// The groups of a plan as communicators of a graph, each once.
class PlanCommunicators {
 public:
  // The arguments must outlive this.
  PlanCommunicators(const ParallelPlan& plan, std::span<const int> server_of_rank,
                    std::span<const int> domain_of_rank, OperationGraph& graph)
      : plan_(plan),
        server_of_rank_(server_of_rank),
        domain_of_rank_(domain_of_rank),
        graph_(graph) {}

  // Returns the communicator with which `rank` works.
  [[nodiscard]] CommunicatorId of(RankGroupKind kind, int rank,
                                  ExpertPath path = ExpertPath::Group);
  // Returns the communicator of all ranks.
  [[nodiscard]] CommunicatorId all();

 private:
  [[nodiscard]] std::vector<int> part_of(const std::vector<int>& group, int rank,
                                         ExpertPath path) const;

  const ParallelPlan& plan_;
  std::span<const int> server_of_rank_;
  std::span<const int> domain_of_rank_;
  OperationGraph& graph_;
  std::map<std::tuple<RankGroupKind, ExpertPath, int>, CommunicatorId> of_rank_;
  std::map<std::tuple<RankGroupKind, ExpertPath, std::vector<int>>, CommunicatorId> of_ranks_;
  std::map<RankGroupKind, std::vector<int>> widest_;
  std::optional<CommunicatorId> all_;
};

// A unit whose computation is in the graph as mixes.
struct NamedUnit {
  std::string name;
  PassUnit work;
  std::vector<std::optional<std::uint32_t>> mixes;  // One of each phase that computes.
};

class LoweredRank {
 public:
  LoweredRank(int rank, OperationGraph& graph, PlanCommunicators& communicators)
      : rank_(rank), graph_(graph), communicators_(communicators) {}

  [[nodiscard]] int rank() const { return rank_; }
  // Returns the operations that have to end before the next one begins.
  [[nodiscard]] const std::vector<OperationId>& front() const { return front_; }
  void require(OperationId id) { front_.push_back(id); }
  [[nodiscard]] StreamId stream(const std::string& name, StreamOrder order = StreamOrder::Listed);
  // Lets `id` wait for those of them that are not on its stream.
  void link(const std::vector<OperationId>& before, OperationId id);

  // Adds computation after everything before.
  void compute(std::string_view name, StepPart part, SimTime time);
  void unit(const NamedUnit& unit);
  void calls(const std::vector<UnitCall>& calls, std::string_view name);
  void barrier(std::string_view name);
  // Adds work on another stream than computation, without the GPU: after everything before, or
  // beside what follows, after `before`.
  OperationId host(const std::string& on, std::string_view name, StepPart part, SimTime time);
  OperationId host_beside(const std::string& on, std::string_view name, StepPart part, SimTime time,
                          const std::vector<OperationId>& before);
  // Adds calls beside what follows, one after the other, after `before`; returns the last of them.
  std::optional<OperationId> calls_beside(const std::vector<UnitCall>& calls, std::string_view name,
                                          const std::vector<OperationId>& before);

  // Sends on the stream of computation, after everything before, or on one of its own.
  void send(std::string_view name, const GraphMessage& message, bool is_beside);
  void receive(std::string_view name, const GraphMessage& message, bool is_beside);

 private:
  [[nodiscard]] StreamId stream_of_message(std::string_view name, const GraphMessage& message,
                                           std::string_view direction, bool is_beside);
  OperationId add_call(const UnitCall& call, std::string_view name);
  void add_calls(const std::vector<UnitCall>& calls, std::string_view name,
                 const std::vector<OperationId>& before);
  void follow(OperationId id) {
    link(front_, id);
    front_.assign(1, id);
  }

  int rank_;
  OperationGraph& graph_;
  PlanCommunicators& communicators_;
  std::map<std::string, StreamId, std::less<>> streams_;
  std::vector<OperationId> front_;
};

}  // namespace trainyard
