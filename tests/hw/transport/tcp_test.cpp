// SPDX-License-Identifier: Apache-2.0
// The rules of TCP one by one, and whole transfers over a line that loses packets and ACKs.
#include "support/catch.h"

#include "hw/transport/tcp.h"

#include <deque>
#include <utility>
#include <vector>

#include "sim/random.h"

namespace trainyard {
namespace {

using namespace literals;

// Sends `packets` at 0, 1, 2, ... us.
TcpSender sender_of(std::int64_t packets, const TcpSettings& settings) {
  TcpSender sender;
  sender.post(packets);
  for (std::int64_t i = 0; i < packets; ++i) {
    static_cast<void>(sender.send(settings, microseconds(i)));
  }
  return sender;
}

// A line of 1 ms each way without overtaking. Whether all packets came, each once.
bool transfer(std::uint64_t seed, std::uint64_t loss_percent, std::int64_t packets) {
  const TcpSettings settings{.window = 20};
  RandomStream random(seed, "losses");
  const auto is_lost = [&] { return random.below(100) < loss_percent; };
  TcpSender sender;
  TcpReceiver receiver;
  std::deque<std::pair<SimTime, Psn>> line;
  std::deque<std::pair<SimTime, std::pair<Psn, Psn>>> answers;
  SimTime delay_end = SimTime::max();
  Psn last = 0;
  std::int64_t taken = 0;
  sender.post(packets);
  for (SimTime now; !sender.is_done() && !sender.has_failed(); now += 100_us) {
    REQUIRE(now < seconds(10'000));
    for (; !line.empty() && line.front().first <= now; line.pop_front()) {
      last = line.front().second;
      const TcpReceiver::Answer answer = receiver.on_packet(settings, last);
      taken += answer.is_new ? 1 : 0;
      delay_end = answer.is_sent ? SimTime::max() : now + settings.delayed_ack;
      if (answer.is_sent && !is_lost()) {
        answers.push_back({now + 1_ms, {receiver.expected(), last}});
      }
    }
    if (delay_end <= now && receiver.unanswered() > 0) {
      receiver.answer();
      delay_end = SimTime::max();
      answers.push_back({now + 1_ms, {receiver.expected(), last}});
    }
    for (; !answers.empty() && answers.front().first <= now; answers.pop_front()) {
      const auto [upto, received] = answers.front().second;
      sender.on_ack(settings, upto, received, now);
    }
    if (sender.deadline() <= now) {
      static_cast<void>(sender.on_timeout(settings));
    }
    if (sender.can_send(settings)) {
      const Psn psn = sender.send(settings, now);
      if (!is_lost()) {
        line.push_back({now + 1_ms, psn});
      }
    }
  }
  return sender.is_done() && taken == packets;
}

TEST_CASE("TCP brings every packet once over lines that lose any of them", "[transport]") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (const std::uint64_t loss : {0U, 1U, 10U, 25U}) {
      INFO("seed=" << seed << " loss=" << loss);
      REQUIRE(transfer(seed, loss, 200));
    }
  }
}

TEST_CASE("TCP takes a packet for lost once three later ones have come", "[transport]") {
  const TcpSettings settings{.window = 20};
  TcpSender sender = sender_of(6, settings);
  for (const Psn psn : {1U, 2U}) {
    sender.on_ack(settings, 0, psn, 1_ms);
    REQUIRE_FALSE(sender.is_recovering());  // Nothing has measured a round trip.
  }
  sender.on_ack(settings, 0, 3, 1_ms);
  REQUIRE(sender.is_recovering());
  REQUIRE(sender.can_send(settings));
  REQUIRE(sender.next() == 0);
  REQUIRE(sender.send(settings, 2_ms) == 0);
  REQUIRE_FALSE(sender.can_send(settings));
  REQUIRE(sender.resent() == 1);
  sender.on_ack(settings, 6, 0, 3_ms);
  REQUIRE(sender.is_done());
  REQUIRE_FALSE(sender.is_recovering());
}

// A round trip of 1 ms is known, and packets 1, 2 and 3 are sent at 1, 1.1 and 1.3 ms.
TcpSender sender_of_three(const TcpSettings& settings) {
  TcpSender sender;
  sender.post(4);
  static_cast<void>(sender.send(settings, SimTime()));
  sender.on_ack(settings, 1, 0, 1_ms);
  static_cast<void>(sender.send(settings, 1_ms));
  static_cast<void>(sender.send(settings, 1_ms + 100_us));
  static_cast<void>(sender.send(settings, 1_ms + 300_us));
  return sender;
}

TEST_CASE("TCP waits a quarter of a round trip before a later packet tells of a loss",
          "[transport]") {
  const TcpSettings settings{.window = 20};
  TcpSender sender = sender_of_three(settings);
  sender.on_ack(settings, 1, 2, 2_ms + 100_us);
  REQUIRE_FALSE(sender.is_recovering());
  sender.on_ack(settings, 1, 3, 2_ms + 300_us);  // 1.25 ms after packet 1 was sent.
  REQUIRE(sender.is_recovering());
  REQUIRE(sender.next() == 1);
}

TEST_CASE("TCP looks again for a loss when no later packet comes", "[transport]") {
  const TcpSettings settings{.window = 20};
  TcpSender sender = sender_of_three(settings);
  sender.on_ack(settings, 1, 2, 2_ms + 100_us);
  REQUIRE(sender.deadline() == 2_ms + 250_us + settings.min_probe);
  REQUIRE(sender.on_timeout(settings) == Expiry::Loss);
  REQUIRE(sender.is_recovering());
  REQUIRE(sender.next() == 1);
  REQUIRE(sender.newly_lost().size() == 1);  // Packet 3 was sent later than what has come.
  REQUIRE(sender.deadline() > 200_ms);
}

TEST_CASE("TCP tells packets apart that were sent at one instant", "[transport]") {
  const TcpSettings settings{.window = 20};
  TcpSender sender;
  sender.post(5);
  for (int i = 0; i < 5; ++i) {
    static_cast<void>(sender.send(settings, SimTime()));
  }
  for (const Psn psn : {1U, 2U, 3U}) {
    sender.on_ack(settings, 0, psn, 1_ms);
  }
  REQUIRE(sender.newly_lost().size() == 1);
  REQUIRE(sender.next() == 0);
}

TEST_CASE("TCP's timeout follows the round trip, and doubles after each in vain", "[transport]") {
  const TcpSettings settings{.window = 20};
  TcpSender sender;
  sender.post(2);
  static_cast<void>(sender.send(settings, SimTime()));
  REQUIRE(sender.deadline() == 200_ms);
  sender.on_ack(settings, 1, 0, 10_ms);
  REQUIRE(sender.timeout(settings) == 210_ms);
  static_cast<void>(sender.send(settings, 10_ms));
  // The ACK of a lone packet may be put off, so that the probe for it would come later still.
  REQUIRE(sender.deadline() == 10_ms + 210_ms);
  REQUIRE(sender.on_timeout(settings) == Expiry::Timeout);
  REQUIRE(sender.newly_lost().size() == 1);
  static_cast<void>(sender.send(settings, 220_ms));
  REQUIRE(sender.deadline() == 220_ms + 420_ms);
}

TEST_CASE("a socket keeps a millisecond of its pace below it, and two packets at least",
          "[transport]") {
  REQUIRE(small_queue(1e6, 2408.0, false) == 4816.0);
  REQUIRE(small_queue(10.24e6, 2408.0, false) == Approx(10'000.0));
  REQUIRE(small_queue(10.24e6, 2408.0, true) == Approx(20'000.0));
  REQUIRE(small_queue(1e12, 2408.0, false) == 4'194'304.0);
}

TEST_CASE("TCP probes for the last packets, which no later one tells of", "[transport]") {
  const TcpSettings settings{.window = 20};
  TcpSender sender;
  sender.post(4);
  static_cast<void>(sender.send(settings, SimTime()));
  sender.on_ack(settings, 1, 0, 10_ms);
  for (int i = 0; i < 3; ++i) {
    static_cast<void>(sender.send(settings, 10_ms + microseconds(i)));
  }
  REQUIRE(sender.deadline() == 10_ms + 2_us + 20_ms + 2_ms);
  REQUIRE(sender.on_timeout(settings) == Expiry::Probe);
  REQUIRE(sender.next() == 3);
  static_cast<void>(sender.send(settings, 33_ms));
  sender.on_ack(settings, 1, 3, 43_ms);  // The probe came: what was sent before it is lost.
  REQUIRE(sender.newly_lost().size() == 2);
  REQUIRE(sender.next() == 1);
}

TEST_CASE("TCP answers every second packet, and at once while packets are missing", "[transport]") {
  const TcpSettings settings{.quick_acks = 1, .window = 20};
  TcpReceiver receiver;
  REQUIRE(receiver.on_packet(settings, 0).is_sent);
  REQUIRE_FALSE(receiver.on_packet(settings, 1).is_sent);
  REQUIRE(receiver.unanswered() == 1);
  REQUIRE(receiver.on_packet(settings, 2).is_sent);
  REQUIRE(receiver.on_packet(settings, 4).is_sent);
  REQUIRE(receiver.on_packet(settings, 5).is_sent);
  REQUIRE(receiver.expected() == 3);
  const TcpReceiver::Answer filled = receiver.on_packet(settings, 3);
  REQUIRE(filled.is_sent);
  REQUIRE(filled.expected == 6);
  REQUIRE_FALSE(receiver.on_packet(settings, 5).is_new);
}

}  // namespace
}  // namespace trainyard
