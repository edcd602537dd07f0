// SPDX-License-Identifier: Apache-2.0
// Whole servers as nodes and links.
#include "support/catch.h"

#include "topology/server/server.h"

#include <string>

#include "support/described_servers.h"

namespace trainyard {
namespace {

TEST_CASE("a server has the devices and links that its numbers say") {
  for (const int gpus : {1, 2, 3, 8, 16}) {
    for (const int nics : {0, 1, 4, 8}) {
      for (const int switches : {0, 1, 4, 8}) {
        for (const int sockets : {1, 2, 4}) {
          INFO(gpus << " GPUs, " << nics << " NICs, " << switches << " switches, " << sockets);
          const auto count = [](int number) { return static_cast<std::uint32_t>(number); };
          // Two GPUs and their NIC share a switch.
          const bool in_pairs = 2 * nics >= gpus && nics < gpus && nics < switches;
          const int built = in_pairs ? nics : switches;
          const int devices = gpus + nics + built + sockets;
          const int pcie = gpus + nics + built;
          const int socket_pairs = sockets * (sockets - 1) / 2;
          const BuiltServer plain =
              build_server(even_server("pcie", "H100-SXM", gpus, nics, switches, sockets));
          REQUIRE(plain.topology.node_count() == count(devices));
          REQUIRE(plain.topology.link_count() == count(2 * (pcie + socket_pairs)));
          const BuiltServer star =
              build_server(even_server("nvswitch", "H100-SXM", gpus, nics, switches, sockets));
          REQUIRE(star.topology.node_count() == count(devices + 1));
          REQUIRE(star.topology.link_count() == count(2 * (pcie + socket_pairs + gpus)));
          const BuiltServer mesh =
              build_server(even_server("full-mesh", "H100-SXM", gpus, nics, switches, sockets));
          REQUIRE(mesh.topology.node_count() == count(devices));
          REQUIRE(mesh.topology.link_count() ==
                  count(2 * (pcie + socket_pairs + gpus * (gpus - 1) / 2)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace trainyard
