// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/lint/summary.h"

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/servers.h"

namespace trainyard {
namespace {

const std::filesystem::path kConfigs = source_dir() / "configs";

std::vector<SummaryRow> summary_of(const std::string& name, std::optional<int> nodes,
                                   const std::vector<std::string>& settings = {}) {
  const Catalogue catalogue = Catalogue::load(kConfigs / "hardware");
  return summarise(load_cluster(kConfigs / "clusters" / (name + ".yaml"), catalogue,
                                {.nodes = nodes, .settings = settings}));
}

std::string value(const std::vector<SummaryRow>& rows, const std::string& section,
                  const std::string& item) {
  for (const SummaryRow& row : rows) {
    if (row.section == section && row.item == item) {
      return row.value;
    }
  }
  return "missing";
}

TEST_CASE("the summary counts devices and links and shows two routes") {
  const auto rows = summary_of("dgx-h100", 64);
  REQUIRE(value(rows, "cluster", "GPUs") == "512");
  REQUIRE(value(rows, "devices", "switch") == "24");
  REQUIRE(value(rows, "links", "nvlink, gpu to nvswitch") == "512 of 369 GB/s each way, 350ns");
  REQUIRE(value(rows, "links", "network, switch to switch") == "512 of 48 GB/s each way, 150ns");
  REQUIRE(value(rows, "fabric", "leaf switches") == "16");
  REQUIRE(value(rows, "fabric", "GPUs per leaf") == "32");
  REQUIRE(value(rows, "fabric", "oversubscription") == "1:1");
  REQUIRE(value(rows, "route from server0/gpu0 to server0/gpu1", "latency") == "800ns");
  const std::string across = "route from server0/gpu0 to server63/gpu0";
  REQUIRE(value(rows, across, "bandwidth") == "48 GB/s");
  REQUIRE(value(rows, across, "2. server0/nic0") == "pcie 56.41 GB/s, 5ns, then 125ns");
}

TEST_CASE("servers may differ in the number of their GPUs") {
  const auto rows = summarise(
      cluster_of({{.gpus = 4, .nics = 4}, {.gpus = 6, .nics = 6}, {.gpus = 3, .nics = 3}}));
  REQUIRE(value(rows, "cluster", "GPUs per server") == "4,6,3");
  REQUIRE(value(rows, "cluster", "GPUs") == "13");
  REQUIRE(value(rows, "fabric", "GPUs per leaf") == "13");
  REQUIRE(value(rows, "route from server0/gpu0 to server2/gpu0", "bandwidth") == "12.5 GB/s");
}

TEST_CASE("sections are contiguous") {
  std::set<std::string> seen;
  std::string current;
  for (const SummaryRow& row : summary_of("dgx-a100", 4)) {
    if (row.section != current) {
      REQUIRE(seen.insert(row.section).second);
      current = row.section;
    }
  }
  REQUIRE(seen.size() == 7);
}

TEST_CASE("oversubscription is that of rates, and one tier has none") {
  const auto rows = summary_of("hgx-h100-clos", 36, {"fabric.oversubscription=3"});
  REQUIRE(value(rows, "fabric", "oversubscription") == "3:1");
  REQUIRE(value(summary_of("h100-1gpu-400g", {}), "fabric", "oversubscription") ==
          "none, one tier");
}

TEST_CASE("a server alone has no fabric and one route") {
  const auto rows = summary_of("rtx4090-pcie", {});
  REQUIRE(value(rows, "fabric", "leaf switches") == "missing");
  REQUIRE(rows.back().section == "route from server0/gpu0 to server0/gpu1");
}

}  // namespace
}  // namespace trainyard
