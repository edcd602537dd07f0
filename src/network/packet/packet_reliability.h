// SPDX-License-Identifier: Apache-2.0
// Connections of the packet engine that send again what was lost: the rules of
// packet_retransmission.h at both ends of a connection, with the messages that their packets belong
// to.
//
// Both ends of a connection are one object here, but each has a state of its own, and sees what the
// other does only through packets: the source is told of ACKs, the target of data.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>

#include "network/packet/packet_options.h"
#include "network/packet/packet_retransmission.h"
#include "network/packet_parts/packet_port.h"

namespace trainyard {

// The ends of a connection that are in this process.
enum class MessageEnds : std::uint8_t { Both, Source, Target };

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
  // Up to `selective.window` packets are without an ACK, for SelectiveRepeat. The retransmission
  // must send again.
  ReliableConnection(const PacketOptions& options, const SelectiveSettings& selective);

  // The next functions serve both ends, between windows. Adds a message, to be sent from `time` on,
  // which must not fall.
  void add(std::int64_t size, Picoseconds time, std::uint64_t order,
           MessageEnds ends = MessageEnds::Both);
  // The next functions serve the source. Messages of times up to `now` may be sent.
  void post_due(Picoseconds now);
  [[nodiscard]] bool can_send() const;
  // The packet that send() would send.
  [[nodiscard]] Piece next() const;
  [[nodiscard]] Piece send(Picoseconds now);
  // An ACK with this number has come.
  PacketNews on_answer(std::uint32_t number, bool is_nak, Picoseconds now);
  // Go-back-N continues with the packet next().number, and waits for no other one.
  [[nodiscard]] std::optional<Psn> goes_back_to() const;
  // on_timeout() must be called when deadline() has come; kNeverTime if nothing is waited for.
  Expiry on_timeout();
  // Packets that the last answer or timeout showed to be lost, which are not under way then; TCP
  // only.
  [[nodiscard]] std::span<const Psn> newly_lost() const;
  [[nodiscard]] Picoseconds deadline() const;
  // The smoothed round trip; absent before the first ACK, and without TCP.
  [[nodiscard]] std::optional<SimTime> smoothed_rtt() const;
  // There were too many retries in a row: nothing is sent any more.
  [[nodiscard]] bool has_failed() const;
  // Returns the order of the message whose packets go out for the first time, or of the last one.
  [[nodiscard]] std::uint64_t order() const;
  // Payload of that message that went out so far, once; nothing between messages.
  [[nodiscard]] std::int64_t begun() const;

  // Takes a packet with this number at the target. A packet with this number has come.
  [[nodiscard]] PacketAnswer on_packet(std::uint32_t lower, bool ends_message, int packets_per_ack);
  // Takes the headers of a packet that a switch has trimmed; selective repeat only.
  [[nodiscard]] PacketAnswer on_trimmed(std::uint32_t lower);
  // The number of the ACK that goes out after its delay, if anything is unanswered; TCP only.
  [[nodiscard]] std::optional<std::uint32_t> on_delay();
  // Messages of which all packets have come, since the last call.
  [[nodiscard]] std::uint32_t take_completed();

  // Takes what the last answer stated to the process of the source, where it is put.
  [[nodiscard]] PacketStatement take_statement() { return statements_.pop(); }
  void put_statement(const PacketStatement& statement) { statements_.push(statement); }

  // Counts what the source has done in another process.
  void count_elsewhere(std::uint64_t resent, std::uint64_t timeouts) {
    resent_elsewhere_ = resent;
    source_.timeouts = timeouts;
  }
  [[nodiscard]] std::uint64_t resent() const;
  [[nodiscard]] std::uint64_t timeouts() const { return source_.timeouts; }

 private:
  struct Span {
    Psn first = 0;
    std::int64_t size = 0;
    Picoseconds time = 0;
    std::uint64_t order = 0;
  };
  struct alignas(64) Source {
    Retransmissions::Source rules;
    Ring<Span> spans = {};     // Spans of messages that are not acknowledged as a whole.
    std::uint32_t posted = 0;  // So many of them may be sent.
    Psn end = 0;               // End of all messages.
    Psn sent = 0;              // One beyond the highest that was ever sent.
    Psn acked = 0;
    std::uint64_t timeouts = 0;
  };
  struct alignas(64) Target {
    Retransmissions::Target rules;
    Ring<Psn> ends = {};  // Ends of messages that are not complete.
  };

  [[nodiscard]] Piece piece_of(Psn number) const;
  [[nodiscard]] Psn packets_of(std::int64_t size) const;
  [[nodiscard]] Psn end_of(const Span& span) const { return span.first + packets_of(span.size); }
  // Returns the place of the message that the packet belongs to, among the spans.
  [[nodiscard]] std::uint32_t place_of(Psn number) const;

  std::int64_t mtu_;
  Source source_;
  Target target_;
  PacketStatements statements_;  // Statements of ACKs that have not come yet.
  std::uint64_t resent_elsewhere_ = 0;
};

// Something that a port is told at a time of its own, after all that arrives at that instant.
struct Alarm {
  enum class Kind : std::uint8_t { Post, Timeout, LinkDown, Poll, Ask, Delay };
  Picoseconds time;
  std::uint32_t port;
  std::uint32_t connection;  // kNoIndex for LinkDown and Poll.
  Kind kind;
  friend auto operator<=>(const Alarm&, const Alarm&) = default;
};

}  // namespace trainyard
