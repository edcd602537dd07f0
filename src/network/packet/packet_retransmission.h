// SPDX-License-Identifier: Apache-2.0
// Binds each row of hw/transport/retransmission.h that sends again to packets: what the source does
// with an ACK and what the target answers, behind one interface. Packets carry the lower 32 bits of
// their numbers. An ACK of go-back-N carries the next number that the target expects. One of
// selective repeat has two numbers to state, so it carries its own number, and its statement is
// queued beside it until it or a later one arrives. So does one of TCP; each packet makes a
// statement there, whether it is answered at once or later, and an ACK has all of them up to its
// own: its blocks name what came out of order before, too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "hw/transport/go_back_n.h"
#include "hw/transport/selective_repeat.h"
#include "hw/transport/tcp.h"
#include "network/packet/packet_options.h"
#include "network/packet_parts/spsc_queue.h"
#include "sim/check.h"

namespace trainyard {

// The packet nearest to `near` with these lower 32 bits.
[[nodiscard]] constexpr Psn whole_number(std::uint32_t lower, Psn near) {
  const auto ahead = static_cast<std::int32_t>(lower - static_cast<std::uint32_t>(near));
  return near + static_cast<Psn>(static_cast<std::int64_t>(ahead));
}

// The target's answer to a packet.
struct PacketAnswer {
  bool is_new = false;  // The packet had not come before.
  bool is_sent = false;
  bool is_nak = false;
  bool states = false;       // A statement is queued beside it.
  std::uint32_t number = 0;  // Number that it carries.
};

// The news of an ACK: all packets before `next` have come, and this one.
struct PacketNews {
  bool is_new = false;
  Psn next = 0;
  Psn number = 0;
  bool is_loss = false;  // Packets are known to be lost, of which nothing was known.
  std::optional<Psn> trimmed = std::nullopt;  // Only the headers of this packet came.
  // Packets that came as well, as ACKs had stated that were lost; until the next ACK.
  std::span<const Psn> others = {};
};

// The numbers that an ACK of selective repeat states.
struct PacketStatement {
  Psn expected;
  Psn received;
  bool is_trimmed = false;  // Only the headers of `received` came.
};
using PacketStatements = SpscQueue<PacketStatement>;

struct GoBackNRules {
  static constexpr Retransmission kKind = Retransmission::GoBackN;
  static SimTime shortest_timeout(const PacketOptions& options) { return options.retry.timeout; }

  struct Source {
    Source(const PacketOptions& options, const SelectiveSettings& /*of_path*/)
        : settings(options.retry) {}
    PacketNews on_ack(std::uint32_t number, bool is_nak, SimTime now, Psn acked,
                      PacketStatements& /*statements*/) {
      const Psn expected = whole_number(number, acked);
      const Psn before = sender.next();
      if (is_nak) {
        sender.on_nak(settings, expected, now);
      } else {
        sender.on_ack(settings, expected, now);
      }
      return {.is_new = true,
              .next = sender.oldest(),
              .number = expected - 1,
              .is_loss = sender.next() < before};
    }
    [[nodiscard]] std::optional<Psn> goes_back_to() const { return sender.next(); }
    Expiry on_timeout() {
      sender.on_timeout(settings);
      return Expiry::Timeout;
    }
    [[nodiscard]] static std::span<const Psn> newly_lost() { return {}; }

    RetrySettings settings;
    GoBackNSender sender = {};
  };

  struct Target {
    Target(const PacketOptions& /*options*/, const SelectiveSettings& /*of_path*/) {}
    PacketAnswer on_packet(std::uint32_t lower, bool ends_message, int packets_per_ack,
                           PacketStatements& /*statements*/) {
      const Psn number = whole_number(lower, receiver.expected());
      const Receipt receipt = receiver.on_packet(number, ends_message, packets_per_ack);
      return {.is_new = receipt.is_new,
              .is_sent = receipt.reply != Receipt::Reply::None,
              .is_nak = receipt.reply == Receipt::Reply::Nak,
              .number = static_cast<std::uint32_t>(receipt.expected)};
    }

