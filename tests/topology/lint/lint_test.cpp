// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/lint/lint.h"

#include <algorithm>

#include "support/built_clusters.h"
#include "support/lint_run.h"

namespace trainyard {

TEST_CASE("the shipped clusters have no errors, and those built as their makers say no warnings") {
  for (const auto& entry : std::filesystem::directory_iterator(kConfigsFolder / "clusters")) {
    INFO(entry.path().string());
    for (const Finding& finding : lint(load_cluster(entry.path(), shipped_catalogue(), {}))) {
      INFO(finding.code << ": " << finding.message);
      REQUIRE(finding.severity != Severity::Error);
    }
  }
  for (const char* name : {"dgx-1", "dgx-a100", "dgx-h100", "hgx-h100-clos", "mi300x"}) {
    for (const Finding& finding : lint(shipped_cluster(name))) {
      REQUIRE(finding.severity == Severity::Note);
    }
  }
}

TEST_CASE("a plain fabric of hosts has no findings at all") {
  const LinkSpec link = fabric_link(gigabits_per_second(100), SimTime(1));
  REQUIRE(lint(cluster_of(one_switch(4, link))).empty());
}

TEST_CASE("pairs that cannot reach each other are an error, which comes first") {
  TopologyBuilder builder;
  std::vector<NodeId> hosts;
  const LinkSpec link = fabric_link(gigabits_per_second(100), SimTime(1));
  const LinkSpec fast = fabric_link(gigabits_per_second(300), SimTime(1));
  const NodeId first = add_switch(builder, "first");
  const NodeId second = add_switch(builder, "second");
  const NodeId spine = add_switch(builder, "spine");
  builder.add_duplex_link(add_host(builder, hosts), first, fast);
  builder.add_duplex_link(add_host(builder, hosts), second, link);
  builder.add_duplex_link(first, spine, link);
  const Cluster cluster =
      cluster_of(TestFabric{.topology = std::move(builder).build(), .hosts = std::move(hosts)});
  const auto findings = lint(cluster);
  REQUIRE(findings[0].code == "unreachable");
  REQUIRE(
      findings[0].message ==
      "host 0 and host 1 cannot reach each other: no cables join first and second, the switches "
      "of host 0 and host 1 (2 pairs without a route)");
  REQUIRE(std::ranges::is_sorted(findings, {}, &Finding::severity));
  REQUIRE(findings.size() > 1);
}

}  // namespace trainyard
