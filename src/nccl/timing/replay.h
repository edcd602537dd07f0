// SPDX-License-Identifier: Apache-2.0
// Runs the thread blocks of a collective as NCCL's kernels do: primitives over FIFOs with credits.
//
// A lane is one thread block, or one of the groups of warps that a block is divided into. It works
// through units: what is forwarded as a whole, a slice (Simple) or a pass over the lines that the
// threads of the block hold at once (LL, LL128). A unit waits for its message on every connection
// that it receives from and for a free slot of every one that it sends to, is copied at the rate of
// the block, and is then on its way. A slot is free again when the receiver has worked through it.
//
// Bytes move in one of two ways:
// - direct: the block itself stores into the receiver's memory, over links that others share. The
//   unit ends when the last byte has left;
// - by proxy: the block stores into a buffer nearby; a thread of the host sees it, which works for
//   all connections of its process in turn, and posts it to the NIC. On the other side likewise.
//
// Ports are shared first come, first served, unit by unit. A port takes the next unit when it has
// passed on the last, so it is never idle while work waits, as under fair sharing, but equal blocks
// come apart: one waits while another sends. Fair sharing would keep blocks that start together in
// step for ever, and they would all leave the link idle together in every step in which they do
// not send; on real machines the link is idle only about once in a kernel
// (docs/models/nccl-timing.md).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "network/contract/network.h"
#include "sim/units.h"

namespace trainyard::nccl {

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// Work of the hosts of a connection beyond what each message costs them.
struct HostWork {
  SimTime long_cost = {};  // Either host has it for a message above `long_above`.
  Bytes long_above = {};
  // The sender's looks at all lines of a unit to know that they are there (LL); those of the units
  // before are looked at while the block fills the next one.
  Bandwidth check_rate = kMaxBandwidth;
  Bandwidth copy_rate = kMaxBandwidth;  // The receiver's copies the message.
};

struct ReplayConnection {
  std::vector<std::uint32_t> ports = {};  // Ports that its bytes pass.
  // The time until the receiver sees what has left.
  SimTime latency = {};
  // The receiver sees flags in each line and need not wait for the last one (LL, LL128). Otherwise
  // it is told when all of the unit is there.
  bool flags_in_line = false;
  SimTime credit_latency = {};  // From the end of the receiver's unit to the sender's free slot.
  std::uint32_t slots = 1;      // Units under way or not worked through.
  // Blocks that read from the sender have few bytes under way each and so share a port fairly: in
  // so many of the sender's first units those that began together stay in step, and the port is
  // idle while all of them wait, synchronise and post. Later they have come apart. Not if proxied.
  std::uint64_t units_in_step = 0;
  bool proxied = false;
  // Hosts that work for it, and how long each message takes them; only if proxied.
  std::uint32_t sending_host = kNone;
  std::uint32_t receiving_host = kNone;
  SimTime host_cost = {};
  HostWork host_work = {};
  // Queue pairs that carry the messages from NIC to NIC, where a Network does (network_replay.h; a
  // replay on ports alone does not look at them). A message goes in so many equal parts over as
  // many pairs, of which there are a multiple; the next message has the next pairs.
  std::vector<ConnectionSpec> queue_pairs = {};
  std::size_t parts = 1;
  // Messages above it are followed by one of no bytes on each of these, which tells the receiver.
  std::optional<Bytes> told_above = {};
  std::uint32_t receiving_ports = 0;  // The last of `ports`: behind the network.
  // Latency of the network, for which `latency` does not account.
  SimTime path_latency = {};
  // Bytes on the wire for so many of data.
  std::int64_t wire_bytes = 1;
  std::int64_t data_bytes = 1;
};

// Connections that a unit goes over, up to three.
using Ends = std::array<std::uint32_t, 3>;
inline constexpr Ends kNoEnds = {kNone, kNone, kNone};

struct ReplayUnit {
  Ends receives = kNoEnds;
  Ends sends = kNoEnds;
  Bytes bytes;
  SimTime cost = {};  // Beside its bytes: waiting, barriers, fences.
  // Ends a message that a proxy posts: this unit and those before it.
  bool ends_message = true;
  Bandwidth rate = kMaxBandwidth;  // Rate of its copy, where that is below the lane's.
};

// The program of a lane. Unit i of a connection's sender is received as unit i of its receiver,
// counting those that name it.
class LaneProgram {
 public:
  virtual ~LaneProgram() = default;
  [[nodiscard]] virtual std::uint64_t units() const = 0;
  [[nodiscard]] virtual ReplayUnit unit(std::uint64_t index) const = 0;
};

struct ReplayLane {
  Bandwidth rate;  // Rate of the block's copies.
  std::unique_ptr<LaneProgram> program;
  // For those who watch: whose block it is, and what a group of its warps does.
  int rank = 0;
  int channel = 0;
  const char* work = "";
};

struct ReplayNetwork {
  std::vector<Bandwidth> ports;
  std::vector<ReplayConnection> connections;
  std::uint32_t hosts = 0;
};

// Is told of each unit that a lane has worked through, in the order of their starts; the time that
// a lane waits is between its units. Never changes a result.
using ReplayWatch =
    std::function<void(std::uint32_t lane, const ReplayUnit& unit, SimTime start, SimTime end)>;

// Returns the time that the lanes take for the first `max_units` of each. All lanes that share a
// connection must name it as often as each other. CHECKs that no lane waits for ever.
[[nodiscard]] SimTime replay(const ReplayNetwork& network, std::span<const ReplayLane> lanes,
                             std::uint64_t max_units, const ReplayWatch& watch = {});

// Returns the time for all units, where `run` gives that of the first so many. Long programs repeat
// themselves: beyond `exact_units` of the longest lane the time is a straight line through that of
// half of them and that of all of them.
[[nodiscard]] SimTime replay_in_line(std::span<const ReplayLane> lanes, std::uint64_t exact_units,
                                     const std::function<SimTime(std::uint64_t)>& run);

}  // namespace trainyard::nccl
