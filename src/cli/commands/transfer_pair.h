// SPDX-License-Identifier: Apache-2.0
// Documents of transfer --verb and --tcp begin alike, with the two host memories.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <string>

#include "network/traffic/transfers.h"
#include "report/formats/document.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// The heading names the ends and `settings`, which is in words.
[[nodiscard]] inline Document pair_document(const Cluster& cluster, const Transfer& pair,
                                            const std::string& settings) {
  const std::string& from = cluster.topology.node(pair.source).name;
  const std::string& to = cluster.topology.node(pair.target).name;
  Document document{.heading = {fmt::format("Simulated by Trainyard: cluster {}, {} to {}, {}",
                                            cluster.name, from, to, settings)}};
  document.add("cluster", cluster.name);
  document.add("from", from);
  document.add("to", to);
  return document;
}

}  // namespace trainyard
