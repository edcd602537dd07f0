// SPDX-License-Identifier: Apache-2.0
#include "report/formats/run_inputs.h"

#include <utility>

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

}  // namespace trainyard
