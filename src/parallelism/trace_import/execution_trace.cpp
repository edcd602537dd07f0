// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/execution_trace.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

using ExecutionJson = nlohmann::json;

constexpr std::string_view kCallNode = "record_param_comms";

class ExecutionReader {
 public:
  explicit ExecutionReader(const ImportedFile& file) : file_(file) {}

  ExecutionTrace read() {
    trace_.name = file_.name;
    const ExecutionJson root = ExecutionJson::parse(file_.text, nullptr, false);
    if (!root.is_object() || !root.contains("nodes") || !root["nodes"].is_array()) {
      fail_imported(file_.name, "nodes", "a list of nodes in JSON", "none");
    }
    std::optional<std::int64_t> rank;
    for (const ExecutionJson& node : root["nodes"]) {
      if (!node.is_object() || !node.contains("name") || node["name"] != kCallNode) {
        continue;
      }
      place_ = fmt::format("{}: node {}", file_.name,
                           node.contains("id") ? shortened(node["id"].dump()) : "without id");
      const std::optional<std::int64_t> of_call = read_call(node);
      if (of_call && rank.value_or(*of_call) != *of_call) {
        fail_imported(place_, "inputs", fmt::format("the rank {} of the others", *rank),
                      std::to_string(*of_call));
      }
      rank = of_call ? of_call : rank;
    }
    if (rank) {
      trace_.rank = static_cast<int>(*rank);
    }
    return std::move(trace_);
  }

 private:
  [[nodiscard]] std::int64_t whole(const ExecutionJson& value, std::int64_t max,
                                   std::string_view what) const {
    if (!value.is_number_integer() || value < 0 || value > max) {
      fail_imported(place_, "inputs", fmt::format("{} from 0 to {}", what, max),
                    shortened(value.dump(-1, ' ', false, ExecutionJson::error_handler_t::replace)));
    }
    return value.get<std::int64_t>();
  }

  // [tensor, storage, offset, elements, bytes of one, device], or a list of these.
  [[nodiscard]] std::int64_t bytes_of(const ExecutionJson& value) const {
    constexpr std::size_t kTensorFields = 6;
    if (!value.is_array() || value.empty()) {
      return 0;
    }
    if (value.size() == kTensorFields && value[0].is_number()) {
      constexpr std::int64_t kMaxElement = 64;
      const std::int64_t element = whole(value[4], kMaxElement, "bytes of an element");
      return whole(value[3], kMaxImportedBytes / kMaxElement, "elements") * element;
    }
    std::int64_t sum = 0;
    for (const ExecutionJson& each : value) {
      sum += bytes_of(each);
    }
    return sum;
  }

  static bool are_equal(const ExecutionJson& splits) {
    return !splits.is_array() ||
           std::adjacent_find(splits.begin(), splits.end(), std::not_equal_to<>()) == splits.end();
  }

  // Nothing where they are not evenly apart.
  static std::optional<std::vector<int>> ranks_of(const ExecutionJson& first,
                                                  const ExecutionJson& stride, std::int64_t size) {
    if (!first.is_number_integer() || !stride.is_number_integer() || first < 0 || stride < 1 ||
        first > kMaxImportedRank || stride > kMaxImportedRank || size < 1 ||
        first.get<std::int64_t>() + (size - 1) * stride.get<std::int64_t>() > kMaxImportedRank) {
      return std::nullopt;
    }
    std::vector<int> ranks;
    for (std::int64_t index = 0; index < size; ++index) {
      ranks.push_back(
          static_cast<int>(first.get<std::int64_t>() + index * stride.get<std::int64_t>()));
    }
    return ranks;
  }

  // The values of inputs or outputs.
  [[nodiscard]] ExecutionJson values_of(const ExecutionJson& node, const char* key) const {
    const auto found = node.find(key);
    ExecutionJson values = found == node.end() ? ExecutionJson() : *found;
    if (values.is_object() && values.contains("values")) {
      values = ExecutionJson(values["values"]);
    }
    if (!values.is_array()) {
      fail_imported(place_, key, "a list of values", "none");
    }
    return values;
  }

  // Operations with a root, or another end, name it where others have the rank.
  static bool has_root(std::string_view name) {
    constexpr std::array<std::string_view, 8> kNames{
        "broadcast", "_broadcast_oop", "reduce", "_reduce_oop",
        "gather",    "scatter",        "send",   "recv"};
    return std::ranges::find(kNames, name) != kNames.end();
  }

  // Returns the rank where it is stated; a wait is no call, and states none.
  std::optional<std::int64_t> read_call(const ExecutionJson& node) {
    const ExecutionJson inputs = values_of(node, "inputs");
    const auto found = std::find_if(inputs.begin(), inputs.end(),
                                    [](const ExecutionJson& value) { return value.is_string(); });
    const auto at = static_cast<std::size_t>(found - inputs.begin());
    if (found == inputs.end() || at < 2) {
      fail_imported(place_, "inputs", "a group, a rank and the name of an operation", "none");
    }
    ExecutionCall call{.place = place_, .name = found->get<std::string>(), .group = {}};
    if (call.name == "wait") {
      return std::nullopt;
    }
    call.group = inputs[at - 2].dump(-1, ' ', false, ExecutionJson::error_handler_t::replace);
    for (std::size_t index = 0; index + 2 < at; ++index) {
      call.in += Bytes(bytes_of(inputs[index]));
    }
    for (const ExecutionJson& value : values_of(node, "outputs")) {
      call.out += Bytes(bytes_of(value));
    }
    for (std::size_t index = at + 1; index < std::min(at + 3, inputs.size()); ++index) {
      call.has_equal_splits = call.has_equal_splits && are_equal(inputs[index]);
    }
    if (inputs.size() > at + 5) {
      call.group_size = whole(inputs[at + 5], kMaxImportedRank, "ranks of the group");
      call.ranks = ranks_of(inputs[at + 3], inputs[at + 4], call.group_size);
    }
    const std::int64_t rank = whole(inputs[at - 1], kMaxImportedRank, "a rank");
    trace_.calls.push_back(std::move(call));
    return has_root(trace_.calls.back().name) ? std::nullopt : std::optional(rank);
  }

