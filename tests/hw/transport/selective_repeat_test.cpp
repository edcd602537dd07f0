// SPDX-License-Identifier: Apache-2.0
// The rules one by one, and whole transfers over lines that lose and reorder.
#include "support/catch.h"

#include <algorithm>
#include <map>
#include <vector>

#include "hw/transport/selective_repeat.h"
#include "sim/random.h"

namespace trainyard {
namespace {

using namespace literals;

// Packets and answers take 1 to 3 us, so that they overtake one another.
struct RepeatTransfer {
  RepeatTransfer(std::uint64_t seed, std::uint64_t loss)
      : random(seed, "losses"), loss_percent(loss) {}

  bool run(std::int64_t packets) {
    taken.assign(static_cast<std::size_t>(packets), 0);
    sender.post(packets);
    for (now = SimTime(); !sender.is_done() && !sender.has_failed(); now += 100_ns) {
      REQUIRE(now < seconds(1));
      while (!line.empty() && line.begin()->first <= now) {
        receive(line.begin()->second);
        line.erase(line.begin());
      }
      while (!answers.empty() && answers.begin()->first <= now) {
        take(answers.begin()->second);
        answers.erase(answers.begin());
      }
      if (sender.deadline() <= now) {
        sender.on_timeout(settings);
      }
      if (sender.can_send(settings)) {
        const Psn psn = sender.send(settings, now);
        REQUIRE(sender.in_flight() <= settings.window);
        if (random.below(100) >= loss_percent) {
          line.emplace(arrival(), psn);
        }
      }
    }
    return sender.is_done();
  }

  SimTime arrival() {
    return now + 1_us + nanoseconds(static_cast<std::int64_t>(random.below(spread)));
  }

  void receive(Psn psn) {
    const SelectiveReceiver::Answer answer = receiver.on_packet(psn);
    taken[psn] += answer.is_new ? 1 : 0;
    if (random.below(100) >= loss_percent) {
      answers.emplace(arrival(), Answered{answer, psn});
    }
  }

  struct Answered {
    SelectiveReceiver::Answer answer;
    Psn psn = 0;
  };
  void take(const Answered& answered) {
    if (answered.answer.is_nack) {
      sender.on_nack(settings, answered.answer.expected, answered.psn, now);
    } else {
      sender.on_ack(settings, answered.answer.expected, now);
    }
  }

