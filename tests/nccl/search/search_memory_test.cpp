// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/search/search_memory.h"

#include <string>
#include <vector>

#include "nccl/tuning/init.h"
#include "support/nccl_servers.h"

namespace trainyard::nccl {
namespace {

Communicator made(int nodes, SearchMemory* searches, bool has_nvls = true) {
  const JobNodes job = job_nodes(plain_server(h100_server()), {.nodes = nodes});
  const InitOptions options = {.environment = Environment::parse(std::vector<std::string>{
                                   has_nvls ? "NCCL_NVLS_ENABLE=2" : "NCCL_NVLS_ENABLE=0"})};
  return make_communicator(job, options, searches).communicator;
}

}  // namespace

TEST_CASE("alike nodes are searched once, with the same result", "[nccl][search]") {
  SearchMemory searches;
  for (const int nodes : {2, 4, 7, 2}) {
    const Communicator remembered = made(nodes, &searches);
    const Communicator searched = made(nodes, nullptr);
    REQUIRE(differ_in_nics_alone(remembered, searched));
    REQUIRE(remembered.nics.front().ring_out == searched.nics.front().ring_out);
    REQUIRE(searches.known() == 1);
  }
}

TEST_CASE("what the search depends on is searched anew", "[nccl][search]") {
  SearchMemory searches;
  static_cast<void>(made(2, &searches));
  REQUIRE_FALSE(made(1, &searches).nodes > 1);  // One node needs no NICs.
  REQUIRE(searches.known() == 2);
  REQUIRE(made(2, &searches, false).nvls_channels == 0);
  REQUIRE(searches.known() == 3);
}

}  // namespace trainyard::nccl
