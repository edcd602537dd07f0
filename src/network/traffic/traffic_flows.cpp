// SPDX-License-Identifier: Apache-2.0
#include "network/traffic/traffic_flows.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <numeric>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

namespace trainyard {
namespace {

// The UDP source port of a RoCEv2 queue pair: 0xC000 and 14 bits (Linux, include/rdma/ib_verbs.h,
// rdma_flow_label_to_udp_sport).
constexpr std::uint32_t kFirstPort = 0xC000;
constexpr std::uint32_t kPorts = 1U << 14U;

RandomStream stream_of(const TrafficGroup& group, std::string_view purpose) {
  return {group.seed, fmt::format("traffic/{}/{}", group.name, purpose)};
}

using Index = std::uint32_t;

// Fisher and Yates, of the first `count` places alone.
void shuffle(std::vector<Index>& values, std::size_t count, RandomStream& stream) {
  for (std::size_t place = 0; place < count && place + 1 < values.size(); ++place) {
    std::swap(values[place], values[place + stream.below(values.size() - place)]);
  }
}

std::vector<Index> numbers_to(std::size_t count) {
  std::vector<Index> numbers(count);
  std::iota(numbers.begin(), numbers.end(), Index{0});
  return numbers;
}

// The flows of one round, which is drawn when it is needed.
class RoundPattern : public FlowPattern {
 public:
  std::optional<FlowStart> next() final {
    while (at_ == flows_.size()) {
      if (round_ == rounds_.count) {
        return std::nullopt;
      }
      flows_.clear();
      at_ = 0;
      draw_round(flows_);
      time_ = rounds_.interval * round_;
      ++round_;
    }
    const Pair pair = flows_[at_++];
    return FlowStart{.time = time_,
                     .size = sizes_.draw(size_stream_),
                     .source = pair.source,
                     .target = pair.target};
  }

 protected:
  struct Pair {
    NodeId source;
    NodeId target;
  };
  RoundPattern(const TrafficGroup& group, const FlowSizes& sizes, const Rounds& rounds)
      : sizes_(sizes), rounds_(rounds), size_stream_(stream_of(group, "sizes")) {}

 private:
  virtual void draw_round(std::vector<Pair>& flows) = 0;

  const FlowSizes& sizes_;
  const Rounds& rounds_;
  RandomStream size_stream_;
  std::int64_t round_ = 0;
  SimTime time_;
  std::vector<Pair> flows_;
  std::size_t at_ = 0;
};

class PermutationPattern final : public RoundPattern {
 public:
  PermutationPattern(const TrafficGroup& group, const PermutationTraffic& traffic)
      : RoundPattern(group, traffic.sizes, traffic.rounds),
        endpoints_(group.endpoints),
        targets_(stream_of(group, "targets")) {}

 private:
  void draw_round(std::vector<Pair>& flows) override {
    std::vector<Index> target = numbers_to(endpoints_.size());
    const std::vector<Index> indices = target;
    do {
      shuffle(target, target.size(), targets_);
    } while (std::ranges::any_of(indices, [&](Index index) { return target[index] == index; }));
    for (std::size_t index = 0; index < target.size(); ++index) {
      flows.push_back({.source = endpoints_[index], .target = endpoints_[target[index]]});
    }
  }

  const std::vector<NodeId>& endpoints_;
  RandomStream targets_;
};

class IncastPattern final : public RoundPattern {
 public:
  IncastPattern(const TrafficGroup& group, const IncastTraffic& traffic)
      : RoundPattern(group, traffic.sizes, traffic.rounds),
        endpoints_(group.endpoints),
        traffic_(traffic),
        targets_(stream_of(group, "targets")),
        senders_(stream_of(group, "senders")) {}

 private:
  void draw_round(std::vector<Pair>& flows) override {
    for (const NodeId target : draw_targets()) {
      std::vector<Index> others = numbers_to(endpoints_.size());
      std::erase_if(others, [&](Index index) { return endpoints_[index] == target; });
      std::size_t count = others.size();
      if (traffic_.senders) {
        count = *traffic_.senders;
        shuffle(others, count, senders_);
      }
      for (std::size_t place = 0; place < count; ++place) {
        flows.push_back({.source = endpoints_[others[place]], .target = target});
      }
    }
  }

  std::vector<NodeId> draw_targets() {
    if (!traffic_.targets.empty()) {
      return traffic_.targets;
    }
    std::vector<Index> indices = numbers_to(endpoints_.size());
    shuffle(indices, traffic_.drawn_targets, targets_);
    std::vector<NodeId> drawn;
    for (std::size_t place = 0; place < traffic_.drawn_targets; ++place) {
      drawn.push_back(endpoints_[indices[place]]);
    }
    return drawn;
  }

  const std::vector<NodeId>& endpoints_;
  const IncastTraffic& traffic_;
  RandomStream targets_;
  RandomStream senders_;
};

// Pair by pair, because there are as many as the square of the endpoints.
class AllToAllPattern final : public FlowPattern {
 public:
  AllToAllPattern(const TrafficGroup& group, const AllToAllTraffic& traffic)
      : endpoints_(group.endpoints), traffic_(traffic), sizes_(stream_of(group, "sizes")) {}

