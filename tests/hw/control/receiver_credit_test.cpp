// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <vector>

#include "hw/control/receiver_credit.h"
#include "sim/random.h"

namespace trainyard {

using namespace literals;

namespace {

CreditSettings hundred_gigabits() {
  return {.line = gigabits_per_second(100),
          .quantum = Bytes(4096),
          .window = Bytes(65'536),
          .speculative = Bytes(10'000)};
}

}  // namespace

TEST_CASE("grants come at the line rate, in turn", "[transport]") {
  CreditSettings settings = hundred_gigabits();
  settings.window = mib(100);
  CreditPacer pacer(settings);
  REQUIRE(pacer.deadline() == SimTime::max());
  for (std::uint32_t flow = 0; flow < 4; ++flow) {
    pacer.request(flow, Bytes(1'000'000));
  }
  std::vector<std::int64_t> granted(4);
  const SimTime each = transfer_time(Bytes(4096), settings.line);
  for (int i = 0; i < 400; ++i) {
    REQUIRE(pacer.deadline() == each * i);
    REQUIRE(!pacer.grant(pacer.deadline() - picoseconds(1)).has_value());
    granted[pacer.grant(pacer.deadline())->flow] += 4096;
  }
  REQUIRE(granted == std::vector<std::int64_t>(4, 409'600));
}

TEST_CASE("no more than the window is granted and on its way", "[transport]") {
  const CreditSettings settings = hundred_gigabits();
  CreditPacer pacer(settings);
  pacer.request(7, mib(1));
  int grants = 0;
  while (pacer.deadline() < 100_us) {
    REQUIRE(pacer.grant(pacer.deadline()).has_value());
    ++grants;
  }
  REQUIRE(grants == 16);
  REQUIRE(pacer.outstanding() <= settings.window);
  pacer.on_received(7, Bytes(4096), seconds(2));
  REQUIRE(pacer.grant(seconds(2)).has_value());
}

TEST_CASE("what is asked for is granted, byte by byte, whoever asks when", "[transport]") {
  const CreditSettings settings = hundred_gigabits();
  RandomStream random(2, "credit");
  CreditPacer pacer(settings);
  std::vector<std::int64_t> open(20);
  SimTime now;
  for (int i = 0; i < 3000; ++i) {
    if (random.below(3) == 0) {
      const auto flow = static_cast<std::uint32_t>(random.below(open.size()));
      const auto size = static_cast<std::int64_t>(random.below(10'000));
      pacer.request(flow, Bytes(size));
      open[flow] += size;
    }
    now += nanoseconds(500);
    while (const auto grant = pacer.grant(now)) {
      open[grant->flow] -= grant->size.count();
      REQUIRE(open[grant->flow] >= 0);
      pacer.on_received(grant->flow, grant->size, now);
    }
  }
  while (pacer.deadline() != SimTime::max()) {
    const auto grant = pacer.grant(pacer.deadline());
    open[grant->flow] -= grant->size.count();
    pacer.on_received(grant->flow, grant->size, pacer.deadline());
  }
  REQUIRE(open == std::vector<std::int64_t>(20, 0));
  REQUIRE(pacer.outstanding() == Bytes(0));
}

TEST_CASE("what does not come for long enough is taken for lost, and counts once if it does",
          "[transport]") {
  const CreditSettings settings = hundred_gigabits();
  CreditPacer pacer(settings);
  pacer.expect(1, Bytes(100'000), 0_us);
  pacer.request(2, Bytes(100'000));
  REQUIRE(pacer.deadline() == settings.patience);
  pacer.on_received(1, Bytes(10'000), 5_us);
  REQUIRE(pacer.deadline() == 5_us + settings.patience);
  pacer.request(1, Bytes(50'000));
  REQUIRE(pacer.grant(pacer.deadline())->flow == 2);
  REQUIRE(pacer.outstanding() == Bytes(4096));
  REQUIRE(pacer.grant(pacer.deadline())->flow == 2);  // The other one is silent,
  pacer.on_received(2, Bytes(4096), 390_us);
  pacer.on_received(1, Bytes(90'000), 400_us);  // and now it is not.
  REQUIRE(pacer.outstanding() == Bytes(4096));
  pacer.expect(1, Bytes(5'000), 400_us);
  REQUIRE(pacer.outstanding() == Bytes(9096));
  // What comes before it is announced is not expected any more when it is.
  pacer.on_received(3, Bytes(7'000), 410_us);
  REQUIRE(pacer.outstanding() == Bytes(9096));
  pacer.expect(3, Bytes(8'000), 411_us);
  REQUIRE(pacer.outstanding() == Bytes(10'096));
}

TEST_CASE("what is lost is written off although others ask again all the time", "[transport]") {
  const CreditSettings settings = hundred_gigabits();
  CreditPacer pacer(settings);
  pacer.request(0, mib(1));
  while (pacer.deadline() < 100_us) {
    REQUIRE(pacer.grant(pacer.deadline())->flow == 0);
  }
  REQUIRE(pacer.outstanding() == settings.window);  // Of which nothing ever comes.
  pacer.request(1, Bytes(4096));
  SimTime now;
  while (pacer.deadline() > now) {
    now += 50_us;
    pacer.expect(1, Bytes(0), now);  // A request that is repeated.
    REQUIRE(now < settings.patience * 2);
  }
  REQUIRE(pacer.grant(now)->flow == 1);
}

TEST_CASE("an idle sender begins without a grant, once for a burst, and asks for the rest",
          "[transport]") {
  const CreditSettings settings = hundred_gigabits();
  CreditSender sender(settings);
  REQUIRE(!sender.can_send());
  sender.add(Bytes(8'000), Bytes(0));
  sender.add(Bytes(8'000), Bytes(0));
  REQUIRE(sender.unasked() == 10'000);
  REQUIRE(sender.asked() == 6'000);
  REQUIRE(sender.is_waiting());
  for (const std::int64_t size : {4178, 3822, 4178}) {
    sender.spend(Bytes(size));
  }
  REQUIRE(sender.available() == Bytes(-2178));
  REQUIRE(!sender.can_send());
  sender.on_credit(Bytes(4096));
  REQUIRE(sender.can_send());
  sender.on_credit(Bytes(1904));
  REQUIRE(!sender.is_waiting());
  sender.spend(Bytes(3822));
  REQUIRE(sender.available() == Bytes(0));
  // Idle again, with less on its way than it may have.
  sender.add(Bytes(8'000), Bytes(4'000));
  REQUIRE(sender.unasked() == 16'000);
  REQUIRE(sender.asked() == 8'000);
}

}  // namespace trainyard
