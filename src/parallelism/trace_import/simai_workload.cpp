// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/simai_workload.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parallelism/model/parallel_plan.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

constexpr std::string_view kPolicy = "HYBRID_TRANSFORMER";
constexpr std::string_view kRecomputingPolicy = "HYBRID_TRANSFORMER_FWD_IN_BCKWD";
constexpr std::int64_t kMaxRanks = 1'000'000;
constexpr std::int64_t kMaxLayers = 10'000'000;
constexpr std::size_t kFields = 12;

enum SimAiPass : std::size_t { kForward, kInputs, kWeights, kPasses };
constexpr std::array<std::string_view, kPasses> kPassNames{"forward", "gradients of inputs",
                                                           "gradients of weights"};

struct SimAiCall {
  std::optional<Operation> operation = {};  // Nothing: NONE.
  RankGroupKind group = RankGroupKind::Tensor;
  Bytes size{};
};

struct SimAiLayer {
  std::string name;
  std::array<SimTime, kPasses> times;
  std::array<SimAiCall, kPasses> calls;
  SimTime update;
};

struct SimAiHeader {
  std::map<std::string, std::int64_t, std::less<>> values;
  std::vector<std::int64_t> checkpoints;
  std::vector<std::int64_t> initiators;

  [[nodiscard]] std::int64_t value(std::string_view key, std::int64_t otherwise) const {
    const auto found = values.find(key);
    return found == values.end() ? otherwise : found->second;
  }
};

class SimAiText {
 public:
  explicit SimAiText(const ImportedFile& file) : file_(file), rest_(file.text) {}

  SimAiHeader header;
  std::vector<SimAiLayer> layers;

  void read() {
    read_header();
    if (!next_line()) {
      fail("", "the number of layers", "the end of the file");
    }
    const std::int64_t count = number(0, "layers", kMaxLayers);
    if (words_.size() > 1) {
      fail("layers", "one number", in_quotes(words_[1]));
    }
    while (next_line()) {
      if (static_cast<std::int64_t>(layers.size()) == count) {
        fail("", fmt::format("the end of the file after {} layers", count), in_quotes(words_[0]));
      }
      read_layer();
    }
    if (static_cast<std::int64_t>(layers.size()) < count) {
      fail("", fmt::format("{} layers", count), std::to_string(layers.size()));
    }
  }

  [[noreturn]] void fail(std::string_view field, std::string_view expected,
                         std::string_view found) const {
    fail_imported(fmt::format("{}:{}", file_.name, line_), field, expected, found);
  }
  void go_to_header() { line_ = 1; }

 private:
  // The next one that is not empty.
  bool next_line() {
    words_.clear();
    while (!rest_.empty() && words_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      ++line_;
      words_ = imported_words(rest_.substr(0, end));
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
    }
    return !words_.empty();
  }

  std::int64_t number(std::size_t index, std::string_view field, std::int64_t max) const {
    const std::string expected = fmt::format("a number from 0 to {}", max);
    if (index >= words_.size()) {
      fail(field, expected, "the end of the line");
    }
    const std::optional<std::int64_t> value = imported_number(words_[index], max);
    if (!value) {
      fail(field, expected, in_quotes(words_[index]));
    }
    return *value;
  }

