// SPDX-License-Identifier: Apache-2.0
#include "topology/lint/lint.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "topology/cluster/reach.h"

namespace trainyard {
namespace {

void lint_reach(const LintContext& context) {
  const auto found =
      find_unreachable(context.cluster, context.routing, context.graph, context.kinds);
  if (!found) {
    return;
  }
  context.add(Severity::Error, "unreachable",
              fmt::format("{} and {} cannot reach each other: {} ({} pair{} without a route)",
                          context.name(found->source), context.name(found->target), found->why,
                          found->pairs, found->pairs == 1 ? "" : "s"));
}

}  // namespace

std::string_view to_string(Severity severity) {
  static constexpr std::array<std::string_view, 3> names = {"error", "warning", "note"};
  return names[static_cast<std::size_t>(severity)];
}

std::vector<Finding> lint(const Cluster& cluster) {
  Routing routing(cluster.topology, cluster.routing);
  const SwitchGraph graph(cluster.topology);
  std::vector<Finding> findings;
  const ServerKinds kinds(cluster, graph);
  const LintContext context{
      .cluster = cluster, .routing = routing, .graph = graph, .kinds = kinds, .findings = findings};
  lint_reach(context);
  lint_servers(context);
  lint_fabric(context);
  std::ranges::stable_sort(findings, {}, &Finding::severity);
  return findings;
}

}  // namespace trainyard
