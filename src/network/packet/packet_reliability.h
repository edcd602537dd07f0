// SPDX-License-Identifier: Apache-2.0
// Connections of the packet engine that send again what was lost: the state machines of
// hw/transport/go_back_n.h and hw/transport/selective_repeat.h at both ends of a connection, with
// the messages that their packets belong to.
//
// Both ends of a connection are one object here, but each has a state of its own, and sees what the
// other does only through packets: the source is told of ACKs, the target of data. Packets carry
// the lower 32 bits of their numbers. An ACK of go-back-N carries the next number that the target
// expects. One of selective repeat has two numbers to say, so it carries its own number, and what
// it says is handed over beside it until it or a later one arrives.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <variant>

#include "hw/transport/go_back_n.h"
#include "hw/transport/selective_repeat.h"
#include "network/packet/packet_options.h"
#include "network/packet_parts/packet_handover.h"
#include "network/packet_parts/packet_port.h"

namespace trainyard {

// The packet nearest to `near` with these lower 32 bits.
[[nodiscard]] constexpr Psn whole_number(std::uint32_t lower, Psn near) {
  const auto ahead = static_cast<std::int32_t>(lower - static_cast<std::uint32_t>(near));
  return near + static_cast<Psn>(static_cast<std::int64_t>(ahead));
}

class ReliableConnection {
 public:
  // A packet to be sent.
  struct Piece {
    Psn number = 0;
    std::int64_t payload = 0;
    std::int64_t message = 0;  // Bytes of its message.
    bool begins_message = false;
    bool ends_message = false;
    bool is_again = false;
  };
  // The target's answer to a packet.
  struct Answer {
    bool is_new = false;  // The packet had not come before.
    bool is_sent = false;
    bool is_nak = false;
    std::uint32_t number = 0;  // Number that it carries.
  };

  // The news of an ACK: all packets before `next` have come, and this one.
  struct Heard {
    bool is_new = false;
    Psn next = 0;
    Psn number = 0;
    bool is_loss = false;  // Packets are known to be lost, of which nothing was known.
  };

  // `selective.window` packets without an ACK, for SelectiveRepeat. The retransmission must not be
  // None.
  ReliableConnection(const PacketOptions& options, const SelectiveSettings& selective);

  // The next functions serve both ends, between windows. Adds a message, to be sent from `time` on,
  // which must not fall.
  void add(std::int64_t size, Picoseconds time, std::uint64_t order);
  // The next functions serve the source. Messages of times up to `now` may be sent.
  void post_due(Picoseconds now);
  [[nodiscard]] bool can_send() const;
  // The packet that send() would send.
  [[nodiscard]] Piece next() const;
  [[nodiscard]] Piece send(Picoseconds now);
  // An ACK with this number has come.
  Heard on_answer(std::uint32_t number, bool is_nak, Picoseconds now);
  // Go-back-N goes on with the packet next().number, and waits for no other one.
  [[nodiscard]] std::optional<Psn> goes_back_to() const;
  // on_timeout() must be called when deadline() has come; kNeverTime if nothing is waited for.
  void on_timeout();
  [[nodiscard]] Picoseconds deadline() const;
  // There were too many retries in a row: nothing is sent any more.
  [[nodiscard]] bool has_failed() const;
  // Returns the order of the message whose packets go out for the first time, or of the last one.
  [[nodiscard]] std::uint64_t order() const;
  // Payload of that message that went out so far, once; nothing between messages.
  [[nodiscard]] std::int64_t begun() const;
  // Everything before this has come, as far as the source knows.
  [[nodiscard]] Psn acked() const { return source_.acked; }

  // Takes a packet with this number at the target. A packet with this number has come.
  [[nodiscard]] Answer on_packet(std::uint32_t lower, bool ends_message, int packets_per_ack);
  // Messages of which all packets have come, since the last call.
  [[nodiscard]] std::uint32_t take_completed();

  [[nodiscard]] std::uint64_t resent() const;
  [[nodiscard]] std::uint64_t timeouts() const { return source_.timeouts; }

 private:
  struct Span {
    Psn first = 0;
    std::int64_t size = 0;
    Picoseconds time = 0;
    std::uint64_t order = 0;
  };
  struct Statement {
    Psn expected;
    Psn received;
  };
  struct GoBackNSource {
    RetrySettings settings;
    GoBackNSender sender = {};
  };
  struct SelectiveSource {
    SelectiveSettings settings;
    SelectiveSender sender;
    std::uint32_t next_said = 0;  // The number of the first ACK that has not come.
  };
  struct alignas(64) Source {
    std::variant<GoBackNSource, SelectiveSource> rules;
    Ring<Span> spans = {};     // Spans of messages that are not acknowledged as a whole.
    std::uint32_t posted = 0;  // So many of them may be sent.
    Psn end = 0;               // End of all messages.
    Psn sent = 0;              // One beyond the highest that was ever sent.
    Psn acked = 0;
    std::uint64_t timeouts = 0;
  };
  struct alignas(64) Target {
    std::variant<GoBackNReceiver, SelectiveReceiver> rules;
    Ring<Psn> ends = {};          // Ends of messages that are not complete.
    std::uint32_t next_said = 0;  // SelectiveRepeat: the number of the next ACK.
  };

  [[nodiscard]] static Source make_source(const PacketOptions& options,
                                          const SelectiveSettings& selective);
  [[nodiscard]] static Target make_target(const PacketOptions& options,
                                          const SelectiveSettings& selective);
  [[nodiscard]] Piece piece_of(Psn number) const;
  [[nodiscard]] Psn packets_of(std::int64_t size) const;
  [[nodiscard]] Psn end_of(const Span& span) const { return span.first + packets_of(span.size); }
  // Returns the place of the message that the packet belongs to, among the spans.
  [[nodiscard]] std::uint32_t place_of(Psn number) const;

  std::int64_t mtu_;
  Source source_;
  Target target_;
  Handover<Statement> said_;  // Statements of ACKs that have not come yet.
};

// Something that a port is told at a time of its own, after all that arrives at that instant.
struct Alarm {
  enum class Kind : std::uint8_t { Post, Timeout, LinkDown, Poll, Ask };
  Picoseconds time;
  std::uint32_t port;
  std::uint32_t connection;  // kNoIndex for LinkDown and Poll.
  Kind kind;
  friend auto operator<=>(const Alarm&, const Alarm&) = default;
};

// Throws ConfigError for a timeout that is none.
void check_retransmission(const PacketOptions& options);

}  // namespace trainyard
