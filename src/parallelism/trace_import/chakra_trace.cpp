// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/chakra_trace.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "parallelism/trace_import/chakra_nodes.h"
#include "parallelism/workload/imported_text.h"
#include "sim/json_complaint.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMaxTag = 0xffff'ffff;

// CollectiveCommType of the schema. ASTRA-sim takes the bytes that a rank puts in (Ring.cc), so
// what is gathered is as often more as there are ranks.
std::optional<Operation> operation_of(std::int64_t type) {
  constexpr std::array<std::optional<Operation>, 10> kOperations{Operation::AllReduce,
                                                                 Operation::Reduce,
                                                                 Operation::AllGather,
                                                                 std::nullopt,
                                                                 std::nullopt,
                                                                 Operation::Broadcast,
                                                                 Operation::AllToAll,
                                                                 Operation::ReduceScatter,
                                                                 Operation::ReduceScatter,
                                                                 Operation::Barrier};
  return kOperations[static_cast<std::size_t>(type)];
}

using RankGroups = std::map<std::string, std::vector<int>>;

// Ranks of {"pg_name": "0", "ranks": [0, 1]}, empty for all of them.
std::vector<int> ranks_of(const nlohmann::json& list, const std::string& place) {
  std::vector<int> ranks;
  if (!list.is_array()) {
    fail_imported(place, "ranks", "a list of ranks", "something else");
  }
  for (const nlohmann::json& rank : list) {
    if (!rank.is_number_unsigned() || rank.get<std::uint64_t>() > kMaxImportedRank) {
      fail_imported(place, "ranks", "a list of ranks", "something else");
    }
    ranks.push_back(rank.get<int>());
  }
  return ranks;
}

nlohmann::json json_of(std::string_view text, const std::string& place) {
  check_json_depth(place, text);
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& problem) {
    fail_json(place, text, problem);
  }
}

// Where the node with an id stands.
class NodeIndex {
 public:
  explicit NodeIndex(const std::vector<ChakraNode>& nodes) {
    for (std::size_t index = 0; index < nodes.size(); ++index) {
      places_.emplace_back(nodes[index].id, index);
    }
    std::sort(places_.begin(), places_.end());
    const auto again =
        std::adjacent_find(places_.begin(), places_.end(),
                           [](const auto& a, const auto& b) { return a.first == b.first; });
    if (again != places_.end()) {
      fail_imported(nodes[std::next(again)->second].place(), "id", "a number of its own",
                    std::to_string(again->first));
    }
  }

  [[nodiscard]] std::optional<std::size_t> find(std::uint64_t id) const {
    const auto found =
        std::lower_bound(places_.begin(), places_.end(), id,
                         [](const auto& each, std::uint64_t value) { return each.first < value; });
    return found == places_.end() || found->first != id ? std::nullopt
                                                        : std::optional(found->second);
  }

 private:
  std::vector<std::pair<std::uint64_t, std::size_t>> places_;  // Sorted by id.
};

class ChakraGraph {
 public:
  ChakraGraph(const std::vector<ImportedFile>& files, const ImportedTarget& target)
      : target_(target), groups_(target.groups) {
    read_files(files);
    ranks_ = count_ranks();
    workload_.emplace(ImportedWorkload{.format = ImportedFormat::Chakra,
                                       .graph = graph_of_traced(ranks_, files_)});
  }

  ImportedWorkload build() {
    for (const auto& [rank, file] : files_) {
      const ImportedFile read = with_text(*file);
      add_rank(rank, read_chakra_nodes(read));
    }
    if (files_.size() < static_cast<std::size_t>(ranks_)) {
      workload_->notes.push_back(fmt::format(
          "{} of {} ranks have a trace: the others are taken to come to every call in time",
          files_.size(), ranks_));
    }
    const auto count = [&](std::size_t number, std::string_view what) {
      if (number > 0) {
        workload_->left_out.push_back(fmt::format("{} {}", number, what));
      }
    };
    count(metadata_, "nodes of metadata: only what waits for them counts");
    count(dimensions_, "lists of involved_dim: groups say who takes part");
    if (!unused_.empty()) {
      workload_->left_out.push_back(
          fmt::format("attributes without an effect: {}",
                      escaped(fmt::format("{}", fmt::join(unused_, ", ")))));
    }
    return std::move(*workload_);
  }