    GoBackNReceiver receiver = {};
  };
};

struct SelectiveRules {
  static constexpr Retransmission kKind = Retransmission::SelectiveRepeat;
  static SimTime shortest_timeout(const PacketOptions& options) {
    return std::min(options.selective.short_timeout, options.selective.long_timeout);
  }

  struct Source {
    Source(const PacketOptions& /*options*/, const SelectiveSettings& of_path)
        : settings(of_path), sender(of_path) {}
    PacketNews on_ack(std::uint32_t number, bool is_nak, SimTime now, Psn acked,
                      PacketStatements& statements) {
      // ACKs overtake each other only where the path changes: what an overtaken one said is lost.
      const auto ahead = static_cast<std::int32_t>(number - next_statement);
      if (ahead < 0) {
        return {};
      }
      for (std::int32_t i = 0; i < ahead; ++i) {
        static_cast<void>(statements.pop());
      }
      const PacketStatement statement = statements.pop();
      next_statement = number + 1;
      const bool was_recovering = sender.is_recovering();
      if (statement.is_trimmed) {
        const Psn next = acked + static_cast<Psn>(sender.on_trimmed(settings, statement.expected,
                                                                    statement.received, now));
        return {.is_new = true,
                .next = next,
                .number = next - 1,
                .is_loss = true,
                .trimmed = statement.received};
      }
      const std::int64_t newly =
          is_nak ? sender.on_nack(settings, statement.expected, statement.received, now)
                 : sender.on_ack(settings, statement.expected, now);
      return {.is_new = true,
              .next = acked + static_cast<Psn>(newly),
              .number = statement.received,
              .is_loss = sender.is_recovering() && !was_recovering};
    }
    [[nodiscard]] static std::optional<Psn> goes_back_to() { return std::nullopt; }
    Expiry on_timeout() {
      sender.on_timeout(settings);
      return Expiry::Timeout;
    }
    [[nodiscard]] static std::span<const Psn> newly_lost() { return {}; }

    SelectiveSettings settings;
    SelectiveSender sender;
    std::uint32_t next_statement = 0;  // The number of the first ACK that has not come.
  };

  struct Target {
    Target(const PacketOptions& /*options*/, const SelectiveSettings& of_path)
        : receiver(of_path) {}
    PacketAnswer on_packet(std::uint32_t lower, bool /*ends_message*/, int /*packets_per_ack*/,
                           PacketStatements& statements) {
      const Psn number = whole_number(lower, receiver.expected());
      const SelectiveReceiver::Answer answer = receiver.on_packet(number);
      statements.push({.expected = answer.expected, .received = number});
      return {.is_new = answer.is_new,
              .is_sent = true,
              .is_nak = answer.is_nack,
              .states = true,
              .number = next_statement++};
    }
    // Answers a packet of which only the headers came.
    PacketAnswer on_trimmed(std::uint32_t lower, PacketStatements& statements) {
      const Psn number = whole_number(lower, receiver.expected());
      statements.push({.expected = receiver.expected(),
                       .received = number,
                       .is_trimmed = !receiver.has(number)});
      return {.is_sent = true, .is_nak = number >= receiver.expected(), .number = next_statement++};
    }

    SelectiveReceiver receiver;
    std::uint32_t next_statement = 0;  // The number of the next ACK.
  };
};

struct TcpRules {
  static constexpr Retransmission kKind = Retransmission::Tcp;
  static SimTime shortest_timeout(const PacketOptions& options) {
    return std::min({options.tcp.min_timeout, options.tcp.min_probe, options.tcp.delayed_ack});
  }
  static TcpSettings settings_of(const PacketOptions& options) {
    TcpSettings settings = options.tcp;
    settings.window = std::max<std::int64_t>(
        1, settings.receive_window.count() / std::max<std::int64_t>(1, options.mtu.count()));
    return settings;
  }

