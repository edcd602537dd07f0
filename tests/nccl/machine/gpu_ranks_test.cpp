// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/machine/gpu_ranks.h"

#include "support/nccl_servers.h"

namespace trainyard::nccl {
namespace {

const NcclGpu& gpu_at(const NcclSystem& server, std::size_t socket, std::size_t bridge) {
  return server.cpus[socket].pcis[bridge].pcis[0].gpus[0];
}

TEST_CASE("stated ranks are put in a row from zero, host by host", "[nccl]") {
  NcclSystem server = plain_server(pcie_server());
  int rank = 40;
  for (NcclCpu& cpu : server.cpus) {
    for (NcclPci& bridge : cpu.pcis) {
      bridge.pcis[0].gpus[0].rank = rank;
      rank -= 10;
    }
  }
  const std::vector<NcclSystem> servers(2, server);
  const auto ranks = number_gpus(servers);
  REQUIRE(ranks.size() == 8);
  REQUIRE(ranks.at(&gpu_at(servers[0], 0, 0)) == 3);
  REQUIRE(ranks.at(&gpu_at(servers[0], 1, 1)) == 0);
  REQUIRE(ranks.at(&gpu_at(servers[1], 1, 1)) == 4);
}

TEST_CASE("where a rank is missing or twice the file gives the order", "[nccl]") {
  NcclSystem server = plain_server(pcie_server());
  server.cpus[0].pcis[0].pcis[0].gpus[0].rank = 3;
  const std::vector<NcclSystem> twice{server};
  REQUIRE(number_gpus(twice).at(&gpu_at(twice[0], 0, 0)) == 0);
  server.cpus[0].pcis[0].pcis[0].gpus[0].rank = {};
  const std::vector<NcclSystem> missing{server};
  REQUIRE(number_gpus(missing).at(&gpu_at(missing[0], 1, 1)) == 3);
}

}  // namespace
}  // namespace trainyard::nccl