  void read_header() {
    if (!next_line() || (words_[0] != kPolicy && words_[0] != kRecomputingPolicy)) {
      fail("", fmt::format("{} or {}", kPolicy, kRecomputingPolicy),
           words_.empty() ? "the end of the file" : in_quotes(words_[0]));
    }
    for (std::size_t at = 1; at < words_.size();) {
      std::string_view key = words_[at++];
      key = key.substr(0, key.size() - (key.back() == ':' ? 1 : 0));
      if (key == "checkpoints" || key == "checkpoint_initiates") {
        auto& list = key == "checkpoints" ? header.checkpoints : header.initiators;
        const std::int64_t count = number(at++, key, kMaxLayers);
        for (std::int64_t index = 0; index < count; ++index) {
          list.push_back(number(at++, key, kMaxLayers));
        }
        continue;
      }
      constexpr std::array<std::string_view, 7> kKeys{
          "model_parallel_NPU_group", "ep", "pp", "vpp", "ga", "all_gpus", "pp_comm"};
      if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end()) {
        fail("", fmt::format("{}, checkpoints or checkpoint_initiates", fmt::join(kKeys, ", ")),
             in_quotes(key));
      }
      const bool is_size = key == "pp_comm";
      const std::int64_t value = number(at++, key, is_size ? kMaxImportedBytes : kMaxRanks);
      if (value == 0 && !is_size) {
        fail(key, "at least 1", "0");
      }
      if (!header.values.emplace(key, value).second) {
        fail(key, "it once", "it again");
      }
    }
    if (!header.values.contains("model_parallel_NPU_group")) {
      fail("", "model_parallel_NPU_group", "none");
    }
    if (words_[0] == kPolicy && !(header.checkpoints.empty() && header.initiators.empty())) {
      fail("", fmt::format("no checkpoints with {}", kPolicy), "some");
    }
  }

  void read_layer() {
    if (words_.size() != kFields) {
      fail(words_[0], fmt::format("{} fields", kFields), std::to_string(words_.size()));
    }
    if (words_[1] != "-1") {
      fail(words_[0], "-1 as what it depends on: layers run in their order", in_quotes(words_[1]));
    }
    SimAiLayer layer{.name = std::string(words_[0]), .times = {}, .calls = {}, .update = {}};
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      const std::size_t first = 2 + 3 * pass;
      layer.times[pass] = time(first, kPassNames[pass]);
      layer.calls[pass] = read_call(first + 1, pass);
    }
    layer.update = time(kFields - 1, "update");
    layers.push_back(std::move(layer));
  }

  SimTime time(std::size_t index, std::string_view field) {
    const std::int64_t count = number(index, field, std::numeric_limits<std::int64_t>::max());
    return times_.add(count, nanoseconds(1), fmt::format("{}:{}", file_.name, line_), field);
  }

  [[nodiscard]] SimAiCall read_call(std::size_t index, std::size_t pass) const {
    const std::string_view word = words_[index];
    SimAiCall call{.size = Bytes(number(index + 1, kPassNames[pass], kMaxImportedBytes))};
    if (word == "NONE") {
      if (call.size != Bytes()) {
        fail(kPassNames[pass], "0 bytes of NONE", std::to_string(call.size.count()));
      }
      return call;
    }
    struct Name {
      std::string_view text;
      Operation operation;
    };
    constexpr std::array<Name, 4> kNames{{{"ALLREDUCE", Operation::AllReduce},
                                          {"ALLGATHER", Operation::AllGather},
                                          {"REDUCESCATTER", Operation::ReduceScatter},
                                          {"ALLTOALL", Operation::AllToAll}}};
    for (const Name& name : kNames) {
      if (word.substr(0, name.text.size()) != name.text) {
        continue;
      }
      const std::string_view suffix = word.substr(name.text.size());
      call.operation = name.operation;
      if (suffix.empty()) {
        call.group = pass == kWeights ? RankGroupKind::Gradient : RankGroupKind::Tensor;
        return call;
      }
      if (suffix == "_EP" || suffix == "_DP_EP") {
        call.group = suffix == "_EP" ? RankGroupKind::Expert : RankGroupKind::ExpertGradient;
        return call;
      }
    }
    fail(kPassNames[pass],
         "NONE, or ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, alone or with _EP or _DP_EP",
         in_quotes(word));
  }

  const ImportedFile& file_;
  std::string_view rest_;
  int line_ = 0;
  std::vector<std::string_view> words_;
  ImportedTimes times_;
};

StepPart part_of(RankGroupKind kind) {
  return kind == RankGroupKind::Tensor   ? StepPart::Tensor
         : kind == RankGroupKind::Expert ? StepPart::Expert
                                         : StepPart::Data;
}

std::string_view name_of(RankGroupKind kind) {
  return kind == RankGroupKind::Tensor     ? "tensor"
         : kind == RankGroupKind::Expert   ? "expert"
         : kind == RankGroupKind::Gradient ? "data"
                                           : "data of experts";
}

