// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/explain/explain_runs.h"

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/config_error.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

MachineModel small_machine() {
  return {.cluster = shipped_cluster("dgx-h100", {.nodes = 2}),
          .nccl = nccl::Profile::load(kConfigsFolder / "nccl" / "profile.yaml"),
          .rates = {},
          .software = {}};
}

// A time that is inverse to the rate of the first link.
std::vector<SimTime> time_of_first_link(const MachineModel& machine) {
  return {transfer_time(gib(1), machine.cluster.topology.link(LinkId(0)).spec.bandwidth)};
}

}  // namespace

TEST_CASE("runs with faster resources are the same with any number of threads", "[explain-runs]") {
  const MachineModel machine = small_machine();
  const std::vector<Resource> resources = resources_of(machine.cluster, {.nccl = true});
  std::vector<std::vector<SimTime>> seen;
  for (const unsigned threads : {1U, 4U}) {
    const auto times = explain_times({.machine = machine,
                                      .resources = resources,
                                      .labels = {{.label = "a", .how = "b"}},
                                      .threads = threads},
                                     time_of_first_link);
    REQUIRE(times.size() == 1);
    REQUIRE(times[0].effects.size() == resources.size());
    REQUIRE(elasticity(times[0].time, times[0].all.faster, kExplainFactor) ==
            Approx(1.0).margin(1e-6));
    REQUIRE(times[0].improvements.size() == 1);
    seen.emplace_back();
    for (const ResourceEffect& effect : times[0].effects) {
      seen.back().push_back(effect.faster);
      seen.back().push_back(effect.slower);
    }
  }
  REQUIRE(seen[0] == seen[1]);
}

TEST_CASE("what takes no time is not explained", "[explain-runs]") {
  const MachineModel machine = small_machine();
  REQUIRE_THROWS_AS(explain_times({.machine = machine,
                                   .resources = {},
                                   .labels = {{.label = "a", .how = ""}},
                                   .threads = 1},
                                  [](const MachineModel& /*machine*/) {
                                    return std::vector<SimTime>{SimTime()};
                                  }),
                    ConfigError);
}

TEST_CASE("settings that help are sorted in, others are left out", "[explain-runs]") {
  ExplainedTime time{.label = "a",
                     .how = "",
                     .time = milliseconds(10),
                     .all = {},
                     .effects = {},
                     .improvements = {{.what = "h", .kind = "hardware", .time = milliseconds(9)}},
                     .links = {}};
  const std::array<SettingVariant, 4> variants{
      SettingVariant{.what = "better", .run = [] { return std::optional(milliseconds(5)); }},
      SettingVariant{.what = "worse", .run = [] { return std::optional(milliseconds(11)); }},
      SettingVariant{.what = "none", .run = [] { return std::optional<SimTime>(); }},
      SettingVariant{.what = "refused",
                     .run = []() -> std::optional<SimTime> { throw ConfigError("not here"); }}};
  add_settings(variants, 2, time);
  REQUIRE(time.improvements.size() == 2);
  REQUIRE(time.improvements[0].what == "better");
  REQUIRE(time.improvements[0].kind == "setting");
  REQUIRE(time.improvements[1].what == "h");
}

TEST_CASE("links that are alike and carry as much are one line", "[explain-runs]") {
  const MachineModel machine = small_machine();
  const Topology& topology = machine.cluster.topology;
  const LinkResources resources(topology);
  std::vector<LinkTraffic> traffic;
  for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
    if (resources.of(LinkId(index)).key == "nic") {
      traffic.push_back({.link = LinkId(index), .parts = {{.purpose = "data", .bytes = mib(1)}}});
    }
  }
  traffic.front().parts.push_back({.purpose = "tensor", .bytes = mib(1)});
  const SimTime all = transfer_time(mib(2), topology.link(traffic.front().link).spec.bandwidth);
  const auto links = contended_links(topology, traffic, all);
  REQUIRE(links.size() == 2);
  REQUIRE(links[0].count == 1);
  REQUIRE(links[0].utilisation == Approx(1.0));
  REQUIRE(links[1].count == static_cast<int>(traffic.size()) - 1);
  REQUIRE(links[1].utilisation == Approx(0.5).epsilon(1e-6));
}

TEST_CASE("the volumes of an explained time are of all its links, busiest or not",
          "[explain-runs][volumes]") {
  const MachineModel machine = small_machine();
  std::vector<LinkTraffic> traffic;
  for (std::uint32_t index = 0; index < machine.cluster.topology.link_count(); ++index) {
    traffic.push_back(
        {.link = LinkId(index), .parts = {{.purpose = "data", .bytes = Bytes(1 + index)}}});
  }
  ExplainedTime time{.label = "a", .how = "", .time = milliseconds(1)};
  add_links(machine.cluster, traffic, time);
  REQUIRE(time.links.size() == 5);
  std::int64_t links = 0;
  std::int64_t bytes = 0;
  for (const TierVolume& volume : time.volumes) {
    links += volume.links;
    bytes += volume.bytes.count();
  }
  const auto count = static_cast<std::int64_t>(traffic.size());
  REQUIRE(links == count);
  REQUIRE(bytes == count * (count + 1) / 2);
}

}  // namespace trainyard
