// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/exchange/gpu_links.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "support/shipped.h"

namespace trainyard {
namespace {

ImportedServer completed(const std::string& gpu, int gpus) {
  ImportedServer server{.tree = empty_server(gpus, 0)};
  server.tree.gpu = gpu;
  complete_gpu_links(server, shipped_catalogue());
  return server;
}

}  // namespace

TEST_CASE("GPUs of a template are joined as in the shipped server with as many of their family") {
  const ImportedServer hgx = completed("A100-SXM-40GB", 8);
  REQUIRE(hgx.tree.switch_links == std::vector<int>(8, 12));
  REQUIRE(hgx.remarks ==
          std::vector<std::string>{
              "The file states no links between the GPUs, which NCCL finds on the machine: they "
              "are those of configs/servers/hgx-a100.yaml."});
  // The cube mesh of DGX-1: four neighbours, six links.
  const ImportedServer cube = completed("V100-SXM2-32GB", 8);
  REQUIRE(cube.tree.switch_links == std::vector<int>(8, 0));
  for (const std::vector<int>& row : cube.tree.gpu_links) {
    REQUIRE(std::accumulate(row.begin(), row.end(), 0) == 6);
    REQUIRE(std::count(row.begin(), row.end(), 0) == 4);
  }
  REQUIRE(completed("V100-SXM2-32GB", 16).tree.switch_links == std::vector<int>(16, 6));
  // Part of a board, as a virtual machine has it.
  REQUIRE(completed("B200", 2).tree.switch_links == std::vector<int>(2, 18));
}

TEST_CASE("GPUs that bridges or unknown boards join stay apart, with a remark") {
  for (const auto& [gpu, gpus] :
       std::vector<std::pair<std::string, int>>{{"A100-PCIe-80GB", 4}, {"A100-SXM-40GB", 2}}) {
    const ImportedServer server = completed(gpu, gpus);
    REQUIRE(server.tree.switch_links == std::vector<int>(static_cast<std::size_t>(gpus), 0));
    REQUIRE(server.tree.gpu_links[0] == std::vector<int>(static_cast<std::size_t>(gpus), 0));
    REQUIRE(server.remarks ==
            std::vector<std::string>{
                "The file states no links between the GPUs, and no server of configs/servers shows "
                "how " +
                std::to_string(gpus) + " " + gpu +
                " are joined: none stand here. The key gpu_links adds them."});
  }
  REQUIRE(completed("A10G", 4).remarks.empty());
  REQUIRE(completed("A100-SXM-40GB", 1).remarks.empty());
}

}  // namespace trainyard
