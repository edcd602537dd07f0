// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/simai_workload.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parallelism/model/parallel_plan.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/trace_import/simai_text.h"
#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

StepPart part_of(SimAiGroup group, std::size_t pass) {
  switch (group) {
    case SimAiGroup::Expert:
      return StepPart::Expert;
    case SimAiGroup::DataOfExperts:
      return StepPart::Data;
    case SimAiGroup::Tensor:
    case SimAiGroup::Data:
    case SimAiGroup::All:
      break;
  }
  return pass == kWeights ? StepPart::Data : StepPart::Tensor;
}

std::string_view name_of(SimAiGroup group) {
  switch (group) {
    case SimAiGroup::Tensor:
      return "tensor";
    case SimAiGroup::Data:
      return "data";
    case SimAiGroup::Expert:
      return "expert";
    case SimAiGroup::DataOfExperts:
      return "data of experts";
    case SimAiGroup::All:
      break;
  }
  return "all";
}

// Nothing: all ranks, which are one group.
std::optional<RankGroupKind> kind_of(SimAiGroup group) {
  switch (group) {
    case SimAiGroup::Tensor:
      return RankGroupKind::Tensor;
    case SimAiGroup::Data:
      return RankGroupKind::Gradient;
    case SimAiGroup::Expert:
      return RankGroupKind::Expert;
    case SimAiGroup::DataOfExperts:
      return RankGroupKind::ExpertGradient;
    case SimAiGroup::All:
      break;
  }
  return std::nullopt;
}

