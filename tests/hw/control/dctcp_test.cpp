// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "hw/control/dctcp.h"

namespace trainyard {
namespace {

DctcpSettings of_hundred_packets() {
  DctcpSettings settings;
  settings.first_window = Bytes(409'600);
  return settings;
}

// A window of a hundred packets, of which the first `marked` are marked. Ends the window before it.
void run_window(Dctcp& dctcp, std::uint64_t& acked, int marked) {
  constexpr int kPackets = 100;
  for (int i = 0; i < kPackets; ++i) {
    acked += 4096;
    dctcp.on_ack(acked, acked + 99 * std::uint64_t{4096}, Bytes(4096), i < marked);
  }
}

}  // namespace

TEST_CASE("alpha comes to the share of marked bytes", "[transport]") {
  const DctcpSettings settings = of_hundred_packets();
  for (const int marked : {0, 25, 100}) {
    Dctcp dctcp(settings);
    std::uint64_t acked = 0;
    for (int i = 0; i < 200; ++i) {
      run_window(dctcp, acked, marked);
    }
    REQUIRE(dctcp.alpha() == Approx(marked / 100.0).margin(0.001));
  }
}

TEST_CASE("a window is cut by half of alpha once, and grows by a packet without marks",
          "[transport]") {
  const DctcpSettings settings = of_hundred_packets();
  Dctcp dctcp(settings);
  REQUIRE(dctcp.window() == Bytes(409'600));
  dctcp.on_ack(4096, 8192, Bytes(4096), true);  // Cut, and the window ends.
  REQUIRE(dctcp.window() == Bytes(204'800));
  REQUIRE(dctcp.alpha() == 1.0);
  dctcp.on_ack(8192, 20'000, Bytes(4096), true);
  REQUIRE(dctcp.window() == Bytes(102'400));
  dctcp.on_ack(8192, 20'000, Bytes(0), true);  // Of the same window.
  REQUIRE(dctcp.window() == Bytes(102'400));
  dctcp.on_ack(12'288, 20'000, Bytes(4096), false);
  dctcp.on_ack(24'576, 30'000, Bytes(4096), false);
  REQUIRE(dctcp.window() == Bytes(106'496));
}

TEST_CASE("the window stays between one packet and the first", "[transport]") {
  const DctcpSettings settings = of_hundred_packets();
  Dctcp dctcp(settings);
  std::uint64_t acked = 0;
  for (int i = 0; i < 50; ++i) {
    run_window(dctcp, acked, 100);
  }
  REQUIRE(dctcp.window() == Bytes(4096));
  for (int i = 0; i < 200; ++i) {
    run_window(dctcp, acked, 0);
  }
  REQUIRE(dctcp.window() == Bytes(409'600));
}

TEST_CASE("with slow start a flow begins with ten packets and doubles up to the first mark",
          "[transport]") {
  DctcpSettings settings = of_hundred_packets();
  settings.slow_start = true;
  Dctcp dctcp(settings);
  REQUIRE(dctcp.window() == Bytes(40'960));
  std::uint64_t acked = 0;
  const auto ack = [&](bool is_marked) {
    acked += 4096;
    dctcp.on_ack(acked, acked + 40'960, Bytes(4096), is_marked);
  };
  for (int i = 0; i < 10; ++i) {
    ack(false);
  }
  REQUIRE(dctcp.window() == Bytes(81'920));
  ack(true);
  const Bytes cut = dctcp.window();
  REQUIRE(cut < Bytes(81'920));
  ack(false);
  ack(false);
  REQUIRE(dctcp.window() <= cut + Bytes(4096));
}

}  // namespace trainyard
