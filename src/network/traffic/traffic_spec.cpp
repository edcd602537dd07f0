// SPDX-License-Identifier: Apache-2.0
#include "network/traffic/traffic_spec.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "network/traffic/traffic_endpoints.h"
#include "network/traffic/traffic_trace.h"
#include "sim/fields.h"
#include "sim/printable.h"
#include "topology/routing/routing.h"

namespace trainyard {
namespace {

constexpr SimTime kLatest = seconds(1'000'000);  // 11 days: sums of two are far from overflow.

SimTime read_time(const ConfigNode& node) {
  const SimTime time = node.as_time();
  if (time > kLatest) {
    node.fail(fmt::format("a time of at most {}", to_string(kLatest)), node.found());
  }
  return time;
}

SimTime read_time(const ConfigNode& node, std::string_view key, SimTime otherwise) {
  const auto time = node.optional(key);
  return time ? read_time(*time) : otherwise;
}

// Reads a name that tables can hold.
std::string read_name(const ConfigNode& node) {
  const ConfigNode name = node.required("name");
  std::string text = name.as_string();
  if (escaped(text) != text) {
    name.fail("a name of one line", name.found());
  }
  return text;
}

std::optional<std::uint8_t> read_priority(const ConfigNode& node) {
  const auto value = node.optional("priority");
  return value ? std::optional(static_cast<std::uint8_t>(value->as_integer(0, 7))) : std::nullopt;
}

Rounds read_rounds(const ConfigNode& node) {
  Rounds rounds;
  if (const auto repeat = node.optional("repeat")) {
    rounds.count = repeat->as_integer(1, kMaxTrafficFlows);
    rounds.interval = read_time(node.required("interval"));
    if (rounds.count > 1 &&
        kLatest.picoseconds() / (rounds.count - 1) < rounds.interval.picoseconds()) {
      repeat->fail(fmt::format("rounds within {}", to_string(kLatest)), repeat->found());
    }
  }
  return rounds;
}

// Returns the rate that `load` of a host refers to: for a NIC its links into the fabric, for a GPU
// those of its NICs, or its own where it has none.
Bandwidth host_rate(const Topology& topology, const Routing& routing, NodeId device) {
  std::vector<NodeId> ports{device};
  if (topology.node(device).kind == NodeKind::Gpu) {
    const std::vector<NodeId> nics = routing.nics(device);
    ports = nics.empty() ? ports : nics;
  }
  std::int64_t fabric = 0;
  std::int64_t all = 0;
  for (const NodeId port : ports) {
    for (const LinkId link : topology.links_from(port)) {
      const LinkSpec& spec = topology.link(link).spec;
      all += spec.bandwidth.bits_per_second();
      fabric += spec.kind == LinkKind::Network ? spec.bandwidth.bits_per_second() : 0;
    }
  }
  return Bandwidth(fabric > 0 ? fabric : all);
}

class Reader {
 public:
  Reader(const ConfigDocument& document, const Cluster& cluster, const TrafficReading& reading)
      : file_(document.name()),
        cluster_(cluster),
        reading_(reading),
        devices_(cluster),
        folder_(std::filesystem::path(file_).parent_path()) {}

  TrafficSpec read(const ConfigNode& root) {
    TrafficSpec spec;
    spec.file = file_;
    spec.name = read_name(root);
    if (const auto source = root.optional("source")) {
      source->skip();
    }
    if (const auto seed = root.optional("seed")) {
      seed_ = static_cast<std::uint64_t>(seed->as_integer(0, kMaxTrafficSeed));
    }
    seed_ = reading_.seed.value_or(seed_);
    const ConfigNode groups = root.required("groups");
    for (const ConfigNode& node : groups.items()) {
      TrafficGroup group = read_group(node);
      const bool is_known = std::ranges::any_of(
          spec.groups, [&](const TrafficGroup& other) { return other.name == group.name; });
      if (is_known || group.name == "all") {
        node.required("name").fail("a name that no other group has, and not all",
                                   node.required("name").found());
      }
      spec.groups.push_back(std::move(group));
    }
    if (spec.groups.empty()) {
      groups.fail("a group or more", "none");
    }
    if (const auto receivers = root.optional("slow_receivers")) {
      for (const ConfigNode& item : receivers->items()) {
        read_slow_receiver(item, spec.slow_receivers);
      }
    }
    return spec;
  }