  const ImportedFile& file_;
  std::string place_;
  ExecutionTrace trace_;
};

// Whether a kernel of that name can run the operation: older kernels are named after theirs.
bool may_run(std::string_view kernel, Operation operation) {
  struct Kernel {
    std::string_view text;
    std::vector<Operation> operations;
  };
  static const std::vector<Kernel> kKernels{
      {"AllReduce", {Operation::AllReduce, Operation::Barrier}},
      {"AllGather", {Operation::AllGather}},
      {"ReduceScatter", {Operation::ReduceScatter}},
      {"Broadcast", {Operation::Broadcast, Operation::AllGather}},
      {"SendRecv", {Operation::AllToAll}},
  };
  const auto found = std::find_if(kKernels.begin(), kKernels.end(), [&](const Kernel& each) {
    return kernel.find(each.text) != std::string_view::npos;
  });
  return found == kKernels.end() || std::find(found->operations.begin(), found->operations.end(),
                                              operation) != found->operations.end();
}

std::set<std::string> groups_of(const ExecutionTrace& calls) {
  std::set<std::string> groups;
  for (const ExecutionCall& call : calls.calls) {
    groups.insert(call.group);
  }
  return groups;
}

// Makes the event the call, or says why it is only recorded.
void set_call(KinetoEvent& event, const ExecutionCall& call) {
  const KinetoCallName* const name = kineto_call_of(call.name);
  if (name == nullptr || !call.has_equal_splits) {
    event.kind = KinetoKind::Recorded;
    event.unknown = name == nullptr ? kUnmodelledCollective : kUnequalSplits;
    return;
  }
  event.kind = KinetoKind::Call;
  event.operation = name->operation;
  event.size = name->has_whole_output ? call.out : call.in;
  event.group = call.group;
  event.group_size = call.group_size;
}

}  // namespace

bool is_execution_trace(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto skip_blanks = [&] {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  };
  skip_blanks();
  if (!text.starts_with('{')) {
    return false;
  }
  text.remove_prefix(1);
  skip_blanks();
  return text.starts_with("\"schema\"");
}

KinetoTrace as_profile(const ExecutionTrace& calls) {
  if (std::ranges::all_of(calls.calls,
                          [](const ExecutionCall& call) { return call.group_size == 1; })) {
    fail_imported(calls.name, "nodes",
                  "calls of several ranks, as an execution trace alone has no times of computation "
                  "(beside its profile it is --execution-traces)",
                  calls.calls.empty() ? "no calls" : "calls of one rank alone");
  }
  KinetoTrace trace{.name = calls.name, .rank = calls.rank, .has_times = false};
  const bool has_one_group = groups_of(calls).size() == 1;
  std::int64_t ranks = 0;
  for (const ExecutionCall& call : calls.calls) {
    KinetoEvent event;
    event.name = trace.names.own(call.name);
    set_call(event, call);
    if (has_one_group && call.group_size == 0) {
      event.group.clear();
      event.group_size = kAllRanks;
    }
    event.ranks = call.ranks;
    ranks = std::max(ranks, call.group_size);
    trace.events.push_back(std::move(event));
  }
  trace.world_size = std::max(static_cast<int>(ranks), calls.rank.value_or(0) + 1);
  return trace;
}

ExecutionTrace read_execution_trace(const ImportedFile& file) {
  return ExecutionReader(file).read();
}

void join(KinetoTrace& profile, const ExecutionTrace& calls) {
  std::vector<KinetoEvent*> kernels;
  for (KinetoEvent& event : profile.events) {
    if (event.kind == KinetoKind::Recorded && event.unknown == kNamelessCollective) {
      kernels.push_back(&event);
    }
  }
  if (kernels.size() != calls.calls.size()) {
    fail_imported(
        calls.name, "",
        fmt::format("{} calls of collectives, as {} has kernels without a name for theirs",
                    kernels.size(), profile.name),
        std::to_string(calls.calls.size()));
  }
  const std::set<std::string> groups = groups_of(calls);
  for (std::size_t index = 0; index < kernels.size(); ++index) {
    KinetoEvent& event = *kernels[index];
    const ExecutionCall& call = calls.calls[index];
    set_call(event, call);
    if (event.kind != KinetoKind::Call) {
      continue;
    }
    if (!may_run(event.name, event.operation)) {
      fail_imported(call.place, "inputs",
                    fmt::format("what {} does, as calls and kernels have the same order",
                                shortened(event.name)),
                    in_quotes(call.name));
    }
    // A group alone is that of all ranks; its name is an address of the process in old versions.
    event.group = groups.size() == 1 && call.group_size == 0 ? std::string() : call.group;
    event.group_size = call.group_size > 0  ? call.group_size
                       : groups.size() == 1 ? profile.world_size.value_or(0)
                                            : 0;
  }
}

}  // namespace trainyard