 private:
  // Groups come first, as they say how many ranks there are; nodes are then held of one rank at a
  // time.
  void read_files(const std::vector<ImportedFile>& files) {
    for (const ImportedFile& file : files) {
      const int rank = file.rank.value_or(0);
      const ImportedFile read = with_text(file);
      for (const ChakraNode& node : read_chakra_nodes(read, ChakraPart::Groups)) {
        read_group_metadata(node);
      }
      if (!files_.emplace(rank, &file).second) {
        fail_imported(file.name, "", "a rank of its own in its name",
                      fmt::format("{} again", rank));
      }
    }
  }

  // PyTorch's node of process groups: "['[{"pg_name": "0", "ranks": []}]']".
  void read_group_metadata(const ChakraNode& node) {
    if (node.name.find("process_group:init") == std::string::npos || node.inputs.size() < 4) {
      return;
    }
    const nlohmann::json list =
        json_of(std::string_view(node.inputs).substr(2, node.inputs.size() - 4), node.place());
    if (!list.is_array()) {
      fail_imported(node.place(), "inputs", "a list of process groups", "something else");
    }
    for (const nlohmann::json& group : list) {
      if (!group.is_object() || !group.contains("pg_name") || !group["pg_name"].is_string() ||
          !group.contains("ranks")) {
        fail_imported(node.place(), "inputs", "process groups with pg_name and ranks",
                      "something else");
      }
      groups_[group["pg_name"].get<std::string>()] = ranks_of(group["ranks"], node.place());
    }
  }

  int count_ranks() {
    int ranks = files_.rbegin()->first + 1;
    for (const auto& [name, group] : groups_) {
      for (const int rank : group) {
        ranks = std::max(ranks, rank + 1);
      }
    }
    if (files_.size() == 1 && ranks == 1) {
      ranks = target_.gpus();  // Nothing says how many there are: those of the cluster.
    }
    if (ranks > target_.gpus()) {
      fail_imported(files_.begin()->second->name, "",
                    fmt::format("at most {} ranks, the GPUs of the cluster", target_.gpus()),
                    std::to_string(ranks));
    }
    return ranks;
  }