  struct Source {
    Source(const PacketOptions& options, const SelectiveSettings& /*of_path*/)
        : settings(settings_of(options)) {}
    PacketNews on_ack(std::uint32_t number, bool /*is_nak*/, SimTime now, Psn acked,
                      PacketStatements& statements) {
      PacketNews news{.next = acked};
      newly_lost_.clear();
      others_.clear();
      const bool was_recovering = sender.is_recovering();
      for (auto left = static_cast<std::int32_t>(number - next_statement); left >= 0; --left) {
        const PacketStatement statement = statements.pop();
        ++next_statement;
        news.next +=
            static_cast<Psn>(sender.on_ack(settings, statement.expected, statement.received, now));
        newly_lost_.insert(newly_lost_.end(), sender.newly_lost().begin(),
                           sender.newly_lost().end());
        news.number = statement.received;
        news.is_new = true;
        if (left > 0) {
          others_.push_back(statement.received);
        }
      }
      news.others = others_;
      news.is_loss = sender.is_recovering() && !was_recovering;
      return news;
    }
    [[nodiscard]] static std::optional<Psn> goes_back_to() { return std::nullopt; }
    Expiry on_timeout() {
      const Expiry expiry = sender.on_timeout(settings);
      newly_lost_.assign(sender.newly_lost().begin(), sender.newly_lost().end());
      return expiry;
    }
    [[nodiscard]] std::span<const Psn> newly_lost() const { return newly_lost_; }

    TcpSettings settings;
    TcpSender sender = {};
    std::uint32_t next_statement = 0;  // The number of the first statement that has not come.

   private:
    std::vector<Psn> newly_lost_ = {};
    std::vector<Psn> others_ = {};
  };

  struct Target {
    Target(const PacketOptions& options, const SelectiveSettings& /*of_path*/)
        : settings(settings_of(options)) {}
    PacketAnswer on_packet(std::uint32_t lower, bool /*ends_message*/, int /*packets_per_ack*/,
                           PacketStatements& statements) {
      const Psn number = whole_number(lower, receiver.expected());
      const TcpReceiver::Answer answer = receiver.on_packet(settings, number);
      statements.push({.expected = answer.expected, .received = number});
      return {.is_new = answer.is_new,
              .is_sent = answer.is_sent,
              .states = true,
              .number = next_statement++};
    }
    // Answers what has come since the last ACK, if anything has.
    std::optional<std::uint32_t> on_delay() {
      if (receiver.unanswered() == 0) {
        return std::nullopt;
      }
      receiver.answer();
      return next_statement - 1;
    }

    TcpSettings settings;
    TcpReceiver receiver = {};
    std::uint32_t next_statement = 0;  // The number of the next statement.
  };
};

template <typename... Rules>
struct RetransmissionTable {
  using Source = std::variant<typename Rules::Source...>;
  using Target = std::variant<typename Rules::Target...>;

  // `of_path` are the settings of selective repeat on the path of the connection.
  static Source source(const PacketOptions& options, const SelectiveSettings& of_path) {
    std::optional<Source> made;
    ((options.retransmission == Rules::kKind
          ? static_cast<void>(made.emplace(typename Rules::Source(options, of_path)))
          : static_cast<void>(0)),
     ...);
    CHECK(made.has_value(), "nothing is sent again");
    return *std::move(made);
  }
  static Target target(const PacketOptions& options, const SelectiveSettings& of_path) {
    std::optional<Target> made;
    ((options.retransmission == Rules::kKind
          ? static_cast<void>(made.emplace(typename Rules::Target(options, of_path)))
          : static_cast<void>(0)),
     ...);
    CHECK(made.has_value(), "nothing is sent again");
    return *std::move(made);
  }
  // Returns the shortest time after which something is sent again; never, without retransmission.
  static SimTime shortest_timeout(const PacketOptions& options) {
    SimTime timeout = SimTime::max();
    ((timeout =
          options.retransmission == Rules::kKind ? Rules::shortest_timeout(options) : timeout),
     ...);
    return timeout;
  }
};

using Retransmissions = RetransmissionTable<GoBackNRules, SelectiveRules, TcpRules>;

}  // namespace trainyard
