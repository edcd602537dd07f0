// SPDX-License-Identifier: Apache-2.0
// Bytes are counted for one place of the pipeline and one group of each kind; the groups of a place
// are alike. The ring of a group is laid out once, for a size of its own, and its bytes scale with
// the size.
#include "parallelism/traffic/link_traffic.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "collectives/placement/aggregation.h"
#include "collectives/run/run.h"
#include "network/contract/network.h"
#include "parallelism/model/pipeline_stages.h"
#include "parallelism/model/rank_groups.h"
#include "parallelism/operators/rank_parameters.h"
#include "parallelism/walk/step_traffic.h"
#include "sim/check.h"
#include "topology/routing/routing.h"

namespace trainyard {
namespace {

// All that works with the same links, in bytes of an all_gather (an all_reduce is two), of an
// alltoall, and of messages to the next rank.
struct GroupBytes {
  double rings = 0.0;
  double exchanges = 0.0;
  double shifts = 0.0;
};

using PlaceBytes = std::map<RankGroupKind, GroupBytes>;

void add(const std::vector<GroupCall>& calls, double times, PlaceBytes& sum) {
  for (const GroupCall& call : calls) {
    const double bytes =
        static_cast<double>(call.elements) * call.element_bytes * call.times * times;
    GroupBytes& of = sum[call.group];
    if (call.operation == Operation::AllToAll) {
      of.exchanges += bytes;
    } else if (call.operation == Operation::SendReceive) {
      of.shifts += bytes;
    } else {
      of.rings += call.operation == Operation::AllReduce ? 2.0 * bytes : bytes;
    }
  }
}

// With two directions each of the two stages of a rank has half of the micro-batches.
double passes_of_stage(const ParallelPlan& plan) {
  return static_cast<double>(plan.micro_batches()) / plan.schedule->layout.directions;
}

void add_passes(const PassCalls& calls, const ParallelPlan& plan, PlaceBytes& sum) {
  add(calls.forward, passes_of_stage(plan), sum);
  add(calls.again, passes_of_stage(plan), sum);
  add(calls.backward, passes_of_stage(plan), sum);
}

// Returns the bytes of one rank of the pipeline in a step.
PlaceBytes bytes_of_place(const Model& model, const ParallelPlan& plan,
                          const SoftwareProfile& software, int place) {
  const PipelineShape shape = plan.pipeline_shape();
  const std::vector<PipelineStage> stages = pipeline_stages(plan, model);
  PlaceBytes sum;
  for (int chunk = 0; chunk < shape.chunks; ++chunk) {
    const auto stage = static_cast<std::size_t>(shape.stage_of(place, chunk));
    for_each_unit(stages[stage], [&](const ModelUnit& unit) {
      add_passes(unit_calls(model, plan, software, unit), plan, sum);
      if (plan.zero_stage == 3) {
        add_passes(sharded_calls(gathered_parameters(model, plan, unit), plan, software), plan,
                   sum);
      }
    });
  }
  const DataCalls calls = data_calls(place_parameters(model, stages, plan, place), plan, software);
  add(calls.reduce, 1.0, sum);
  add(calls.gather, 1.0, sum);
  return sum;
}

class Counter {
 public:
  Counter(const Cluster& cluster, ExchangeWays ways)
      : whole_(cluster), part_(cluster), ways_(ways), routing_(cluster.topology, cluster.routing) {}

  void add_group(std::string_view purpose, const std::vector<int>& ranks, const GroupBytes& bytes) {
    keep_ranks(whole_.gpus, ranks, part_);
    add_run(purpose, Operation::AllGather, &kRing, bytes.rings);
    const bool takes_rails = ways_ == ExchangeWays::Rails && bytes.exchanges > 0.0 &&
                             !placement_error(part_, routing_, &kTwoHop);
    add_run(purpose, Operation::AllToAll, takes_rails ? &kTwoHop : &kDirect, bytes.exchanges);
    add_run(purpose, Operation::SendReceive, &kDirect, bytes.shifts);
  }
  void add_message(std::string_view purpose, int from, int to, double bytes) {
    const auto gpu = [&](int rank) { return whole_.gpus[as_index(rank)]; };
    if (!routing_.route(gpu(from), gpu(to), 0, path_)) {
      throw_unreachable(whole_.topology, gpu(from), gpu(to));
    }
    for (const LinkId link : path_) {
      bytes_[link.value()][purpose] += bytes;
    }
  }
  [[nodiscard]] std::vector<LinkTraffic> take() const {
    std::vector<LinkTraffic> all;
    for (const auto& [link, parts] : bytes_) {
      LinkTraffic traffic{.link = LinkId(link), .parts = {}};
      for (const auto& [purpose, bytes] : parts) {
        traffic.parts.push_back(
            {.purpose = std::string(purpose), .bytes = Bytes(std::llround(bytes))});
      }
      all.push_back(std::move(traffic));
    }
    return all;
  }

