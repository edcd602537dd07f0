// SPDX-License-Identifier: Apache-2.0
// The operations of a training job on its ranks, and what each of them waits for.
//
// A rank has streams, as a GPU has; the operations of one stream run one after the other, in the
// order in which they were added, or as StreamOrder says. An operation starts when the one before
// it on its stream has ended and all its dependencies have, on whatever rank they are. A collective
// is one call of a communicator: the n-th that a rank adds is the same call as the n-th of every
// other member, and runs when all of them have come. A message joins a send with a receive in the
// same way: the n-th send from a to b with some tag goes to the n-th receive of b from a with it.
//
// A graph may be folded: ranks that do the same at the same time are stood for by one of them. Then
// only those are in the graph, and members of a communicator that are not take part unseen.
//
// The builder of a graph calls check() before it is run (graph_runner.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule/operation.h"
#include "parallelism/operators/step_parts.h"
#include "sim/ids.h"
#include "sim/units.h"

namespace trainyard {

using OperationId = Id<struct GraphOperationTag>;
using StreamId = Id<struct GraphStreamTag>;
using CommunicatorId = Id<struct GraphCommunicatorTag>;

enum class GraphOperationKind : std::uint8_t {
  Compute,  // Computation of the GPU.
  Host,     // Time passes without the GPU: launches, loading of data.
  Collective,
  Send,
  Receive,
};

enum class StreamOrder : std::uint8_t {
  Listed,  // One after the other, as they were added.
  Ready,   // One at a time, as they become ready. Only for Compute and Host, which meet nobody.
  Free,    // Each when it is ready.
};

enum class Handover : std::uint8_t {
  // The sender does not wait: it is busy for the time of the message from its own start, the
  // receiver for as long, not before the sender began.
  Buffered,
  // Both begin when both are there, as NCCL's send and receive do, and end together.
  Rendezvous,
  // The sender does not wait; the receiver ends when the message has arrived, at once where it is
  // there already, as MPI's eager messages are.
  Eager,
};

struct GraphStream {
  int rank = 0;
  std::string name;  // "compute", "tensor", ...
  StreamOrder order = StreamOrder::Listed;
};

struct GraphCommunicator {
  std::string name;
  std::vector<int> ranks;  // In the order of the communicator, those not in the graph as well.
  // Ranks whose times the calls take where calls have times of their own (TimedTraffic), as many,
  // for groups that are alike; empty: `ranks`.
  std::vector<int> timed_as = {};
};

// One call of a communicator, as one rank makes it.
struct GraphCall {
  CommunicatorId communicator;
  // SendReceive: every member sends to the next one. Barrier: takes no time.
  Operation operation = Operation::AllReduce;
  Bytes size{};   // In the sense of nccl-tests.
  int times = 1;  // One after the other.
  // While computation runs beside it on a rank, both take 1 + this / 10^6 of their time.
  std::int32_t slowdown_ppm = 0;

  bool operator==(const GraphCall&) const = default;
};

// One end of a message.
struct GraphMessage {
  int peer = 0;
  Bytes size{};
  std::uint32_t tag = 0;
  Handover handover = Handover::Buffered;
};

struct GraphOperation {
  GraphOperationKind kind = GraphOperationKind::Compute;
  StepPart part = StepPart::Linear;  // Part that its time is counted as.
  StreamId stream;
  std::uint32_t name = 0;  // OperationGraph::name().
  SimTime time = {};       // Time of Compute and Host.
  // For Compute: parts that `time` is made of, instead of `part`.
  std::optional<std::uint32_t> mix = {};
  GraphCall call = {};        // Call of Collective.
  GraphMessage message = {};  // Message of Send and Receive.
};

struct GraphDependency {
  OperationId before;
  OperationId after;
};

class OperationGraph {
 public:
  // Makes a graph of ranks 0 to ranks - 1, all of which are in it.
  explicit OperationGraph(int ranks);
  // Makes a graph of as many ranks, of which only these are in it.
  OperationGraph(int ranks, std::vector<int> representatives);

