// SPDX-License-Identifier: Apache-2.0
#include "parallelism/graph/graph_blame.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/check.h"

namespace trainyard {
namespace {

class Blame {
 public:
  Blame(const OperationGraph& graph, const GraphResult& result, const GraphRunOptions& options)
      : graph_(graph), result_(result), options_(options) {}

  // `operations` are those of the rank.
  [[nodiscard]] StepParts of_rank(int rank, std::vector<OperationId> operations) {
    StepParts parts;
    sort_by_start(operations);
    list_exposed(operations);
    SimTime cursor;
    std::optional<OperationId> last;
    for (const OperationId id : operations) {
      if (!last || result_.timings.end(id) > result_.timings.end(*last)) {
        last = id;
      }
      if (graph_.operation(id).kind != GraphOperationKind::Compute) {
        continue;
      }
      const GraphTiming of_this = timing(id);
      if (of_this.start > cursor) {
        add_chain(of_this.cause, rank, cursor, of_this.start, parts);
        cursor = of_this.start;
      }
      if (of_this.end > cursor) {
        StepParts computed = compute_parts(graph_, id, options_);
        computed[of_this.slowed_by] += of_this.slowed;
        parts += shared_out(computed, of_this.end - cursor);
        cursor = of_this.end;
      }
    }
    if (last && timing(*last).end > cursor) {
      add_chain(last, rank, cursor, timing(*last).end, parts);
      cursor = timing(*last).end;
    }
    add_idle(StepPart::Bubble, cursor, result_.finish, parts);
    return parts;
  }

 private:
  // A span of time in which the rank took part in a call that nothing is meant to hide.
  struct Exposed {
    SimTime start;
    SimTime end;
    StepPart part = StepPart::Bubble;
  };

  // Sorts by start, then in the order in which they were added.
  void sort_by_start(std::vector<OperationId>& operations) const {
    std::vector<std::pair<SimTime, OperationId>> starts;
    for (const OperationId id : operations) {
      starts.emplace_back(result_.timings.start(id), id);
    }
    std::sort(starts.begin(), starts.end());
    std::transform(starts.begin(), starts.end(), operations.begin(),
                   [](const auto& each) { return each.second; });
  }

  // Lists the exposed operations of the rank, sorted by start; of several at once the first.
  void list_exposed(const std::vector<OperationId>& operations) {
    exposed_.clear();
    SimTime cursor;
    for (const OperationId id : operations) {
      const GraphOperation& operation = graph_.operation(id);
      const SimTime start = std::max(cursor, result_.timings.start(id));
      if (operation.kind == GraphOperationKind::Collective && operation.call.slowdown_ppm == 0 &&
          timing(id).end > start) {
        exposed_.push_back({.start = start, .end = timing(id).end, .part = operation.part});
        cursor = timing(id).end;
      }
    }
  }

  // While the rank waits for others or for its host, calls of its own count first.
  void add_idle(StepPart part, SimTime from, SimTime to, StepParts& parts) const {
    auto call = std::partition_point(exposed_.begin(), exposed_.end(),
                                     [&](const Exposed& exposed) { return exposed.end <= from; });
    for (; call != exposed_.end() && call->start < to; ++call) {
      const SimTime start = std::max(call->start, from);
      const SimTime end = std::min(call->end, to);
      parts[part] += start - from;
      parts[call->part] += end - start;
      from = end;
    }
    parts[part] += to - from;
  }

  [[nodiscard]] GraphTiming timing(OperationId id) const { return result_.timings[id.value()]; }

  // A call that the rank takes part in is its own, whoever's end the chain came to.
  [[nodiscard]] StepPart part_of(OperationId id, int rank) const {
    const GraphOperation& operation = graph_.operation(id);
    bool is_own = operation.kind != GraphOperationKind::Compute;
    if (operation.kind == GraphOperationKind::Host) {
      is_own = graph_.rank_of(id) == rank;
    } else if (operation.kind == GraphOperationKind::Collective) {
      const auto& ranks = graph_.communicators()[operation.call.communicator.value()].ranks;
      is_own = std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
    }
    return is_own ? operation.part : StepPart::Bubble;
  }

  // Adds the operation that ends at `to`, and what made it and those before it ready last, back to
  // `from`.
  void add_chain(std::optional<OperationId> at, int rank, SimTime from, SimTime to,
                 StepParts& parts) const {
    while (at && to > from) {
      const GraphTiming of_this = timing(*at);
      const SimTime start = std::clamp(of_this.start, from, to);
      const StepPart part = part_of(*at, rank);
      if (part == StepPart::Bubble || graph_.operation(*at).kind == GraphOperationKind::Host) {
        add_idle(part, start, to, parts);
      } else {
        parts[part] += to - start;
      }
      to = start;
      at = of_this.starter ? timing(*of_this.starter).cause : of_this.cause;
    }
    add_idle(StepPart::Bubble, from, to, parts);
  }

  const OperationGraph& graph_;
  const GraphResult& result_;
  const GraphRunOptions& options_;
  std::vector<Exposed> exposed_;  // Exposed operations of the rank, by time, without overlap.
};

}  // namespace

StepParts shared_out(const StepParts& parts, SimTime total) {
  const SimTime sum = parts.total();
  if (sum == total) {
    return parts;
  }
  StepParts shared;
  std::size_t largest = 0;
  for (std::size_t index = 0; index < kStepParts; ++index) {
    if (sum > SimTime()) {
      const __int128 product =
          static_cast<__int128>(parts.times[index].picoseconds()) * total.picoseconds();
      shared.times[index] = SimTime(static_cast<std::int64_t>(product / sum.picoseconds()));
    }
    if (parts.times[index] > parts.times[largest]) {
      largest = index;
    }
  }
  shared.times[largest] += total - shared.total();
  return shared;
}

std::vector<StepParts> blame_of(const OperationGraph& graph, const GraphResult& result,
                                const GraphRunOptions& options) {
  CHECK(result.finished(), "a run that did not end has no blame");
  std::vector<std::vector<OperationId>> of_rank(as_index(graph.ranks()));
  for (std::uint32_t id = 0; id < graph.operations().size(); ++id) {
    of_rank[as_index(graph.rank_of(OperationId(id)))].emplace_back(id);
  }
  Blame blame(graph, result, options);
  std::vector<StepParts> all;
  for (const int rank : graph.present()) {
    all.push_back(blame.of_rank(rank, std::move(of_rank[as_index(rank)])));
    CHECK(all.back().total() == result.finish, "the parts of a rank add up to the run");
  }
  return all;
}

std::size_t busiest_of(std::span<const StepParts> ranks) {
  const auto busiest =
      std::min_element(ranks.begin(), ranks.end(), [](const StepParts& a, const StepParts& b) {
        return a[StepPart::Bubble] < b[StepPart::Bubble];
      });
  return static_cast<std::size_t>(busiest - ranks.begin());
}

}  // namespace trainyard
