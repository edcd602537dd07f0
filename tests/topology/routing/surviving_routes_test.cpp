// SPDX-License-Identifier: Apache-2.0
// What is left once cables have failed: new paths are walks over what is left, of the least length,
// spread over all links that are equally good, and there is one whenever a search finds one.
#include "support/catch.h"

#include "topology/routing/surviving_routes.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <string>

#include "sim/random.h"
#include "support/built_clusters.h"
#include "support/clusters.h"
#include "support/effort.h"

namespace trainyard {
namespace {

using Outcome = SurvivingRoutes::Outcome;

const std::string kTorus =
    "template: torus, shape: [4, 4], switch: QuantumX800-Q3400, cable: 1 m, routing: ";

bool uses(const std::vector<LinkId>& path, LinkId link) {
  return std::ranges::find(path, link) != path.end();
}

std::vector<LinkId> route(Routing& routing, const SurvivingRoutes::Flow& flow) {
  std::vector<LinkId> path;
  REQUIRE(routing.route(flow.source, flow.target, flow.flow_label, path, flow.number));
  return path;
}

// The cables between switches, each by one of its links.
std::vector<LinkId> trunks_of(const Topology& topology) {
  std::vector<LinkId> trunks;
  for (std::uint32_t number = 0; number < topology.link_count(); ++number) {
    const Link& link = topology.link(LinkId(number));
    if (topology.node(link.source).kind == NodeKind::Switch &&
        topology.node(link.target).kind == NodeKind::Switch && link.source < link.target) {
      trunks.emplace_back(number);
    }
  }
  return trunks;
}

// Whether a search finds a way from one endpoint to the other over what is left.
bool is_joined(const Topology& topology, const SurvivingRoutes& left, NodeId source,
               NodeId target) {
  std::vector<bool> seen(topology.node_count(), false);
  std::vector<NodeId> queue = {source};
  seen[source.value()] = true;
  for (std::size_t next = 0; next < queue.size(); ++next) {
    if (next > 0 && topology.node(queue[next]).kind != NodeKind::Switch) {
      continue;
    }
    for (const LinkId id : topology.links_from(queue[next])) {
      const Link& link = topology.link(id);
      if (link.spec.kind == LinkKind::Network && !left.has_failed(id) &&
          !seen[link.target.value()]) {
        seen[link.target.value()] = true;
        queue.push_back(link.target);
      }
    }
  }
  return seen[target.value()];
}

TEST_CASE("every link has a link back, and that leads back to it") {
  const Cluster cluster = cluster_of(8, 1,
                                     "template: ring, shape: [2], endpoints_per_switch: 4, " +
                                         std::string("switch: QuantumX800-Q3400, cable: 1 m"));
  const Topology& topology = cluster.topology;
  for (std::uint32_t number = 0; number < topology.link_count(); ++number) {
    const auto back = opposite_link(topology, LinkId(number));
    REQUIRE(back);
    REQUIRE(topology.link(*back).source == topology.link(LinkId(number)).target);
    REQUIRE(opposite_link(topology, *back) == LinkId(number));
  }
}

TEST_CASE("in a fat-tree what a failed spine cable carried spreads over the other spines") {
  const Cluster cluster = shipped_cluster("fat-tree-k8-100g", {});
  const Topology& topology = cluster.topology;
  Routing routing(topology, cluster.routing);
  const NodeId source = *topology.find("server0/nic0");
  const NodeId target = *topology.find("server100/nic0");
  const std::vector<LinkId> first = route(routing, {.source = source, .target = target});
  REQUIRE(first.size() == 6);  // Over all three tiers.
  const LinkId lost = first[2];
  SurvivingRoutes left(topology, cluster.routing, std::vector<LinkId>{lost});
  std::map<LinkId, int> taken;
  int moved = 0;
  constexpr std::uint32_t kFlows = 8000;
  for (std::uint32_t label = 0; label < kFlows; ++label) {
    const SurvivingRoutes::Flow flow{.source = source, .target = target, .flow_label = label};
    const std::vector<LinkId> before = route(routing, flow);
    std::vector<LinkId> path = before;
    const Outcome outcome = left.reroute(flow, path);
    REQUIRE(outcome == (uses(before, lost) ? Outcome::Moved : Outcome::Whole));
    REQUIRE((outcome == Outcome::Moved) == (path != before));
    if (outcome == Outcome::Moved) {
      REQUIRE(is_walk(topology, source, target, path));
      REQUIRE(path.size() == before.size());
      REQUIRE(!uses(path, lost));
      ++taken[path[2]];
      ++moved;
    }
  }
  // A sixteenth of all used it. They draw anew: first one of four switches above, then one of its
  // four ways up, of which one of them has only three left. Five standard deviations.
  REQUIRE(std::abs(moved - 500) < 108);
  REQUIRE(taken.size() == 15);
  for (const auto& [link, flows] : taken) {
    const bool is_short = topology.link(link).source == topology.link(lost).source;
    REQUIRE(flows == Approx(moved / (is_short ? 12.0 : 16.0)).margin(32));
  }
  // The other direction of the cable has failed too.
  const auto back = opposite_link(topology, lost);
  REQUIRE(left.has_failed(lost));
  REQUIRE(left.has_failed(*back));
}

TEST_CASE("an endpoint without a cable is cut off, and so is a way that fails inside a server") {
  const Cluster cluster = shipped_cluster("fat-tree-k8-100g", {});
  const Topology& topology = cluster.topology;
  Routing routing(topology, cluster.routing);
  const SurvivingRoutes::Flow flow{.source = *topology.find("server0/gpu0"),
                                   .target = *topology.find("server9/gpu0")};
  const std::vector<LinkId> whole = route(routing, flow);
  for (const LinkId lost : whole) {
    SurvivingRoutes left(topology, cluster.routing, std::vector<LinkId>{lost});
    const Link& link = topology.link(lost);
    const bool is_trunk = topology.node(link.source).kind == NodeKind::Switch &&
                          topology.node(link.target).kind == NodeKind::Switch;
    std::vector<LinkId> path = whole;
    const Outcome outcome = left.reroute(flow, path);
    REQUIRE(outcome == (is_trunk ? Outcome::Moved : Outcome::CutOff));
    REQUIRE((outcome == Outcome::CutOff) == (path == whole));
    if (outcome == Outcome::Moved) {
      REQUIRE(is_walk(topology, flow.source, flow.target, path));
      REQUIRE(path.size() == whole.size());
      REQUIRE(!uses(path, lost));
    }
  }
}

TEST_CASE("on a torus with random cables missing there is a new way whenever there is any") {
  int moved = 0;
  int cut_off = 0;
  for (std::uint64_t seed = 0; seed < cases(60); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "surviving torus");
    const std::array<std::string, 3> policies = {"ecmp", "static", "adaptive"};
    const Cluster cluster = cluster_of(16, 1, kTorus + policies.at(random.below(3)));
    const Topology& topology = cluster.topology;
    Routing routing(topology, cluster.routing);
    std::vector<LinkId> failed;
    for (const LinkId trunk : trunks_of(topology)) {
      if (random.below(100) < 45) {
        failed.push_back(trunk);
      }
    }
    SurvivingRoutes left(topology, cluster.routing, failed);
    for (std::uint32_t label = 0; label < 40; ++label) {
      const auto& endpoints = routing.fabric().endpoints();
      const NodeId source = endpoints[random.below(endpoints.size())];
      const NodeId target = endpoints[random.below(endpoints.size())];
      const SurvivingRoutes::Flow flow{.source = source, .target = target, .flow_label = label};
      std::vector<LinkId> path = route(routing, flow);
      const Outcome outcome = left.reroute(flow, path);
      REQUIRE((outcome != Outcome::CutOff) ==
              (is_joined(topology, left, source, target) || outcome == Outcome::Whole));
      if (outcome == Outcome::CutOff) {
        ++cut_off;
        continue;
      }
      moved += outcome == Outcome::Moved ? 1 : 0;
      REQUIRE(is_walk(topology, source, target, path));
      REQUIRE(is_simple(topology, path));
      for (const LinkId link : path) {
        REQUIRE(!left.has_failed(link));
      }
    }
  }
  REQUIRE(moved > 50);
  REQUIRE(cut_off > 0);
}

}  // namespace
}  // namespace trainyard