class SimAiGraph {
 public:
  SimAiGraph(SimAiText& text, const ImportedTarget& target)
      : text_(text),
        target_(target),
        plan_(read_plan()),
        workload_{.format = ImportedFormat::SimAi, .graph = make_graph()} {}

  ImportedWorkload build() {
    read_checkpoints();
    for (const int rank : workload_.graph.present()) {
      add_rank(rank);
    }
    const bool matters = text_.header.value("ga", 1) > 1 || text_.header.value("vpp", 1) > 1;
    if (matters) {
      workload_.left_out.emplace_back("ga and vpp: without a pipeline the layers say it all");
    }
    if (lonely_calls_ > 0) {
      workload_.left_out.push_back(
          fmt::format("{} collectives of groups of one rank", lonely_calls_));
    }
    workload_.notes.push_back(fmt::format(
        "all {} ranks do the same: tensor {}, data {}, expert {}; of groups that are alike the "
        "widest is timed",
        plan_.ranks(), plan_.tensor, plan_.data, plan_.expert));
    return std::move(workload_);
  }

 private:
  ParallelPlan read_plan() {
    text_.go_to_header();
    const auto gpus = static_cast<std::int64_t>(target_.server_of_gpu.size());
    const std::int64_t ranks = text_.header.value("all_gpus", gpus);
    const std::int64_t tensor = text_.header.value("model_parallel_NPU_group", 1);
    const std::int64_t expert = text_.header.value("ep", 1);
    if (ranks > gpus) {
      text_.fail("all_gpus", fmt::format("at most the {} GPUs of the cluster", gpus),
                 std::to_string(ranks));
    }
    if (text_.header.value("pp", 1) != 1) {
      text_.fail("pp", "1, as the file does not say in which order stages of a pipeline work",
                 std::to_string(text_.header.value("pp", 1)));
    }
    if (text_.header.value("pp_comm", 0) != 0) {
      text_.fail("pp_comm", "0 bytes without a pipeline",
                 std::to_string(text_.header.value("pp_comm", 0)));
    }
    if (ranks % (tensor * expert) != 0) {
      text_.fail("", "model_parallel_NPU_group x ep that divides the ranks",
                 fmt::format("{} x {} and {}", tensor, expert, ranks));
    }
    return {.tensor = static_cast<int>(tensor),
            .data = static_cast<int>(ranks / tensor),
            .expert = static_cast<int>(expert),
            .expert_tensor = static_cast<int>(tensor)};
  }

  [[nodiscard]] OperationGraph make_graph() const {
    return target_.folding == Folding::Folded ? OperationGraph(plan_.ranks(), {0})
                                              : OperationGraph(plan_.ranks());
  }

  // Finds for each layer where what is computed again begins, the nearest checkpoint before.
  void read_checkpoints() {
    const auto layers = static_cast<std::int64_t>(text_.layers.size());
    recomputed_from_.resize(text_.layers.size());
    for (const std::int64_t layer : text_.header.checkpoints) {
      if (layer >= layers) {
        text_.fail("checkpoints", fmt::format("layers from 0 to {}", layers - 1),
                   std::to_string(layer));
      }
    }
    for (const std::int64_t layer : text_.header.initiators) {
      std::optional<std::size_t> nearest;
      for (const std::int64_t checkpoint : text_.header.checkpoints) {
        if (checkpoint < layer) {
          nearest = std::max(nearest.value_or(0), static_cast<std::size_t>(checkpoint));
        }
      }
      if (layer >= layers || !nearest) {
        text_.fail("checkpoint_initiates",
                   fmt::format("layers from 0 to {} with a checkpoint before them", layers - 1),
                   std::to_string(layer));
      }
      recomputed_from_[static_cast<std::size_t>(layer)] = nearest;
    }
  }

  CommunicatorId communicator(RankGroupKind kind, int rank) {
    std::vector<int> ranks = group_of(plan_, kind, rank);
    const auto [entry, is_new] = communicators_.try_emplace({kind, ranks.front()});
    if (is_new) {
      std::vector<int> timed_as;
      if (workload_.graph.is_folded()) {
        timed_as = widest_group(
            plan_, kind, target_.server_of_gpu.first(static_cast<std::size_t>(plan_.ranks())));
      }
      const std::string name = fmt::format("{} {}", name_of(kind), ranks.front());
      entry->second = workload_.graph.add_communicator(name, std::move(ranks), std::move(timed_as));
    }
    return entry->second;
  }

