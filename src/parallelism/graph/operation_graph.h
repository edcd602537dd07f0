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
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule/operation.h"
#include "parallelism/graph/name_table.h"
#include "parallelism/operators/step_parts.h"
#include "sim/ids.h"
#include "sim/units.h"

namespace trainyard {

using OperationId = Id<struct GraphOperationTag>;
using StreamId = Id<struct GraphStreamTag>;
using CommunicatorId = Id<struct GraphCommunicatorTag>;
using NameId = Id<struct GraphNameTag>;

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

  auto operator<=>(const GraphCall&) const = default;
};

// One end of a message.
struct GraphMessage {
  int peer = 0;
  Bytes size{};
  std::uint32_t tag = 0;
  Handover handover = Handover::Buffered;
};

// A text, and after it a number unless that is zero: operations of traces, which are millions,
// differ in nothing but the line or the id that they stand at.
struct GraphName {
  NameId text;
  std::uint32_t number = 0;
};

struct GraphOperation {
  GraphOperationKind kind = GraphOperationKind::Compute;
  StepPart part = StepPart::Linear;  // Part that its time is counted as.
  StreamId stream;
  GraphName name = {};
  SimTime time = {};  // Time of Compute and Host.
  // For Compute: parts that `time` is made of, instead of `part`.
  std::optional<std::uint32_t> mix = {};
  GraphCall call = {};        // Call of Collective.
  GraphMessage message = {};  // Message of Send and Receive.
};

struct GraphDependency {
  OperationId before;
  OperationId after;
};

class OperationGraph;

// The operations of a graph in the order in which they were added, each put together when it is
// asked for.
class GraphOperations {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = GraphOperation;
    using difference_type = std::ptrdiff_t;
    using reference = GraphOperation;
    using pointer = void;

    Iterator() = default;
    Iterator(const OperationGraph* graph, std::uint32_t index) : graph_(graph), index_(index) {}
    inline GraphOperation operator*() const;
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) { return {graph_, index_++}; }
    bool operator==(const Iterator&) const = default;

   private:
    const OperationGraph* graph_ = nullptr;
    std::uint32_t index_ = 0;
  };

  GraphOperations(const OperationGraph& graph, std::size_t size) : graph_(&graph), size_(size) {}
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] inline GraphOperation operator[](std::size_t index) const;
  [[nodiscard]] Iterator begin() const { return {graph_, 0}; }
  [[nodiscard]] Iterator end() const { return {graph_, static_cast<std::uint32_t>(size_)}; }

 private:
  const OperationGraph* graph_;
  std::size_t size_;
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

  // Equal texts are one.
  NameId add_name(std::string_view text);

  OperationId add_compute(StreamId stream, std::string_view name, StepPart part, SimTime time);
  OperationId add_compute(StreamId stream, GraphName name, StepPart part, SimTime time);
  OperationId add_compute(StreamId stream, std::string_view name, std::uint32_t mix);
  OperationId add_host(StreamId stream, std::string_view name, StepPart part, SimTime time);
  OperationId add_host(StreamId stream, GraphName name, StepPart part, SimTime time);
  OperationId add_collective(StreamId stream, std::string_view name, StepPart part,
                             const GraphCall& call);
  OperationId add_collective(StreamId stream, GraphName name, StepPart part, const GraphCall& call);
  OperationId add_send(StreamId stream, std::string_view name, StepPart part,
                       const GraphMessage& message);
  OperationId add_send(StreamId stream, GraphName name, StepPart part, const GraphMessage& message);
  OperationId add_receive(StreamId stream, std::string_view name, StepPart part,
                          const GraphMessage& message);
  OperationId add_receive(StreamId stream, GraphName name, StepPart part,
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
  [[nodiscard]] GraphOperations operations() const { return {*this, operations_.size()}; }
  [[nodiscard]] std::span<const GraphDependency> dependencies() const { return dependencies_; }
  [[nodiscard]] std::span<const StepParts> mixes() const { return mixes_; }

  [[nodiscard]] GraphOperation operation(OperationId id) const {
    return unpacked(operations_[id.value()]);
  }
  [[nodiscard]] const GraphStream& stream_of(OperationId id) const {
    return streams_[operations_[id.value()].stream.value()];
  }
  [[nodiscard]] int rank_of(OperationId id) const { return stream_of(id).rank; }
  [[nodiscard]] std::string name_of(OperationId id) const;
  // "rank 3, tensor: all_reduce of layer 7": how messages name an operation.
  [[nodiscard]] std::string describe(OperationId id) const;

 private:
  // Holds an operation in 32 bytes, as traces have millions of them.
  struct Packed {
    GraphOperationKind kind;
    StepPart part;
    Handover handover;  // Handover of a message.
    bool has_mix;
    StreamId stream;
    GraphName name;
    std::uint32_t index;  // Mix of Compute, call of Collective, peer of messages.
    std::uint32_t tag;    // Tag of a message.
    std::int64_t amount;  // Picoseconds of Compute and Host, bytes of messages.
  };
  static_assert(sizeof(Packed) == 32);

  OperationId add(const GraphOperation& operation);
  [[nodiscard]] GraphOperation unpacked(const Packed& packed) const;

  int ranks_;
  bool is_folded_;
  std::vector<int> present_;
  std::vector<GraphStream> streams_;
  std::vector<GraphCommunicator> communicators_;
  std::vector<Packed> operations_;
  std::vector<GraphDependency> dependencies_;
  std::vector<StepParts> mixes_;
  std::vector<GraphCall> calls_;
  std::map<GraphCall, std::uint32_t> call_ids_;
  NameTable names_;
};

inline GraphOperation OperationGraph::unpacked(const Packed& packed) const {
  GraphOperation operation{
      .kind = packed.kind, .part = packed.part, .stream = packed.stream, .name = packed.name};
  switch (packed.kind) {
    case GraphOperationKind::Compute:
    case GraphOperationKind::Host:
      operation.time = SimTime(packed.amount);
      if (packed.has_mix) {
        operation.mix = packed.index;
      }
      break;
    case GraphOperationKind::Collective:
      operation.call = calls_[packed.index];
      break;
    case GraphOperationKind::Send:
    case GraphOperationKind::Receive:
      operation.message = {.peer = static_cast<int>(packed.index),
                           .size = Bytes(packed.amount),
                           .tag = packed.tag,
                           .handover = packed.handover};
      break;
  }
  return operation;
}

inline GraphOperation GraphOperations::operator[](std::size_t index) const {
  return graph_->operation(OperationId(static_cast<std::uint32_t>(index)));
}
inline GraphOperation GraphOperations::Iterator::operator*() const {
  return graph_->operation(OperationId(index_));
}

// Throws ConfigError, one line that begins with `place`, unless: ranks and members are in range and
// different; every call of a communicator is made by all its members in the graph, with the same
// operation and size; every send has its receive, of the same size; and no operation waits for
// itself.
void check(const OperationGraph& graph, std::string_view place);

}  // namespace trainyard
