// SPDX-License-Identifier: Apache-2.0
// The table of what the ends of a connection do about lost packets, one row each. The state
// machines are in the files of this folder; network/packet/packet_retransmission.h binds them to
// packets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace trainyard {

// The order is that of the rows.
enum class Retransmission : std::uint8_t {
  None,             // Whoever misses a packet takes nothing more of the connection.
  GoBackN,          // RoCE and InfiniBand (hw/transport/go_back_n.h).
  SelectiveRepeat,  // IRN (hw/transport/selective_repeat.h).
  Tcp,              // Linux (hw/transport/tcp.h).
};

struct RetransmissionRow {
  std::string_view name;  // As files and options have it.
  bool sends_again = true;
  bool takes_overtaking = true;  // Packets that overtake others do not make those count as lost.
};

// Those of RDMA, among which files and options choose. That of TCP comes with its frames.
inline constexpr std::array<RetransmissionRow, 3> kRetransmissions{
    {{.name = "none", .sends_again = false},
     {.name = "go-back-n", .takes_overtaking = false},
     {.name = "selective"}}};
inline constexpr RetransmissionRow kTcpRetransmission{.name = "tcp", .takes_overtaking = false};

[[nodiscard]] constexpr const RetransmissionRow& row_of(Retransmission kind) {
  return kind == Retransmission::Tcp ? kTcpRetransmission
                                     : kRetransmissions[static_cast<std::size_t>(kind)];
}

}  // namespace trainyard