  // Adds a call on that stream, or nothing.
  std::optional<OperationId> add_call(StreamId stream, const SimAiLayer& layer, std::size_t pass,
                                      std::optional<StepPart> part = {}) {
    const SimAiCall& call = layer.calls[pass];
    if (!call.operation) {
      return std::nullopt;
    }
    OperationGraph& graph = workload_.graph;
    const CommunicatorId group = communicator(call.group, graph.streams()[stream.value()].rank);
    if (graph.communicators()[group.value()].ranks.size() == 1) {
      ++lonely_calls_;
    }
    const std::string name =
        fmt::format("{}, {}: {}", layer.name, kPassNames[pass], to_string(*call.operation));
    return graph.add_collective(
        stream, name, part.value_or(part_of(call.group)),
        {.communicator = group,
         .operation = *call.operation,
         .size = whole_size(call, graph.communicators()[group.value()].ranks.size())});
  }

  // Files of SimAI have the bytes of the whole. In those of ASTRA-sim, which do not say how many
  // ranks there are, it is what a rank puts in.
  Bytes whole_size(const SimAiCall& call, std::size_t ranks) const {
    if (call.operation != Operation::AllGather || text_.header.values.contains("all_gpus")) {
      return call.size;
    }
    const auto members = static_cast<std::int64_t>(ranks);
    if (call.size.count() > kMaxImportedBytes / members) {
      text_.fail("", fmt::format("ALLGATHER of at most {} bytes in all", kMaxImportedBytes),
                 fmt::format("{} times {}", members, call.size.count()));
    }
    return call.size * members;
  }

  OperationId add_work(StreamId stream, const SimAiLayer& layer, std::size_t pass, StepPart part) {
    return workload_.graph.add_compute(stream, fmt::format("{}, {}", layer.name, kPassNames[pass]),
                                       part, layer.times[pass]);
  }

  void add_rank(int rank) {
    OperationGraph& graph = workload_.graph;
    const StreamId compute = graph.add_stream(rank, "compute");
    const StreamId data = graph.add_stream(rank, "weight gradients");
    const StreamId update = graph.add_stream(rank, "update", StreamOrder::Free);
    for (const SimAiLayer& layer : text_.layers) {
      add_work(compute, layer, kForward, StepPart::Linear);
      (void)add_call(compute, layer, kForward);
    }
    for (std::size_t index = text_.layers.size(); index-- > 0;) {
      for (std::size_t again = recomputed_from_[index].value_or(index); again < index; ++again) {
        add_work(compute, text_.layers[again], kForward, StepPart::Recompute);
        (void)add_call(compute, text_.layers[again], kForward, StepPart::Recompute);
      }
      const SimAiLayer& layer = text_.layers[index];
      add_work(compute, layer, kInputs, StepPart::Linear);
      (void)add_call(compute, layer, kInputs);
      const OperationId gradients = add_work(compute, layer, kWeights, StepPart::Linear);
      if (const std::optional<OperationId> call = add_call(data, layer, kWeights)) {
        graph.add_dependency(gradients, *call);
        const OperationId last =
            graph.add_compute(update, layer.name + ", update", StepPart::Optimizer, layer.update);
        graph.add_dependency(*call, last);
      }
    }
  }

  SimAiText& text_;
  const ImportedTarget& target_;
  ParallelPlan plan_;
  ImportedWorkload workload_;
  std::vector<std::optional<std::size_t>> recomputed_from_;
  std::map<std::pair<RankGroupKind, int>, CommunicatorId> communicators_;
  int lonely_calls_ = 0;
};

}  // namespace

ImportedWorkload read_simai(const ImportedFile& file, const ImportedTarget& target) {
  SimAiText text(file);
  text.read();
  return SimAiGraph(text, target).build();
}

}  // namespace trainyard
