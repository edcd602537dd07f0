// SPDX-License-Identifier: Apache-2.0
// Message rate and latency of RDMA verbs between the memories of two servers, in closed form:
// docs/models/verbs.md has the equations, their sources, and what is left out.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/ids.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"
#include "topology/graph/topology.h"

namespace trainyard {

// Work requests ask for one of these. The requester makes all of them: WRITE and SEND carry its
// data to the responder, READ brings data back. Atomics change 8 B there and bring back what they
// were; all of a run go to one address, such as that of a counter.
enum class Verb : std::uint8_t { Write, Read, Send, FetchAndAdd, CompareAndSwap };
// In the order of Verb.
inline constexpr std::array<std::string_view, 5> kVerbs{"write", "read", "send", "fetch-and-add",
                                                        "compare-and-swap"};
inline constexpr Bytes kAtomicBytes{8};

// Reliable connections, unreliable ones, which nothing acknowledges, and unreliable datagrams: a
// message is a packet.
enum class Connection : std::uint8_t { Reliable, Unreliable, Datagram };
// In the order of Connection, as perftest names them.
inline constexpr std::array<std::string_view, 3> kConnections{"rc", "uc", "ud"};

// A message has at most 2^31 bytes (InfiniBand Architecture Specification 1.4).
inline constexpr Bytes kGreatestMessage{std::int64_t{1} << 31};

// So much fits into a request that is written to the adapter at once, in BlueFlame's 256 B;
// perftest prints it for mlx5 as "Max inline data".
inline constexpr Bytes kGreatestInline{220};
// A datagram says in 48 B more where it goes, instead of 16 B of a remote address: perftest prints
// 188 for ib_send_lat -c UD.
inline constexpr Bytes kGreatestInlineDatagram{188};

struct VerbSettings {
  Verb verb = Verb::Write;
  int queue_pairs = 1;  // Each core has so many.
  int cores = 1;        // These make work requests at once.
  int batch = 1;        // Work requests for each doorbell.
  // Greatest payload that travels in the work request, at most kGreatestInline. Without it, as
  // perftest: none in tests of rates, all of that in those of latencies.
  std::optional<Bytes> inline_limit = {};
  Bytes mtu{4096};
  Connection connection = Connection::Reliable;
  // Cores sleep until an interrupt tells them of a completion, instead of looking for it.
  bool events = false;
  bool registers = false;  // Tell what it takes to register the buffer of a message.
};

// The most that fits into a request of this connection.
[[nodiscard]] Bytes greatest_inline(Connection connection);
// The greatest message of the verb on this connection.
[[nodiscard]] Bytes greatest_message(const VerbSettings& settings);
// Throws ConfigError, whose text names --connection, --events, --inline or --size, where the verb
// does not have what the settings say, or no messages of these sizes.
void check_verb(const VerbSettings& settings, std::span<const Bytes> sizes);

// A link, as far as messages can wait for it.
struct VerbLink {
  LinkKind kind = LinkKind::Network;
  Bandwidth bandwidth;     // Payload rate of long transfers.
  Bytes max_payload{256};  // PCIe: of a packet.
};

// One direction between two memories.
struct VerbWay {
  SimTime latency;      // It is that of the whole way.
  SimTime source_host;  // The part of it before the first adapter,
  SimTime target_host;  // and behind the last one.
  std::vector<VerbLink> source_links = {};
  std::vector<VerbLink> network_links = {};
  std::vector<VerbLink> target_links = {};
};

struct VerbPath {
  VerbWay there;  // From the requester to the responder.
  VerbWay back;
  SimTime doorbell;  // Time of the requester's core to tell its adapter of new requests.
  // Messages per second that the slower of the adapters can handle, where that is published.
  std::optional<double> adapter_rate = {};
};

// Returns the path between two host memories. Throws ConfigError, whose text names --from and --to
// and begins with `option`, for other devices and where the way does not lead over a network.
[[nodiscard]] VerbPath verb_path(const Cluster& cluster, NodeId requester, NodeId responder,
                                 std::string_view option = "--verb");

// The time of a payload in nanoseconds: both adapters store and forward its first packet, of at
// most `mtu`; what follows it is under way everywhere at once.
[[nodiscard]] double data_nanoseconds(const VerbWay& way, Bytes mtu, Bytes size);

// The time of one message alone: of WRITE and SEND one way, of READ and atomics there and back, as
// perftest has them. The settings and `size`, of at least one byte, have passed check_verb.
[[nodiscard]] SimTime verb_latency(const VerbPath& path, const VerbSettings& settings, Bytes size);

// The time of a core to register a buffer of host memory with its adapter, before its first use:
// pages of 4 KiB are pinned, and the adapter is told where they are. `size` is at least one byte.
[[nodiscard]] SimTime registration_time(Bytes size);

struct VerbRate {
  double messages_per_second = 0.0;
  std::string_view limit;  // The resource that has no more: "doorbell", "wire", ...
};
// The rate of messages that are sent one after the other, with as many under way as there may be.
[[nodiscard]] VerbRate verb_rate(const VerbPath& path, const VerbSettings& settings, Bytes size);

}  // namespace trainyard
