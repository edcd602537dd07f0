// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <vector>

#include "hw/receiver_credit.h"
#include "sim/random.h"

namespace trainyard {
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
  while (pacer.deadline() != SimTime::max()) {
    REQUIRE(pacer.grant(pacer.deadline()).has_value());
    ++grants;
  }
  REQUIRE(grants == 16);
  REQUIRE(!pacer.grant(seconds(2)).has_value());
  REQUIRE(pacer.outstanding() <= settings.window);
  pacer.on_received(Bytes(4096));
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
      pacer.on_received(grant->size);
    }
  }
  while (pacer.deadline() != SimTime::max()) {
    const auto grant = pacer.grant(pacer.deadline());
    open[grant->flow] -= grant->size.count();
    pacer.on_received(grant->size);
  }
  REQUIRE(open == std::vector<std::int64_t>(20, 0));
  REQUIRE(pacer.outstanding() == Bytes(0));
}

TEST_CASE("a sender spends grants first, then its first window, then waits", "[transport]") {
  const CreditSettings settings = hundred_gigabits();
  CreditSender sender(settings);
  REQUIRE(sender.can_send(Bytes(4178)));
  sender.on_credit(Bytes(4178));
  REQUIRE(!sender.spend(Bytes(4178)));
  REQUIRE(sender.spend(Bytes(4178)));
  REQUIRE(sender.spend(Bytes(4178)));
  REQUIRE(!sender.can_send(Bytes(4178)));
  REQUIRE(sender.available() == Bytes(10'000 - 2 * 4178));
}

}  // namespace trainyard