  // Ranks and members are checked by check(); ids must be of this graph.
  StreamId add_stream(int rank, std::string name, StreamOrder order = StreamOrder::Listed);
  CommunicatorId add_communicator(std::string name, std::vector<int> ranks,
                                  std::vector<int> timed_as = {});
  // Parts of computation that operations are made of, for add_compute.
  std::uint32_t add_mix(const StepParts& parts);

  OperationId add_compute(StreamId stream, std::string_view name, StepPart part, SimTime time);
  OperationId add_compute(StreamId stream, std::string_view name, std::uint32_t mix);
  OperationId add_host(StreamId stream, std::string_view name, StepPart part, SimTime time);
  OperationId add_collective(StreamId stream, std::string_view name, StepPart part,
                             const GraphCall& call);
  OperationId add_send(StreamId stream, std::string_view name, StepPart part,
                       const GraphMessage& message);
  OperationId add_receive(StreamId stream, std::string_view name, StepPart part,
                          const GraphMessage& message);
  // Adds a dependency between any two operations; those of one stream that runs as listed need
  // none.
  void add_dependency(OperationId before, OperationId after);

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] bool is_folded() const { return is_folded_; }
  // Returns the ranks in the graph, rising.
  [[nodiscard]] std::span<const int> present() const { return present_; }
  [[nodiscard]] bool has_rank(int rank) const;
  [[nodiscard]] std::span<const GraphStream> streams() const { return streams_; }
  [[nodiscard]] std::span<const GraphCommunicator> communicators() const { return communicators_; }
  [[nodiscard]] std::span<const GraphOperation> operations() const { return operations_; }
  [[nodiscard]] std::span<const GraphDependency> dependencies() const { return dependencies_; }
  [[nodiscard]] std::span<const StepParts> mixes() const { return mixes_; }

  [[nodiscard]] const GraphOperation& operation(OperationId id) const {
    return operations_[id.value()];
  }
  [[nodiscard]] const GraphStream& stream_of(OperationId id) const {
    return streams_[operation(id).stream.value()];
  }
  [[nodiscard]] int rank_of(OperationId id) const { return stream_of(id).rank; }
  [[nodiscard]] const std::string& name_of(OperationId id) const {
    return names_[operation(id).name];
  }
  // "rank 3, tensor: all_reduce of layer 7": how messages name an operation.
  [[nodiscard]] std::string describe(OperationId id) const;

 private:
  OperationId add(GraphOperation operation, std::string_view name);

  int ranks_;
  bool is_folded_;
  std::vector<int> present_;
  std::vector<GraphStream> streams_;
  std::vector<GraphCommunicator> communicators_;
  std::vector<GraphOperation> operations_;
  std::vector<GraphDependency> dependencies_;
  std::vector<StepParts> mixes_;
  std::vector<std::string> names_;
  std::map<std::string, std::uint32_t, std::less<>> name_ids_;
};

// An event on several ranks at once: a call of a communicator, or a message.
struct GraphMeeting {
  // For a call those that make it, in the order in which they were added; for a message the send,
  // then the receive.
  std::vector<OperationId> members;
  std::size_t expected = 0;  // Members, where nobody is missing.
  // Number of its kind for that communicator, or for the two ends and the tag.
  int number = 0;
};

struct GraphMeetings {
  std::vector<GraphMeeting> meetings;
  // The meeting of each operation; nothing for Compute and Host.
  std::vector<std::optional<std::uint32_t>> of_operation;
};

// Pairs up calls and messages by their numbers. Meetings in which somebody is missing are in it.
[[nodiscard]] GraphMeetings meetings_of(const OperationGraph& graph);

// Lists which operations wait for which, by their streams and dependencies.
struct GraphSuccessors {
  // The operations that wait for operation i: next[first[i]] to next[first[i + 1] - 1], the one on
  // its stream first.
  std::vector<std::size_t> first;
  std::vector<OperationId> next;
  std::vector<std::uint32_t> waits;  // Number of operations that each operation waits for.
};
[[nodiscard]] GraphSuccessors successors_of(const OperationGraph& graph);

// Throws ConfigError, one line that begins with `place`, unless: ranks and members are in range and
// different; every call of a communicator is made by all its members in the graph, with the same
// operation and size; every send has its receive, of the same size; and no operation waits for
// itself.
void check(const OperationGraph& graph, std::string_view place);

}  // namespace trainyard
