// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/server/server_keys.h"

#include <algorithm>
#include <string>

#include "support/described_servers.h"

namespace trainyard {
namespace {

TEST_CASE("what the software of a server allows is read, with NCCL's defaults") {
  const std::string box = even_server("pcie", "RTX-4090", 8, 0, 0, 1);
  const ServerTraits plain = read_server_text(box).traits;
  REQUIRE(plain.peer_access == Distance::Sys);
  REQUIRE(plain.gpudirect == Distance::Pxb);
  REQUIRE(!plain.pxn);
  const ServerTraits given =
      read_server_text(box + "peer_access: none\ngpudirect: phb\npxn: true\n").traits;
  REQUIRE(given.peer_access == Distance::None);
  REQUIRE(given.gpudirect == Distance::Phb);
  REQUIRE(given.pxn);
  const BuiltServer built = build_server(box + "peer_access: pix\n");
  REQUIRE(built.topology.server(ServerId(0)).peer_access == Distance::Pix);
  REQUIRE(server_error(box + "peer_access: node\n") ==
          "server.yaml:7:14: peer_access: expected one of none, pix, pxb, phb, sys, found "
          "\"node\"; did you mean \"none\"?");
  REQUIRE(server_error(box + "pxn: yes\n") ==
          "server.yaml:7:6: pxn: expected true or false, found \"yes\"");
}

TEST_CASE("keys that depend on others are read only beside them") {
  const std::string box = even_server("nvswitch", "H100-SXM", 8, 0, 0, 1);
  REQUIRE(server_error(box + "nvswitch_boards: 2\nnvswitch_trunk_links: 8\n") == "no error");
  REQUIRE(server_error(box + "pcie_uplink_lanes: 8\n") ==
          "server.yaml:7:20: pcie_uplink_lanes: pcie_uplink_lanes needs pcie_uplink, the name of "
          "the link");
  REQUIRE(server_error(box + "pcie_payload: 32 B\n") ==
          "server.yaml:7:15: pcie_payload: expected 64 B to 4096 B, found \"32 B\"");
  REQUIRE(server_error(box + "socket_link: PCIe5\n") ==
          "server.yaml:7:14: socket_link: expected a link between CPU sockets, found \"PCIe5\"");
  REQUIRE(server_error(box + "tre: [[gpu]]\n") ==
          "server.yaml:7:1: unknown key \"tre\"; did you mean \"tree\"?");
}

TEST_CASE("a file of a server has a source and may have a base") {
  const Schema schema = schema_of<ServerKeys>(server_file_fields);
  REQUIRE(schema.keys[0].name == "source");
  REQUIRE(schema.keys[0].is_required);
  REQUIRE(schema.keys[1].name == "base");
  REQUIRE(
      std::ranges::none_of(schema.keys.begin() + 1, schema.keys.end(), &SchemaKey::is_required));
}

}  // namespace
}  // namespace trainyard
