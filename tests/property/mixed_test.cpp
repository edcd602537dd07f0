// SPDX-License-Identifier: Apache-2.0
// Packets beside flows against packets alone, on traffic and fabrics drawn by chance: everything
// arrives, links carry what was sent and no more than they can, and times are within a bound.
// MIXED_TABLE=1 prints the table of docs/accuracy/packet-validation.md.
#include "support/catch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <spdlog/fmt/fmt.h>

#include "network/engines/mixed.h"
#include "network/traffic/traffic_run.h"
#include "sim/random.h"
#include "support/effort.h"
#include "support/messages.h"
#include "support/traffic.h"

namespace trainyard {
namespace {

constexpr std::uint64_t kCases = 20;

// The first group is the one that runs as packets.
struct MixedCase {
  const Cluster& cluster;
  std::string text;
  TrafficSpec spec;
};

std::string drawn_group(RandomStream& random, const std::string& name,
                        const std::vector<std::string>& kinds,
                        const std::vector<std::string>& sizes) {
  const std::string kind = kinds.at(random.below(kinds.size()));
  const std::string size = sizes.at(random.below(sizes.size()));
  return fmt::format("  - {{name: {}, kind: {}, size: {}, endpoints: nics, start: {} us}}\n", name,
                     kind, size, random.below(50));
}

MixedCase drawn_case(std::uint64_t seed) {
  static const std::array<Cluster, 4> clusters{
      shipped_cluster("fat-tree-k8-100g", {.nodes = 16}),
      shipped_cluster("fat-tree-k8-100g", {.nodes = 24}),
      shipped_cluster("h100-1gpu-400g", {.settings = {"fabric.routing=ecmp"}}),
      shipped_cluster(
          "hgx-h100-clos",
          {.nodes = 4, .settings = {"fabric.nodes_per_leaf=2", "fabric.oversubscription=2"}})};
  RandomStream random(seed, "packets beside flows");
  const Cluster& cluster = clusters.at(random.below(clusters.size()));
  std::string text = "groups:\n";
  text += drawn_group(random, "chosen",
                      {"permutation, repeat: 2, interval: 100 us", "incast, senders: 4, targets: 2",
                       "poisson, load: 0.3, flows: 60", "alltoall"},
                      {"500 KB", "2 MB", "fb-hadoop", "web-search"});
  const std::uint64_t others = 1 + random.below(2);
  for (std::uint64_t number = 0; number < others; ++number) {
    text += drawn_group(
        random, fmt::format("other{}", number),
        {"permutation, repeat: 3, interval: 200 us", "poisson, load: 0.3, flows: 200",
         "uniform, load: 0.2, flows: 100, duration: 10 s", "incast, senders: 6, targets: 2"},
        {"1 MB", "4 MB", "web-search", "fb-hadoop"});
  }
  return {.cluster = cluster, .text = text, .spec = traffic_of(cluster, text, seed)};
}

// Groups draw their flows again for each run; ends and labels tell those of the first.
MixedOptions choice_of(const MixedCase& drawn, std::uint32_t crowd) {
  std::vector<std::array<std::uint32_t, 3>> keys;
  for (const FlowStart& flow : all_flows(drawn.spec.groups.front())) {
    keys.push_back({flow.source.value(), flow.target.value(), flow.label});
  }
  std::ranges::sort(keys);
  return {.is_chosen =
              [keys](const NewConnection& connection) {
                const ConnectionSpec& spec = connection.spec;
                return std::ranges::binary_search(
                    keys, std::array{spec.source.value(), spec.target.value(), spec.flow_label});
              },
          .crowd = crowd};
}

struct MixedRun {
  TrafficRun traffic;
  MixedStats stats;
};

MixedRun run_mixed(const MixedCase& drawn, const MixedOptions& mixed, int threads = 1) {
  std::int64_t flows = 0;
  for (const GroupPlan& plan : plan_traffic(drawn.cluster, drawn.spec)) {
    flows += plan.flows;
  }
  Simulator simulator;
  Routing routing(drawn.cluster.topology, drawn.cluster.routing);
  Routing alone(drawn.cluster.topology, drawn.cluster.routing);
  PacketOptions packet = roce_options();
  packet.threads = threads;
  packet.min_shared = 0;
  MixedNetwork network(simulator, routing, packet, mixed);
  TrafficRun run = run_traffic(simulator, network, alone, drawn.spec, flows);
  return {.traffic = std::move(run), .stats = network.mixed_stats()};
}

// Errors of mean, median and 99th percentile of the times of flows, against packets alone.
using Errors = std::array<double, 3>;

std::vector<double> times_of(const TrafficRun& run, bool is_chosen) {
  std::vector<double> times;
  for (const FlowRecord& flow : run.flows) {
    if ((flow.group == 0) == is_chosen) {
      times.push_back((*flow.end - flow.start).microseconds());
    }
  }
  std::ranges::sort(times);
  return times;
}

double percentile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

Errors errors_of(const TrafficRun& run, const TrafficRun& packets, bool is_chosen) {
  const std::vector<double> times = times_of(run, is_chosen);
  const std::vector<double> expected = times_of(packets, is_chosen);
  return {std::accumulate(times.begin(), times.end(), 0.0) /
                  std::accumulate(expected.begin(), expected.end(), 0.0) -
              1.0,
          percentile(times, 0.5) / percentile(expected, 0.5) - 1.0,
          percentile(times, 0.99) / percentile(expected, 0.99) - 1.0};
}

// Errors of all cases for one choice, without their signs.
struct Table {
  std::string name;
  std::vector<Errors> chosen;
  std::vector<Errors> others;
  double hops = 0.0;  // Sum over the cases of the part of hops that were simulated.

