// SPDX-License-Identifier: Apache-2.0
#include "network/traffic/traffic_summary.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "sim/statistics.h"

namespace trainyard {
namespace {

// Decades from 10 kB on; what is smaller is one or two packets.
constexpr std::array<Bytes, 6> kBinStarts{Bytes(0),         Bytes(10'000),     Bytes(100'000),
                                          Bytes(1'000'000), Bytes(10'000'000), Bytes(100'000'000)};

double bits_over_picoseconds_in_gbps(Bytes bytes, SimTime time) {
  return static_cast<double>(bytes.count()) * 8e3 / static_cast<double>(time.picoseconds());
}

// Sorts once, where Samples::percentile would select in a copy for each.
class SortedSamples {
 public:
  void add(double value) { values_.push_back(value); }
  [[nodiscard]] std::size_t count() const { return values_.size(); }

  [[nodiscard]] Distribution distribution() {
    std::sort(values_.begin(), values_.end());
    const double sum = std::accumulate(values_.begin(), values_.end(), 0.0);
    return {.mean = sum / static_cast<double>(values_.size()),
            .p50 = at(50.0),
            .p90 = at(90.0),
            .p99 = at(99.0),
            .p999 = at(99.9),
            .max = values_.back()};
  }

 private:
  // Interpolated as in Samples::percentile.
  [[nodiscard]] double at(double percent) const {
    const double position = percent / 100.0 * static_cast<double>(values_.size() - 1);
    const auto index = static_cast<std::size_t>(position);
    const double low = values_[index];
    const double high = values_[std::min(index + 1, values_.size() - 1)];
    return low + (position - static_cast<double>(index)) * (high - low);
  }

  std::vector<double> values_;
};

std::size_t bin_of(Bytes size) {
  const auto above = std::ranges::upper_bound(kBinStarts, size);
  return static_cast<std::size_t>(above - kBinStarts.begin()) - 1;
}

// The traffic that one source sent. Flows come in the order of their starts.
struct Sent {
  SimTime busy;   // While a flow of it was under way.
  SimTime until;  // The last end so far.
  Bytes bytes;
};

class Collector {
 public:
  explicit Collector(std::string name) { stats_.name = std::move(name); }

  void add(const FlowRecord& flow) {
    if (stats_.flows == 0) {
      stats_.first = flow.start;
      size_ = flow.size;
    }
    ++stats_.flows;
    stats_.bytes += flow.size;
    stats_.first = std::min(stats_.first, flow.start);
    is_one_size_ = is_one_size_ && flow.size == size_;
    if (!flow.end) {
      ++stats_.unfinished;
      return;
    }
    const SimTime fct = *flow.end - flow.start;
    last_ = std::max(last_, *flow.end);
    fct_us_.add(fct.microseconds());
    // Nothing lies between two ends of a path without latency and rate limit.
    const double slowdown = flow.alone > SimTime() ? fct / flow.alone : 1.0;
    slowdown_.add(slowdown);
    bins_.at(bin_of(flow.size)).add(slowdown);
    Sent& sent = sources_[flow.source];
    const SimTime from = std::max(flow.start, sent.until);
    sent.busy += std::max(*flow.end, from) - from;
    sent.until = std::max(sent.until, *flow.end);
    sent.bytes += flow.size;
    if (fct > SimTime()) {
      const double rate = bits_over_picoseconds_in_gbps(flow.size, fct);
      rate_sum_ += rate;
      square_sum_ += rate * rate;
    }
  }

  TrafficStats take() {
    const std::size_t finished = stats_.flows - stats_.unfinished;
    if (finished > 0) {
      stats_.makespan = last_ - stats_.first;
      stats_.fct_us = fct_us_.distribution();
      stats_.slowdown = slowdown_.distribution();
      add_goodput();
    }
    if (finished > 1 && is_one_size_ && square_sum_ > 0.0) {
      stats_.fairness = rate_sum_ * rate_sum_ / (static_cast<double>(finished) * square_sum_);
    }
    for (std::size_t index = 0; index < bins_.size(); ++index) {
      if (bins_.at(index).count() > 0) {
        const bool is_last = index + 1 == bins_.size();
        stats_.bins.push_back(
            {.min = kBinStarts.at(index),
             .below = is_last ? std::nullopt : std::optional(kBinStarts.at(index + 1)),
             .flows = bins_.at(index).count(),
             .slowdown = bins_.at(index).distribution()});
      }
    }
    return std::move(stats_);
  }

 private:
  void add_goodput() {
    Samples rates;
    for (const auto& [source, sent] : sources_) {
      if (sent.busy > SimTime()) {
        rates.add(bits_over_picoseconds_in_gbps(sent.bytes, sent.busy));
      }
    }
    if (rates.count() > 0) {
      stats_.goodput_min_gbps = rates.min();
      stats_.goodput_mean_gbps = rates.mean();
      stats_.goodput_max_gbps = rates.max();
    }
  }

  TrafficStats stats_;
  Bytes size_;  // Size of the first flow.
  bool is_one_size_ = true;
  SimTime last_;
  SortedSamples fct_us_;
  SortedSamples slowdown_;
  std::array<SortedSamples, kBinStarts.size()> bins_;
  std::map<NodeId, Sent> sources_;
  double rate_sum_ = 0.0;
  double square_sum_ = 0.0;
};

std::vector<LinkLoad> fullest_links(const Topology& topology, const TrafficRun& run, SimTime time,
                                    std::size_t max) {
  std::vector<LinkLoad> loads;
  for (const LinkUse& use : run.link_use) {
    const auto rate = static_cast<double>(topology.link(use.link).spec.bandwidth.bits_per_second());
    const double full = rate * time.seconds();
    loads.push_back(
        {.link = use.link,
         .bytes = use.bytes,
         .utilisation = full > 0.0 ? 8.0 * static_cast<double>(use.bytes.count()) / full : 0.0});
  }
  std::ranges::stable_sort(loads, std::greater<>(), &LinkLoad::utilisation);
  loads.resize(std::min(loads.size(), max));
  return loads;
}

}  // namespace

TrafficSummary summarise(const Topology& topology, const TrafficSpec& spec, const TrafficRun& run,
                         std::size_t max_links) {
  Collector all("all");
  std::vector<Collector> groups;
  for (const TrafficGroup& group : spec.groups) {
    groups.emplace_back(group.name);
  }
  for (const FlowRecord& flow : run.flows) {
    all.add(flow);
    groups[flow.group].add(flow);
  }
  TrafficSummary summary;
  summary.all = all.take();
  for (Collector& group : groups) {
    summary.groups.push_back(group.take());
  }
  summary.makespan = std::max(summary.all.makespan,
                              std::max(run.quiet_time, summary.all.first) - summary.all.first);
  summary.links = fullest_links(topology, run, summary.makespan, max_links);
  return summary;
}

}  // namespace trainyard
