// SPDX-License-Identifier: Apache-2.0
// What holds for every collective on any fabric, over a few hundred seeds.
#include "support/catch.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/collective_run.h"
#include "support/effort.h"

namespace trainyard {
namespace {

FlatCollective random_collective(RandomStream& random, std::size_t max_ranks) {
  const Operation operation = kOperations[random.below(kOperations.size())];
  const std::vector<Algorithm> able = algorithms_for(operation);
  const int ranks = 1 + static_cast<int>(random.below(max_ranks));
  return {.algorithm = able[random.below(able.size())],
          .operation = operation,
          .ranks = ranks,
          .channels = 1 + static_cast<int>(random.below(3)),
          .pieces = 1 + static_cast<int>(random.below(4)),
          .root = static_cast<std::uint32_t>(random.below(static_cast<std::uint64_t>(ranks)))};
}

Bytes random_size(RandomStream& random) {
  return Bytes(static_cast<std::int64_t>(random.below(std::uint64_t{1} << random.below(28))));
}

std::string name_of(const FlatCollective& what) {
  return std::string(to_string(what.algorithm)) + " " + std::string(to_string(what.operation)) +
         ", " + std::to_string(what.ranks) + " ranks, " + std::to_string(what.channels) +
         " channels, " + std::to_string(what.pieces) + " pieces";
}

TEST_CASE("every collective is at least as slow in the flow engine as in the analytical one") {
  const LinkSpec link = fabric_link(gigabits_per_second(400), nanoseconds(700));
  std::vector<TestFabric> fabrics;
  fabrics.push_back(one_switch(12, link));
  // Four to one: 3 hosts below each of 4 leaves, 75 % of one host link to the spine.
  fabrics.push_back(clos({.leaves = 4, .hosts_per_leaf = 3, .spines = 1}, link,
                         fabric_link(gigabits_per_second(300), nanoseconds(400))));
  fabrics.push_back(clos({.leaves = 3, .hosts_per_leaf = 4, .spines = 2}, link,
                         fabric_link(gigabits_per_second(200), nanoseconds(400))));
  fabrics.push_back(switch_row(
      link, std::vector<LinkSpec>(11, fabric_link(gigabits_per_second(150), SimTime()))));
  for (const TestFabric& fabric : fabrics) {
    for (const Operation operation : kOperations) {
      for (const Algorithm algorithm : algorithms_for(operation)) {
        for (const int ranks : {2, 5, 8, 12}) {
          for (const std::int64_t size : {1, 30'011, 20'000'003}) {
            const FlatCollective what{.algorithm = algorithm,
                                      .operation = operation,
                                      .ranks = ranks,
                                      .channels = 2,
                                      .pieces = 2,
                                      .root = 1};
            INFO(name_of(what) << ", " << size << " bytes, fabric of "
                               << fabric.topology.node_count() << " nodes");
            const auto schedule = make_flat(what);
            const CollectiveRun fast =
                run_schedule(fabric, *schedule, Bytes(size), Fidelity::Analytical);
            const CollectiveRun slow = run_schedule(fabric, *schedule, Bytes(size), Fidelity::Flow);
            REQUIRE_FALSE(fast.violation.has_value());
            REQUIRE_FALSE(slow.violation.has_value());
            REQUIRE(fast.finish <= slow.finish);
          }
        }
      }
    }
  }
}

TEST_CASE("random collectives on random fabrics: analytical is not slower, and runs repeat") {
  for (std::uint64_t seed = 0; seed < cases(300); ++seed) {
    RandomStream random(seed, "collective property");
    const TestFabric fabric = random_fabric(random);
    const FlatCollective what = random_collective(random, fabric.hosts.size());
    const Bytes size = random_size(random);
    INFO("seed=" << seed << " " << name_of(what) << ", " << size.count() << " bytes");
    const auto schedule = make_flat(what);
    SimTime last;
    for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow}) {
      const CollectiveRun first = run_schedule(fabric, *schedule, size, fidelity);
      const CollectiveRun second = run_schedule(fabric, *make_flat(what), size, fidelity);
      REQUIRE_FALSE(first.violation.has_value());
      REQUIRE(first.finish >= last);
      REQUIRE(first.finish == second.finish);
      REQUIRE(first.fingerprint == second.fingerprint);
      last = first.finish;
    }
  }
}

TEST_CASE("random collectives over packets end, lose nothing, repeat, and keep to the bound") {
  for (std::uint64_t seed = 0; seed < cases(300); ++seed) {
    RandomStream random(seed, "collective over packets");
    const TestFabric fabric = random_fabric(random);
    const FlatCollective what = random_collective(random, fabric.hosts.size());
    const Bytes size(std::min<std::int64_t>(random_size(random).count(), 8'000'000));
    INFO("seed=" << seed << " " << name_of(what) << ", " << size.count() << " bytes");
    const auto schedule = make_flat(what);
    const CollectiveRun bound = run_schedule(fabric, *schedule, size, Fidelity::Analytical);
    const CollectiveRun packet = run_schedule(fabric, *schedule, size, Fidelity::Packet);
    REQUIRE_FALSE(packet.violation.has_value());
    REQUIRE(packet.stats.packets.drops == 0);
    REQUIRE(packet.stats.messages == bound.stats.messages);
    REQUIRE(packet.stats.bytes == bound.stats.bytes);
    // Rates on the line are rounded to a bit a second.
    REQUIRE(static_cast<double>(packet.finish.picoseconds()) >=
            (1.0 - 1e-6) * static_cast<double>(bound.finish.picoseconds()));
    const CollectiveRun second = run_schedule(fabric, *schedule, size, Fidelity::Packet);
    REQUIRE(packet.finish == second.finish);
    REQUIRE(packet.fingerprint == second.fingerprint);
  }
}

TEST_CASE("random collectives end when a naive fluid simulation says") {
  for (std::uint64_t seed = 0; seed < cases(300); ++seed) {
    RandomStream random(seed, "collective against fluid");
    const TestFabric fabric = random_fabric(random);
    const FlatCollective what = random_collective(random, fabric.hosts.size());
    const Bytes size = random_size(random);
    INFO("seed=" << seed << " " << name_of(what) << ", " << size.count() << " bytes");
    const auto schedule = make_flat(what);
    const SimTime finish = run_schedule(fabric, *schedule, size, Fidelity::Flow).finish;
    const SimTime expected = naive_finish(fabric, *schedule, size);
    REQUIRE(std::abs((finish - expected).picoseconds()) <= 2);
  }
}

TEST_CASE("which host of a switch holds which rank does not matter") {
  for (std::uint64_t seed = 0; seed < cases(200); ++seed) {
    RandomStream random(seed, "rank relabelling");
    TestFabric fabric = one_switch(9, random_link(random));
    const FlatCollective what = random_collective(random, fabric.hosts.size());
    const Bytes size = random_size(random);
    INFO("seed=" << seed << " " << name_of(what) << ", " << size.count() << " bytes");
    const auto schedule = make_flat(what);
    for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow}) {
      const SimTime before = run_schedule(fabric, *schedule, size, fidelity).finish;
      for (std::size_t i = fabric.hosts.size(); i-- > 1;) {
        std::swap(fabric.hosts[i], fabric.hosts[random.below(i + 1)]);
      }
      REQUIRE(run_schedule(fabric, *schedule, size, fidelity).finish == before);
    }
  }
}

}  // namespace
}  // namespace trainyard
