// SPDX-License-Identifier: Apache-2.0
// Rates of communication patterns that share links, as one max-min solve.
//
// A load is a pattern that goes at one rate everywhere, because its parts wait for each other: a
// channel of a ring, a tree, an alltoall, a message. While it runs at x bit/s it takes w x of a
// link, w being how many of its connections cross that link; less than one for packets that are
// spread over several paths, more for links that lose part of their rate. Rates are raised together
// until a link is full, whose loads then stay as they are (progressive filling: Bertsekas,
// Gallager, "Data Networks", 2nd ed., section 6.5.2, with weights).
//
// The rate of a load depends on the loads that are there, bit for bit: not on those with which it
// is not connected by shared links.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "network/contract/network.h"
#include "network/flow/spray.h"
#include "sim/ids.h"
#include "topology/graph/topology.h"
#include "topology/routing/routing.h"

namespace trainyard {

struct LinkWeight {
  LinkId link;
  double weight = 0.0;
};

using Load = std::vector<LinkWeight>;  // Each link once, in rising order, after merge().

// Adds up the weights of each link.
void merge(Load& load);

// Adds up many loads without keeping them: what merge() makes of one after the other, to the same
// bits.
class LoadSum {
 public:
  explicit LoadSum(const Topology& topology) : weights_(topology.link_count(), 0.0) {}

  void add(const Load& load);
  [[nodiscard]] Load total() const;

 private:
  std::vector<double> weights_;  // Indexed by LinkId; zero where nothing was added.
};

// Returns the rate of each load, in bit/s; infinite for one that is on no link. Loads must be
// merged.
[[nodiscard]] std::vector<double> shared_rates(const Topology& topology,
                                               std::span<const Load> loads);

// Tells whether what times a group alone sees that links between switches limit it.
enum class SeesFabric : std::uint8_t { Yes, No };

// Groups that take equally long where they have equal rates.
struct GroupClass {
  std::vector<std::size_t> groups = {};  // At least one.
  SeesFabric sees_fabric = SeesFabric::Yes;
};

// The rate that groups which do the same at the same time leave the slowest of a class.
struct GroupShare {
  std::size_t group = 0;    // The slowest, the first of several.
  bool is_limited = false;  // Others slow it down.
  // The rate of each load of the group, or infinite where others take nothing from it.
  std::vector<double> limits = {};
  double share = 1.0;  // The least of its rates, over that of the group alone.
  // The rate that others leave it on each link that it shares.
  std::vector<std::pair<LinkId, Bandwidth>> left = {};
};

// Returns the share of each class. `groups`: the loads of each, merged; all run at the same time,
// whatever their class.
[[nodiscard]] std::vector<GroupShare> group_shares(const Topology& topology,
                                                   std::span<const std::vector<Load>> groups,
                                                   std::span<const GroupClass> classes);

// Collects the loads that connections put on links. Switches that send packet by packet over all
// equally good ways, or choose the least loaded, spread a connection evenly over as many of them as
// SprayPaths takes; on grids and dragonflies the ways that such switches take are not known, so
// that links between switches are left out.
class ConnectionLoads {
 public:
  // `routing` must outlive this.
  explicit ConnectionLoads(Routing& routing);

  // Appends a connection that carries `weight` bytes for each of the load, with labels and turns as
  // for Routing::route. False where no way leads.
  [[nodiscard]] bool add(const ConnectionSpec& spec, double weight, Load& load);
  // Counts ways from the first one again: what is added then does not depend on what was before.
  void restart();
  // Returns the latency of the paths of the connections that were added since the last call, in
  // that order; of several paths the first one's.
  [[nodiscard]] std::vector<SimTime> take_latencies();

 private:
  Routing& routing_;
  bool has_fabric_ = true;
  std::optional<Routing> counted_;  // Ways by number.
  std::optional<SprayPaths> paths_;
  std::vector<SimTime> latencies_;
};

}  // namespace trainyard