  void add(const TrafficRun& run, const TrafficRun& packets) {
    chosen.push_back(errors_of(run, packets, true));
    others.push_back(errors_of(run, packets, false));
    hops += static_cast<double>(run.network.packets.hops) /
            static_cast<double>(packets.network.packets.hops);
  }
  [[nodiscard]] static Errors mean(const std::vector<Errors>& errors) {
    Errors sums{};
    for (const Errors& each : errors) {
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i] += std::abs(each[i]) / static_cast<double>(errors.size());
      }
    }
    return sums;
  }
  [[nodiscard]] static double worst(const std::vector<Errors>& errors) {
    double worst = 0.0;
    for (const Errors& each : errors) {
      worst = std::max(worst, std::abs(each[0]));
    }
    return worst;
  }
  [[nodiscard]] std::string row() const {
    const Errors first = mean(chosen);
    const Errors second = mean(others);
    return fmt::format(
        "| {} | {:.0f} % | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | "
        "{:.1f} | {:.1f} |\n",
        name, 100.0 * hops / static_cast<double>(chosen.size()), 100.0 * first[0], 100.0 * first[1],
        100.0 * first[2], 100.0 * worst(chosen), 100.0 * second[0], 100.0 * second[1],
        100.0 * second[2], 100.0 * worst(others));
  }
};

// The bounds of docs/accuracy/packet-validation.md.
TEST_CASE("packets beside flows are within the bound of packets alone", "[traffic]") {
  Table flow{.name = "none: flows", .chosen = {}, .others = {}};
  std::vector<Table> tables;
  constexpr std::array<std::uint32_t, 4> kCrowds{0, 4, 3, 2};
  for (const std::uint32_t crowd : kCrowds) {
    tables.push_back({.name = crowd == 0 ? "the group" : fmt::format("and crowds of {}", crowd),
                      .chosen = {},
                      .others = {}});
  }
  for (std::uint64_t seed = 1; seed <= cases(kCases); ++seed) {
    const MixedCase drawn = drawn_case(seed);
    INFO("seed=" << seed << " on " << drawn.cluster.name << '\n' << drawn.text);
    const TrafficRun packets = run_spec(drawn.cluster, drawn.spec, Fidelity::Packet);
    flow.add(run_spec(drawn.cluster, drawn.spec, Fidelity::Flow), packets);
    for (std::size_t i = 0; i < tables.size(); ++i) {
      const MixedRun run = run_mixed(drawn, choice_of(drawn, kCrowds.at(i)));
      const auto broken = broken_promises(drawn.cluster.topology, drawn.spec, run.traffic, 3);
      REQUIRE(broken.empty());
      REQUIRE(run.stats.packet_bytes + run.stats.flow_bytes == run.traffic.network.bytes);
      tables[i].add(run.traffic, packets);
    }
  }
  if (std::getenv("MIXED_TABLE") != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    fmt::print("{}", flow.row());
    for (const Table& table : tables) {
      fmt::print("{}", table.row());
    }
  }
  if (!kIsSanitized) {
    // Each better than the one before it, and the group alone twice as good as flows.
    const double first = Table::mean(tables[0].chosen)[0];
    REQUIRE(first < 0.08);
    REQUIRE(2.0 * first < Table::mean(flow.chosen)[0]);
    REQUIRE(Table::mean(tables[1].chosen)[0] < 0.05);
    REQUIRE(Table::mean(tables[1].others)[0] < 0.1);
    REQUIRE(Table::mean(tables[3].chosen)[0] < 0.03);
    REQUIRE(Table::mean(tables[3].others)[0] < 0.03);
  }
}

