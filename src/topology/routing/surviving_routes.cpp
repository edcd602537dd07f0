// SPDX-License-Identifier: Apache-2.0
#include "topology/routing/surviving_routes.h"

#include <algorithm>
#include <utility>

#include "sim/random.h"

namespace trainyard {
namespace {

// Returns options with another hash: the flows of a failed link are those with one result of the
// old one, which would lead all of them to one neighbour of that link.
RoutingOptions with_new_hash(RoutingOptions options) {
  options.seed = hash64(options.seed);
  return options;
}

}  // namespace

std::optional<LinkId> opposite_link(const Topology& topology, LinkId id) {
  const Link& link = topology.link(id);
  std::size_t number = 0;
  for (const LinkId other : topology.links_from(link.source)) {
    if (other == id) {
      break;
    }
    number += topology.link(other).target == link.target ? 1 : 0;
  }
  for (const LinkId other : topology.links_from(link.target)) {
    if (topology.link(other).target == link.source && number-- == 0) {
      return other;
    }
  }
  return std::nullopt;
}

SurvivingRoutes::SurvivingRoutes(const Topology& topology, RoutingOptions options,
                                 std::span<const LinkId> failed)
    : whole_(topology),
      options_(with_new_hash(std::move(options))),
      has_failed_([&] {
        std::vector<bool> marks(topology.link_count(), false);
        for (const LinkId link : failed) {
          marks[link.value()] = true;
          if (const auto back = opposite_link(topology, link)) {
            marks[back->value()] = true;
          }
        }
        return marks;
      }()),
      left_(edited(topology, {.link = [&](LinkId link, LinkSpec&) { whole_ids_.push_back(link); },
                              .keeps = [&](LinkId link) { return !has_failed(link); }})),
      router_(make_fabric_router(left_, options_)),
      index_(topology.node_count(), 0),
      loads_(left_) {
  for (std::uint32_t index = 0; index < router_->endpoints().size(); ++index) {
    index_[router_->endpoints()[index].value()] = index;
  }
}

SurvivingRoutes::Outcome SurvivingRoutes::reroute(const Flow& flow, std::vector<LinkId>& path) {
  const auto is_lost = [&](LinkId link) { return has_failed(link); };
  const auto is_fabric = [&](LinkId link) {
    return whole_.link(link).spec.kind == LinkKind::Network;
  };
  if (std::ranges::none_of(path, is_lost)) {
    return Outcome::Whole;
  }
  const auto first = std::ranges::find_if(path, is_fabric);
  const auto last = std::find_if_not(first, path.end(), is_fabric);
  if (std::any_of(path.begin(), first, is_lost) || std::any_of(last, path.end(), is_lost)) {
    return Outcome::CutOff;
  }
  const NodeId enters = whole_.link(*first).source;
  const NodeId leaves = whole_.link(*(last - 1)).target;
  const std::uint32_t number =
      traits(options_.policy).sprays ? flow.number : index_[leaves.value()];
  const Chooser chooser(options_, flow.source, flow.target, flow.flow_label, number, &loads_);
  std::vector<LinkId> way;
  if (!router_->append_route(enters, leaves, chooser, way)) {
    return Outcome::CutOff;
  }
  if (traits(options_.policy).switches_choose()) {
    loads_.add(way);
  }
  std::vector<LinkId> rerouted(path.begin(), first);
  for (const LinkId link : way) {
    rerouted.push_back(whole_ids_[link.value()]);
  }
  rerouted.insert(rerouted.end(), last, path.end());
  path = std::move(rerouted);
  return Outcome::Moved;
}

}  // namespace trainyard
