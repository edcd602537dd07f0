// SPDX-License-Identifier: Apache-2.0
#include "parallelism/traffic/plan_network.h"

#include <cstddef>
#include <map>
#include <vector>

#include "parallelism/model/expert_routing.h"
#include "parallelism/model/pipeline_stages.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/walk/step_traffic.h"
#include "parallelism/walk/unit_work.h"

namespace trainyard {
namespace {

// The spread of a group of ranks over servers, as shares of what each rank sends that leave its
// server.
struct Spread {
  double ring = 0.0;      // Each server entered once.
  double exchange = 0.0;  // To all other ranks alike.
  double hops = 0.0;      // To the next rank, the last one to the first.
  double servers = 1.0;
};

Spread spread_of(const std::vector<int>& ranks, std::span<const int> server_of_rank) {
  const auto server = [&](std::size_t place) {
    return server_of_rank[static_cast<std::size_t>(ranks[place])];
  };
  std::map<int, std::size_t> members;
  std::size_t hops = 0;
  for (std::size_t place = 0; place < ranks.size(); ++place) {
    ++members[server(place)];
    hops += server(place) != server((place + 1) % ranks.size()) ? 1 : 0;
  }
  if (members.size() < 2) {
    return {};
  }
  const auto count = static_cast<double>(ranks.size());
  double elsewhere = 0.0;
  for (const auto& [_, here] : members) {
    const auto of_server = static_cast<double>(here);
    elsewhere += of_server * (count - of_server);
  }
  return {.ring = static_cast<double>(members.size()) / count,
          .exchange = elsewhere / (count * (count - 1.0)),
          .hops = static_cast<double>(hops) / count,
          .servers = static_cast<double>(members.size())};
}

class NetworkBytes {
 public:
  NetworkBytes(const Model& model, const ParallelPlan& plan, const SoftwareProfile& software,
               std::span<const int> server_of_rank)
      : model_(model),
        plan_(plan),
        software_(software),
        server_of_rank_(server_of_rank),
        memo_(model) {}

  // Adds up all stages.
  [[nodiscard]] double run() {
    const auto micro_batches = static_cast<double>(plan_.micro_batches());
    const std::vector<PipelineStage> stages = pipeline_stages(plan_, model_);
    double of_layers = 0.0;
    double of_ends = 0.0;
    for (const PipelineStage& stage : stages) {
      for_each_unit(stage, [&](const ModelUnit& unit) {
        (unit.place == StepPlace::Layer ? of_layers : of_ends) +=
            memo_.of(unit, [&] { return unit_bytes(unit); });
      });
    }
    double of_micro_batch = of_layers + of_ends;
    double of_step = 0.0;
    for (const PipelineStage& stage : stages) {
      const RankParameters held = stage_parameters(model_, stage, plan_);
      if (plan_.zero_stage == 3) {
        const PassCalls sharded = sharded_calls(held, plan_, software_);
        of_micro_batch += bytes_of(sharded.forward) + bytes_of(sharded.backward);
      }
      const DataCalls calls = data_calls(held, plan_, software_);
      of_step += bytes_of(calls.reduce) + bytes_of(calls.gather);
    }
    return of_step + micro_batches * (of_micro_batch + transfer_bytes());
  }

 private:
  [[nodiscard]] const Spread& spread(RankGroupKind kind) {
    const auto [entry, is_new] = spreads_.try_emplace(kind);
    if (is_new) {
      entry->second = spread_of(widest_group(plan_, kind, server_of_rank_), server_of_rank_);
    }
    return entry->second;
  }

  [[nodiscard]] double bytes_of(const GroupCall& call) {
    const Spread& place = spread(call.group);
    double share = place.ring;
    if (call.operation == Operation::AllToAll) {
      share = place.exchange;
    } else if (call.operation == Operation::SendReceive) {
      share = place.hops;
    }
    return share * sent_elements(call, group_size(plan_, call.group)) * call.element_bytes;
  }

  [[nodiscard]] double bytes_of(const std::vector<GroupCall>& calls) {
    double sum = 0.0;
    for (const GroupCall& call : calls) {
      sum += bytes_of(call);
    }
    return sum;
  }

  [[nodiscard]] double unit_bytes(const ModelUnit& unit) {
    const PassCalls calls = unit_calls(model_, plan_, software_, unit);
    double sum = 0.0;
    for (const std::vector<GroupCall>* pass : {&calls.forward, &calls.again, &calls.backward}) {
      for (const GroupCall& call : *pass) {
        sum += bytes_of(call) * dispatch_share(unit, call);
      }
    }
    return sum;
  }

  // A token that is sent once to each place with experts of it, over once for each expert.
  [[nodiscard]] double dispatch_share(const ModelUnit& unit, const GroupCall& call) {
    if (call.group != RankGroupKind::Expert || !software_.dispatches_by_domain) {
      return 1.0;
    }
    const Experts& experts = *model_.layers[static_cast<std::size_t>(unit.layer)].experts;
    const auto servers = static_cast<std::int64_t>(spread(RankGroupKind::Expert).servers);
    return expected_places(experts, servers) / static_cast<double>(experts.active);
  }

  // Activations to the next stage and gradients back, over all boundaries.
  [[nodiscard]] double transfer_bytes() {
    if (plan_.pipeline == 1) {
      return 0.0;
    }
    const double bytes_there_and_back = 2.0 * plan_.element_bytes;
    const double boundaries = plan_.pipeline_shape().stages() - 1;
    const double hops = spread(RankGroupKind::Pipeline).hops;
    return bytes_there_and_back * hops * boundaries *
           static_cast<double>(transfer_elements(model_, plan_, software_.scatter_gather));
  }

  const Model& model_;
  const ParallelPlan& plan_;
  const SoftwareProfile& software_;
  std::span<const int> server_of_rank_;
  std::map<RankGroupKind, Spread> spreads_;
  LayerMemo<double> memo_;
};

}  // namespace

double network_bytes(const Model& model, const ParallelPlan& plan, const SoftwareProfile& software,
                     std::span<const int> server_of_rank) {
  return NetworkBytes(model, plan, software, server_of_rank).run() / plan.pipeline;
}

}  // namespace trainyard