 private:
  // A kind of group: the value of its key `kind`, and what reads its endpoints and its pattern.
  struct Kind {
    std::string_view name;
    void (Reader::*read)(const ConfigNode& node, TrafficGroup& group) const;
  };
  TrafficGroup read_group(const ConfigNode& node) {
    static constexpr std::array<Kind, 7> kKinds{{{"permutation", &Reader::read_permutation},
                                                 {"incast", &Reader::read_incast},
                                                 {"alltoall", &Reader::read_all_to_all},
                                                 {"uniform", &Reader::read_uniform},
                                                 {"poisson", &Reader::read_poisson},
                                                 {"flows", &Reader::read_flows},
                                                 {"trace", &Reader::read_trace_of}}};
    static constexpr auto kNames = row_names(kKinds);
    const Kind& kind = kKinds.at(node.required("kind").as_choice(kNames));
    TrafficGroup group{.name = read_name(node),
                       .kind = std::string(kind.name),
                       .seed = seed_,
                       .priority = read_priority(node)};
    group.start = read_time(node, "start", SimTime());
    if (const auto seed = node.optional("seed")) {
      const auto own = static_cast<std::uint64_t>(seed->as_integer(0, kMaxTrafficSeed));
      group.seed = reading_.seed.value_or(own);
    }
    (this->*kind.read)(node, group);
    return group;
  }

  // One for each of its devices, which links of the fabric must lead to.
  void read_slow_receiver(const ConfigNode& node, std::vector<SlowHost>& all) const {
    constexpr Bandwidth kMinDrain(1'000'000);
    constexpr Bytes kMaxBuffer = mib(64);
    SlowHost host{.node = {}, .receiver = {}};
    const ConfigNode drain = node.required("drain");
    host.receiver.drain = drain.as_bandwidth();
    if (host.receiver.drain < kMinDrain) {
      drain.fail("a rate of at least 1 Mb/s", drain.found());
    }
    const ConfigNode xoff = node.required("xoff");
    host.receiver.xoff = xoff.as_bytes();
    if (host.receiver.xoff > kMaxBuffer) {
      xoff.fail("at most 64 MiB", xoff.found());
    }
    const ConfigNode xon = node.required("xon");
    host.receiver.xon = xon.as_bytes();
    if (host.receiver.xon > host.receiver.xoff) {
      xon.fail("no more than xoff", xon.found());
    }
    host.from = read_time(node, "start", host.from);
    host.until = read_time(node, "end", host.until);
    if (const auto end = node.optional("end"); end && host.until <= host.from) {
      end->fail("a time after the start", end->found());
    }
    const ConfigNode devices = node.required("devices");
    for (const NodeId device : devices_.read(devices)) {
      const Topology& topology = cluster_.topology;
      const auto links = topology.links_from(device);
      const bool is_on_fabric = std::any_of(links.begin(), links.end(), [&](LinkId link) {
        return topology.link(link).spec.kind == LinkKind::Network;
      });
      const bool is_new = std::ranges::find(all, device, &SlowHost::node) == all.end();
      if (!is_on_fabric || !is_new) {
        devices.fail("devices with links of their own into the fabric, each once",
                     topology.node(device).name);
      }
      host.node = device;
      all.push_back(host);
    }
  }

  // NICs where nothing else is said.
  [[nodiscard]] std::vector<NodeId> read_endpoints(const ConfigNode& node) const {
    if (const auto endpoints = node.optional("endpoints")) {
      return devices_.read(*endpoints);
    }
    if (devices_.nics().empty()) {
      node.fail("endpoints, such as gpus, as the cluster has no NIC", "none");
    }
    return devices_.nics();
  }

  void read_two_endpoints_or_more(const ConfigNode& node, TrafficGroup& group) const {
    group.endpoints = read_endpoints(node);
    if (group.endpoints.size() < 2) {
      node.fail("two endpoints or more", fmt::format("{}", group.endpoints.size()));
    }
  }

  [[nodiscard]] FlowSizes read_sizes(const ConfigNode& node) const {
    return read_flow_sizes(node.required("size"), folder_, reading_.shipped_sizes);
  }

  void read_permutation(const ConfigNode& node, TrafficGroup& group) const {
    read_two_endpoints_or_more(node, group);
    group.pattern = PermutationTraffic{.sizes = read_sizes(node), .rounds = read_rounds(node)};
  }

  void read_all_to_all(const ConfigNode& node, TrafficGroup& group) const {
    read_two_endpoints_or_more(node, group);
    group.pattern = AllToAllTraffic{.sizes = read_sizes(node), .rounds = read_rounds(node)};
  }

  void read_incast(const ConfigNode& node, TrafficGroup& group) const {
    read_two_endpoints_or_more(node, group);
    IncastTraffic incast{.sizes = read_sizes(node), .rounds = read_rounds(node)};
    const auto max = static_cast<std::int64_t>(group.endpoints.size());
    if (const auto targets = node.optional("targets")) {
      const std::string text = targets->is_scalar() ? targets->as_string() : "";
      if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) {
        incast.drawn_targets = static_cast<std::uint32_t>(targets->as_integer(1, max));
      } else {
        incast.targets = devices_.read(*targets);
      }
    }
    if (const auto senders = node.optional("senders")) {
      const bool are_all_outside =
          !incast.targets.empty() && std::ranges::none_of(incast.targets, [&](NodeId target) {
            return std::ranges::find(group.endpoints, target) != group.endpoints.end();
          });
      incast.senders =
          static_cast<std::uint32_t>(senders->as_integer(1, are_all_outside ? max : max - 1));
    }
    group.pattern = std::move(incast);
  }

