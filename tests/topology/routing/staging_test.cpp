// SPDX-License-Identifier: Apache-2.0
// Routes that do not go straight: by host memory, by the GPU of another rail, around a missing
// cable. Paths are compared as the names of the nodes that they pass.
#include "support/catch.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "topology/routing/routing.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr Bandwidth kPcie = gigabits_per_second(200);

LinkSpec staging_link(LinkKind kind) {
  return {.kind = kind, .bandwidth = kPcie, .latency = 10_ns};
}

// Nodes by name; the first letter says the kind: g, n, s (PCIe switch), c, m, v (NVSwitch), l
// (leaf).
class Graph {
 public:
  ServerId server(const ServerTraits& traits) { return builder_.add_server(traits); }
  void add(std::optional<ServerId> server, const std::vector<std::string>& names) {
    static const std::map<char, NodeKind> kinds = {
        {'g', NodeKind::Gpu},        {'n', NodeKind::Nic},    {'c', NodeKind::Cpu},
        {'s', NodeKind::PcieSwitch}, {'m', NodeKind::Memory}, {'v', NodeKind::NvSwitch},
        {'l', NodeKind::Switch}};
    for (const std::string& name : names) {
      nodes_.emplace(name, builder_.add_node({.kind = kinds.at(name[0]),
                                              .name = name,
                                              .latency = name[0] == 'c' ? 300_ns : 0_ns,
                                              .server = server}));
    }
  }
  void join(LinkKind kind, const std::string& hub, const std::vector<std::string>& others) {
    for (const std::string& other : others) {
      builder_.add_duplex_link(nodes_.at(hub), nodes_.at(other), staging_link(kind));
    }
  }
  void build() { topology_.emplace(std::move(builder_).build()); }
  [[nodiscard]] const Topology& topology() const { return *topology_; }

  [[nodiscard]] std::vector<LinkId> links(const std::string& from, const std::string& to,
                                          std::uint32_t label = 0) const {
    Routing routing(*topology_, {});
    std::vector<LinkId> path;
    const bool found = routing.route(nodes_.at(from), nodes_.at(to), label, path);
    REQUIRE(found == !path.empty());
    return path;
  }
  // "g0 s0 n0"; empty if there is no way.
  [[nodiscard]] std::string route(const std::string& from, const std::string& to,
                                  std::uint32_t label = 0) const {
    std::string names;
    for (const LinkId hop : links(from, to, label)) {
      names += names.empty() ? from : "";
      names += " " + topology_->node(topology_->link(hop).target).name;
    }
    return names;
  }

 private:
  TopologyBuilder builder_;
  std::map<std::string, NodeId> nodes_;
  std::optional<Topology> topology_;
};

// g0 and g1 below one switch with n0, g2 and n2 on the CPU itself, g3 on the other socket; n9
// stands in a server of its own.
Graph server(const ServerTraits& traits, bool memory = true) {
  Graph graph;
  const ServerId id = graph.server(traits);
  graph.add(id, {"g0", "g1", "g2", "g3", "n0", "n2", "s0", "c0", "c1"});
  graph.join(LinkKind::Pcie, "s0", {"g0", "g1", "n0", "c0"});
  graph.join(LinkKind::Pcie, "c0", {"g2", "n2"});
  graph.join(LinkKind::Pcie, "c1", {"g3"});
  graph.join(LinkKind::Socket, "c0", {"c1"});
  if (memory) {
    graph.add(id, {"m0", "m1"});
    graph.join(LinkKind::C2c, "c0", {"m0"});
    graph.join(LinkKind::C2c, "c1", {"m1"});
  }
  graph.add(graph.server({}), {"n9"});
  graph.add(std::nullopt, {"l"});
  graph.join(LinkKind::Network, "l", {"n0", "n2", "n9"});
  graph.build();
  return graph;
}