  // Returns the order by dependencies, then recorded start, then place in the file; of a cycle,
  // which check() names, as in the file.
  static std::vector<std::size_t> order_of(const std::vector<ChakraNode>& nodes,
                                           const NodeIndex& index_of) {
    // Those that wait for each node, one after the other: from first[i] up to first[i + 1].
    std::vector<std::size_t> first(nodes.size() + 1, 0);
    std::vector<std::size_t> waits(nodes.size(), 0);
    for (std::size_t index = 0; index < nodes.size(); ++index) {
      for (const std::uint64_t before : nodes[index].dependencies) {
        const std::optional<std::size_t> found = index_of.find(before);
        if (!found) {
          fail_imported(nodes[index].place(), "dependencies", "a node of the file",
                        std::to_string(before));
        }
        ++first[*found + 1];
        ++waits[index];
      }
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::size_t> after(first.back());
    std::vector<std::size_t> next_free(first.begin(), first.end() - 1);
    for (std::size_t index = 0; index < nodes.size(); ++index) {
      for (const std::uint64_t before : nodes[index].dependencies) {
        after[next_free[*index_of.find(before)]++] = index;
      }
    }
    using Key = std::tuple<std::uint64_t, std::size_t>;
    std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
    for (std::size_t index = 0; index < nodes.size(); ++index) {
      if (waits[index] == 0) {
        ready.emplace(nodes[index].start_micros, index);
      }
    }
    std::vector<std::size_t> order;
    while (!ready.empty()) {
      const std::size_t index = std::get<1>(ready.top());
      ready.pop();
      order.push_back(index);
      for (std::size_t at = first[index]; at < first[index + 1]; ++at) {
        const std::size_t next = after[at];
        if (--waits[next] == 0) {
          ready.emplace(nodes[next].start_micros, next);
        }
      }
    }
    for (std::size_t index = 0; index < nodes.size(); ++index) {
      if (waits[index] > 0) {
        order.push_back(index);
      }
    }
    return order;
  }

  void add_rank(int rank, const std::vector<ChakraNode>& nodes) {
    streams_.clear();
    const NodeIndex index_of(nodes);
    std::vector<OperationId> operations(nodes.size());
    const std::vector<std::size_t> order = order_of(nodes, index_of);
    for (const std::size_t index : order) {
      operations[index] = add_node(rank, nodes[index]);
    }
    for (const std::size_t index : order) {
      for (const std::uint64_t before : nodes[index].dependencies) {
        workload_->graph.add_dependency(operations[*index_of.find(before)], operations[index]);
      }
    }
  }

  StreamId stream(int rank, const std::string& name, StreamOrder order) {
    const auto [entry, is_new] = streams_.try_emplace(name);
    if (is_new) {
      entry->second = workload_->graph.add_stream(rank, name, order);
    }
    return entry->second;
  }

  // "NAME, node 5": the number apart, as nodes are many and their names few.
  GraphName name_of(const ChakraNode& node) {
    const auto number = static_cast<std::uint32_t>(node.id);
    if (number == 0 || number != node.id) {
      return {.text = workload_->graph.add_name(fmt::format("{}, node {}", node.name, node.id))};
    }
    return {.text = workload_->graph.add_name(fmt::format("{}, node ", node.name)),
            .number = number};
  }

  OperationId add_node(int rank, const ChakraNode& node) {
    note_attributes(node);
    const GraphName name = name_of(node);
    OperationGraph& graph = workload_->graph;
    switch (node.type) {
      case ChakraType::Metadata:
        ++metadata_;
        return graph.add_host(stream(rank, "metadata", StreamOrder::Free), name, StepPart::Host,
                              SimTime());
      case ChakraType::Compute:
      case ChakraType::MemoryLoad:
      case ChakraType::MemoryStore:
        return add_work(rank, node, name);
      case ChakraType::Send:
      case ChakraType::Receive:
        return add_message(rank, node, name);
      case ChakraType::Collective:
        return add_call(rank, node, name);
      case ChakraType::Invalid:
        break;
    }
    fail_imported(node.place(), "type", "a type of node", "INVALID_NODE");
  }

  void note_attributes(const ChakraNode& node) {
    constexpr std::array<std::string_view, 10> kUsed{
        "is_cpu_op", "comm_type", "comm_size", "comm_src", "comm_dst",
        "comm_tag",  "pg_name",   "stream",    "num_ops",  "involved_dim"};
    for (const auto& [name, value] : node.attributes) {
      if (std::find(kUsed.begin(), kUsed.end(), name) == kUsed.end()) {
        unused_.insert(name);
      }
    }
  }

  OperationId add_work(int rank, const ChakraNode& node, GraphName name) {
    if (node.duration_micros == 0 &&
        (node.type != ChakraType::Compute || node.number_or("num_ops", kMaxCount, 0) > 0)) {
      fail_imported(node.place(), "duration_micros",
                    "a recorded time: the work alone does not say what it takes", "0");
    }
    if (node.duration_micros > static_cast<std::uint64_t>(kMaxCount)) {
      fail_imported(node.place(), "duration_micros", "a time",
                    std::to_string(node.duration_micros));
    }
    const SimTime time = times_.add(
        static_cast<std::int64_t>(node.duration_micros), microseconds(1),
        [&] { return node.place(); }, "duration_micros");
    OperationGraph& graph = workload_->graph;
    if (node.type != ChakraType::Compute) {
      return graph.add_compute(stream(rank, "memory", StreamOrder::Ready), name,
                               StepPart::MemoryBound, time);
    }
    if (node.number_or("is_cpu_op", 1, 0) == 1) {
      return graph.add_host(stream(rank, "cpu", StreamOrder::Ready), name, StepPart::Host, time);
    }
    const std::string gpu =
        node.has("stream") ? fmt::format("stream {}", node.number("stream", kMaxCount)) : "gpu";
    return graph.add_compute(stream(rank, gpu, StreamOrder::Ready), name, StepPart::Linear, time);
  }

  // Reads the attribute that names the rank itself, if it is there, and that of its peer.
  OperationId add_message(int rank, const ChakraNode& node, GraphName name) {
    const bool sends = node.type == ChakraType::Send;
    const char* const own = sends ? "comm_src" : "comm_dst";
    if (node.number_or(own, kMaxImportedRank, rank) != rank) {
      fail_imported(node.place(), own, fmt::format("{}, the rank of the file", rank),
                    std::to_string(node.number(own, kMaxImportedRank)));
    }
    const char* const other = sends ? "comm_dst" : "comm_src";
    const auto peer = static_cast<int>(node.number(other, kMaxImportedRank));
    if (peer == rank || peer >= ranks_) {
      fail_imported(node.place(), other, fmt::format("another rank, from 0 to {}", ranks_ - 1),
                    std::to_string(peer));
    }
    const GraphMessage message{
        .peer = peer,
        .size = Bytes(node.number("comm_size", kMaxImportedBytes)),
        .tag = static_cast<std::uint32_t>(node.number_or("comm_tag", kMaxTag, 0)),
        .handover = Handover::Eager};
    OperationGraph& graph = workload_->graph;
    const StreamId on = stream(rank, sends ? "send" : "receive", StreamOrder::Free);
    return sends ? graph.add_send(on, name, StepPart::Pipeline, message)
                 : graph.add_receive(on, name, StepPart::Pipeline, message);
  }

  OperationId add_call(int rank, const ChakraNode& node, GraphName name) {
    constexpr std::int64_t kMaxType = 9;
    const std::int64_t type = node.number("comm_type", kMaxType);
    const std::optional<Operation> operation = operation_of(type);
    if (!operation) {
      fail_imported(node.place(), "comm_type",
                    "a collective that is modelled, not gather or scatter", std::to_string(type));
    }
    const CommunicatorId communicator = communicator_of(node);
    const GraphCommunicator& group = workload_->graph.communicators()[communicator.value()];
    const auto members = static_cast<std::int64_t>(group.ranks.size());
    const bool gathers = *operation == Operation::AllGather;
    const std::int64_t size = *operation == Operation::Barrier
                                  ? 0
                                  : node.number("comm_size", kMaxImportedBytes / members);
    return workload_->graph.add_collective(stream(rank, group.name, StreamOrder::Listed), name,
                                           StepPart::Data,
                                           {.communicator = communicator,
                                            .operation = *operation,
                                            .size = Bytes(gathers ? size * members : size)});
  }

  CommunicatorId communicator_of(const ChakraNode& node) {
    const ChakraValue* const dimensions = node.attribute("involved_dim");
    const std::vector<bool>* const involved =
        dimensions == nullptr ? nullptr : std::get_if<std::vector<bool>>(dimensions);
    const std::string group = node.text_or_none("pg_name");
    if (group.empty() && involved != nullptr &&
        std::find(involved->begin(), involved->end(), false) != involved->end()) {
      fail_imported(node.place(), "involved_dim",
                    "all dimensions or a pg_name: the file does not say which ranks lie along one",
                    "some dimensions");
    }
    dimensions_ += !group.empty() && involved != nullptr ? 1 : 0;
    const auto [entry, is_new] = communicators_.try_emplace(group);
    if (is_new) {
      entry->second = workload_->graph.add_communicator(
          group.empty() ? "all ranks" : fmt::format("process group {}", in_quotes(group)),
          ranks_of_group(node, group));
    }
    return entry->second;
  }

  // All ranks, for no group and one that lists none.
  std::vector<int> ranks_of_group(const ChakraNode& node, const std::string& group) {
    std::vector<int> ranks(static_cast<std::size_t>(ranks_));
    std::iota(ranks.begin(), ranks.end(), 0);
    if (group.empty()) {
      return ranks;
    }
    const auto found = groups_.find(group);
    if (found == groups_.end()) {
      fail_imported(node.place(), "pg_name",
                    "a group of --comm-groups or of a process_group:init node", in_quotes(group));
    }
    return found->second.empty() ? ranks : found->second;
  }

  static constexpr std::int64_t kMaxCount = std::int64_t{1} << 53;

  const ImportedTarget& target_;
  RankGroups groups_;
  std::map<int, const ImportedFile*> files_;  // The file of each rank.
  int ranks_ = 0;
  std::optional<ImportedWorkload> workload_;
  std::map<std::string, CommunicatorId> communicators_;  // The names are those of groups.
  std::map<std::string, StreamId> streams_;              // Streams of the rank.
  ImportedTimes times_;
  std::size_t metadata_ = 0;
  std::size_t dimensions_ = 0;
  std::set<std::string> unused_;
};

}  // namespace

ImportedWorkload read_chakra(const std::vector<ImportedFile>& files, const ImportedTarget& target) {
  return ChakraGraph(files, target).build();
}

std::map<std::string, std::vector<int>> read_comm_groups(const ImportedFile& file) {
  const nlohmann::json root = json_of(file.text, file.name);
  if (!root.is_object()) {
    fail_imported(file.name, "", "an object with a list of ranks for each group", "something else");
  }
  RankGroups groups;
  for (const auto& [name, list] : root.items()) {
    groups[name] = ranks_of(list, file.name + ": " + escaped(name));
  }
  return groups;
}

}  // namespace trainyard
