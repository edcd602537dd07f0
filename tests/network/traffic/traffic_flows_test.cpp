// SPDX-License-Identifier: Apache-2.0
// The flows of each kind: their pairs, starts and numbers, and that seeds alone decide them.
#include "support/catch.h"

#include "network/traffic/traffic_flows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/traffic.h"

namespace trainyard {
namespace {

using namespace literals;

const Cluster& hosts() {
  static const Cluster cluster = shipped_cluster("fat-tree-k8-100g");
  return cluster;
}

std::vector<FlowStart> flows_of(const std::string& group, std::uint64_t seed = 1) {
  return all_flows(traffic_of(hosts(), "groups:\n  - {name: g, " + group + "}\n", seed).groups[0]);
}

bool equal(const std::vector<FlowStart>& a, const std::vector<FlowStart>& b) {
  return std::ranges::equal(a, b, [](const FlowStart& x, const FlowStart& y) {
    return x.time == y.time && x.size == y.size && x.source == y.source && x.target == y.target &&
           x.label == y.label && x.priority == y.priority;
  });
}

bool starts_in_order(const std::vector<FlowStart>& flows) {
  return std::ranges::is_sorted(flows, {}, &FlowStart::time);
}

TEST_CASE("a permutation has no fixed point, and a new one comes every round", "[traffic]") {
  const std::vector<FlowStart> flows =
      flows_of("kind: permutation, size: 1 MB, start: 7 us, repeat: 40, interval: 1 ms");
  REQUIRE(flows.size() == 40 * 128);
  REQUIRE(starts_in_order(flows));
  std::set<std::vector<NodeId>> rounds;
  for (std::size_t round = 0; round < 40; ++round) {
    std::set<NodeId> sources;
    std::vector<NodeId> targets;
    for (std::size_t index = 0; index < 128; ++index) {
      const FlowStart& flow = flows[128 * round + index];
      REQUIRE(flow.time == 7_us + 1_ms * static_cast<std::int64_t>(round));
      REQUIRE(flow.source != flow.target);
      sources.insert(flow.source);
      targets.push_back(flow.target);
    }
    REQUIRE(sources.size() == 128);
    REQUIRE(std::set<NodeId>(targets.begin(), targets.end()).size() == 128);
    rounds.insert(targets);
  }
  REQUIRE(rounds.size() == 40);
}

// Four hosts have nine permutations without a fixed point: each should come as often as any other.
// 9,000 draws: 1,000 +- 30 of each.
TEST_CASE("each permutation without a fixed point is as likely as any other", "[traffic]") {
  const std::vector<FlowStart> flows = flows_of(
      "kind: permutation, size: 1 B, endpoints: 'server[0-3]/nic0', repeat: 9000, interval: 1 us");
  std::map<std::vector<NodeId>, int> counts;
  for (std::size_t first = 0; first < flows.size(); first += 4) {
    std::vector<NodeId> targets;
    for (std::size_t index = 0; index < 4; ++index) {
      targets.push_back(flows[first + index].target);
    }
    ++counts[targets];
  }
  REQUIRE(counts.size() == 9);
  for (const auto& [targets, count] : counts) {
    REQUIRE(std::abs(count - 1000) < 150);
  }
}

TEST_CASE("incast has its senders for each target, none of them twice", "[traffic]") {
  const std::vector<FlowStart> flows =
      flows_of("kind: incast, size: 1 MB, senders: 16, targets: 3, repeat: 20, interval: 1 ms");
  REQUIRE(flows.size() == 16 * 3 * 20);
  std::set<NodeId> all_targets;
  for (std::size_t first = 0; first < flows.size(); first += 16) {
    const NodeId target = flows[first].target;
    all_targets.insert(target);
    std::set<NodeId> senders;
    for (std::size_t index = first; index < first + 16; ++index) {
      REQUIRE(flows[index].target == target);
      REQUIRE(flows[index].source != target);
      senders.insert(flows[index].source);
    }
    REQUIRE(senders.size() == 16);
  }
  REQUIRE(all_targets.size() > 20);
}

TEST_CASE("incast without a number of senders takes all others", "[traffic]") {
  REQUIRE(flows_of("kind: incast, size: 1 MB").size() == 127);
  REQUIRE(flows_of("kind: incast, size: 1 MB, targets: 2").size() == 2 * 127);
  const std::vector<FlowStart> named = flows_of(
      "kind: incast, size: 1 MB, endpoints: 'server[0-9]/nic0', targets: [server3/nic0, "
      "server11/nic0]");
  REQUIRE(named.size() == 9 + 10);
  REQUIRE(hosts().topology.node(named.front().target).name == "server3/nic0");
  REQUIRE(hosts().topology.node(named.back().target).name == "server11/nic0");
}

TEST_CASE("all to all has each ordered pair once a round", "[traffic]") {
  const std::vector<FlowStart> flows = flows_of(
      "kind: alltoall, size: 1 MB, endpoints: 'server[0-9]/nic0', repeat: 2, interval: 1 s");
  REQUIRE(flows.size() == 2 * 90);
  std::set<std::pair<NodeId, NodeId>> pairs;
  for (std::size_t index = 0; index < 90; ++index) {
    REQUIRE(flows[index].source != flows[index].target);
    pairs.emplace(flows[index].source, flows[index].target);
  }
  REQUIRE(pairs.size() == 90);
  REQUIRE(flows[89].time == 0_s);
  REQUIRE(flows[90].time == 1_s);
}

// 128 hosts of 98.037 Gb/s for 20 ms at half load: 15.69e9 bytes, so 156,859 flows on average. The
// number of flows of each host, from or to it, is Poisson.
TEST_CASE("poisson traffic has the load that was asked for", "[traffic]") {
  const std::vector<FlowStart> flows =
      flows_of("kind: poisson, size: 100 KB, load: 0.5, duration: 20 ms");
  REQUIRE(starts_in_order(flows));
  REQUIRE(flows.back().time <= 20_ms);
  const double expected = 128 * 0.5 * 98.037e9 / 8.0 * 0.02 / 1e5;
  REQUIRE(std::abs(static_cast<double>(flows.size()) - expected) < 5 * std::sqrt(expected));
  std::map<NodeId, int> by_source;
  std::map<NodeId, int> by_target;
  for (const FlowStart& flow : flows) {
    REQUIRE(flow.source != flow.target);
    ++by_source[flow.source];
    ++by_target[flow.target];
  }
  const double each = expected / 128;
  for (const auto* counts : {&by_source, &by_target}) {
    REQUIRE(counts->size() == 128);
    for (const auto& [node, count] : *counts) {
      REQUIRE(std::abs(count - each) < 5 * std::sqrt(each));
    }
  }
  // Gaps of one host: as spread out as they are long.
  std::vector<double> gaps;
  SimTime last;
  for (const FlowStart& flow : flows) {
    if (flow.source == flows.front().source) {
      gaps.push_back((flow.time - last).microseconds());
      last = flow.time;
    }
  }
  double sum = 0.0;
  double squares = 0.0;
  for (const double gap : gaps) {
    sum += gap;
    squares += gap * gap;
  }
  const auto count = static_cast<double>(gaps.size());
  const double mean = sum / count;
  REQUIRE(std::sqrt(squares / count - mean * mean) / mean == Approx(1.0).epsilon(0.15));
}

TEST_CASE("poisson traffic with a distribution of sizes has its load in bytes", "[traffic]") {
  const std::vector<FlowStart> flows =
      flows_of("kind: poisson, size: web-search, load: 0.8, host_rate: 100 Gb/s, flows: 20000");
  REQUIRE(flows.size() == 20'000);
  double bytes = 0.0;
  for (const FlowStart& flow : flows) {
    bytes += static_cast<double>(flow.size.count());
  }
  const double load = bytes * 8 / (128 * 100e9 * flows.back().time.seconds());
  // Relative deviation of a size: 2.2; of a sum of 20,000: 0.016; of the time: 0.007.
  REQUIRE(load == Approx(0.8).epsilon(0.07));
}

TEST_CASE("uniform traffic has equal gaps with a random phase", "[traffic]") {
  const std::vector<FlowStart> flows = flows_of(
      "kind: uniform, size: 1 MB, load: 1, host_rate: 8 Gb/s, duration: 100 ms, endpoints: "
      "'server[0-3]/nic0'");
  REQUIRE(starts_in_order(flows));
  std::map<NodeId, std::vector<SimTime>> starts;
  for (const FlowStart& flow : flows) {
    starts[flow.source].push_back(flow.time);
  }
  REQUIRE(starts.size() == 4);
  std::set<SimTime> phases;
  for (const auto& [source, times] : starts) {
    REQUIRE(times.size() == 100);
    phases.insert(times.front());
    REQUIRE(times.front() < 1_ms);
    for (std::size_t index = 1; index < times.size(); ++index) {
      REQUIRE(times[index] - times[index - 1] == 1_ms);
    }
  }
  REQUIRE(phases.size() == 4);
}

TEST_CASE("equal seeds give equal flows, other seeds others, of every kind", "[traffic]") {
  for (const std::string group :
       {"kind: permutation, size: 1 MB", "kind: incast, size: 1 MB, senders: 4",
        "kind: alltoall, size: web-search, endpoints: 'server[0-9]/nic0'",
        "kind: uniform, size: 1 MB, load: 0.5, flows: 500",
        "kind: poisson, size: fb-hadoop, load: 0.5, flows: 500"}) {
    INFO(group);
    REQUIRE(equal(flows_of(group, 1), flows_of(group, 1)));
    REQUIRE(!equal(flows_of(group, 1), flows_of(group, 2)));
  }
}

TEST_CASE("a group has the same flows whatever others there are", "[traffic]") {
  const std::string group = "  - {name: g, kind: poisson, size: fb-hadoop, load: 0.5, flows: 50}\n";
  const TrafficSpec alone = traffic_of(hosts(), "groups:\n" + group);
  const TrafficSpec beside =
      traffic_of(hosts(), "groups:\n  - {name: a, kind: permutation, size: 1 MB}\n" + group);
  REQUIRE(equal(all_flows(alone.groups[0]), all_flows(beside.groups[1])));
  const TrafficSpec renamed = traffic_of(
      hosts(), "groups:\n  - {name: h, kind: poisson, size: fb-hadoop, load: 0.5, flows: 50}\n");
  REQUIRE(!equal(all_flows(alone.groups[0]), all_flows(renamed.groups[0])));
}

TEST_CASE("labels are UDP source ports, and priorities come from the group or the flow",
          "[traffic]") {
  std::set<std::uint32_t> labels;
  for (const FlowStart& flow : flows_of("kind: permutation, size: 1 MB, priority: 5")) {
    REQUIRE(flow.label >= 0xC000);
    REQUIRE(flow.label <= 0xFFFF);
    REQUIRE(flow.priority == 5);
    labels.insert(flow.label);
  }
  REQUIRE(labels.size() > 110);
  const TrafficSpec spec = traffic_of(
      hosts(),
      "groups:\n  - name: g\n    kind: flows\n    size: 1 B\n    priority: 2\n    start: 1 us\n"
      "    flows:\n      - {source: server0/nic0, target: server1/nic0, priority: 6}\n"
      "      - {source: server0/nic0, target: server1/nic0}\n");
  const std::vector<FlowStart> flows = all_flows(spec.groups[0]);
  REQUIRE(flows[0].priority == 6);
  REQUIRE(flows[1].priority == 2);
  REQUIRE(flows[1].time == 1_us);
}

}  // namespace
}  // namespace trainyard
