// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "network/packet_parts/packet_losses.h"

#include <cmath>
#include <vector>

namespace trainyard {
namespace {

TEST_CASE("the chance to lose a packet keeps its digits for the smallest rates") {
  for (const double rate : {1e-18, 1e-15, 1e-12, 1e-9, 3e-5, 0.01, 0.5}) {
    for (const std::int64_t bits : {0, 1, 2, 3, 512, 33'263, 524'287}) {
      const double exact = -std::expm1(static_cast<double>(bits) * std::log1p(-rate));
      INFO("rate=" << rate << " bits=" << bits);
      REQUIRE(packet_error_rate(rate, bits) == Approx(exact).epsilon(1e-12).margin(0.0));
    }
  }
}

TEST_CASE("packets are lost as often as their bits say, whatever other links carry") {
  PacketLosses losses(3);
  losses.set_bit_error_rate(LinkId(4), 1e-6);
  losses.set_bit_error_rate(LinkId(5), 1e-5);
  REQUIRE(losses.is_active());
  constexpr int kPackets = 200'000;
  std::vector<bool> lost;
  for (int i = 0; i < kPackets; ++i) {
    lost.push_back(losses.loses(LinkId(4), 4158, i));
    static_cast<void>(losses.loses(LinkId(5), 64 + i % 7, i));
    REQUIRE(!losses.loses(LinkId(6), 4158, i));
  }
  const double chance = packet_error_rate(1e-6, 8 * 4158);
  const double expected = chance * kPackets;
  const auto counted = static_cast<double>(losses.tally(LinkId(4)).bit_errors);
  REQUIRE(std::abs(counted - expected) < 5 * std::sqrt(expected));
  REQUIRE(losses.tally(LinkId(5)).bit_errors > 0);
  REQUIRE(losses.tally().bit_errors ==
          losses.tally(LinkId(4)).bit_errors + losses.tally(LinkId(5)).bit_errors);

  PacketLosses alone(3);
  alone.set_bit_error_rate(LinkId(4), 1e-6);
  for (int i = 0; i < kPackets; ++i) {
    REQUIRE(alone.loses(LinkId(4), 4158, i) == lost[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("a share of packets is lost whatever their size, beside what bits say") {
  PacketLosses losses(3);
  losses.set_bit_error_rate(LinkId(4), 0.0, 0.01);
  losses.set_bit_error_rate(LinkId(5), 1e-6, 0.5);
  constexpr int kPackets = 100'000;
  for (int i = 0; i < kPackets; ++i) {
    static_cast<void>(losses.loses(LinkId(4), i % 2 == 0 ? 70 : 1518, i));
    static_cast<void>(losses.loses(LinkId(5), 1518, i));
  }
  const auto counted = [&](std::uint32_t link) {
    return static_cast<double>(losses.tally(LinkId(link)).bit_errors);
  };
  REQUIRE(std::abs(counted(4) - 1'000) < 5 * std::sqrt(1'000));
  const double chance = 0.5 + 0.5 * packet_error_rate(1e-6, 8 * 1518);
  REQUIRE(std::abs(counted(5) - chance * kPackets) < 5 * std::sqrt(0.25 * kPackets));
}

TEST_CASE("a cable that fails loses what has not arrived") {
  PacketLosses losses(1);
  REQUIRE(!losses.is_active());
  losses.fail(LinkId(2), 1000);
  losses.fail(LinkId(2), 2000);
  REQUIRE(losses.fails_at(LinkId(2)) == 1000);
  REQUIRE(losses.fails_at(LinkId(3)) == kNeverTime);
  REQUIRE(!losses.loses(LinkId(2), 64, 1000));
  REQUIRE(losses.loses(LinkId(2), 64, 1001));
  REQUIRE(losses.tally(LinkId(2)).link_down == 1);
  REQUIRE(losses.tally(LinkId(3)).link_down == 0);
}

}  // namespace
}  // namespace trainyard