TEST_CASE("the same run of packets beside flows has the same bits, with any number of threads",
          "[traffic]") {
  for (std::uint64_t seed = 1; seed <= cases(10); ++seed) {
    const MixedCase drawn = drawn_case(seed);
    INFO("seed=" << seed << " on " << drawn.cluster.name << '\n' << drawn.text);
    const MixedOptions choice = choice_of(drawn, 3);
    const MixedRun run = run_mixed(drawn, choice);
    REQUIRE(run_mixed(drawn, choice).traffic.fingerprint == run.traffic.fingerprint);
    const MixedRun threaded = run_mixed(drawn, choice, 3);
    REQUIRE(threaded.traffic.fingerprint == run.traffic.fingerprint);
    REQUIRE(threaded.traffic.network.packets.hops == run.traffic.network.packets.hops);
  }
}

// Looks at the rates of both engines at multiples of a time that nothing else is a multiple of.
class RateWatch final : public EventHandler {
 public:
  RateWatch(Simulator& simulator, const Topology& topology, MixedNetwork& network)
      : EventHandler(simulator), simulator_(simulator), topology_(topology), network_(network) {
    simulator.schedule(kStep, *this, 0);
  }
  void on_event(std::uint64_t /*token*/) override {
    const PacketEngine& engine = network_.packets().engine();
    for (std::uint32_t number = 0; number < topology_.link_count(); ++number) {
      const LinkId link(number);
      const LinkSpec& spec = topology_.link(link).spec;
      const double taken = static_cast<double>(network_.flows().taken(link)) /
                           (1U << kFlowRateFractionBits) /
                           static_cast<double>(spec.bandwidth.bits_per_second());
      double left = 0.0;
      if (const Port* const port = engine.port(link)) {
        left = static_cast<double>(port->bits_per_second) /
               static_cast<double>(
                   engine.fabric().line_rate(spec.bandwidth, spec.kind).bits_per_second());
      }
      worst_ = std::max(worst_, taken + left);
    }
    if (simulator_.now() < kEnd) {
      simulator_.schedule(kStep, *this, 0);
    }
  }
  [[nodiscard]] double worst() const { return worst_; }

 private:
  static constexpr SimTime kStep{777'777};
  static constexpr SimTime kEnd{100'000'000};
  Simulator& simulator_;
  const Topology& topology_;
  MixedNetwork& network_;
  double worst_ = 0.0;
};

// Half of the cases have PFC alone, so that buffers fill: pauses must be in time although flows
// slow the ports down that they go out by.
TEST_CASE("flows and packets together never have more than a link, but for 1/64 of it") {
  std::uint64_t pauses = 0;
  for (std::uint64_t seed = 0; seed < cases(100); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "rates of flows and packets");
    const TestFabric fabric = random_fabric(random);
    const Traffic traffic = random_traffic(fabric, random);
    Simulator simulator;
    Routing routing(fabric.topology, kTestRouting);
    const MixedOptions half{.is_chosen = [](const NewConnection& connection) {
      return (connection.spec.source.value() + connection.spec.flow_label) % 2 == 0;
    }};
    PacketOptions packet = roce_options();
    if (seed % 2 == 0) {
      set_control(packet, CongestionControl::None);
    }
    MixedNetwork network(simulator, routing, packet, half);
    const RateWatch watch(simulator, fabric.topology, network);
    REQUIRE(play(simulator, network, fabric, traffic).size() == traffic.messages.size());
    REQUIRE(watch.worst() <= 1.0 + 1.0 / 64.0 + 1e-6);
    REQUIRE(network.stats().packets.drops == 0);
    pauses += network.stats().packets.pauses;
    // Links carried all that was sent over them, and nothing else.
    const auto paths = paths_of(fabric, traffic);
    std::vector<Bytes> sent(fabric.topology.link_count());
    for (const TestMessage& message : traffic.messages) {
      for (const LinkId link : paths[message.connection]) {
        sent[link.value()] += message.size;
      }
    }
    std::vector<Bytes> carried(sent.size());
    for (const LinkUse& use : network.link_use()) {
      carried[use.link.value()] = use.bytes;
    }
    REQUIRE(carried == sent);
  }
  REQUIRE((kIsSanitized || pauses > 0));
}

}  // namespace
}  // namespace trainyard
