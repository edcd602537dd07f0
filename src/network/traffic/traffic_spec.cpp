// SPDX-License-Identifier: Apache-2.0
#include "network/traffic/traffic_spec.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>

#include "network/traffic/traffic_endpoints.h"
#include "network/traffic/traffic_trace.h"
#include "sim/printable.h"
#include "topology/routing/routing.h"

namespace trainyard {
namespace {

constexpr SimTime kLatest = seconds(1'000'000);  // 11 days: sums of two are far from overflow.

struct NearTime : Duration {
  [[nodiscard]] static SimTime value(const ConfigNode& node) {
    const SimTime time = node.as_time();
    if (time > kLatest) {
      node.fail(fmt::format("a time of at most {}", to_string(kLatest)), node.found());
    }
    return time;
  }
};

// A name that tables can hold.
std::string one_line(const ConfigNode& node) {
  std::string text = node.as_string();
  if (escaped(text) != text) {
    node.fail("a name of one line", node.found());
  }
  return text;
}

constexpr Via kName{Text{}, one_line};
constexpr Whole kSeed{0, kMaxTrafficSeed};
constexpr Whole kFlowPriority{0, 7};
constexpr Whole kFlowCount{1, kMaxTrafficFlows};

void round_rows(Fields& fields, Rounds& rounds) {
  const bool repeats =
      fields.optional("repeat", rounds.count, kFlowCount, "How often the pattern is drawn: 1.");
  fields.where(repeats, [&] {
    fields.required("interval", rounds.interval, NearTime{},
                    "Where it repeats: from the start of a round to that of the next.");
  });
  fields.check([&](const ConfigNode& node) {
    if (rounds.count > 1 &&
        kLatest.picoseconds() / (rounds.count - 1) < rounds.interval.picoseconds()) {
      const ConfigNode repeat = node.required("repeat");
      repeat.fail(fmt::format("rounds within {}", to_string(kLatest)), repeat.found());
    }
  });
}

Bandwidth drain_rate(const ConfigNode& node) {
  constexpr Bandwidth kMinDrain(1'000'000);
  const Bandwidth rate = node.as_bandwidth();
  if (rate < kMinDrain) {
    node.fail("a rate of at least 1 Mb/s", node.found());
  }
  return rate;
}

Bytes receiver_buffer(const ConfigNode& node) {
  constexpr Bytes kMaxBuffer = mib(64);
  const Bytes size = node.as_bytes();
  if (size > kMaxBuffer) {
    node.fail("at most 64 MiB", node.found());
  }
  return size;
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

// The values of a file are looked up in these.
struct Surroundings {
  const ConfigDocument& document;
  const Cluster& cluster;
  const TrafficReading& reading;
  TrafficDevices devices{cluster};
  std::filesystem::path folder = std::filesystem::path(document.name()).parent_path();
};

// The rows of a traffic file. Where they only describe it, there are no surroundings.
class Rows {
 public:
  explicit Rows(const Surroundings* around) : around_(around) {}

  void file(Fields& fields, TrafficSpec& spec) {
    fields.required("name", spec.name, kName, "Name for people.");
    fields.optional("source", std::ignore, Unread{}, "Where the pattern is from.");
    fields.optional("seed", seed_, kSeed, "Seed of what is drawn: 1.");
    const auto group_rows = [&](Fields& inner, TrafficGroup& one) { group(inner, one, spec); };
    fields.required("groups", spec.groups, List{Group{group_rows}}, "Flows of one pattern each.");
    fields.check([&](const ConfigNode& node) {
      if (spec.groups.empty()) {
        node.required("groups").fail("a group or more", "none");
      }
    });
    const auto receiver_rows = [&](Fields& inner, SlowHost& host) {
      slow_receiver(inner, host, spec.slow_receivers);
    };
    std::vector<SlowHost> receivers;
    fields.optional("slow_receivers", receivers, List{Group{receiver_rows}},
                    "Devices that take data slower than their links bring it.");
  }

 private:
  // A kind of group: the value of its key `kind`, and the rows of its endpoints and its pattern.
  struct Kind {
    std::string_view name;
    void (Rows::*rows)(Fields& fields, TrafficGroup& group) const;
  };

  void group(Fields& fields, TrafficGroup& group, const TrafficSpec& spec) const {
    static constexpr std::array<Kind, 7> kKinds{{{"permutation", &Rows::permutation},
                                                 {"incast", &Rows::incast},
                                                 {"alltoall", &Rows::all_to_all},
                                                 {"uniform", &Rows::uniform},
                                                 {"poisson", &Rows::poisson},
                                                 {"flows", &Rows::flows},
                                                 {"trace", &Rows::trace}}};
    static constexpr auto kNames = row_names(kKinds);
    std::size_t index = 0;
    fields.required("kind", index, Choice{kNames}, "Pattern of the flows.");
    fields.required("name", group.name, kName, "A name that no other group has.");
    fields.optional("priority", group.priority, kFlowPriority, "Priority of the packets.");
    fields.optional("start", group.start, NearTime{}, "When it begins: 0.");
    group.seed = seed_;
    fields.optional("seed", group.seed, kSeed, "Seed of what it draws: that of the file.");
    fields.check([&](const ConfigNode&) {
      group.kind = kNames.at(index);
      group.seed = around_->reading.seed.value_or(group.seed);
    });
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      fields.where(kind == index, [&] { (this->*kKinds.at(kind).rows)(fields, group); });
    }
    fields.check([&](const ConfigNode& node) {
      if (std::ranges::count(spec.groups, group.name, &TrafficGroup::name) > 1 ||
          group.name == "all") {
        node.required("name").fail("a name that no other group has, and not all",
                                   node.required("name").found());
      }
    });
  }

  [[nodiscard]] auto devices() const {
    return Via{Either{Text{}, List{Text{}}},
               [this](const ConfigNode& node) { return around_->devices.read(node); }};
  }
  [[nodiscard]] auto device() const {
    return Via{Text{}, [this](const ConfigNode& node) { return around_->devices.read_one(node); }};
  }

  [[nodiscard]] FlowSizes read_sizes(const ConfigNode& node) const {
    return read_flow_sizes(node, around_->folder, around_->reading.shipped_sizes);
  }

  // The size of flows with a size of their own each. `kind`: that of the schema, for which all
  // groups are of one kind.
  template <typename Kind>
  [[nodiscard]] auto flow_size(Kind kind) const {
    return Via{kind, [this](const ConfigNode& node) {
                 const FlowSizes sizes = read_sizes(node);
                 if (!sizes.is_fixed()) {
                   node.fail("a size such as \"10 MB\"", node.found());
                 }
                 return Bytes(static_cast<std::int64_t>(sizes.mean_bytes()));
               }};
  }

  // One for each of its devices, which links of the fabric must lead to.
  void slow_receiver(Fields& fields, SlowHost& host, std::vector<SlowHost>& all) const {
    const Via buffer{Amount{}, receiver_buffer};
    std::vector<NodeId> hosts;
    fields.required("drain", host.receiver.drain, Via{Rate{}, drain_rate},
                    "Rate at which it takes data.");
    fields.required("xoff", host.receiver.xoff, buffer, "It stops its switch above this.");
    fields.required("xon", host.receiver.xon, buffer, "It goes on below this.");
    fields.optional("start", host.from, NearTime{}, "When it becomes slow: 0.");
    fields.optional("end", host.until, NearTime{}, "When it is fast again: never.");
    fields.required("devices", hosts, devices(), "Which devices.");
    fields.check([&](const ConfigNode& node) {
      if (host.receiver.xon > host.receiver.xoff) {
        node.required("xon").fail("no more than xoff", node.required("xon").found());
      }
      if (host.until <= host.from) {
        node.required("end").fail("a time after the start", node.required("end").found());
      }
      for (const NodeId device : hosts) {
        const Topology& topology = around_->cluster.topology;
        const bool is_on_fabric = std::ranges::any_of(
            topology.links_from(device),
            [&](LinkId link) { return topology.link(link).spec.kind == LinkKind::Network; });
        const bool is_new = std::ranges::find(all, device, &SlowHost::node) == all.end();
        if (!is_on_fabric || !is_new) {
          node.required("devices").fail(
              "devices with links of their own into the fabric, each once",
              topology.node(device).name);
        }
        host.node = device;
        all.push_back(host);
      }
    });
  }

  // NICs where nothing else is said.
  void endpoints(Fields& fields, TrafficGroup& group) const {
    const bool are_given =
        fields.optional("endpoints", group.endpoints, devices(),
                        "Devices that send and receive: `nics`, `gpus`, names and patterns.");
    fields.check([&](const ConfigNode& node) {
      if (!are_given) {
        group.endpoints = around_->devices.nics();
        if (group.endpoints.empty()) {
          node.fail("endpoints, such as gpus, as the cluster has no NIC", "none");
        }
      }
    });
  }

  void two_endpoints_or_more(Fields& fields, TrafficGroup& group) const {
    endpoints(fields, group);
    fields.check([&](const ConfigNode& node) {
      if (group.endpoints.size() < 2) {
        node.fail("two endpoints or more", fmt::format("{}", group.endpoints.size()));
      }
    });
  }

  [[nodiscard]] FlowSizes sizes(Fields& fields) const {
    FlowSizes read{Bytes(1)};
    const auto function = [this](const ConfigNode& node) { return read_sizes(node); };
    fields.required("size", read, Via{FlowSizesKind{}, function}, "Size of each flow.");
    return read;
  }

  void permutation(Fields& fields, TrafficGroup& group) const {
    two_endpoints_or_more(fields, group);
    PermutationTraffic traffic{.sizes = sizes(fields), .rounds = {}};
    round_rows(fields, traffic.rounds);
    group.pattern = std::move(traffic);
  }

  void all_to_all(Fields& fields, TrafficGroup& group) const {
    two_endpoints_or_more(fields, group);
    AllToAllTraffic traffic{.sizes = sizes(fields), .rounds = {}};
    round_rows(fields, traffic.rounds);
    group.pattern = std::move(traffic);
  }

  void incast(Fields& fields, TrafficGroup& group) const {
    two_endpoints_or_more(fields, group);
    IncastTraffic traffic{.sizes = sizes(fields), .rounds = {}};
    round_rows(fields, traffic.rounds);
    const auto max = static_cast<std::int64_t>(group.endpoints.size());
    const auto read_targets = [&](const ConfigNode& node) {
      const std::string text = node.is_scalar() ? node.as_string() : "";
      if (!text.empty() && text.find_first_not_of("0123456789") == std::string::npos) {
        traffic.drawn_targets = static_cast<std::uint32_t>(node.as_integer(1, max));
        return std::vector<NodeId>();
      }
      return around_->devices.read(node);
    };
    fields.optional(
        "targets", traffic.targets,
        Via{Either{Whole{1, kMaxTrafficFlows}, Either{Text{}, List{Text{}}}}, read_targets},
        "Devices that are sent to, or how many endpoints, which are drawn: 1.");
    const bool are_all_outside =
        !traffic.targets.empty() && std::ranges::none_of(traffic.targets, [&](NodeId target) {
          return std::ranges::find(group.endpoints, target) != group.endpoints.end();
        });
    const auto read_senders = [&](const ConfigNode& node) {
      return node.as_integer(1, are_all_outside ? max : max - 1);
    };
    fields.optional("senders", traffic.senders, Via{kFlowCount, read_senders},
                    "Endpoints that send to each target: all others.");
    group.pattern = std::move(traffic);
  }

  void uniform(Fields& fields, TrafficGroup& group) const {
    open_loop(fields, OpenLoopTraffic::Gaps::Equal, group);
  }

  void poisson(Fields& fields, TrafficGroup& group) const {
    open_loop(fields, OpenLoopTraffic::Gaps::Exponential, group);
  }

  void open_loop(Fields& fields, OpenLoopTraffic::Gaps gaps, TrafficGroup& group) const {
    two_endpoints_or_more(fields, group);
    OpenLoopTraffic traffic{.sizes = sizes(fields), .gaps = gaps};
    double load = 1.0;
    std::optional<Bandwidth> given;
    // More than a few times the rate of a link piles up flows without end.
    fields.required("load", load, Number{.min = 0.0001, .max = 10.0},
                    "Share of a device's rate that its flows take on average.");
    fields.optional("host_rate", given, Rate{},
                    "The rate of a device: that of its links into the fabric.");
    const bool has_duration = fields.optional("duration", traffic.duration, NearTime{},
                                              "No flow starts after this time of the group.");
    const auto read_count = [](const ConfigNode& node) { return kFlowCount.value(node); };
    const bool has_count =
        fields.optional("flows", traffic.flows, Via{FlowsKind{*this}, read_count}, kFlowsText);
    fields.check([&](const ConfigNode& node) {
      set_gaps(node, load, given, group.endpoints, traffic);
      if (!has_duration && !has_count) {
        node.fail("duration or flows, to know when to stop", "neither");
      }
      if (!has_count) {
        check_count(node.required("duration"), traffic);
      }
    });
    group.pattern = std::move(traffic);
  }

  void set_gaps(const ConfigNode& node, double load, std::optional<Bandwidth> given,
                std::span<const NodeId> endpoints, OpenLoopTraffic& traffic) const {
    const Topology& topology = around_->cluster.topology;
    const Routing routing(topology, around_->cluster.routing);
    for (const NodeId endpoint : endpoints) {
      const Bandwidth rate = given.value_or(host_rate(topology, routing, endpoint));
      if (rate == Bandwidth()) {
        node.fail(
            fmt::format("expected host_rate, as {} has no link", topology.node(endpoint).name));
      }
      traffic.mean_gaps.push_back(traffic.sizes.mean_bytes() * 8e12 /
                                  (load * static_cast<double>(rate.bits_per_second())));
    }
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

  void flows(Fields& fields, TrafficGroup& group) const {
    ListedTraffic traffic;
    std::optional<Bytes> usual;
    fields.optional("size", usual, flow_size(FlowSizesKind{}), "Size of each flow.");
    fields.required("flows", traffic.flows, FlowsKind{*this, usual}, kFlowsText);
    fields.check([&](const ConfigNode& node) {
      if (traffic.flows.empty()) {
        node.required("flows").fail("a flow or more", "none");
      }
    });
    std::ranges::stable_sort(traffic.flows, {}, &FlowStart::time);
    group.pattern = std::move(traffic);
  }

  void flow(Fields& fields, FlowStart& flow, std::optional<Bytes> usual) const {
    fields.required("source", flow.source, device(), "Device that sends.");
    fields.required("target", flow.target, device(), "Device that receives.");
    fields.optional("priority", flow.priority, kFlowPriority,
                    "Priority of its packets: the group's.");
    fields.check([&](const ConfigNode& node) {
      if (flow.source == flow.target) {
        node.required("target").fail("another device than the source",
                                     node.required("target").found());
      }
    });
    constexpr std::string_view kSize = "Its size: the group's.";
    flow.size = usual.value_or(Bytes());
    fields.where(usual.has_value(),
                 [&] { fields.optional("size", flow.size, flow_size(Amount{}), kSize); });
    fields.where(!usual, [&] { fields.required("size", flow.size, flow_size(Amount{}), kSize); });
    fields.optional("start", flow.time, NearTime{}, "When it begins, after the group: 0.");
  }

  // The flows of a list; a count, which other kinds have under the same key, is described with it.
  struct FlowsKind {
    const Rows& rows;
    std::optional<Bytes> usual = {};

    [[nodiscard]] auto list() const {
      return List{Group{[this](Fields& inner, FlowStart& one) { rows.flow(inner, one, usual); }}};
    }
    void read(const Fields& parent, const ConfigNode& node, std::vector<FlowStart>& flows) const {
      list().read(parent, node, flows);
    }
    template <typename Value>
    void describe(Schema& schema, Value& /*value*/) const {
      std::vector<FlowStart> flows;
      kFlowCount.describe(schema.alternatives.emplace_back());
      list().describe(schema.alternatives.emplace_back(), flows);
    }
  };
  static constexpr std::string_view kFlowsText =
      "The flows of a list; of other kinds: none starts after so many.";

  void trace(Fields& fields, TrafficGroup& group) const {
    static constexpr std::array<std::string_view, 3> kFormats{"csv", "hpcc", "htsim"};
    endpoints(fields, group);
    TraceFormat format = TraceFormat::Csv;
    std::string file;
    fields.optional("format", format, Choice{kFormats}, "Form of the file.");
    fields.required("file", file, Text{}, "The trace, relative to this file.");
    fields.check([&](const ConfigNode&) {
      group.pattern = ListedTraffic{
          read_trace(around_->folder / file, format, around_->devices, group.endpoints)};
    });
  }

  const Surroundings* around_;
  std::uint64_t seed_ = 1;
};

}  // namespace

void traffic_fields(Fields& fields, TrafficSpec& spec) {
  Rows(nullptr).file(fields, spec);
}

TrafficSpec read_traffic(ConfigDocument& document, const Cluster& cluster,
                         const TrafficReading& reading) {
  const Surroundings around{.document = document, .cluster = cluster, .reading = reading};
  TrafficSpec spec;
  spec.file = document.name();
  read_fields(document.root(), spec,
              [&](Fields& fields, TrafficSpec& read) { Rows(&around).file(fields, read); });
  return spec;
}

}  // namespace trainyard
