// SPDX-License-Identifier: Apache-2.0
// What holds for any traffic on any fabric, over a few hundred seeds.
#include "support/catch.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "support/effort.h"
#include "support/messages.h"

namespace trainyard {
namespace {

constexpr std::uint64_t kSeeds = cases(400);

struct Case {
  TestFabric fabric;
  Traffic traffic;
};

Case random_case(std::uint64_t seed) {
  RandomStream random(seed, "network property");
  TestFabric fabric = random_fabric(random);
  Traffic traffic = random_traffic(fabric, random);
  return {.fabric = std::move(fabric), .traffic = std::move(traffic)};
}

// When a message was under way, from when it can first have been.
struct Busy {
  SimTime first;
  SimTime last;
  Bytes size;
};

// By link.
std::vector<std::vector<Busy>> busy_times(const Case& item, const MessagesRun& run) {
  const std::vector<std::vector<LinkId>> paths = paths_of(item.fabric, item.traffic);
  std::vector<std::vector<Busy>> busy(item.fabric.topology.link_count());
  std::vector<SimTime> free_at(paths.size());
  for (std::size_t i = 0; i < item.traffic.messages.size(); ++i) {
    const TestMessage& message = item.traffic.messages[i];
    const std::vector<LinkId>& path = paths[message.connection];
    SimTime& free = free_at[message.connection];
    const SimTime first = std::max(message.time, free);
    free = run.arrivals[i] - path_latency(item.fabric.topology, path);
    for (const LinkId link : path) {
      busy[link.value()].push_back({.first = first, .last = free, .size = message.size});
    }
  }
  return busy;
}

TEST_CASE("no link carries more than its capacity over any interval") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    INFO("seed=" << seed);
    const Case item = random_case(seed);
    const auto busy = busy_times(item, run_traffic(item.fabric, item.traffic, Fidelity::Flow));
    for (std::uint32_t link = 0; link < busy.size(); ++link) {
      const Bandwidth capacity = item.fabric.topology.link(LinkId(link)).spec.bandwidth;
      for (const Busy& from : busy[link]) {
        for (const Busy& to : busy[link]) {
          Bytes within;
          for (const Busy& message : busy[link]) {
            if (message.first >= from.first && message.last <= to.last) {
              within += message.size;
            }
          }
          REQUIRE((within == Bytes(0) || transfer_time(within, capacity) <= to.last - from.first));
        }
      }
    }
  }
}

TEST_CASE("what links carried is what was sent over them") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    INFO("seed=" << seed);
    const Case item = random_case(seed);
    for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow}) {
      const MessagesRun run = run_traffic(item.fabric, item.traffic, fidelity);
      const auto busy = busy_times(item, run);
      std::size_t listed = 0;
      for (std::uint32_t link = 0; link < busy.size(); ++link) {
        Bytes sent;
        for (const Busy& message : busy[link]) {
          sent += message.size;
        }
        if (sent > Bytes(0)) {
          REQUIRE(listed < run.link_use.size());
          REQUIRE(run.link_use[listed].link == LinkId(link));
          REQUIRE(run.link_use[listed].bytes == sent);
          ++listed;
        }
      }
      REQUIRE(listed == run.link_use.size());
    }
  }
}

TEST_CASE("the analytical engine is never slower than the flow engine, for any message") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    INFO("seed=" << seed);
    const Case item = random_case(seed);
    const MessagesRun fast = run_traffic(item.fabric, item.traffic, Fidelity::Analytical);
    const MessagesRun slow = run_traffic(item.fabric, item.traffic, Fidelity::Flow);
    REQUIRE(fast.finish <= slow.finish);
    for (std::size_t i = 0; i < fast.arrivals.size(); ++i) {
      REQUIRE(fast.arrivals[i] <= slow.arrivals[i]);
    }
  }
}

TestFabric scaled(const TestFabric& fabric, std::int64_t factor) {
  TopologyBuilder builder;
  for (std::uint32_t server = 0; server < fabric.topology.server_count(); ++server) {
    builder.add_server();
  }
  for (std::uint32_t node = 0; node < fabric.topology.node_count(); ++node) {
    builder.add_node(fabric.topology.node(NodeId(node)));
  }
  for (std::uint32_t index = 0; index < fabric.topology.link_count(); ++index) {
    const Link& link = fabric.topology.link(LinkId(index));
    LinkSpec spec = link.spec;
    spec.bandwidth = Bandwidth(spec.bandwidth.bits_per_second() * factor);
    builder.add_link(link.source, link.target, spec);
  }
  return {
      .topology = std::move(builder).build(), .hosts = fabric.hosts, .switches = fabric.switches};
}

TEST_CASE("scaling all sizes and rates together leaves times unchanged") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Case item = random_case(seed);
    const std::int64_t factor = 2 + static_cast<std::int64_t>(seed % 9);
    const TestFabric fabric = scaled(item.fabric, factor);
    Traffic traffic = item.traffic;
    for (TestMessage& message : traffic.messages) {
      message.size = message.size * factor;
    }
    for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow}) {
      const MessagesRun before = run_traffic(item.fabric, item.traffic, fidelity);
      const MessagesRun after = run_traffic(fabric, traffic, fidelity);
      for (std::size_t i = 0; i < before.arrivals.size(); ++i) {
        INFO("seed=" << seed << " " << to_string(fidelity) << " message " << i);
        const SimTime difference = after.arrivals[i] - before.arrivals[i];
        REQUIRE(std::abs(difference.picoseconds()) <= 1);
      }
    }
  }
}

TEST_CASE("which host of a switch is which changes nothing but names") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "relabelling");
    const int hosts = 2 + static_cast<int>(random.below(7));
    const TestFabric fabric = one_switch(hosts, random_link(random));
    const Traffic traffic = random_traffic(fabric, random);
    std::vector<std::uint32_t> labels(static_cast<std::size_t>(hosts));
    std::iota(labels.begin(), labels.end(), 0);
    for (std::size_t i = labels.size(); i-- > 1;) {
      std::swap(labels[i], labels[random.below(i + 1)]);
    }
    Traffic relabelled = traffic;
    for (TestConnection& connection : relabelled.connections) {
      connection.source = labels[connection.source];
      connection.target = labels[connection.target];
    }
    for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow}) {
      const MessagesRun before = run_traffic(fabric, traffic, fidelity);
      const MessagesRun after = run_traffic(fabric, relabelled, fidelity);
      REQUIRE(before.arrivals == after.arrivals);
      REQUIRE(before.order == after.order);
    }
  }
}

TEST_CASE("the same traffic twice in one process is the same run") {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    INFO("seed=" << seed);
    const Case item = random_case(seed);
    for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow}) {
      const MessagesRun first = run_traffic(item.fabric, item.traffic, fidelity);
      const Case again = random_case(seed);
      const MessagesRun second = run_traffic(again.fabric, again.traffic, fidelity);
      REQUIRE(first.fingerprint == second.fingerprint);
      REQUIRE(first.arrivals == second.arrivals);
    }
  }
}

}  // namespace
}  // namespace trainyard