TEST_CASE("GPUs with access to each other go straight, others by the memory of the target") {
  const Graph open = server({.peer_access = Distance::Sys});
  REQUIRE(open.route("g0", "g3") == "g0 s0 c0 c1 g3");
  const Graph socket = server({.peer_access = Distance::Phb});
  REQUIRE(socket.route("g0", "g2") == "g0 s0 c0 g2");
  REQUIRE(socket.route("g0", "g3") == "g0 s0 c0 c1 m1 c1 g3");
  REQUIRE(socket.route("g3", "g0") == "g3 c1 c0 m0 c0 s0 g0");
  const Graph closed = server({.peer_access = Distance::None});
  REQUIRE(closed.route("g0", "g1") == "g0 s0 c0 m0 c0 s0 g1");
  // The limit is of GPUs: between a GPU and host memory nothing is staged.
  REQUIRE(closed.route("g0", "m1") == "g0 s0 c0 c1 m1");
}

TEST_CASE("a GPU beyond the reach of GPUDirect stages on its own side of the fabric") {
  const Graph pxb = server({.gpudirect = Distance::Pxb});
  REQUIRE(pxb.route("g0", "n9") == "g0 s0 n0 l n9");
  REQUIRE(pxb.route("g2", "n9") == "g2 c0 m0 c0 n2 l n9");
  REQUIRE(pxb.route("n9", "g2") == "n9 l n2 c0 m0 c0 g2");
  const Graph phb = server({.gpudirect = Distance::Phb});
  REQUIRE(phb.route("g2", "n9") == "g2 c0 n2 l n9");
  REQUIRE(phb.route("m1", "n9") == "m1 c1 c0 n2 l n9");
}

TEST_CASE("without a memory node nothing can be staged") {
  const Graph graph = server({.peer_access = Distance::None}, false);
  REQUIRE(graph.route("g0", "g1") == "g0 s0 g1");
}

TEST_CASE("a GPU on C2C reaches the NICs of its CPU directly") {
  Graph graph;
  const ServerId id = graph.server({.gpudirect = Distance::Pxb});
  graph.add(id, {"g0", "n0", "c0", "m0"});
  graph.join(LinkKind::C2c, "c0", {"g0", "m0"});
  graph.join(LinkKind::Pcie, "c0", {"n0"});
  graph.add(graph.server({}), {"n9"});
  graph.join(LinkKind::Network, "n0", {"n9"});
  graph.build();
  REQUIRE(graph.route("g0", "n9") == "g0 c0 n0 n9");
}

TEST_CASE("two GPUs on one CPU by C2C meet on NVLink") {
  Graph graph;
  const ServerId id = graph.server({});
  graph.add(id, {"g0", "g1", "c0", "v0"});
  graph.join(LinkKind::C2c, "c0", {"g0", "g1"});
  graph.join(LinkKind::NvLink, "v0", {"g0", "g1"});
  graph.build();
  REQUIRE(graph.route("g0", "g1") == "g0 v0 g1");
}

TEST_CASE("a staged path has the latency of its links and CPUs and a share of the rate") {
  const Graph graph = server({.peer_access = Distance::None, .staging_share = 0.5});
  const std::vector<LinkId> path = graph.links("g0", "g1");
  REQUIRE(path_latency(graph.topology(), path) == 10_ns * 6 + 300_ns * 2);
  REQUIRE(path_bandwidth(graph.topology(), path) == kPcie.scaled(0.5));
  REQUIRE(staging_bandwidth(graph.topology(), path) == kPcie.scaled(0.5));
  const std::vector<LinkId> to_memory = graph.links("g0", "m0");
  REQUIRE_FALSE(staging_bandwidth(graph.topology(), to_memory).has_value());
  REQUIRE(path_bandwidth(graph.topology(), to_memory) == kPcie);
}

