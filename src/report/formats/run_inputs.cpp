// SPDX-License-Identifier: Apache-2.0
#include "report/formats/run_inputs.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include "parallelism/run/resources.h"

namespace trainyard {

RunInputs run_inputs(const Cluster& cluster, std::vector<std::string> settings) {
  RunInputs inputs{.settings = std::move(settings)};
  const LinkResources links(cluster.topology);
  for (const Resource& resource : links.list()) {
    inputs.resources.emplace_back(resource.key, resource.value);
  }
  return inputs;
}

std::vector<std::pair<std::string, std::string>> machine_options(
    const Cluster& cluster, const ClusterOverrides& overrides) {
  std::vector<std::pair<std::string, std::string>> options{
      {"nodes", std::to_string(cluster.nodes)},
      {"gpus_per_node", std::to_string(cluster.gpus_per_node)}};
  if (!overrides.pulls.empty()) {
    options.emplace_back("pull", fmt::format("{}", fmt::join(overrides.pulls, " ")));
  }
  return options;
}

}  // namespace trainyard