  void read_uniform(const ConfigNode& node, TrafficGroup& group) const {
    read_open_loop(node, OpenLoopTraffic::Gaps::Equal, group);
  }

  void read_poisson(const ConfigNode& node, TrafficGroup& group) const {
    read_open_loop(node, OpenLoopTraffic::Gaps::Exponential, group);
  }

  void read_open_loop(const ConfigNode& node, OpenLoopTraffic::Gaps gaps,
                      TrafficGroup& group) const {
    read_two_endpoints_or_more(node, group);
    OpenLoopTraffic traffic{.sizes = read_sizes(node), .gaps = gaps};
    // More than a few times the rate of a link piles up flows without end.
    const double load = node.required("load").as_number(0.0001, 10.0);
    std::optional<Bandwidth> given;
    if (const auto rate = node.optional("host_rate")) {
      given = rate->as_bandwidth();
    }
    const Routing routing(cluster_.topology, cluster_.routing);
    for (const NodeId endpoint : group.endpoints) {
      const Bandwidth rate = given.value_or(host_rate(cluster_.topology, routing, endpoint));
      if (rate == Bandwidth()) {
        node.fail(fmt::format("expected host_rate, as {} has no link",
                              cluster_.topology.node(endpoint).name));
      }
      traffic.mean_gaps.push_back(traffic.sizes.mean_bytes() * 8e12 /
                                  (load * static_cast<double>(rate.bits_per_second())));
    }
    const auto duration = node.optional("duration");
    const auto flows = node.optional("flows");
    if (!duration && !flows) {
      node.fail("duration or flows, to know when to stop", "neither");
    }
    if (duration) {
      traffic.duration = read_time(*duration);
    }
    if (flows) {
      traffic.flows = flows->as_integer(1, kMaxTrafficFlows);
    } else {
      check_count(*duration, traffic);
    }
    group.pattern = std::move(traffic);
  }

  // Before that many are counted one by one. Gaps are drawn: what is on the border is left to that.
  static void check_count(const ConfigNode& duration, const OpenLoopTraffic& traffic) {
    double flows = 0.0;
    for (const double gap : traffic.mean_gaps) {
      flows += static_cast<double>(traffic.duration.picoseconds()) / gap;
    }
    if (flows > 1.01 * static_cast<double>(kMaxTrafficFlows)) {
      duration.fail(fmt::format("a time for at most {} flows", kMaxTrafficFlows),
                    fmt::format("{}, for about {:.0f}", duration.found(), flows));
    }
  }

  void read_flows(const ConfigNode& node, TrafficGroup& group) const {
    ListedTraffic traffic;
    std::optional<Bytes> usual;
    if (const auto size = node.optional("size")) {
      usual = read_size(*size);
    }
    const ConfigNode list = node.required("flows");
    for (const ConfigNode& item : list.items()) {
      FlowStart flow{.source = devices_.read_one(item.required("source")),
                     .target = devices_.read_one(item.required("target")),
                     .priority = read_priority(item)};
      if (flow.source == flow.target) {
        item.required("target").fail("another device than the source",
                                     item.required("target").found());
      }
      const auto size = item.optional("size");
      flow.size = size || !usual ? read_size(item.required("size")) : *usual;
      flow.time = read_time(item, "start", SimTime());
      traffic.flows.push_back(flow);
    }
    if (traffic.flows.empty()) {
      list.fail("a flow or more", "none");
    }
    std::ranges::stable_sort(traffic.flows, {}, &FlowStart::time);
    group.pattern = std::move(traffic);
  }

  // Reads the size of flows with a size of their own each.
  [[nodiscard]] Bytes read_size(const ConfigNode& node) const {
    const FlowSizes sizes = read_flow_sizes(node, folder_, reading_.shipped_sizes);
    if (!sizes.is_fixed()) {
      node.fail("a size such as \"10 MB\"", node.found());
    }
    return Bytes(static_cast<std::int64_t>(sizes.mean_bytes()));
  }

  void read_trace_of(const ConfigNode& node, TrafficGroup& group) const {
    static constexpr std::array<std::string_view, 2> kFormats{"csv", "hpcc"};
    group.endpoints = read_endpoints(node);
    const auto format = node.optional("format");
    const TraceFormat known =
        format && format->as_choice(kFormats) == 1 ? TraceFormat::Hpcc : TraceFormat::Csv;
    const std::string file = node.required("file").as_string();
    group.pattern = ListedTraffic{read_trace(folder_ / file, known, devices_, group.endpoints)};
  }

  std::string file_;
  const Cluster& cluster_;
  const TrafficReading& reading_;
  TrafficDevices devices_;
  std::filesystem::path folder_;
  std::uint64_t seed_ = 1;
};

}  // namespace

TrafficSpec read_traffic(ConfigDocument& document, const Cluster& cluster,
                         const TrafficReading& reading) {
  return Reader(document, cluster, reading).read(document.root());
}

}  // namespace trainyard
