// SPDX-License-Identifier: Apache-2.0
// A message passes through resources that work side by side: a core, PCIe, adapters, wires. Its
// latency is the sum of the times that it takes in each; of many messages, the resource that each
// occupies longest sets the rate. Fixed latencies are those of the catalogue, which are fitted to
// ib_write_lat: what is added here only splits them, or is paid more often than once.
#include "network/traffic/verbs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "hw/packet/rdma_packet.h"
#include "network/traffic/host_costs.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "topology/graph/path.h"
#include "topology/routing/routing.h"

namespace trainyard {
namespace {
using namespace literals;

// Time of a core to make a work request, or one for a receive: the overhead of verbs in UCX
// (openucx/ucx @9466d104, src/uct/ib/rc/verbs).
constexpr SimTime kPost = 75_ns;
// Time to take one completion from its queue: Zambre et al., Breaking Band (ICPP 2019), 61.63 ns on
// ThunderX2 with ConnectX-4.
constexpr SimTime kPoll = 62_ns;
// Time of a core to write to the adapter. An estimate: Breaking Band has 175 ns for all of a post,
// of which UCX's 75 ns are taken off. Hosts differ, see docs/models/verbs.md.
constexpr SimTime kDoorbell = 100_ns;
struct DoorbellOfCpu {
  std::string_view cpu;
  SimTime time;
};
// EPYC Rome: 2.85 M/s of ib_write_bw on Azure ND A100 v4 (Azure/aks-rdma-infiniband, expected
// outputs of tests) are 350 ns in all.
constexpr std::array kDoorbells{DoorbellOfCpu{"EPYC-Rome", 275_ns}};

struct RateOfAdapter {
  std::string_view family;
  double messages_per_second;
};
// NVIDIA's product briefs, as quoted in public lists of adapters: upper bounds. Others are unknown.
constexpr std::array kAdapterRates{RateOfAdapter{"ConnectX-5", 200e6},
                                   RateOfAdapter{"ConnectX-6", 215e6},
                                   RateOfAdapter{"ConnectX-7", 330e6}};

constexpr double kRequestsPerCompletion = 100;  // perftest -Q; others complete without an entry.
constexpr double kRequestsUnderWay = 128;       // perftest -t, of a queue pair.
constexpr double kReadsUnderWay = 16;  // max_rd_atomic of ConnectX, what perftest prints as well.

// UCX takes these for the registration of host memory with an adapter, MEM_REG_OVERHEAD and
// MEM_REG_GROWTH (openucx/ucx @b1287411, src/uct/ib/base/ib_md.c).
constexpr SimTime kRegister = 16_us;
constexpr double kRegisterNanosecondsPerByte = 0.06;

// PCIe spends this beside the data of a packet (docs/models/hardware.md, section PCIe).
constexpr double kTlpBytes = 26.0 + 16.0 / 4.0;
// A request of mlx5 has a control, a remote address and a data segment of 16 B each, in blocks of
// 64 B; data in the request have a header of 4 B instead of the last (linux-rdma/rdma-core,
// providers/mlx5/wqe.h).
constexpr double kBlockBytes = 64.0;
constexpr double kRequestBytes = 48.0;
constexpr double kInlineRequestBytes = 36.0;
// A datagram has an address vector of 48 B instead of a remote address.
constexpr double kDatagramBytes = 48.0 - 16.0;
// On the wire it has a header with its queue (DETH), and in memory room for a global route header
// stands before it (InfiniBand Architecture Specification 1.4, chapters 9 and 11).
constexpr Bytes kDatagramHeader{8};
constexpr Bytes kRouteHeader{40};
constexpr double kDoorbellBytes = 8.0;
constexpr double kCompletionBytes = 64.0;

// The MTU that efficiencies of adapters in the catalogue are for.
constexpr Bytes kCatalogueMtu{4096};

double as_double(Bytes size) {
  return static_cast<double>(size.count());
}

double nanoseconds_of(SimTime time) {
  return time.microseconds() * 1e3;
}

double nanoseconds_per_byte(const VerbLink& link) {
  return 1.0 / link.bandwidth.gigabytes_per_second();
}

// Bytes on PCIe of `size` in packets of `payload`.
double pcie_bytes(double size, double payload) {
  return size + kTlpBytes * std::ceil(size / payload);
}

bool is_atomic(Verb verb) {
  return verb == Verb::FetchAndAdd || verb == Verb::CompareAndSwap;
}

// Data come from the responder.
bool brings_back(Verb verb) {
  return verb == Verb::Read || is_atomic(verb);
}

bool is_inline(const VerbSettings& settings, Bytes size, Bytes otherwise) {
  return !brings_back(settings.verb) && size <= settings.inline_limit.value_or(otherwise);
}

// An adapter that reads memory: the way out to it and the one in from there.
SimTime fetch_time(const VerbWay& from_memory, const VerbWay& to_memory) {
  return from_memory.source_host + to_memory.target_host;
}

// Bytes on PCIe from the memory of the requester to its adapter, other than data that are fetched.
double request_bytes(const VerbSettings& settings, bool has_data, Bytes size, double payload) {
  const double plain = (has_data ? kInlineRequestBytes + as_double(size) : kRequestBytes) +
                       (settings.connection == Connection::Datagram ? kDatagramBytes : 0.0);
  const double request = std::ceil(plain / kBlockBytes) * kBlockBytes;
  if (settings.batch == 1) {
    return pcie_bytes(request, kBlockBytes);  // The doorbell holds the request (BlueFlame).
  }
  return pcie_bytes(kDoorbellBytes, kBlockBytes) / settings.batch + pcie_bytes(request, payload);
}

// Bytes on the wire of a message.
double message_bytes(const VerbSettings& settings, Bytes size) {
  const RdmaOpcode first = settings.verb == Verb::Write ? RdmaOpcode::WriteOnly
                           : brings_back(settings.verb) ? RdmaOpcode::Acknowledge
                                                        : RdmaOpcode::SendOnly;
  const std::int64_t more = (size.count() - 1) / settings.mtu.count();  // Packets that are full.
  const Bytes rest = size - settings.mtu * more;
  const auto bytes = [](RdmaOpcode opcode, Bytes payload) {
    return as_double(wire_bytes(RdmaLink::RoceV2, opcode, payload));
  };
  if (more == 0) {
    return bytes(first,
                 settings.connection == Connection::Datagram ? size + kDatagramHeader : size);
  }
  return bytes(first, settings.mtu) +
         static_cast<double>(more - 1) * bytes(RdmaOpcode::SendOnly, settings.mtu) +
         bytes(RdmaOpcode::SendOnly, rest);
}

// The resource that holds each message longest.
class Slowest {
 public:
  void add(std::string_view name, double nanoseconds) {
    if (nanoseconds > nanoseconds_) {
      nanoseconds_ = nanoseconds;
      name_ = name;
    }
  }
  // Links inside a server carry `size` bytes of data and, on PCIe, what else `pcie` says of a
  // packet's payload.
  template <typename PcieBytes>
  void add_host(std::span<const VerbLink> links, double size, const PcieBytes& pcie) {
    for (const VerbLink& link : links) {
      double bytes = size;
      if (link.kind == LinkKind::Pcie) {
        const double payload = as_double(link.max_payload);
        bytes = pcie(payload) * payload / (payload + kTlpBytes);
      }
      add(to_string(link.kind), bytes * nanoseconds_per_byte(link));
    }
  }
  void add_network(std::span<const VerbLink> links, double bytes) {
    const double share =
        as_double(kCatalogueMtu) /
        as_double(wire_bytes(RdmaLink::RoceV2, RdmaOpcode::SendOnly, kCatalogueMtu));
    for (const VerbLink& link : links) {
      add("wire", bytes * share * nanoseconds_per_byte(link));
    }
  }
  [[nodiscard]] VerbRate rate() const { return {1e9 / nanoseconds_, name_}; }

