// SPDX-License-Identifier: Apache-2.0
// Reliable delivery of a reliable connection (InfiniBand Architecture Specification 1.4, section
// 9.7): packets in order, one cumulative acknowledgement, one NAK for each gap, everything again
// from the gap or, after a timeout, from the oldest packet without an ACK.
//
// Packets are counted from 0 in 64 bits. READ works alike with the responses in the place of the
// requester's packets.
#pragma once

#include <cstdint>

#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

using Psn = std::uint64_t;

// Numbers have 24 bits on the wire, of which only half may be on their way.
inline constexpr std::int64_t kMaxOutstanding = std::int64_t{1} << 23;

// 4.096 us x 2^exponent, as the attribute `timeout` of a queue pair counts; exponents are 1 ... 31,
// and 0 means never. Devices wait up to four times as long.
[[nodiscard]] constexpr SimTime retransmission_timeout(int exponent) {
  CHECK(exponent >= 0 && exponent < 32, "no timeout exponent");
  return exponent == 0 ? SimTime::max() : nanoseconds(4096) * (std::int64_t{1} << exponent);
}

struct RetrySettings {
  SimTime timeout = retransmission_timeout(20);  // NCCL's NCCL_IB_TIMEOUT.
  int retries = 7;                               // NCCL_IB_RETRY_CNT; one more is an error.
  std::int64_t window = kMaxOutstanding;         // Packets without an ACK.
};

// The requester.
class GoBackNSender {
 public:
  // `packets` more are to be sent.
  void post(std::int64_t packets) { end_ += static_cast<Psn>(packets); }

  [[nodiscard]] bool can_send(const RetrySettings& settings) const {
    return !has_failed_ && next_ < end_ &&
           static_cast<std::int64_t>(next_ - oldest_) < settings.window;
  }
  // The packet that goes out at `now`.
  Psn send(const RetrySettings& settings, SimTime now) {
    DCHECK(can_send(settings), "nothing to send");
    const Psn psn = next_++;
    resent_ += psn < highest_ ? 1 : 0;
    highest_ = next_ > highest_ ? next_ : highest_;
    if (psn == oldest_) {
      arm(settings, now);
    }
    return psn;
  }

  // Everything before `upto` has come. How many packets that are more than before.
  std::int64_t on_ack(const RetrySettings& settings, Psn upto, SimTime now) {
    if (upto <= oldest_ || upto > highest_) {
      return 0;
    }
    const auto newly = static_cast<std::int64_t>(upto - oldest_);
    oldest_ = upto;
    next_ = next_ < upto ? upto : next_;
    failures_ = 0;
    arm(settings, now);
    return newly;
  }
  // The other side expects `expected` and has seen a later one. Counts as a try if nothing came.
  void on_nak(const RetrySettings& settings, Psn expected, SimTime now) {
    if (expected < oldest_ || expected > highest_) {
      return;  // An older position: nothing to do.
    }
    if (on_ack(settings, expected, now) > 0) {
      resend();
    } else {
      on_timeout(settings);
    }
  }
  // Must be called when deadline() has come.
  void on_timeout(const RetrySettings& settings) {
    if (++failures_ <= settings.retries) {
      resend();
    } else {
      has_failed_ = true;
      deadline_ = SimTime::max();
    }
  }
  [[nodiscard]] SimTime deadline() const { return deadline_; }

  [[nodiscard]] bool is_done() const { return oldest_ == end_; }
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] Psn oldest() const { return oldest_; }
  [[nodiscard]] Psn next() const { return next_; }
  [[nodiscard]] std::int64_t resent() const { return resent_; }

 private:
  // Runs while something is on its way. After going back nothing is, until it is sent again.
  void arm(const RetrySettings& settings, SimTime now) {
    const bool is_off = next_ == oldest_ || settings.timeout == SimTime::max();
    deadline_ = is_off ? SimTime::max() : now + settings.timeout;
  }
  void resend() {
    next_ = oldest_;
    deadline_ = SimTime::max();
  }

  Psn oldest_ = 0;   // Without an ACK.
  Psn next_ = 0;     // To be sent.
  Psn end_ = 0;      // End of the posted packets.
  Psn highest_ = 0;  // One beyond the highest ever sent.
  SimTime deadline_ = SimTime::max();
  std::int64_t resent_ = 0;
  int failures_ = 0;  // In a row, without an ACK in between.
  bool has_failed_ = false;
};

// The receiver's reaction to a packet.
struct Receipt {
  enum class Reply : std::uint8_t { None, Ack, Nak };
  bool is_new = false;  // Its data is delivered now.
  Reply reply = Reply::None;
  Psn expected = 0;  // The next number that the reply asks for: everything before has come.
};

// The responder.
class GoBackNReceiver {
 public:
  // `ack_every`: an ACK after so many packets; 0 for none but those that packets ask for (the last
  // of each message does).
  Receipt on_packet(Psn psn, bool wants_ack, std::int64_t ack_every) {
    if (psn > expected_) {
      const bool is_first = !has_nak_;
      has_nak_ = true;
      return {.reply = is_first ? Receipt::Reply::Nak : Receipt::Reply::None,
              .expected = expected_};
    }
    if (psn < expected_) {  // A duplicate: its ACK was lost or late.
      return {.reply = Receipt::Reply::Ack, .expected = expected_};
    }
    has_nak_ = false;
    ++expected_;
    ++since_ack_;
    const bool is_due = wants_ack || (ack_every > 0 && since_ack_ >= ack_every);
    since_ack_ = is_due ? 0 : since_ack_;
    return {.is_new = true,
            .reply = is_due ? Receipt::Reply::Ack : Receipt::Reply::None,
            .expected = expected_};
  }
  [[nodiscard]] Psn expected() const { return expected_; }

 private:
  Psn expected_ = 0;
  std::int64_t since_ack_ = 0;
  bool has_nak_ = false;  // For the gap at `expected_`.
};

}  // namespace trainyard
