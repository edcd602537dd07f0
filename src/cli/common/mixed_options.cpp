// SPDX-License-Identifier: Apache-2.0
#include "cli/common/mixed_options.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cli/common/common.h"
#include "network/traffic/traffic_endpoints.h"
#include "sim/config_error.h"
#include "sim/numbers.h"

namespace trainyard {
namespace {

// Nodes by id. Fails if none has a name that the pattern means.
std::vector<bool> nodes_of(const Topology& topology, std::string_view pattern,
                           const std::string& text) {
  if (!is_well_formed_pattern(pattern)) {
    fail_option("packets", "a range of numbers such as [0-7] between brackets", text);
  }
  std::vector<bool> nodes(topology.node_count());
  bool is_any = false;
  for (std::uint32_t index = 0; index < nodes.size(); ++index) {
    nodes[index] = matches_pattern(topology.node(NodeId(index)).name, pattern);
    is_any = is_any || nodes[index];
  }
  if (!is_any) {
    fail_option("packets", "names or patterns of nodes that the cluster has", text);
  }
  return nodes;
}

ChosenConnections devices(const Topology& topology, const std::string& pattern,
                          const std::string& text) {
  return [nodes = nodes_of(topology, pattern, text)](const NewConnection& connection) {
    return nodes[connection.spec.source.value()] || nodes[connection.spec.target.value()];
  };
}

// Links between two nodes, in both directions.
ChosenConnections links(const Topology& topology, const std::string& ends,
                        const std::string& text) {
  const std::size_t comma = ends.find(',');
  if (comma == std::string::npos) {
    fail_option("packets", "link=A,B with nodes or patterns such as leaf*,spine0", text);
  }
  const std::vector<bool> first = nodes_of(topology, ends.substr(0, comma), text);
  const std::vector<bool> second = nodes_of(topology, ends.substr(comma + 1), text);
  std::vector<bool> chosen(topology.link_count());
  bool is_any = false;
  for (std::uint32_t index = 0; index < chosen.size(); ++index) {
    const Link& link = topology.link(LinkId(index));
    const std::uint32_t source = link.source.value();
    const std::uint32_t target = link.target.value();
    chosen[index] = (first[source] && second[target]) || (second[source] && first[target]);
    is_any = is_any || chosen[index];
  }
  if (!is_any) {
    fail_option("packets", "two nodes with a link between them", text);
  }
  return [chosen = std::move(chosen)](const NewConnection& connection) {
    return std::ranges::any_of(connection.path, [&](LinkId link) { return chosen[link.value()]; });
  };
}

std::uint32_t crowd_of(const std::string& number, const std::string& text) {
  const auto crowd = parse_number<std::uint32_t>(number);
  if (!crowd || *crowd < 2) {
    fail_option("packets", "crowd=N with a number from 2", text);
  }
  return *crowd;
}

MixedOptions mixed_options(const std::vector<std::string>& texts, const OwnChoice& own,
                           const Topology& topology) {
  MixedOptions options;
  std::vector<ChosenConnections> all;
  for (const std::string& text : texts) {
    const std::size_t equals = std::min(text.find('='), text.size());
    const std::string key = text.substr(0, equals);
    const std::string value = text.substr(std::min(equals + 1, text.size()));
    if (key == "link") {
      all.push_back(links(topology, value, text));
    } else if (key == "device") {
      all.push_back(devices(topology, value, text));
    } else if (key == "crowd") {
      options.crowd = crowd_of(value, text);
    } else if (own.find && key == own.key) {
      auto chosen = own.find(value);
      if (!chosen) {
        fail_option("packets", own.expected, text);
      }
      all.push_back(std::move(*chosen));
    } else {
      fail_option("packets",
                  own.find ? fmt::format("link=A,B, device=NAME, crowd=N or {}", own.expected)
                           : "link=A,B, device=NAME or crowd=N",
                  text);
    }
  }
  options.is_chosen = [all = std::move(all)](const NewConnection& connection) {
    return std::ranges::any_of(all, [&](const ChosenConnections& one) { return one(connection); });
  };
  return options;
}

}  // namespace

bool asks_for_mixed(const OptionReader& reader) {
  return reader.word("fidelity") == "mixed";
}

Option packets_option(std::string_view help) {
  return {"packets", "WHICH", help, {.repeats = true, .needs = "fidelity=mixed"}};
}

Option message_times_option(std::string_view needs) {
  return {"message-times",
          "",
          "say how long messages took, from when they were sent to their last byte: half of them, "
          "99 % and the longest",
          {.needs = needs}};
}

NetworkExtras read_network_extras(const OptionReader& reader, OwnChoice own) {
  NetworkExtras extras;
  const auto has = [&](std::string_view name) { return reader.command().find(name) != nullptr; };
  extras.times_messages = has("message-times") && reader.given("message-times");
  if (!has("packets") || !asks_for_mixed(reader)) {
    return extras;
  }
  if (!reader.given("packets")) {
    throw ConfigError("--fidelity mixed: expected --packets WHICH beside it, found none");
  }
  extras.mixed = [texts = reader.texts("packets"), own = std::move(own)](const Topology& topology) {
    return mixed_options(texts, own, topology);
  };
  return extras;
}

std::vector<std::string> extra_notes(const ExtraResults& extras, const PacketStats& packets) {
  std::vector<std::string> notes;
  if (extras.mixed) {
    notes.push_back(describe(*extras.mixed, packets));
  }
  if (extras.messages) {
    const MessageTimes& times = *extras.messages;
    notes.push_back(fmt::format(
        "messages: {}, of which half took at most {:.3f} us, 99 % at most {:.3f} us (both at most "
        "0.1 % too high), the longest {:.3f} us",
        times.messages, times.p50.microseconds(), times.p99.microseconds(),
        times.max.microseconds()));
  }
  return notes;
}

std::string describe(const MixedStats& mixed, const PacketStats& packets) {
  // From five on queues of flows would matter (docs/accuracy/packet-validation.md).
  constexpr std::uint32_t kManyFlows = 5;
  const std::string queues =
      mixed.max_flows_met < kManyFlows
          ? ""
          : fmt::format(
                "; packets met up to {} flows on a link and saw nothing of their queue, for which "
                "there is --packets crowd=4",
                mixed.max_flows_met);
  return fmt::format(
      "mixed: {} messages of {} bytes ran as packets, {} of {} bytes as flows; flows changed the "
      "rates of ports {} times, and looked {} times at what packets sent, every {}; together they "
      "exceed no link by more than 1/64, one packet and one window{}{}",
      mixed.packet_messages, mixed.packet_bytes.count(), mixed.flow_messages,
      mixed.flow_bytes.count(), mixed.port_changes, mixed.exchanges, to_string(mixed.interval),
      queues, packets.pauses > 0 ? "; flows went on over ports that pauses stopped" : "");
}

}  // namespace trainyard
