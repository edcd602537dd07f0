// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "hw/control/control_terms.h"

namespace trainyard {

using namespace literals;

TEST_CASE("a round trip at line rate is at least a packet", "[transport]") {
  PortTerms port{.line = gigabits_per_second(400), .base_rtt = 8_us, .packet = Bytes(4178)};
  REQUIRE(bdp(port) == Bytes(400'000));
  port.line = gigabits_per_second(1);
  REQUIRE(bdp(port) == Bytes(4178));
}

TEST_CASE("a rate is absolute, or grows with that of the port", "[transport]") {
  const RateRule fixed{.rate = Bandwidth(40'000'000)};
  REQUIRE(fixed.at(gigabits_per_second(400)) == Bandwidth(40'000'000));
  const RateRule growing{.rate = Bandwidth(5'000'000), .per = gigabits_per_second(25)};
  REQUIRE(growing.at(gigabits_per_second(400)) == Bandwidth(80'000'000));
  REQUIRE(growing.at(Bandwidth(1000)) == Bandwidth(1));
}

TEST_CASE("an ACK answers packets, or as many as hold a number of bytes", "[transport]") {
  REQUIRE(ControlTraits().packets_for_ack(Bytes(4178)) == 0);
  REQUIRE(!ControlTraits().needs_acks());
  REQUIRE(ControlTraits{.packets_per_ack = 16}.packets_for_ack(Bytes(4178)) == 16);
  const ControlTraits segment{.bytes_per_ack = Bytes(16'384)};
  REQUIRE(segment.needs_acks());
  REQUIRE(segment.packets_for_ack(Bytes(4178)) == 4);
  REQUIRE(segment.packets_for_ack(Bytes(4096)) == 4);
  REQUIRE(segment.packets_for_ack(Bytes(4095)) == 5);
}

}  // namespace trainyard
