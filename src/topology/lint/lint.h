// SPDX-License-Identifier: Apache-2.0
// Looks for what is likely a mistake in a cluster, or what its owner should know
// (docs/commands/check.md has the table of codes).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topology/cluster/cluster.h"
#include "topology/cluster/server_kinds.h"
#include "topology/graph/switch_graph.h"
#include "topology/routing/routing.h"

namespace trainyard {

enum class Severity : std::uint8_t { Error, Warning, Note };
[[nodiscard]] std::string_view to_string(Severity severity);

struct Finding {
  Severity severity = Severity::Note;
  std::string code;  // Short and stable: "ports", "deadlock".
  std::string message;
};

// Errors first, then warnings, then notes.
[[nodiscard]] std::vector<Finding> lint(const Cluster& cluster);

// The inputs that the parts of the linter share. All must outlive it.
struct LintContext {
  const Cluster& cluster;
  Routing& routing;  // Routing of this cluster.
  const SwitchGraph& graph;
  const ServerKinds& kinds;
  std::vector<Finding>& findings;

  [[nodiscard]] const std::string& name(NodeId node) const {
    return cluster.topology.node(node).name;
  }
  void add(Severity severity, std::string code, std::string message) const {
    findings.push_back({severity, std::move(code), std::move(message)});
  }
};

// The parts: lint_server.cpp looks at one server of each kind, lint_fabric.cpp at the switches.
void lint_servers(const LintContext& context);
void lint_fabric(const LintContext& context);

}  // namespace trainyard