  std::optional<FlowStart> next() override {
    const std::size_t count = endpoints_.size();
    if (round_ == traffic_.rounds.count) {
      return std::nullopt;
    }
    const FlowStart flow{.time = traffic_.rounds.interval * round_,
                         .size = traffic_.sizes.draw(sizes_),
                         .source = endpoints_[source_],
                         .target = endpoints_[(source_ + shift_) % count]};
    if (++source_ == count) {
      source_ = 0;
      if (++shift_ == count) {
        shift_ = 1;
        ++round_;
      }
    }
    return flow;
  }

 private:
  const std::vector<NodeId>& endpoints_;
  const AllToAllTraffic& traffic_;
  RandomStream sizes_;
  std::int64_t round_ = 0;
  std::size_t shift_ = 1;
  std::size_t source_ = 0;
};

class OpenLoopPattern final : public FlowPattern {
 public:
  OpenLoopPattern(const TrafficGroup& group, const OpenLoopTraffic& traffic)
      : endpoints_(group.endpoints),
        traffic_(traffic),
        gaps_(stream_of(group, "gaps")),
        targets_(stream_of(group, "targets")),
        sizes_(stream_of(group, "sizes")) {
    for (Index source = 0; source < endpoints_.size(); ++source) {
      const double gap = traffic_.mean_gaps[source];
      const bool is_equal = traffic_.gaps == OpenLoopTraffic::Gaps::Equal;
      add({.time = SimTime(), .source = source},
          gap * (is_equal ? gaps_.uniform() : gaps_.exponential()));
    }
  }

  std::optional<FlowStart> next() override {
    if (starts_.empty() || (traffic_.flows && count_ == *traffic_.flows)) {
      return std::nullopt;
    }
    const Start start = starts_.top();
    starts_.pop();
    const double gap = traffic_.mean_gaps[start.source];
    add(start, traffic_.gaps == OpenLoopTraffic::Gaps::Equal ? gap : gap * gaps_.exponential());
    ++count_;
    // One of the others.
    const auto other = static_cast<std::size_t>(targets_.below(endpoints_.size() - 1));
    const std::size_t target = other < start.source ? other : other + 1;
    return FlowStart{.time = start.time,
                     .size = traffic_.sizes.draw(sizes_),
                     .source = endpoints_[start.source],
                     .target = endpoints_[target]};
  }

 private:
  struct Start {
    SimTime time;
    Index source;
    friend auto operator<=>(const Start&, const Start&) = default;
  };

  // The flow after `last`, unless it were past the end.
  void add(Start last, double gap_picoseconds) {
    constexpr double kMaxGap = 1e18;  // Beyond any duration; a sum of two stays in range.
    const double gap = std::min(gap_picoseconds + 0.5, kMaxGap);
    const SimTime time = last.time + SimTime(static_cast<std::int64_t>(gap));
    if (time <= traffic_.duration && time <= SimTime(static_cast<std::int64_t>(kMaxGap))) {
      starts_.push({.time = time, .source = last.source});
    }
  }

  const std::vector<NodeId>& endpoints_;
  const OpenLoopTraffic& traffic_;
  RandomStream gaps_;
  RandomStream targets_;
  RandomStream sizes_;
  std::priority_queue<Start, std::vector<Start>, std::greater<>> starts_;
  std::int64_t count_ = 0;
};

class ListedPattern final : public FlowPattern {
 public:
  explicit ListedPattern(const ListedTraffic& traffic) : flows_(traffic.flows) {}

  std::optional<FlowStart> next() override {
    return at_ == flows_.size() ? std::nullopt : std::optional(flows_[at_++]);
  }

 private:
  const std::vector<FlowStart>& flows_;
  std::size_t at_ = 0;
};

struct MakePattern {
  const TrafficGroup& group;

  std::unique_ptr<FlowPattern> operator()(const PermutationTraffic& traffic) const {
    return std::make_unique<PermutationPattern>(group, traffic);
  }
  std::unique_ptr<FlowPattern> operator()(const IncastTraffic& traffic) const {
    return std::make_unique<IncastPattern>(group, traffic);
  }
  std::unique_ptr<FlowPattern> operator()(const AllToAllTraffic& traffic) const {
    return std::make_unique<AllToAllPattern>(group, traffic);
  }
  std::unique_ptr<FlowPattern> operator()(const OpenLoopTraffic& traffic) const {
    return std::make_unique<OpenLoopPattern>(group, traffic);
  }
  std::unique_ptr<FlowPattern> operator()(const ListedTraffic& traffic) const {
    return std::make_unique<ListedPattern>(traffic);
  }
};

}  // namespace

FlowSource::FlowSource(const TrafficGroup& group)
    : group_(group),
      labels_(stream_of(group, "labels")),
      pattern_(std::visit(MakePattern{group}, group.pattern)) {}

std::optional<FlowStart> FlowSource::next() {
  std::optional<FlowStart> flow = pattern_->next();
  if (flow) {
    flow->time += group_.start;
    flow->label = kFirstPort + static_cast<std::uint32_t>(labels_.below(kPorts));
    if (!flow->priority) {
      flow->priority = group_.priority;
    }
  }
  return flow;
}

}  // namespace trainyard
