// SPDX-License-Identifier: Apache-2.0
// DCQCN on the packet engine: flows come to equal shares, the queue to where the equations say, and
// both are lost where the literature says so. docs/models/dcqcn.md has the figures.
//
// Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015. Zhu, Ghobadi,
// Misra, Padhye, "ECN or delay: lessons learnt from analysis of DCQCN and TIMELY", CoNEXT 2016.
#include "support/catch.h"

#include <cmath>

#include "network/packet/packet_options.h"
#include "sim/config_error.h"
#include "support/dcqcn_fluid.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/long_incast.h"

namespace trainyard {
namespace {

using namespace literals;

// The paper's parameters at the paper's rate.
LongIncast paper(std::uint32_t flows) {
  LongIncast incast{.flows = flows, .link = fabric_link(gigabits_per_second(40), 1_us)};
  incast.options = roce_options();
  incast.options.rates = RateMeaning::Line;
  incast.options.control = CongestionControl::DcqcnPaper;
  incast.options.ecn = EcnPreset::Dcqcn;
  return incast;
}

// What NICs ship, with the thresholds that belong to 100 Gb/s.
LongIncast nic(std::uint32_t flows) {
  LongIncast incast = paper(flows);
  incast.link = fabric_link(gigabits_per_second(100), 1_us);
  incast.options.control = CongestionControl::DcqcnNic;
  incast.options.ecn = EcnPreset::Hpcc;
  return incast;
}

// Packets of 1000 B on the line, as the fluid model counts them, and no bound on the queue. Flows
// begin one after the other: with all of them at once there would have to be one.
LongIncast fluid_incast(std::uint32_t flows, SimTime latency) {
  LongIncast incast = paper(flows);
  incast.link.latency = latency;
  incast.options.mtu = 918_B;
  incast.options.verb = RdmaVerb::Send;
  incast.spread = 3_ms;
  incast.interval = 20_us;
  return incast;
}

TEST_CASE("over a second or two no flow is more than 5 % away from its fair share", "[dcqcn]") {
  for (const bool is_paper : {false, true}) {
    for (const std::uint32_t flows : {2U, 4U, 16U}) {
      if (kIsSanitized && flows == 16) {
        continue;
      }
      LongIncast incast = is_paper ? paper(flows) : nic(flows);
      incast.interval = 10_ms;
      const SimTime to = flows > 4 ? 2100_ms : 1100_ms;
      const IncastRun run = run_long_incast(incast, to);
      const IncastSummary all = summarise(incast, run, 100_ms, to);
      INFO(flows << " flows, paper " << is_paper << ", error " << all.share_error);
      REQUIRE(all.share_error < 0.05);
      REQUIRE(all.used > 0.995);
      REQUIRE(all.used < 1.005);
      // Rates wander: what is left is noise, larger in shorter times.
      double shorter = 0.0;
      for (SimTime from = 100_ms; from < to; from += 50_ms) {
        const double error = summarise(incast, run, from, from + 50_ms).share_error;
        shorter += error * (50_ms / (to - 100_ms));
        REQUIRE(error < 0.45);
      }
      REQUIRE(shorter > all.share_error);
    }
  }
}

TEST_CASE("flows that come to others have their share a tenth of a second later", "[dcqcn]") {
  for (const bool is_paper : {false, true}) {
    LongIncast incast = is_paper ? paper(4) : nic(4);
    incast.starts = {0_ms, 100_ms, 200_ms, 300_ms};
    incast.interval = 1_ms;
    const IncastRun run = run_long_incast(incast, 500_ms);
    for (std::uint32_t flows = 2; flows <= 4; ++flows) {
      INFO("paper " << is_paper << ", " << flows << " flows");
      const SimTime start = 100_ms * (flows - 1);
      const IncastSummary later = summarise(incast, run, start + 80_ms, start + 100_ms);
      for (std::uint32_t flow = 0; flow < flows; ++flow) {
        const double fair = 1.0 / flows;
        const double share =
            later.rates[flow] / static_cast<double>(incast.link.bandwidth.bits_per_second());
        REQUIRE(share > 0.75 * fair);
        REQUIRE(share < 1.3 * fair);
      }
    }
  }
}

TEST_CASE("when another flow ends, steps of the additive and hyper increase lead to the line rate",
          "[dcqcn]") {
  for (const bool is_paper : {false, true}) {
    LongIncast incast = is_paper ? paper(2) : nic(2);
    const auto line = static_cast<double>(incast.link.bandwidth.bits_per_second());
    incast.sizes = {Bytes(std::llround(0.05 * line / 8))};  // 100 ms of half of the line.
    incast.interval = 1_ms;
    const IncastRun run = run_long_incast(incast, 300_ms);
    SimTime ended;
    SimTime back;
    double before = 0.0;
    for (std::size_t i = 1; i < run.samples.size(); ++i) {
      const IncastSample& now = run.samples[i];
      if (ended == SimTime() && now.sent[0] == run.samples[i - 1].sent[0]) {
        ended = now.time;
        before = now.rates[1];
      }
      if (ended > SimTime() && back == SimTime() && now.rates[1] > 0.95 * line) {
        back = now.time;
      }
    }
    INFO("paper " << is_paper << ": " << to_string(back - ended));
    REQUIRE(ended > 80_ms);
    REQUIRE(back > ended);
    const DcqcnSettings settings = dcqcn_settings(incast.options.control, incast.link.bandwidth);
    if (is_paper) {
      // Additive alone would take this long; hyper increase begins after five times 10 MB.
      const double additive =
          (0.95 * line - before) / static_cast<double>(settings.additive.bits_per_second());
      REQUIRE((back - ended).seconds() < additive * settings.rate_timer.seconds());
      REQUIRE(back - ended > 10_ms);
    } else {
      const double hyper =
          (0.95 * line - before) / static_cast<double>(settings.hyper.bits_per_second());
      REQUIRE((back - ended).seconds() ==
              Approx(hyper * settings.rate_timer.seconds()).epsilon(0.1));
    }
  }
}

TEST_CASE("a long incast keeps its queue between empty and Kmax, and the link busy", "[dcqcn]") {
  for (const bool is_paper : {false, true}) {
    for (const std::uint32_t flows : {2U, 4U, 8U, 16U}) {
      LongIncast incast = is_paper ? paper(flows) : nic(flows);
      incast.spread = 1_ms;
      const RedProfile red = red_profile(incast.options.ecn, incast.link.bandwidth);
      const IncastRun run = run_long_incast(incast, 300_ms);
      const IncastSummary later = summarise(incast, run, 100_ms, 300_ms);
      INFO("paper " << is_paper << ", " << flows << " flows, queue " << later.queue_mean);
      REQUIRE(run.stats.drops == 0);
      REQUIRE(later.queue_mean > 0.2 * static_cast<double>(red.kmin.count()));
      REQUIRE(later.queue_mean < static_cast<double>(red.kmax.count()));
      REQUIRE(static_cast<double>(later.queue_max) < 1.15 * static_cast<double>(red.kmax.count()));
      REQUIRE(later.used > 0.99);
    }
  }
}

DcqcnFluid fluid_of(const LongIncast& incast) {
  const DcqcnSettings settings = dcqcn_settings(incast.options.control, incast.link.bandwidth);
  const RedProfile red = red_profile(incast.options.ecn, incast.link.bandwidth);
  return {.line = incast.link.bandwidth,
          .additive = settings.additive,
          .hyper = settings.hyper,
          .byte_counter = settings.byte_counter,
          .rate_timer = settings.rate_timer,
          .cnp_interval = cnp_interval(incast.options.control),
          .alpha_interval = settings.alpha_interval,
          .threshold = settings.threshold,
          .packet = 1000_B,
          .kmin = red.kmin,
          .kmax = red.kmax,
          .pmax = red.pmax};
}

TEST_CASE(
    "the mean queue is where a flow gets its rate back from CNP to CNP, a quarter above that "
    "of the fluid model",
    "[dcqcn]") {
  for (const std::uint32_t flows : {2U, 4U, 8U}) {
    if (kIsSanitized && flows > 2) {
      continue;
    }
    const LongIncast incast = fluid_incast(flows, 1_us);
    const DcqcnFluid fluid = fluid_of(incast);
    const auto number = static_cast<int>(flows);
    const IncastRun run = run_long_incast(incast, 1100_ms);
    const double queue = summarise(incast, run, 100_ms, 1100_ms).queue_mean;
    INFO(flows << " flows, queue " << queue);
    REQUIRE(queue == Approx(dcqcn_cycle_point(fluid, number).queue).epsilon(0.06));
    REQUIRE(queue > 1.18 * dcqcn_fixed_point(fluid, number).queue);
    REQUIRE(queue < 1.38 * dcqcn_fixed_point(fluid, number).queue);
  }
}

TEST_CASE("from about twelve flows on the paper's marking pins the queue at Kmax", "[dcqcn]") {
  for (const std::uint32_t flows : {16U, 32U}) {
    const LongIncast incast = fluid_incast(flows, 1_us);
    REQUIRE(dcqcn_cycle_point(fluid_of(incast), static_cast<int>(flows)).is_pinned);
    const IncastRun run = run_long_incast(incast, 300_ms);
    const IncastSummary later = summarise(incast, run, 100_ms, 300_ms);
    REQUIRE(later.queue_mean > 180'000);
    REQUIRE(later.queue_mean < 200'000);
    REQUIRE(later.queue_deviation < 20'000);
  }
}

IncastSummary settled(const LongIncast& incast) {
  return summarise(incast, run_long_incast(incast, 400_ms), 100_ms, 400_ms);
}

TEST_CASE("85 us of feedback delay make ten flows swing, and not two", "[dcqcn]") {
  // A change of the rate is seen at the queue after one link, a mark at the sender after three.
  const SimTime near = 1_us;
  const SimTime far = nanoseconds(21'250);
  const IncastSummary two = settled(fluid_incast(2, far));
  REQUIRE(two.used > 0.99);
  REQUIRE(two.queue_deviation < 1.3 * settled(fluid_incast(2, near)).queue_deviation);
  const IncastSummary ten = settled(fluid_incast(10, far));
  REQUIRE(ten.used < 0.97);
  REQUIRE(ten.queue_deviation > 1.8 * settled(fluid_incast(10, near)).queue_deviation);
  REQUIRE(ten.queue_min == 0);
}

TEST_CASE("where marking stays linear more flows destabilise and many more stabilise", "[dcqcn]") {
  // The line through Kmin and (Kmax, Pmax), up to p = 1: the fluid model has no jump at Kmax.
  const auto swing = [](std::uint32_t flows) {
    LongIncast incast = fluid_incast(flows, nanoseconds(21'250));
    incast.options.red = RedProfile{.kmin = 5'000_B, .kmax = 19'505'000_B, .pmax = 1.0};
    return settled(incast);
  };
  const IncastSummary few = swing(4);
  const IncastSummary some = swing(24);
  const IncastSummary many = swing(100);
  REQUIRE(some.used < few.used - 0.005);
  REQUIRE(some.used < many.used - 0.005);
  REQUIRE(some.queue_deviation / some.queue_mean > 2 * many.queue_deviation / many.queue_mean);
}

TEST_CASE("a timer far below the CNP interval undoes each cut before the next: PFC has to stop",
          "[dcqcn]") {
  LongIncast incast = fluid_incast(10, 1_us);
  DcqcnSettings settings = dcqcn_settings(CongestionControl::DcqcnPaper, incast.link.bandwidth);
  settings.rate_timer = 10_us;
  incast.options.dcqcn = settings;
  const IncastRun run = run_long_incast(incast, 400_ms);
  REQUIRE(run.pauses > 10'000);
  REQUIRE(run.stats.drops == 0);
  REQUIRE(summarise(incast, run, 100_ms, 400_ms).queue_mean > 10'000'000);
  incast.options.dcqcn.reset();
  REQUIRE(run_long_incast(incast, 400_ms).pauses < 100);
}

TEST_CASE("ten times the additive increase makes the queue swing and run empty", "[dcqcn]") {
  LongIncast incast = fluid_incast(10, 1_us);
  const IncastSummary usual = settled(incast);
  DcqcnSettings settings = dcqcn_settings(CongestionControl::DcqcnPaper, incast.link.bandwidth);
  settings.additive = settings.additive.scaled(10);
  incast.options.dcqcn = settings;
  const IncastSummary steep = settled(incast);
  REQUIRE(steep.queue_deviation > 2 * usual.queue_deviation);
  REQUIRE(steep.queue_min == 0);
  REQUIRE(usual.queue_min > 0);
  REQUIRE(steep.used < usual.used - 0.01);
}

TEST_CASE("flows at line rate from the start need a bound on the queue to settle", "[dcqcn]") {
  // Marks come when a packet leaves: behind a queue of milliseconds they come too late, and all
  // that waits is marked whoever sent it.
  LongIncast incast = nic(32);
  const IncastRun bound = run_long_incast(incast, 200_ms);
  REQUIRE(bound.pauses > 0);
  const IncastSummary settles = summarise(incast, bound, 100_ms, 200_ms);
  REQUIRE(settles.share_error < 0.15);
  REQUIRE(settles.queue_mean < 1'600'000);
  incast.options.pfc = false;
  const IncastSummary runs_away = summarise(incast, run_long_incast(incast, 100_ms), 50_ms, 100_ms);
  REQUIRE(runs_away.queue_min > 100'000'000);
  REQUIRE(runs_away.share_error > 0.5);
}

TEST_CASE("a rate of nothing would never send again, and is refused", "[dcqcn]") {
  for (const CongestionControl control :
       {CongestionControl::DcqcnNic, CongestionControl::DcqcnPaper}) {
    REQUIRE(dcqcn_settings(control, gigabits_per_second(40)).min > Bandwidth(0));
  }
  LongIncast incast = paper(2);
  DcqcnSettings settings = dcqcn_settings(CongestionControl::DcqcnPaper, incast.link.bandwidth);
  settings.min = Bandwidth(0);
  incast.options.dcqcn = settings;
  REQUIRE_THROWS_WITH(run_long_incast(incast, 1_ms),
                      "packet engine: expected a least rate of DCQCN of at least 1 bit/s, found 0");
}

}  // namespace
}  // namespace trainyard