class SimAiGraph {
 public:
  SimAiGraph(const SimAiText& text, const ImportedTarget& target)
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
    if (matters && plan_.pipeline == 1) {
      workload_.left_out.emplace_back("ga and vpp: without a pipeline the layers say it all");
    }
    if (lonely_calls_ > 0) {
      workload_.left_out.push_back(
          fmt::format("{} collectives of groups of one rank", lonely_calls_));
    }
    if (unused_calls_ > 0) {
      workload_.left_out.push_back(
          fmt::format("{} collectives for gradients of the first layer's inputs, which nobody "
                      "needs",
                      unused_calls_));
    }
    workload_.notes.push_back(fmt::format(
        "all {} ranks do the same: tensor {}, data {}, expert {}; of groups that are alike the "
        "widest is timed",
        plan_.ranks(), plan_.tensor, plan_.data, plan_.expert));
    if (plan_.pipeline > 1) {
      workload_.notes.push_back(fmt::format(
          "the layers are those of one of {} stages; the pipeline adds {}/{} of their time as a "
          "bubble, and its {} messages",
          plan_.pipeline, workload_.bubble->numerator, workload_.bubble->denominator,
          messages_per_stage()));
    }
    return std::move(workload_);
  }

 private:
  // Ranks of the first dimension of ASTRA-sim's network: the GPUs of a server.
  [[nodiscard]] std::int64_t near_ranks(std::int64_t ranks) const {
    const auto& servers = target_.server_of_gpu;
    const auto end = std::find_if(servers.begin(), servers.end(),
                                  [&](int server) { return server != servers.front(); });
    return std::min<std::int64_t>(end - servers.begin(), ranks);
  }

  [[nodiscard]] std::int64_t tensor_ranks(std::int64_t ranks) const {
    return text_.header.value(
        "model_parallel_NPU_group",
        text_.header.policy->order == SimAiOrder::Hybrid ? near_ranks(ranks) : 1);
  }

  // A stage has GA x vpp parts, and sends and receives activations and gradients once for each.
  [[nodiscard]] std::int64_t messages_per_stage() const {
    return 2 * text_.header.value("ga", 1) * text_.header.value("vpp", 1);
  }

  [[nodiscard]] ParallelPlan read_plan() const {
    const auto gpus = static_cast<std::int64_t>(target_.server_of_gpu.size());
    const std::int64_t ranks = text_.header.value("all_gpus", gpus);
    const std::int64_t tensor = tensor_ranks(ranks);
    const std::int64_t expert = text_.header.value("ep", 1);
    const std::int64_t pipeline = text_.header.value("pp", 1);
    if (ranks > gpus) {
      text_.fail("all_gpus", fmt::format("at most the {} GPUs of the cluster", gpus),
                 std::to_string(ranks));
    }
    if (pipeline == 1 && text_.header.value("pp_comm", 0) != 0) {
      text_.fail("pp_comm", "0 bytes without a pipeline",
                 std::to_string(text_.header.value("pp_comm", 0)));
    }
    if (messages_per_stage() > std::numeric_limits<int>::max()) {
      text_.fail("ga", fmt::format("ga x vpp of at most {}", std::numeric_limits<int>::max() / 2),
                 std::to_string(messages_per_stage() / 2));
    }
    if (ranks % (tensor * expert * pipeline) != 0) {
      text_.fail("", "model_parallel_NPU_group x ep x pp that divides the ranks",
                 fmt::format("{} x {} x {} and {}", tensor, expert, pipeline, ranks));
    }
    return {.tensor = static_cast<int>(tensor),
            .pipeline = static_cast<int>(pipeline),
            .data = static_cast<int>(ranks / (tensor * pipeline)),
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

  CommunicatorId communicator(SimAiGroup group, int rank) {
    const std::optional<RankGroupKind> kind = kind_of(group);
    return kind ? communicator(*kind, name_of(group), rank) : all_ranks();
  }

  CommunicatorId all_ranks() {
    if (!all_ranks_) {
      std::vector<int> ranks(static_cast<std::size_t>(plan_.ranks()));
      std::iota(ranks.begin(), ranks.end(), 0);
      all_ranks_ = workload_.graph.add_communicator("all", std::move(ranks));
    }
    return *all_ranks_;
  }

  CommunicatorId communicator(RankGroupKind kind, std::string_view name, int rank) {
    std::vector<int> ranks = group_of(plan_, kind, rank);
    const auto [entry, is_new] = communicators_.try_emplace({kind, ranks.front()});
    if (is_new) {
      std::vector<int> timed_as;
      if (workload_.graph.is_folded()) {
        timed_as = widest_group(
            plan_, kind, target_.server_of_gpu.first(static_cast<std::size_t>(plan_.ranks())));
      }
      std::string full_name = fmt::format("{} {}", name, ranks.front());
      entry->second = workload_.graph.add_communicator(std::move(full_name), std::move(ranks),
                                                       std::move(timed_as));
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
    const std::size_t ranks = graph.communicators()[group.value()].ranks.size();
    lonely_calls_ += ranks == 1 ? 1 : 0;
    return graph.add_collective(
        stream, fmt::format("{}, {}: {}", layer.name, kPassNames[pass], to_string(*call.operation)),
        part.value_or(part_of(call.group, pass)),
        {.communicator = group, .operation = *call.operation, .size = whole_size(call, ranks)});
  }

  // Adds a call that runs beside what comes next: after that operation.
  std::optional<OperationId> add_call_after(OperationId before, StreamId stream,
                                            const SimAiLayer& layer, std::size_t pass) {
    const std::optional<OperationId> call = add_call(stream, layer, pass);
    if (call) {
      workload_.graph.add_dependency(before, *call);
    }
    return call;
  }

  // Files of SimAI have the bytes of the whole. In those of ASTRA-sim, which do not say how many
  // ranks there are, it is what a rank puts in.
  [[nodiscard]] Bytes whole_size(const SimAiCall& call, std::size_t ranks) const {
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

  struct Streams {
    StreamId compute;
    StreamId inputs;  // Calls for gradients of inputs that run beside computation.
    StreamId weights;
    StreamId update;
    std::optional<OperationId> awaited = {};  // The next computation waits for it.
  };

  OperationId add_work(Streams& streams, const SimAiLayer& layer, std::size_t pass, StepPart part) {
    const OperationId work = workload_.graph.add_compute(
        streams.compute, fmt::format("{}, {}", layer.name, kPassNames[pass]), part,
        layer.times[pass]);
    if (streams.awaited) {
      workload_.graph.add_dependency(*std::exchange(streams.awaited, std::nullopt), work);
    }
    return work;
  }

  void add_rank(int rank) {
    OperationGraph& graph = workload_.graph;
    Streams streams{.compute = graph.add_stream(rank, "compute"),
                    .inputs = graph.add_stream(rank, "input gradients"),
                    .weights = graph.add_stream(rank, "weight gradients"),
                    .update = graph.add_stream(rank, "update", StreamOrder::Free)};
    switch (text_.header.policy->order) {
      case SimAiOrder::Transformer:
      case SimAiOrder::Hybrid:
        add_forward(streams);
        add_inputs_first(streams);
        break;
      case SimAiOrder::WeightsFirst:
        add_forward(streams);
        add_weights_first(streams, std::nullopt);
        break;
      case SimAiOrder::Recommender:
        add_weights_first(streams, add_recommender_forward(streams));
        break;
      case SimAiOrder::Inference:
        add_forward(streams);
        break;
      case SimAiOrder::Calls:
        for (const SimAiLayer& layer : text_.layers) {
          (void)add_call(streams.weights, layer, kWeights);
        }
        break;
    }
    if (plan_.pipeline > 1) {
      add_pipeline(rank, streams);
    }
  }

  void add_forward(Streams& streams) {
    for (const SimAiLayer& layer : text_.layers) {
      add_work(streams, layer, kForward, StepPart::Linear);
      (void)add_call(streams.compute, layer, kForward);
    }
  }

  void add_inputs_first(Streams& streams) {
    const bool runs_beside = text_.header.policy->order == SimAiOrder::Hybrid;
    for (std::size_t index = text_.layers.size(); index-- > 0;) {
      for (std::size_t again = recomputed_from_[index].value_or(index); again < index; ++again) {
        add_work(streams, text_.layers[again], kForward, StepPart::Recompute);
        (void)add_call(streams.compute, text_.layers[again], kForward, StepPart::Recompute);
      }
      const SimAiLayer& layer = text_.layers[index];
      const OperationId inputs = add_work(streams, layer, kInputs, StepPart::Linear);
      std::optional<OperationId> beside;
      if (!runs_beside) {
        (void)add_call(streams.compute, layer, kInputs);
      } else if (index > 0) {
        beside = add_call_after(inputs, streams.inputs, layer, kInputs);
      } else {
        unused_calls_ += layer.calls[kInputs].operation ? 1 : 0;
      }
      add_weights(streams, layer);
      streams.awaited = beside;
    }
  }

  // Returns the last bottom layer of a recommendation model.
  std::optional<std::size_t> add_recommender_forward(Streams& streams) {
    const auto bottom = static_cast<std::size_t>(text_.header.value("DLRM_LAST_BOTTOM_LAYER", 0));
    if (bottom >= text_.layers.size()) {
      text_.fail("DLRM_LAST_BOTTOM_LAYER",
                 fmt::format("a layer from 0 to {}", text_.layers.size() - 1),
                 std::to_string(bottom));
    }
    std::optional<OperationId> exchange;
    for (std::size_t index = 0; index < text_.layers.size(); ++index) {
      const OperationId work = add_work(streams, text_.layers[index], kForward, StepPart::Linear);
      if (index == 0) {
        exchange = add_call_after(work, streams.inputs, text_.layers[0], kForward);
      }
      if (index == bottom) {
        streams.awaited = exchange;
      }
    }
    return bottom;
  }

  void add_weights_first(Streams& streams, std::optional<std::size_t> bottom) {
    for (std::size_t index = text_.layers.size(); index-- > 0;) {
      add_weights(streams, text_.layers[index]);
      if (index == 0) {
        break;
      }
      const OperationId inputs = add_work(streams, text_.layers[index], kInputs, StepPart::Linear);
      if (bottom && index == *bottom + 1) {
        (void)add_call_after(inputs, streams.inputs, text_.layers[0], kInputs);
      }
    }
  }

  void add_weights(Streams& streams, const SimAiLayer& layer) {
    const OperationId gradients = add_work(streams, layer, kWeights, StepPart::Linear);
    if (const auto call = add_call_after(gradients, streams.weights, layer, kWeights)) {
      const OperationId last = workload_.graph.add_compute(streams.update, layer.name + ", update",
                                                           StepPart::Optimizer, layer.update);
      workload_.graph.add_dependency(*call, last);
    }
  }

  // Adds what SimAI adds to the layers of a stage (Layer.cc: pre_bubble_time, Expose_PP_time).
  void add_pipeline(int rank, Streams& streams) {
    OperationGraph& graph = workload_.graph;
    (void)graph.add_collective(
        streams.compute, "messages of the pipeline", StepPart::Pipeline,
        {.communicator = communicator(RankGroupKind::Pipeline, "pipeline", rank),
         .operation = Operation::SendReceive,
         .size = Bytes(text_.header.value("pp_comm", 0)),
         .times = static_cast<int>(messages_per_stage())});
    if (!workload_.bubble) {
      workload_.bubble = PipelineBubble{.operations = {},
                                        .numerator = plan_.pipeline - 1,
                                        .denominator = messages_per_stage() / 2};
    }
    workload_.bubble->operations.push_back(
        graph.add_compute(streams.compute, "bubble", StepPart::Bubble, kBubbleUnit));
  }

  const SimAiText& text_;
  const ImportedTarget& target_;
  ParallelPlan plan_;
  ImportedWorkload workload_;
  std::vector<std::optional<std::size_t>> recomputed_from_;
  std::map<std::pair<RankGroupKind, int>, CommunicatorId> communicators_;
  std::optional<CommunicatorId> all_ranks_;
  int lonely_calls_ = 0;
  int unused_calls_ = 0;
};

}  // namespace

ImportedWorkload read_simai(const ImportedFile& file, const ImportedTarget& target) {
  const SimAiText text = read_simai_text(file);
  return SimAiGraph(text, target).build();
}

}  // namespace trainyard
