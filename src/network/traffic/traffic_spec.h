// SPDX-License-Identifier: Apache-2.0
// Describes the flows that a traffic file asks for (docs/commands/traffic.md): groups, each of one
// kind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "network/packet/packet_options.h"
#include "network/traffic/traffic_sizes.h"
#include "sim/config.h"
#include "sim/fields.h"
#include "sim/ids.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Limit for one run: each flow takes memory until the end.
inline constexpr std::int64_t kMaxTrafficFlows = 100'000'000;
inline constexpr int kMaxTrafficSeed = 2'147'483'647;

// A pattern that is drawn anew `count` times, one every `interval`; all its flows start at once.
struct Rounds {
  std::int64_t count = 1;
  SimTime interval = {};
};

// Each endpoint sends one flow, and receives one from another.
struct PermutationTraffic {
  FlowSizes sizes;
  Rounds rounds;
};

// Each target receives one flow from each of its senders.
struct IncastTraffic {
  FlowSizes sizes;
  Rounds rounds;
  // Endpoints that send to one target, drawn without repetition; nothing: all but the target.
  std::optional<std::uint32_t> senders = {};
  std::vector<NodeId> targets = {};  // If empty, `drawn` of the endpoints.
  std::uint32_t drawn_targets = 1;   // Without repetition.
};

// Each endpoint sends one flow to each other.
struct AllToAllTraffic {
  FlowSizes sizes;
  Rounds rounds;
};

// Each endpoint sends flows to others drawn at random, on average `load` of its rate. The gaps
// between the starts of the flows of one endpoint are equal with a random phase, or exponentially
// distributed.
struct OpenLoopTraffic {
  enum class Gaps : std::uint8_t { Equal, Exponential };
  FlowSizes sizes;
  Gaps gaps = Gaps::Exponential;
  // Average gap of each endpoint, in picoseconds: mean size / (load x rate).
  std::vector<double> mean_gaps = {};
  SimTime duration = SimTime::max();       // No flow starts after that much time of the group.
  std::optional<std::int64_t> flows = {};  // Nor more than these.
};

struct FlowStart {
  SimTime time = {};  // In a list, after the start of the group.
  Bytes size = {};
  NodeId source = {};
  NodeId target = {};
  // The UDP source port of its queue pair, which ECMP hashes; drawn when it starts.
  std::uint32_t label = 0;
  std::optional<std::uint8_t> priority = {};  // In a list, instead of the group's.
};

// Flows in the order of their starts.
struct ListedTraffic {
  std::vector<FlowStart> flows;
};

struct TrafficGroup {
  std::string name;
  std::string kind;  // As the file says: "poisson".
  SimTime start = {};
  std::uint64_t seed = 1;
  std::optional<std::uint8_t> priority = {};
  std::vector<NodeId> endpoints = {};
  std::variant<PermutationTraffic, IncastTraffic, AllToAllTraffic, OpenLoopTraffic, ListedTraffic>
      pattern = ListedTraffic{};
};

struct TrafficSpec {
  std::string file;  // As errors name it.
  std::string name;
  std::vector<TrafficGroup> groups;
  std::vector<SlowHost> slow_receivers;  // For the packet engine alone.
};

struct TrafficReading {
  std::filesystem::path shipped_sizes;  // The folder of distributions that have a name.
  std::optional<std::uint64_t> seed;    // Instead of the file's.
};

// Rows of a traffic file, which only describe it: what its values mean depends on a cluster.
void traffic_fields(Fields& fields, TrafficSpec& spec);

// Reads and checks a document, but for keys that nobody reads: the caller finishes it. Traces that
// it names are read; a relative name starts at the folder of the document. Throws ConfigError.
[[nodiscard]] TrafficSpec read_traffic(ConfigDocument& document, const Cluster& cluster,
                                       const TrafficReading& reading);

}  // namespace trainyard
