// SPDX-License-Identifier: Apache-2.0
// The rules one by one, and whole transfers over lines that lose and delay: everything arrives once
// and in order, or the sender says that it failed.
#include "support/catch.h"

#include <deque>

#include "hw/transport/go_back_n.h"
#include "sim/random.h"

namespace trainyard {
namespace {

using namespace literals;
using Reply = Receipt::Reply;

RetrySettings quick() {
  return {.timeout = 20_us};
}

// A line of 1 us each way that loses packets and replies; one packet each 100 ns.
struct Transfer {
  explicit Transfer(std::uint64_t seed) : random(seed, "losses") {}

  bool run(std::int64_t packets, std::uint64_t loss_percent) {
    sender.post(packets);
    for (now = SimTime(); !sender.is_done() && !sender.has_failed(); now += 100_ns) {
      REQUIRE(now < seconds(1));
      deliver(packets, loss_percent);
      while (!replies.empty() && replies.front().at <= now) {
        take_reply();
      }
      if (sender.deadline() <= now) {
        sender.on_timeout(settings);
      }
      if (sender.can_send(settings)) {
        const Psn psn = sender.send(settings, now);
        if (random.below(100) >= loss_percent) {
          line.push_back({now + 1_us, psn, {}});
        }
      }
    }
    return sender.is_done();
  }

  void deliver(std::int64_t packets, std::uint64_t loss_percent) {
    while (!line.empty() && line.front().at <= now) {
      const Psn psn = line.front().psn;
      line.pop_front();
      const bool is_last = psn + 1 == static_cast<Psn>(packets);
      const Receipt receipt = receiver.on_packet(psn, is_last, 16);
      if (receipt.is_new) {
        REQUIRE(psn == delivered);
        ++delivered;
      }
      if (receipt.reply != Reply::None && random.below(100) >= loss_percent) {
        replies.push_back({now + 1_us, receipt.expected, receipt.reply});
      }
    }
  }

  void take_reply() {
    const Item reply = replies.front();
    replies.pop_front();
    if (reply.reply == Reply::Ack) {
      sender.on_ack(settings, reply.psn, now);
    } else {
      sender.on_nak(settings, reply.psn, now);
    }
  }

  struct Item {
    SimTime at{};
    Psn psn = 0;
    Reply reply = Reply::None;
  };
  RandomStream random;
  RetrySettings settings = quick();
  GoBackNSender sender;
  GoBackNReceiver receiver;
  std::deque<Item> line;
  std::deque<Item> replies;
  Psn delivered = 0;
  SimTime now{};
};

}  // namespace

TEST_CASE("timeouts are 4.096 us times a power of two", "[transport]") {
  REQUIRE(retransmission_timeout(14).microseconds() == Approx(67'108.864));
  REQUIRE(retransmission_timeout(20).seconds() == Approx(4.294967296));
  REQUIRE(retransmission_timeout(0) == SimTime::max());
}

TEST_CASE("a gap is answered by one NAK, then by silence until it is filled", "[transport]") {
  GoBackNReceiver receiver;
  REQUIRE(receiver.on_packet(0, false, 0).reply == Reply::None);
  const Receipt gap = receiver.on_packet(2, true, 0);
  REQUIRE(gap.reply == Reply::Nak);
  REQUIRE(gap.expected == 1);
  REQUIRE(!gap.is_new);
  REQUIRE(receiver.on_packet(3, true, 0).reply == Reply::None);
  REQUIRE(receiver.on_packet(1, false, 0).is_new);
  REQUIRE(receiver.on_packet(3, false, 0).reply == Reply::Nak);  // A gap of its own.
  const Receipt duplicate = receiver.on_packet(0, false, 0);
  REQUIRE(duplicate.reply == Reply::Ack);
  REQUIRE(duplicate.expected == 2);
  REQUIRE(!duplicate.is_new);
}

TEST_CASE("ACKs come for packets that ask, and after so many that do not", "[transport]") {
  GoBackNReceiver receiver;
  int acks = 0;
  for (Psn psn = 0; psn < 40; ++psn) {
    acks += receiver.on_packet(psn, psn == 5, 16).reply == Reply::Ack ? 1 : 0;
  }
  REQUIRE(acks == 3);  // After 5, 21 and 37.
}

TEST_CASE("a NAK goes back to the gap, and to what followed", "[transport]") {
  const RetrySettings settings = quick();
  GoBackNSender sender;
  sender.post(10);
  for (Psn psn = 0; psn < 8; ++psn) {
    REQUIRE(sender.send(settings, 1_us) == psn);
  }
  sender.on_nak(settings, 3, 2_us);
  REQUIRE(!sender.has_failed());
  REQUIRE(sender.oldest() == 3);
  for (Psn psn = 3; psn < 10; ++psn) {
    REQUIRE(sender.send(settings, 3_us) == psn);
  }
  REQUIRE(sender.resent() == 5);
  REQUIRE(!sender.can_send(settings));
  REQUIRE(sender.on_ack(settings, 10, 4_us) == 7);
  REQUIRE(sender.is_done());
  REQUIRE(sender.deadline() == SimTime::max());
}

TEST_CASE("the window bounds what is in flight", "[transport]") {
  RetrySettings settings = quick();
  settings.window = 4;
  GoBackNSender sender;
  sender.post(10);
  for (int i = 0; i < 4; ++i) {
    sender.send(settings, 1_us);
  }
  REQUIRE(!sender.can_send(settings));
  sender.on_ack(settings, 1, 2_us);
  REQUIRE(sender.can_send(settings));
}

TEST_CASE("a line that is cut ends in an error after the retries", "[transport]") {
  const RetrySettings settings = quick();
  GoBackNSender sender;
  sender.post(3);
  sender.send(settings, SimTime());
  SimTime now;
  int timeouts = 0;
  while (!sender.has_failed()) {
    now = sender.deadline();
    REQUIRE(now == 20_us * (timeouts + 1));
    ++timeouts;
    sender.on_timeout(settings);
    if (sender.can_send(settings)) {
      REQUIRE(sender.send(settings, now) == 0);
    }
  }
  REQUIRE(timeouts == 8);  // Seven retries.
  REQUIRE(sender.deadline() == SimTime::max());
  REQUIRE(!sender.can_send(settings));
}

TEST_CASE("everything arrives once and in order over a line that loses both ways", "[transport]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed=" << seed);
    Transfer transfer(seed);
    const bool is_done = transfer.run(500, seed % 6);
    REQUIRE(is_done);
    REQUIRE(transfer.delivered == 500);
    REQUIRE((seed % 6 != 0 || transfer.sender.resent() == 0));
  }
  Transfer cut(1);
  REQUIRE(!cut.run(10, 100));
}

}  // namespace trainyard
