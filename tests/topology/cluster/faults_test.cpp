// SPDX-License-Identifier: Apache-2.0
// Every class of cable of every shipped cluster is pulled once: then all pairs of GPUs still have a
// route, and a warning names the loss, or the error names a pair that a breadth-first search finds
// apart as well.
#include "support/catch.h"

#include "topology/cluster/faults.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "support/built_clusters.h"
#include "support/effort.h"

namespace trainyard {
namespace {

using Cable = std::pair<NodeId, NodeId>;

// One of each class: kind of link, kinds of its ends, rate.
std::vector<Cable> cables_of(const Topology& topology) {
  std::map<std::tuple<LinkKind, NodeKind, NodeKind, Bandwidth>, Cable> cables;
  for (std::uint32_t index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(LinkId(index));
    const NodeKind source = topology.node(link.source).kind;
    const NodeKind target = topology.node(link.target).kind;
    if (source <= target) {
      cables.try_emplace({link.spec.kind, source, target, link.spec.bandwidth}, link.source,
                         link.target);
    }
  }
  std::vector<Cable> result;
  for (const auto& [key, cable] : cables) {
    result.push_back(cable);
  }
  return result;
}

// Whether a way leads from source to target without one of the links of `pulled`; GPUs do not
// forward.
bool is_joined(const Topology& topology, const Cable& pulled, NodeId source, NodeId target) {
  std::vector<bool> seen(topology.node_count(), false);
  std::vector<NodeId> queue = {source};
  seen[source.value()] = true;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const NodeId node = queue[next];
    if (next > 0 && topology.node(node).kind == NodeKind::Gpu) {
      continue;
    }
    bool skipped = false;
    for (const LinkId id : topology.links_from(node)) {
      const NodeId other = topology.link(id).target;
      const bool is_pulled = Cable(node, other) == pulled || Cable(other, node) == pulled;
      if (is_pulled && !skipped) {
        skipped = true;
      } else if (!seen[other.value()]) {
        seen[other.value()] = true;
        queue.push_back(other);
      }
    }
  }
  return seen[target.value()];
}

// Between all GPUs of a small cluster, and some 128 of a large one: those of the first server,
// where the cables are pulled, and others spread evenly.
void require_all_routes(const Cluster& cluster) {
  Routing routing(cluster.topology, cluster.routing);
  std::vector<LinkId> path;
  std::vector<NodeId> gpus;
  const std::size_t step = std::max<std::size_t>(1, cluster.gpus.size() / 32);
  for (std::size_t index = 0; index < cluster.gpus.size(); ++index) {
    if (index % step == 0 || cluster.topology.node(cluster.gpus[index]).server == ServerId(0)) {
      gpus.push_back(cluster.gpus[index]);
    }
  }
  for (const NodeId source : gpus) {
    for (const NodeId target : gpus) {
      REQUIRE(routing.route(source, target, 0, path));
    }
  }
}

std::pair<std::string, std::string> pair_of(const std::string& error) {
  const std::size_t end = error.find(" cannot reach each other");
  REQUIRE(end != std::string::npos);
  const std::size_t middle = error.rfind(" and ", end - 1);
  const std::size_t begin = error.rfind(": ", middle) + 2;
  return {error.substr(begin, middle - begin), error.substr(middle + 5, end - middle - 5)};
}

// Whether the cluster survives.
bool pull(const std::string& name, const Cluster& whole, const Cable& cable) {
  const Topology& topology = whole.topology;
  const std::string& a = topology.node(cable.first).name;
  const std::string& b = topology.node(cable.second).name;
  INFO(name << " " << a << " " << b);
  const ClusterOverrides overrides = {
      .settings = {fmt::format("faults=[{{between: [\"{}\", \"{}\"], links: 1}}]", a, b)}};
  try {
    const Cluster broken = shipped_cluster(name, overrides);
    REQUIRE(broken.topology.link_count() == topology.link_count() - 2);
    require_all_routes(broken);
    REQUIRE(!broken.warnings.empty());
    REQUIRE(broken.warnings[0].find(a + " - " + b) != std::string::npos);
    return true;
  } catch (const ConfigError& error) {
    const auto [source, target] = pair_of(error.what());
    INFO(error.what());
    REQUIRE(!is_joined(topology, cable, *topology.find(source), *topology.find(target)));
    return false;
  }
}

std::string error_of_faults(const ClusterOverrides& overrides) {
  try {
    (void)shipped_cluster("dgx-h100", overrides);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::string> warnings_of(const std::vector<std::string>& pulls,
                                     const std::vector<std::string>& settings = {}) {
  return shipped_cluster("dgx-h100", {.nodes = 64, .settings = settings, .pulls = pulls}).warnings;
}

}  // namespace

TEST_CASE("each class of cable of each shipped cluster is lost with a warning or an error") {
  int survived = 0;
  int parted = 0;
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigsFolder / "clusters")) {
    names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  for (std::size_t i = 0; i < names.size(); i += kIsSanitized ? 8 : 1) {
    const std::string& name = names[i];
    const Cluster whole = shipped_cluster(name);
    REQUIRE(whole.warnings.empty());
    for (const Cable& cable : cables_of(whole.topology)) {
      const bool ok = pull(name, whole, cable);
      survived += ok ? 1 : 0;
      parted += ok ? 0 : 1;
    }
  }
  REQUIRE(survived > (kIsSanitized ? 5 : 20));
  REQUIRE(parted > (kIsSanitized ? 0 : 2));
}

TEST_CASE("a pulled cable is told by what the lower end has left") {
  // 64 servers: leaves of 32 uplinks of 48 GB/s, four to each of eight spines.
  REQUIRE(
      warnings_of({"leaf0,spine1"}) ==
      std::vector<std::string>{"faults: leaf0 - spine1 pulled: leaf0 has 28 of 32 uplinks (1344 "
                               "of 1536 GB/s)"});
  REQUIRE(warnings_of({}, {"faults=[{between: [spine1, leaf0], links: 1}]"}) ==
          std::vector<std::string>{"faults: spine1 - leaf0 with 1 of 4 links pulled: leaf0 has 31 "
                                   "of 32 uplinks (1488 of 1536 GB/s)"});
  REQUIRE(
      warnings_of({"spine0"}) ==
      std::vector<std::string>{"faults: spine0 is out: leaf0 has 28 of 32 uplinks (1344 of 1536 "
                               "GB/s), and 15 more lose their links to it"});
}

TEST_CASE("lanes lower the rate in proportion, and nothing else") {
  const ClusterOverrides overrides = {
      .settings = {"faults=[{between: [server0/gpu0, server0/nvswitch], lanes: 6}]"}};
  const Cluster whole = shipped_cluster("dgx-h100");
  const Cluster broken = shipped_cluster("dgx-h100", overrides);
  REQUIRE(broken.topology.link_count() == whole.topology.link_count());
  for (std::uint32_t index = 0; index < whole.topology.link_count(); ++index) {
    const Link& before = whole.topology.link(LinkId(index));
    const Link& after = broken.topology.link(LinkId(index));
    const auto is_gpu0 = [&](NodeId node) {
      return whole.topology.node(node).name == "server0/gpu0";
    };
    const bool is_hit =
        before.spec.kind == LinkKind::NvLink && (is_gpu0(before.source) || is_gpu0(before.target));
    REQUIRE(after.spec.lanes == (is_hit ? 12 : before.spec.lanes));
    REQUIRE(after.spec.bandwidth ==
            (is_hit ? before.spec.bandwidth.scaled(12.0 / 18.0) : before.spec.bandwidth));
    REQUIRE(after.spec.latency == before.spec.latency);
  }
  REQUIRE(broken.warnings ==
          std::vector<std::string>{"faults: server0/gpu0 - server0/nvswitch with 6 of 18 lanes "
                                   "down: server0/gpu0 has 12 of 18 nvlink lanes to nvswitch (246 "
                                   "of 369 GB/s)"});
}

TEST_CASE("a GPU whose NIC is gone moves to the next nearest, which is told") {
  const auto warnings = warnings_of({"server0/nic3,leaf3", "server7/nic3"});
  REQUIRE(warnings.size() == 3);
  REQUIRE(
      warnings[0] ==
      "faults: server0/nic3 - leaf3 pulled: server0/nic3 has 0 of 1 links into the fabric (0 of "
      "48 GB/s)");
  // The NICs of the same socket are next.
  REQUIRE(warnings[2] ==
          "faults: server0 and 1 more: GPUs that move to other NICs: gpu3 from nic3 to "
          "nic0/nic1/nic2");
}

TEST_CASE("a dead leaf moves the GPUs of all servers below it in one line") {
  const auto warnings = warnings_of({"leaf3"});
  REQUIRE(warnings.size() == 2);
  REQUIRE(warnings[1].find("faults: server0 and 31 more: ") == 0);
}

TEST_CASE("names with commas are told apart") {
  const auto broken = [](const std::string& pull) {
    return shipped_cluster("tpu-v5p", {.pulls = {pull}}).warnings.front();
  };
  REQUIRE(broken("chip0,0,0,chip1,0,0").find("faults: chip0,0,0 - chip1,0,0 pulled: ") == 0);
}

TEST_CASE("mistakes in --pull are one line with the nearest name") {
  REQUIRE(error_of_faults({.pulls = {"leeaf3"}}) ==
          "--pull leeaf3: expected a node of the cluster, found \"leeaf3\"; did you mean "
          "\"leaf3\"?");
  REQUIRE(error_of_faults({.pulls = {"server0/nic3,leaf4"}}) ==
          "--pull server0/nic3,leaf4: no link joins server0/nic3 and leaf4; did you mean "
          "\"leaf3\"?");
  REQUIRE(error_of_faults({.pulls = {"a,b,c"}}) ==
          "--pull a,b,c: expected a node or two of them such as leaf0,spine1");
  REQUIRE(error_of_faults({.pulls = {"leaf0,"}}) ==
          "--pull leaf0,: expected a node or two of them such as leaf0,spine1");
  REQUIRE(error_of_faults({.pulls = {"leaf0", "leaf0"}}) ==
          "--pull leaf0: leaf0 has no links left");
  REQUIRE(error_of_faults({.pulls = {"leaf0,spine0", "spine0,leaf0"}}).find("are pulled already") !=
          std::string::npos);
}

}  // namespace trainyard