// Two servers of two GPUs, each with a NIC of its own below its switch; rail r has the leaf lr.
Graph rails(const ServerTraits& traits, bool nvlink, bool spine, bool all_cables = true) {
  Graph graph;
  for (const std::string server : {"a", "b"}) {
    const ServerId id = graph.server(traits);
    graph.add(id, {"g0" + server, "g1" + server, "n0" + server, "n1" + server, "s0" + server,
                   "s1" + server, "c" + server});
    for (const std::string rail : {"0", "1"}) {
      graph.join(LinkKind::Pcie, "s" + rail + server,
                 {"g" + rail + server, "n" + rail + server, "c" + server});
    }
    if (nvlink) {
      graph.add(id, {"v" + server});
      graph.join(LinkKind::NvLink, "v" + server, {"g0" + server, "g1" + server});
    }
  }
  graph.add(std::nullopt, {"l0", "l1", "ltop"});
  graph.join(LinkKind::Network, "l0", {"n0a", "n0b"});
  if (all_cables) {
    graph.join(LinkKind::Network, "l1", {"n1a"});
  }
  graph.join(LinkKind::Network, "l1", {"n1b"});
  if (spine) {
    graph.join(LinkKind::Network, "ltop", {"l0", "l1"});
  }
  graph.build();
  return graph;
}

TEST_CASE("PXN leaves by the NIC of the target's rail") {
  const Graph pxn = rails({.pxn = true}, true, true);
  REQUIRE(pxn.route("g0a", "g0b") == "g0a s0a n0a l0 n0b s0b g0b");
  REQUIRE(pxn.route("g0a", "g1b") == "g0a va g1a s1a n1a l1 n1b s1b g1b");
  REQUIRE(pxn.route("g1b", "g0a") == "g1b vb g0b s0b n0b l0 n0a s0a g0a");
  const Graph plain = rails({.pxn = false}, true, true);
  REQUIRE(plain.route("g0a", "g1b") == "g0a s0a n0a l0 ltop l1 n1b s1b g1b");
}

TEST_CASE("PXN needs NVLink, and rails without a way between them need PXN") {
  REQUIRE(rails({.pxn = true}, false, true).route("g0a", "g1b") ==
          "g0a s0a n0a l0 ltop l1 n1b s1b g1b");
  REQUIRE(rails({.pxn = true}, true, false).route("g0a", "g1b") ==
          "g0a va g1a s1a n1a l1 n1b s1b g1b");
  REQUIRE(rails({.pxn = false}, true, false).route("g0a", "g1b").empty());
}

TEST_CASE("a NIC without a cable is used by nobody") {
  const Graph graph = rails({.gpudirect = Distance::Phb}, true, true, false);
  REQUIRE(graph.route("g1a", "g1b") == "g1a s1a ca s0a n0a l0 ltop l1 n1b s1b g1b");
  const Graph pxn = rails({.gpudirect = Distance::Phb, .pxn = true}, true, true, false);
  REQUIRE(pxn.route("g0a", "g1b") == "g0a s0a n0a l0 ltop l1 n1b s1b g1b");
}

TEST_CASE("with several NICs below a switch PXN takes the one of the rail without a detour") {
  Graph graph;
  for (const std::string server : {"a", "b"}) {
    const ServerId id = graph.server({.pxn = true});
    graph.add(id, {"g0" + server, "g1" + server, "n0" + server, "n1" + server, "s" + server,
                   "v" + server});
    graph.join(LinkKind::Pcie, "s" + server,
               {"g0" + server, "g1" + server, "n0" + server, "n1" + server});
    graph.join(LinkKind::NvLink, "v" + server, {"g0" + server, "g1" + server});
  }
  graph.add(std::nullopt, {"l0", "l1"});
  graph.join(LinkKind::Network, "l0", {"n0a", "n0b"});
  graph.join(LinkKind::Network, "l1", {"n1a", "n1b"});
  graph.build();
  REQUIRE(graph.route("g0a", "g0b") == "g0a sa n0a l0 n0b sb g0b");
  REQUIRE(graph.route("g0a", "g1b") == "g0a sa n1a l1 n1b sb g1b");
}

}  // namespace
}  // namespace trainyard
