// SPDX-License-Identifier: Apache-2.0
// Reliable delivery of TCP as Linux has it, in packets instead of bytes: cumulative ACKs that are
// delayed (RFC 5681, section 4.2), selective ones beside them (RFC 2018), losses known from the
// times at which packets were sent and a probe for those at the end (RACK and TLP, RFC 8985), and a
// timeout that follows measured round trips and doubles (RFC 6298).
//
//   lost      a packet that was sent before one that has come, once a round trip of that one and a
//             quarter of the least one are over since; three packets that came out of order, or a
//             recovery under way, take that quarter away
//   reorder   where only time is missing for that, it is looked at again when that time is over,
//             and no sooner than timers go off
//   RTO       srtt + max(200 ms, 4 rttvar), at most 120 s, twice as long after each in vain
//   probe     with nothing lost, two round trips after the last ACK: the last packet is sent again
//   restart   after an RTO everything that is not known to have come is sent again
//
// Time stamps tell of a packet that was sent twice which of both came, so that each ACK of
// something new measures a round trip. How many packets may be under way is up to a congestion
// control; here only the receiver's window bounds them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "hw/transport/go_back_n.h"
#include "sim/units.h"

namespace trainyard {

// The defaults are Linux's: include/net/tcp.h, TCP_RTO_MIN, TCP_RTO_MAX, TCP_DELACK_MIN,
// TCP_MAX_QUICKACKS and TCP_TIMEOUT_MIN_US (since "tcp: fix excessive TLP and RACK timeouts from HZ
// rounding", 2023; before it two ticks, and ticks still round timers up, which is left out);
// Documentation/networking/ip-sysctl.rst, tcp_retries2, and tcp_rmem, of whose 6 MiB half is for
// headers (tcp_adv_win_scale).
struct TcpSettings {
  Bytes receive_window = mib(3);
  SimTime min_timeout = milliseconds(200);
  SimTime max_timeout = seconds(120);
  SimTime min_probe = milliseconds(2);
  SimTime delayed_ack = milliseconds(40);
  std::int64_t ack_every = 2;    // Packets.
  std::int64_t quick_acks = 16;  // At the start of a connection each packet is answered.
  int duplicates = 3;
  int retries = 15;
  std::int64_t window = 0;  // Packets of the receiver's window; at least 1.
};

// The bytes of memory that a socket may have below it, in queue and adapter of its host, before it
// waits: TCP small queues (Linux, net/ipv4/tcp_output.c, tcp_small_queue_check() and
// tcp_update_pacing_rate()). `pace` is what its control paces it at, in bytes a second; otherwise
// twice its window in a round trip, as in slow start (after it Linux has 1.2 times). Twice as much
// for what is sent again.
[[nodiscard]] double small_queue(double pace, double memory_of_packet, bool is_again);
// A packet takes of it its payload, and sk_buff (256 B), skb_shared_info (320 B) and the buffer of
// headers (384 B) of Linux 6 on 64 bits. Hosts that cut segments in the adapter need less; how much
// is not modelled.
inline constexpr double kMemoryAround = 960.0;
inline constexpr double kPacingRatio = 2.0;  // Linux, tcp_pacing_ss_ratio.

// A timer that goes off tells of this: nothing is heard, a packet is known to be lost, or the last
// one is sent again to hear something.
enum class Expiry : std::uint8_t { Timeout, Loss, Probe };

class TcpSender {
 public:
  void post(std::int64_t packets) { end_ += static_cast<Psn>(packets); }

  [[nodiscard]] bool can_send(const TcpSettings& settings) const {
    return !has_failed_ && (lost_ > 0 || (next_ < end_ && in_flight() < settings.window));
  }
  // The packet that send() would send; there must be one.
  [[nodiscard]] Psn next() const;
  Psn send(const TcpSettings& settings, SimTime now);

  // Everything before `upto` has come, and `received`. How many packets more are before `upto`.
  std::int64_t on_ack(const TcpSettings& settings, Psn upto, Psn received, SimTime now);
  // Must be called when deadline() has come.
  Expiry on_timeout(const TcpSettings& settings);
  [[nodiscard]] SimTime deadline() const { return std::min(deadline_, reorder_at_); }
  // Packets that the last call of the two above took for lost.
  [[nodiscard]] std::span<const Psn> newly_lost() const { return newly_lost_; }

  [[nodiscard]] bool is_done() const { return oldest_ == end_; }
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] bool is_recovering() const { return is_recovering_; }
  [[nodiscard]] Psn oldest() const { return oldest_; }
  [[nodiscard]] std::int64_t in_flight() const {
    return static_cast<std::int64_t>(next_ - oldest_);
  }
  [[nodiscard]] std::int64_t resent() const { return resent_; }
  [[nodiscard]] SimTime timeout(const TcpSettings& settings) const;
  // RFC 6298's SRTT; 0 before the first ACK.
  [[nodiscard]] SimTime smoothed_rtt() const { return smoothed_; }

 private:
  struct Record {
    SimTime sent{};
    bool is_received = false;
    bool is_lost = false;
  };

  [[nodiscard]] Record& record(Psn psn) {
    return records_[static_cast<std::size_t>(psn - oldest_)];
  }
  void deliver(Record& record, Psn psn, SimTime now);
  void lose(Psn psn);
  void find_losses(const TcpSettings& settings, SimTime now);
  void measure(SimTime round_trip);
  void arm_probe(const TcpSettings& settings, SimTime now);

  std::deque<Record> records_;  // From oldest_ to next_.
  std::vector<Psn> newly_lost_;
  Psn oldest_ = 0;
  Psn next_ = 0;
  Psn end_ = 0;
  Psn recovery_ = 0;        // Recovery is over when everything before this has come.
  std::int64_t lost_ = 0;   // Packets to be sent again.
  std::int64_t early_ = 0;  // Packets that came out of order and are not before oldest_.
  SimTime newest_{};        // When the last sent of all that have come was sent,
  Psn newest_psn_ = 0;      // which one it was,
  SimTime newest_rtt_{};    // and its round trip.
  SimTime smoothed_{};      // 0: nothing measured yet.
  SimTime variation_{};
  SimTime least_ = SimTime::max();
  SimTime timeout_at_ = SimTime::max();  // The RTO, also while a probe comes before it.
  SimTime deadline_ = SimTime::max();
  SimTime reorder_at_ = SimTime::max();
  std::int64_t resent_ = 0;
  int failures_ = 0;
  bool is_recovering_ = false;
  bool has_probed_ = false;  // Since something new has come.
  bool has_failed_ = false;
};

class TcpReceiver {
 public:
  struct Answer {
    bool is_new = false;
    bool is_sent = false;  // At once; otherwise with a later packet, or after the delay.
    Psn expected = 0;
  };
  Answer on_packet(const TcpSettings& settings, Psn psn);
  [[nodiscard]] Psn expected() const { return expected_; }
  // Packets that have come since the last ACK.
  [[nodiscard]] std::int64_t unanswered() const { return unanswered_; }
  // The delay is over, and the ACK goes out.
  void answer() { unanswered_ = 0; }

 private:
  std::deque<bool> early_;  // Whether expected_ + 1 + i has come.
  Psn expected_ = 0;
  std::int64_t early_count_ = 0;
  std::int64_t unanswered_ = 0;
  std::int64_t answers_ = 0;
};

}  // namespace trainyard
