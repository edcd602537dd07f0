// SPDX-License-Identifier: Apache-2.0
// This has rate, latency and CPU time of TCP as the kernel runs it, between the memories of two
// servers, in closed form: docs/models/tcp.md has the equations, their sources, and what is left
// out.
#pragma once

#include <cstdint>
#include <string_view>

#include "network/traffic/verbs.h"
#include "sim/units.h"

namespace trainyard {

// These take the place of the sender's copy (MSG_ZEROCOPY): nothing, pages of 4 KiB that the kernel
// pins one by one, or those of 2 MiB, of which it pins one for each segment. Receivers copy always.
enum class ZeroCopy : std::uint8_t { Off, On, HugePages };

struct SocketSettings {
  int sockets = 1;  // Each of them has a thread at either end.
  int cores = 1;    // So many at either end run threads and interrupts.
  Bytes mtu{1500};  // It is that of IP and holds the headers: kLeastTcpMtu to kGreatestTcpMtu.
  bool tso = true;  // The adapter cuts segments into packets, or else the kernel does.
  bool gro = true;  // Interrupts join packets to segments.
  ZeroCopy zero_copy = ZeroCopy::Off;
};

// RFC 791: every host takes datagrams of this size.
inline constexpr Bytes kLeastTcpMtu{576};
// The total length of IPv4 has 16 bits.
inline constexpr Bytes kGreatestTcpMtu{65'535};

// Returns the data of a full packet: the MTU less headers of 52 B.
[[nodiscard]] Bytes tcp_payload(const SocketSettings& settings);

// CPU times are in nanoseconds for a byte of data.
struct TcpCpu {
  double sender = 0.0;
  double interrupt = 0.0;  // This is the receiver's time until data are in the socket,
  double thread = 0.0;     // and this the one from there.
  [[nodiscard]] double receiver() const { return interrupt + thread; }
};

// Returns the CPU time of a stream of messages of `size` bytes, which is at least one. The kernel
// fills segments from as many messages as they hold.
[[nodiscard]] TcpCpu tcp_cpu(const SocketSettings& settings, Bytes size);

struct TcpRate {
  double bytes_per_second = 0.0;
  std::string_view limit;  // This resource has no more: "receiver core", "wire", ...
};
// Returns the rate of such a stream, shared by all sockets.
[[nodiscard]] TcpRate tcp_rate(const VerbPath& path, const SocketSettings& settings, Bytes size);

// Returns the time of one message alone, from send() to the return of recv(): half of what TCP_RR
// of netperf takes for a request and a response of `size`.
[[nodiscard]] SimTime tcp_latency(const VerbPath& path, const SocketSettings& settings, Bytes size);

}  // namespace trainyard
