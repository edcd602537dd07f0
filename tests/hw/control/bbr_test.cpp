// SPDX-License-Identifier: Apache-2.0
// BBR and its kin at a queue of one bandwidth-delay product, 40 packets: 1000 packets a second and
// 40 ms, with hosts that are ten times as fast.
#include "support/catch.h"

#include <cstddef>

#include "hw/control/bbr.h"
#include "hw/control/cubic.h"
#include "hw/control/reno.h"
#include "support/tcp_queue.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr PortTerms kBbrPort{
    .line = Bandwidth(123'040'000), .base_rtt = milliseconds(40), .packet = Bytes(1538)};

template <typename Control>
typename TcpQueue<Control>::Setup setup_of(std::size_t flows) {
  return {.settings = Control::settings(typename Control::Profile(), kBbrPort),
          .port = kBbrPort,
          .bottleneck = Bandwidth(12'304'000),
          .flows = flows,
          .room = 40,
          .stagger = 70_ms};
}

template <typename Control>
void require_use(std::size_t flows, double fairness) {
  TcpQueue<Control> queue(setup_of<Control>(flows));
  queue.run(2_s);
  queue.restart();
  queue.run(4_s);
  INFO(Control::kName << ", " << flows << " flows: " << queue.utilisation() << " of the line, Jain "
                      << queue.fairness());
  REQUIRE(queue.utilisation() > 0.97);
  REQUIRE(queue.fairness() > fairness);
}

}  // namespace

TEST_CASE("one flow of Reno, CUBIC or BBR fills a line with a queue of line rate x round trip",
          "[transport]") {
  require_use<RenoControl>(1, 0.99);
  require_use<CubicControl>(1, 0.99);
  require_use<BbrControl>(1, 0.99);
}

TEST_CASE("BBR finds the rate of the bottleneck and the idle round trip", "[transport]") {
  TcpQueue<BbrControl> queue(setup_of<BbrControl>(1));
  queue.run(3_s);
  const Bbr& flow = queue.sender(0);
  REQUIRE(flow.mode() == BbrMode::ProbeBandwidth);
  REQUIRE(flow.bandwidth() * 8e12 == Approx(12'304'000.0).epsilon(0.03));
  REQUIRE(flow.least_rtt() < 44_ms);
  REQUIRE(flow.window() > kBbrPort.packet * 80);  // 2 B T, and six packets for bursts.
  REQUIRE(flow.window() < kBbrPort.packet * 94);
}

TEST_CASE("two and eight flows of Reno or CUBIC share a line, and two of BBR", "[transport]") {
  for (const std::size_t flows : {2U, 8U}) {
    require_use<RenoControl>(flows, 0.95);
    require_use<CubicControl>(flows, 0.93);
  }
  require_use<BbrControl>(2, 0.95);
}

// Until then those that began late take the queue that they found for the round trip.
TEST_CASE("eight flows of BBR share a line once they have measured the idle round trip together",
          "[transport]") {
  for (const std::size_t room : {20U, 40U, 320U}) {
    TcpQueue<BbrControl>::Setup setup = setup_of<BbrControl>(8);
    setup.room = room;
    TcpQueue<BbrControl> queue(setup);
    queue.run(4_s);
    REQUIRE(queue.sender(7).least_rtt() > 50_ms);
    queue.run(30_s);
    queue.restart();
    queue.run(60_s);
    INFO(room << " packets: " << queue.utilisation() << ", Jain " << queue.fairness());
    REQUIRE(queue.sender(7).least_rtt() < 44_ms);
    REQUIRE(queue.utilisation() > 0.97);
    REQUIRE(queue.fairness() > 0.95);
  }
}

TEST_CASE("BBR keeps the rate of a flow that has one packet under way at a time", "[transport]") {
  const BbrSettings settings = BbrControl::settings(BbrProfile(), kBbrPort);
  Bbr flow(settings);
  for (std::uint64_t packet = 1; packet <= 100; ++packet) {
    flow.on_ack({.now = milliseconds(50) * static_cast<std::int64_t>(packet),
                 .rtt = 40_ms,
                 .acked = packet * 1538,
                 .next = packet * 1538,
                 .size = kBbrPort.packet});
    REQUIRE(flow.bandwidth() == Approx(1538.0 / (40_ms).real_picoseconds()));
  }
}

}  // namespace trainyard