 private:
  double nanoseconds_ = 0.0;
  std::string_view name_;
};

void add_cores(const VerbPath& path, const VerbSettings& settings, Slowest& slowest) {
  const double doorbell = nanoseconds_of(path.doorbell) / settings.batch;
  const double post = nanoseconds_of(kPost);
  const double poll = nanoseconds_of(kPoll);
  slowest.add(doorbell > post ? "doorbell" : "cpu",
              (post + doorbell + poll / kRequestsPerCompletion) / settings.cores);
  if (settings.verb == Verb::Send) {
    slowest.add("cpu of the receiver", (poll + post) / settings.cores);
  }
}

void add_links(const VerbPath& path, const VerbSettings& settings, Bytes size, Slowest& slowest) {
  const bool has_data = is_inline(settings, size, Bytes(0));
  const bool is_read = brings_back(settings.verb);
  const VerbWay& data = is_read ? path.back : path.there;
  const double bytes = as_double(size);
  const double written =
      as_double(settings.connection == Connection::Datagram ? size + kRouteHeader : size);
  const double fetched = has_data || is_read ? 0.0 : bytes;
  slowest.add_host(path.there.source_links, is_read ? 0.0 : bytes, [&](double payload) {
    return request_bytes(settings, has_data, size, payload) + pcie_bytes(fetched, payload);
  });
  if (is_read) {
    slowest.add_host(data.source_links, bytes,
                     [&](double payload) { return pcie_bytes(bytes, payload); });
  }
  const double completion =
      settings.verb == Verb::Send ? pcie_bytes(kCompletionBytes, kBlockBytes) : 0.0;
  slowest.add_host(data.target_links, written,
                   [&](double payload) { return completion + pcie_bytes(written, payload); });
  slowest.add_network(data.network_links, message_bytes(settings, size));
}

// From the post of a request until its completion may be taken: it tells that data came, or were
// acknowledged, or without a reliable connection that they were sent.
double round_trip(const VerbPath& path, VerbSettings settings, Bytes size) {
  settings.inline_limit = settings.inline_limit.value_or(Bytes(0));
  if (settings.connection != Connection::Reliable) {
    const SimTime fetch =
        is_inline(settings, size, Bytes(0)) ? SimTime() : fetch_time(path.there, path.back);
    return nanoseconds_of(path.there.source_host + fetch + path.back.target_host +
                          (settings.events ? kWake : SimTime()));
  }
  const double latency = nanoseconds_of(verb_latency(path, settings, size));
  return brings_back(settings.verb)
             ? latency
             : latency + nanoseconds_of(path.back.latency - path.back.source_host);
}

double least_nanoseconds_per_byte(std::span<const VerbLink> links) {
  double slowest = 0.0;
  for (const VerbLink& link : links) {
    slowest = std::max(slowest, nanoseconds_per_byte(link));
  }
  return slowest;
}

VerbLink verb_link(const Cluster& cluster, const LinkSpec& spec) {
  VerbLink link{.kind = spec.kind, .bandwidth = spec.bandwidth};
  const auto& links = cluster.catalogue.links();
  const auto part = links.find(cluster.topology.parts()[spec.part]);
  if (part != links.end() && part->second.max_payload) {
    link.max_payload = part->second.max_payload->value;
  }
  return link;
}

struct SplitPath {
  std::vector<LinkId> all;
  std::ptrdiff_t first = 0;  // The first link of the network,
  std::ptrdiff_t last = 0;   // and the first one behind it.
};

SplitPath split_path(const Cluster& cluster, Routing& routing, NodeId source, NodeId target,
                     std::string_view option) {
  SplitPath path;
  const Topology& topology = cluster.topology;
  const auto is_network = [&](LinkId link) {
    return topology.link(link).spec.kind == LinkKind::Network;
  };
  if (routing.route(source, target, 0, path.all)) {
    const auto first = std::ranges::find_if(path.all, is_network);
    const auto last = std::find_if(path.all.rbegin(), path.all.rend(), is_network);
    path.first = first - path.all.begin();
    path.last = path.all.rend() - last;
  }
  if (path.first >= path.last) {
    throw ConfigError(fmt::format(
        "{}: expected --from and --to in two servers that a network joins, found {} and {}", option,
        topology.node(source).name, topology.node(target).name));
  }
  return path;
}

VerbWay way_of(const Cluster& cluster, const SplitPath& path) {
  const Topology& topology = cluster.topology;
  const auto part = [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    return std::vector(path.all.begin() + begin, path.all.begin() + end);
  };
  const auto links = [&](const std::vector<LinkId>& some) {
    std::vector<VerbLink> result;
    for (const LinkId id : some) {
      result.push_back(verb_link(cluster, topology.link(id).spec));
    }
    return result;
  };
  const auto source = part(0, path.first);
  const auto target = part(path.last, std::ssize(path.all));
  return {.latency = path_latency(topology, path.all),
          .source_host = path_latency(topology, source),
          .target_host = path_latency(topology, target),
          .source_links = links(source),
          .network_links = links(part(path.first, path.last)),
          .target_links = links(target)};
}

// The catalogue's part that a node on the path is, or varies.
std::string part_of(const Cluster& cluster, NodeId node) {
  return cluster.catalogue.base_of(cluster.topology.parts()[cluster.topology.node(node).part]);
}

// This is the time of the core nearest to the memory.
SimTime doorbell_of(const Cluster& cluster, const SplitPath& path) {
  for (const LinkId id : path.all) {
    const NodeId node = cluster.topology.link(id).target;
    if (cluster.topology.node(node).kind == NodeKind::Cpu) {
      const auto known = std::ranges::find(kDoorbells, part_of(cluster, node), &DoorbellOfCpu::cpu);
      return known == kDoorbells.end() ? kDoorbell : known->time;
    }
  }
  return kDoorbell;
}

// ConnectX-6-Dx is of the family ConnectX-6; those of the small series Lx are not.
std::optional<double> rate_of_adapter(const std::string& part) {
  for (const RateOfAdapter& known : kAdapterRates) {
    const bool is_family = part.starts_with(known.family) &&
                           (part.size() == known.family.size() || part[known.family.size()] == '-');
    if (is_family && part.find("-Lx") == std::string::npos) {
      return known.messages_per_second;
    }
  }
  return std::nullopt;
}

std::optional<double> adapter_rate_of(const Cluster& cluster, const SplitPath& path) {
  std::optional<double> least;
  for (const LinkId id : path.all) {
    const NodeId node = cluster.topology.link(id).target;
    if (cluster.topology.node(node).kind == NodeKind::Nic) {
      const std::optional<double> rate = rate_of_adapter(part_of(cluster, node));
      least = rate && least ? std::min(*rate, *least) : (rate ? rate : least);
    }
  }
  return least;
}

}  // namespace

Bytes greatest_inline(Connection connection) {
  return connection == Connection::Datagram ? kGreatestInlineDatagram : kGreatestInline;
}

Bytes greatest_message(const VerbSettings& settings) {
  if (is_atomic(settings.verb)) {
    return kAtomicBytes;
  }
  return settings.connection == Connection::Datagram ? settings.mtu : kGreatestMessage;
}

void check_verb(const VerbSettings& settings, std::span<const Bytes> sizes) {
  const auto fail = [](std::string_view option, std::string_view expected, std::string_view found) {
    throw ConfigError(fmt::format("--{}: expected {}, found {}", option, expected, found));
  };
  const std::string_view verb = kVerbs[static_cast<std::size_t>(settings.verb)];
  const std::string_view connection = kConnections[static_cast<std::size_t>(settings.connection)];
  if (brings_back(settings.verb) && settings.connection != Connection::Reliable) {
    fail("connection", fmt::format("rc with --verb {}", verb), connection);
  }
  if (settings.verb == Verb::Write && settings.connection == Connection::Datagram) {
    fail("connection", "rc or uc with --verb write", connection);
  }
  if (settings.verb == Verb::Write && settings.events) {
    fail("events", "a verb that completes where its data arrive: read, send or an atomic", verb);
  }
  if (settings.inline_limit.value_or(Bytes(0)) > greatest_inline(settings.connection)) {
    fail("inline",
         fmt::format("at most {} with --connection {}",
                     greatest_inline(settings.connection).count(), connection),
         std::to_string(settings.inline_limit->count()));
  }
  for (const Bytes size : sizes) {
    if (is_atomic(settings.verb) && size != kAtomicBytes) {
      fail("size", fmt::format("8, which atomics change, with --verb {}", verb),
           std::to_string(size.count()));
    }
    if (size > greatest_message(settings)) {
      fail("size",
           fmt::format("at most {} with --connection {}", greatest_message(settings).count(),
                       connection),
           std::to_string(size.count()));
    }
  }
}

VerbPath verb_path(const Cluster& cluster, NodeId requester, NodeId responder,
                   std::string_view option) {
  for (const NodeId end : {requester, responder}) {
    const Node& node = cluster.topology.node(end);
    if (node.kind != NodeKind::Memory) {
      throw ConfigError(fmt::format(
          "{}: expected --from and --to to be host memories, such as server0/memory0, found {}",
          option, node.name));
    }
  }
  Routing routing(cluster.topology, cluster.routing);
  const SplitPath there = split_path(cluster, routing, requester, responder, option);
  const SplitPath back = split_path(cluster, routing, responder, requester, option);
  return {.there = way_of(cluster, there),
          .back = way_of(cluster, back),
          .doorbell = doorbell_of(cluster, there),
          .adapter_rate = adapter_rate_of(cluster, there)};
}

double data_nanoseconds(const VerbWay& way, Bytes mtu, Bytes size) {
  const double first = as_double(std::min(size, mtu));
  const double rest = as_double(size) - first;
  const std::array<double, 3> parts{least_nanoseconds_per_byte(way.source_links),
                                    least_nanoseconds_per_byte(way.network_links),
                                    least_nanoseconds_per_byte(way.target_links)};
  return first * (parts[0] + parts[1] + parts[2]) + rest * *std::ranges::max_element(parts);
}

SimTime verb_latency(const VerbPath& path, const VerbSettings& settings, Bytes size) {
  CHECK(size > Bytes(0), "a message has data");
  CHECK(size <= greatest_message(settings), "a message is larger");
  const Bytes inline_bytes = greatest_inline(settings.connection);
  CHECK(settings.inline_limit.value_or(Bytes(0)) <= inline_bytes, "a request is larger");
  const bool is_read = brings_back(settings.verb);
  const VerbWay& data = is_read ? path.back : path.there;
  SimTime latency = path.there.latency;
  if (is_read) {
    // The request goes to the adapter, whose fetch is as long as the ways out to the memory and in
    // from there: together a path there and a path back.
    latency += path.back.latency;
  } else if (!is_inline(settings, size, inline_bytes)) {
    latency += fetch_time(path.there, path.back);
  }
  if (settings.verb == Verb::Send) {
    latency += kPoll;  // WRITE is seen in the memory itself.
  }
  if (settings.events) {
    latency += kWake;
  }
  const double nanoseconds = data_nanoseconds(data, settings.mtu, size);
  return latency + picoseconds(std::llround(nanoseconds * 1e3));
}

SimTime registration_time(Bytes size) {
  CHECK(size > Bytes(0), "a buffer has data");
  return kRegister + picoseconds(std::llround(as_double(size) * kRegisterNanosecondsPerByte * 1e3));
}

VerbRate verb_rate(const VerbPath& path, const VerbSettings& settings, Bytes size) {
  Slowest slowest;
  add_cores(path, settings, slowest);
  if (path.adapter_rate) {
    slowest.add("adapter", 1e9 / *path.adapter_rate);
  }
  add_links(path, settings, size, slowest);
  if (is_atomic(settings.verb)) {
    // The responder's adapter does one after the other: none may see the value until it was read.
    slowest.add("atomic", nanoseconds_of(fetch_time(path.back, path.there)));
  }
  const bool is_read = brings_back(settings.verb);
  const double under_way =
      (is_read ? kReadsUnderWay : kRequestsUnderWay) * settings.queue_pairs * settings.cores;
  slowest.add(is_read ? "reads under way" : "queue depth",
              round_trip(path, settings, size) / under_way);
  return slowest.rate();
}

}  // namespace trainyard