  RandomStream random;
  std::uint64_t loss_percent;
  std::uint64_t spread = 1;
  SelectiveSettings settings{};
  SelectiveSender sender{settings};
  SelectiveReceiver receiver{settings};
  std::multimap<SimTime, Psn> line{};
  std::multimap<SimTime, Answered> answers{};
  std::vector<int> taken{};
  SimTime now{};
};

}  // namespace

TEST_CASE("timeouts of selective repeat leave time for the round trip of a slow path") {
  const SelectiveSettings fast = with_time_for({}, 32_us);
  REQUIRE(fast.short_timeout == 100_us);
  REQUIRE(fast.long_timeout == 320_us);
  const SelectiveSettings slow = with_time_for({}, 2_ms);
  REQUIRE(slow.short_timeout == 6_ms);
  REQUIRE(slow.long_timeout == 20_ms);
}

TEST_CASE("only the holes below the highest packet that came are sent again", "[transport]") {
  const SelectiveSettings settings;
  SelectiveSender sender(settings);
  sender.post(20);
  for (Psn psn = 0; psn < 10; ++psn) {
    REQUIRE(sender.send(settings, 1_us) == psn);
  }
  sender.on_nack(settings, 2, 3, 2_us);
  sender.on_nack(settings, 2, 6, 2_us);
  REQUIRE(sender.is_recovering());
  REQUIRE(sender.send(settings, 3_us) == 2);
  REQUIRE(sender.send(settings, 3_us) == 4);
  REQUIRE(sender.send(settings, 3_us) == 5);
  REQUIRE(sender.send(settings, 3_us) == 10);  // 7 to 9 may still be on their way.
  REQUIRE(sender.resent() == 3);
  REQUIRE(sender.on_ack(settings, 9, 4_us) == 7);
  REQUIRE(sender.is_recovering());
  sender.on_ack(settings, 10, 4_us);
  REQUIRE(!sender.is_recovering());
}

TEST_CASE("a timeout repeats all that nobody acknowledged", "[transport]") {
  const SelectiveSettings settings;
  SelectiveSender sender(settings);
  sender.post(4);
  for (int i = 0; i < 4; ++i) {
    sender.send(settings, SimTime());
  }
  REQUIRE(sender.deadline() == settings.short_timeout);  // Set when one was in flight.
  sender.on_nack(settings, 1, 2, 10_us);
  REQUIRE(sender.deadline() == 10_us + settings.long_timeout);
  REQUIRE(sender.send(settings, 11_us) == 1);
  REQUIRE(!sender.can_send(settings));
  sender.on_timeout(settings);
  REQUIRE(sender.deadline() == SimTime::max());  // Until something is sent again, whenever that is.
  REQUIRE(sender.send(settings, 400_us) == 1);
  REQUIRE(sender.deadline() == 400_us + settings.long_timeout);
  REQUIRE(sender.send(settings, 400_us) == 3);
  REQUIRE(!sender.can_send(settings));
}

TEST_CASE("packets that were trimmed go again before all others, the oldest first, and once",
          "[transport]") {
  SelectiveSettings settings;
  settings.reorder = settings.window;
  SelectiveSender sender(settings);
  sender.post(6);
  for (int i = 0; i < 4; ++i) {
    sender.send(settings, SimTime());
  }
  REQUIRE(sender.on_trimmed(settings, 1, 2, 10_us) == 1);
  REQUIRE(sender.deadline() == 10_us + settings.long_timeout);
  sender.on_trimmed(settings, 1, 1, 10_us);
  sender.on_nack(settings, 1, 3, 11_us);  // Nobody takes 1 for lost because of it.
  REQUIRE(sender.next() == 1);
  REQUIRE(sender.send(settings, 12_us) == 1);
  REQUIRE(sender.send(settings, 12_us) == 2);
  REQUIRE(sender.send(settings, 12_us) == 4);
  REQUIRE(sender.resent() == 2);
  sender.on_trimmed(settings, 1, 2, 13_us);
  sender.on_nack(settings, 1, 2, 14_us);  // It has come after all.
  REQUIRE(sender.send(settings, 15_us) == 5);
  REQUIRE(!sender.can_send(settings));
  sender.on_trimmed(settings, 1, 4, 16_us);
  sender.on_timeout(settings);  // Everything that is missing goes again, 4 with it, once.
  REQUIRE(sender.send(settings, 17_us) == 1);
  REQUIRE(sender.send(settings, 17_us) == 4);
  REQUIRE(sender.send(settings, 17_us) == 5);
  REQUIRE(!sender.can_send(settings));
}

TEST_CASE("packets are taken in any order, each once", "[transport]") {
  const SelectiveSettings settings;
  SelectiveReceiver receiver(settings);
  const auto early = receiver.on_packet(2);
  REQUIRE(early.is_new);
  REQUIRE(early.is_nack);
  REQUIRE(early.expected == 0);
  REQUIRE(!receiver.on_packet(2).is_new);
  REQUIRE(receiver.on_packet(0).expected == 1);
  const auto filled = receiver.on_packet(1);
  REQUIRE(!filled.is_nack);
  REQUIRE(filled.expected == 3);
  REQUIRE(!receiver.on_packet(1).is_new);
}

TEST_CASE("everything arrives once over lines that lose and reorder", "[transport]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed=" << seed);
    RepeatTransfer transfer(seed, seed % 6);
    transfer.spread = seed % 2 == 0 ? 1 : 2000;
    REQUIRE(transfer.run(700));
    REQUIRE(std::all_of(transfer.taken.begin(), transfer.taken.end(),
                        [](int times) { return times == 1; }));
  }
}

TEST_CASE("a loss costs one packet, not all that follow", "[transport]") {
  RepeatTransfer transfer(1, 1);
  REQUIRE(transfer.run(5000));
  REQUIRE(transfer.sender.resent() > 20);
  REQUIRE(transfer.sender.resent() < 150);
}

TEST_CASE("with nothing but losses the sender gives up", "[transport]") {
  RepeatTransfer transfer(1, 100);
  REQUIRE(!transfer.run(10));
  REQUIRE(transfer.sender.has_failed());
}

}  // namespace trainyard
