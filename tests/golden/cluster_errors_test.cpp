// SPDX-License-Identifier: Apache-2.0
// One mistake for each file in errors/clusters/, at each key of docs/inputs/clusters.md: what
// load_cluster says of NAME.yaml is the one line in NAME.expected. UPDATE_GOLDEN=1 rewrites the
// expectations.
#include "support/catch.h"

#include <filesystem>
#include <string>

#include "support/golden_errors.h"
#include "support/paths.h"
#include "topology/cluster/cluster.h"

namespace trainyard {
TEST_CASE("each mistake in a cluster file gives its one line", "[golden]") {
  const Catalogue catalogue = Catalogue::load(source_dir() / "configs/hardware");
  const auto error_of = [&](const std::string& text, const std::string& name) -> std::string {
    try {
      ConfigDocument document = ConfigDocument::parse(text, name);
      (void)build_cluster(document, catalogue, {});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  require_golden_errors("errors/clusters", 30, error_of);
}

}  // namespace trainyard