 private:
  void add_run(std::string_view purpose, Operation operation, Algorithm algorithm, double bytes) {
    if (bytes < 1.0) {
      return;
    }
    constexpr std::int64_t kPart = 65'536;  // Cut evenly by any number of channels that is usual.
    const Bytes size = Bytes(kPart) * static_cast<std::int64_t>(part_.gpus.size());
    const double factor = bytes / static_cast<double>(size.count());
    // Switches that choose see the connections of the group alone.
    std::optional<Routing> own;
    if (routing_.policy().switches_choose()) {
      own.emplace(whole_.topology, whole_.routing);
    }
    const CollectiveJob job{.operation = operation,
                            .algorithm = algorithm,
                            .size = size,
                            .fidelity = Fidelity::Analytical};
    for (const LinkUse& use : link_use_of(part_, own ? *own : routing_, job)) {
      bytes_[use.link.value()][purpose] += factor * static_cast<double>(use.bytes.count());
    }
  }

  const Cluster& whole_;
  Cluster part_;
  ExchangeWays ways_;
  Routing routing_;
  std::vector<LinkId> path_;
  std::map<std::uint32_t, std::map<std::string_view, double>> bytes_;  // Indexed by link.
};

// Forward to the next place, gradients back; in a ring from the last place to the first as well.
void add_transfers(const Model& model, const ParallelPlan& plan, const SoftwareProfile& software,
                   const std::vector<int>& ranks, Counter& counter) {
  const double bytes =
      plan.element_bytes *
      static_cast<double>(transfer_elements(model, plan, software.scatter_gather)) *
      static_cast<double>(plan.micro_batches());
  const StageLayout& layout = plan.schedule->layout;
  const int chunks = plan.chunks / layout.directions;
  for (std::size_t place = 0; place < ranks.size(); ++place) {
    const bool wraps = place + 1 == ranks.size();
    const int times = !wraps ? chunks : layout.is_ring ? chunks - 1 : 0;
    if (times > 0) {
      const int next = ranks[wraps ? 0 : place + 1];
      counter.add_message("pipeline", ranks[place], next, bytes * times);
      counter.add_message("pipeline", next, ranks[place], bytes * times);
    }
  }
}

}  // namespace

Bytes LinkTraffic::total() const {
  Bytes sum;
  for (const PurposeBytes& part : parts) {
    sum += part.bytes;
  }
  return sum;
}

std::vector<LinkTraffic> step_link_traffic(const Cluster& cluster, const Model& model,
                                           const ParallelPlan& plan,
                                           const SoftwareProfile& software, ExchangeWays ways) {
  CHECK(plan.ranks() <= kMaxCountedRanks, "every group is routed");
  Counter counter(cluster, ways);
  std::vector<PlaceBytes> places;
  for (int place = 0; place < plan.pipeline; ++place) {
    places.push_back(bytes_of_place(model, plan, software, place));
  }
  std::vector<int> place_of(as_index(plan.ranks()), -1);
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    if (place_of[as_index(rank)] >= 0) {
      continue;
    }
    const std::vector<int> pipeline = group_of(plan, RankGroupKind::Pipeline, rank);
    for (std::size_t place = 0; place < pipeline.size(); ++place) {
      place_of[static_cast<std::size_t>(pipeline[place])] = static_cast<int>(place);
    }
    if (pipeline.size() > 1) {
      add_transfers(model, plan, software, pipeline, counter);
      if (const auto call = ends_call(model, plan, software)) {
        PlaceBytes bytes;
        add({*call}, 1.0, bytes);
        counter.add_group("data", group_of(plan, RankGroupKind::Ends, rank), bytes[call->group]);
      }
    }
  }
  for (const RankGroupKind kind :
       {RankGroupKind::Tensor, RankGroupKind::Context, RankGroupKind::Gradient,
        RankGroupKind::Shard, RankGroupKind::Replica, RankGroupKind::Expert,
        RankGroupKind::ExpertTensor, RankGroupKind::ExpertGradient}) {
    if (group_size(plan, kind) < 2) {
      continue;
    }
    std::vector<bool> seen(place_of.size(), false);
    for (int rank = 0; rank < plan.ranks(); ++rank) {
      const PlaceBytes& of_place = places[static_cast<std::size_t>(place_of[as_index(rank)])];
      const auto bytes = of_place.find(kind);
      if (seen[as_index(rank)] || bytes == of_place.end()) {
        continue;
      }
      const std::vector<int> group = group_of(plan, kind, rank);
      for (const int member : group) {
        seen[as_index(member)] = true;
      }
      counter.add_group(purpose_of(kind), group, bytes->second);
    }
  }
  return counter.take();
}

}  // namespace trainyard
