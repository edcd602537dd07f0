// SPDX-License-Identifier: Apache-2.0
// DCQCN's parts together at one queue: marker, notification points and reaction points come to rest
// where the fluid model says (Zhu et al., SIGCOMM 2015, section 5).
//
// The fluid model takes the chance of a CNP for each 50 us on the clock. A notification point counts
// them from the last CNP, so that CNPs are fewer, and queues rest a fifth to a third higher.
#include "support/catch.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

#include "hw/dcqcn.h"
#include "hw/dcqcn_fluid.h"
#include "hw/ecn.h"
#include "sim/random.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr Bandwidth kLine = gigabits_per_second(40);
constexpr Bytes kPacket{1000};
constexpr SimTime kToQueue = microseconds(1);
constexpr SimTime kToReceiver = microseconds(1);
constexpr SimTime kCnpDelay = microseconds(2);
constexpr SimTime kInterval = microseconds(50);

DcqcnSettings paper() {
  DcqcnSettings settings;
  settings.line = kLine;
  settings.least = Bandwidth(10'000'000);
  settings.additive = Bandwidth(40'000'000);
  settings.hyper = Bandwidth(200'000'000);
  return settings;
}

enum class Intervals { OnTheClock, SinceLastCnp };

// Flows that always have something to send, paced, to one port; packet by packet.
class Queue {
 public:
  Queue(const DcqcnSettings& settings, const RedProfile& red, int flows, Intervals intervals)
      : marker_(red), random_(kSeed, "marks"), intervals_(intervals) {
    RandomStream start(kSeed, "start");
    for (int i = 0; i < flows; ++i) {
      const double share = 0.5 + start.uniform();
      const double rate = static_cast<double>(kLine.bits_per_second()) / flows * share;
      const double most = static_cast<double>(kLine.bits_per_second());
      flows_.emplace_back(settings, std::min(rate, most));
      flows_.back().next = nanoseconds(static_cast<std::int64_t>(start.below(1000)));
      flows_.back().reaction.on_cnp(SimTime());
    }
  }

  void run(SimTime until) {
    while (true) {
      Flow& flow = *std::min_element(flows_.begin(), flows_.end(),
                                     [](const Flow& a, const Flow& b) { return a.next < b.next; });
      if (flow.next > until) {
        return;
      }
      send(flow);
    }
  }

  // Forgets what was measured so far.
  void restart() {
    queue_sum_ = 0.0;
    packets_ = 0;
    for (Flow& flow : flows_) {
      flow.sent = 0;
    }
  }

  [[nodiscard]] double mean_queue() const { return queue_sum_ / static_cast<double>(packets_); }
  // Least sent by a flow over most.
  [[nodiscard]] double evenness() const {
    std::int64_t least = flows_.front().sent;
    std::int64_t most = least;
    for (const Flow& flow : flows_) {
      least = std::min(least, flow.sent);
      most = std::max(most, flow.sent);
    }
    return static_cast<double>(least) / static_cast<double>(most);
  }
  [[nodiscard]] std::int64_t packets() const { return packets_; }

 private:
  static constexpr std::uint64_t kSeed = 1;

  struct Flow {
    Flow(const DcqcnSettings& settings, double rate) : reaction(settings, rate) {}
    DcqcnReaction reaction;
    DcqcnNotification notification{};
    SimTime next{};
    std::deque<SimTime> cnps{};  // On their way to the sender.
    std::int64_t sent = 0;
    std::int64_t interval = -1;  // On the clock, of the last CNP.
  };

  void send(Flow& flow) {
    const SimTime now = flow.next;
    while (!flow.cnps.empty() && flow.cnps.front() <= now) {
      flow.reaction.on_cnp(flow.cnps.front());
      flow.cnps.pop_front();
    }
    flow.reaction.advance(now);
    flow.next = now + transfer_time(kPacket, flow.reaction.rate());
    flow.reaction.on_sent(now, kPacket);
    ++flow.sent;
    const SimTime arrival = now + kToQueue;
    while (!stored_.empty() && stored_.front().departure <= arrival) {
      depart();
    }
    free_ = std::max(free_, arrival) + transfer_time(kPacket, kLine);
    stored_.push_back({free_, &flow});
  }

  // The first packet leaves; what is stored behind it has come before.
  void depart() {
    const Stored packet = stored_.front();
    stored_.pop_front();
    const Bytes behind = kPacket * static_cast<std::int64_t>(stored_.size());
    queue_sum_ += static_cast<double>(behind.count());
    ++packets_;
    const SimTime received = packet.departure + kToReceiver;
    const auto draw = static_cast<std::uint32_t>(random_.next());
    if (marker_.marks(behind, draw) && makes_cnp(*packet.flow, received)) {
      packet.flow->cnps.push_back(received + kCnpDelay);
    }
  }

  bool makes_cnp(Flow& flow, SimTime received) const {
    if (intervals_ == Intervals::SinceLastCnp) {
      return flow.notification.on_marked(CnpRule::Immediate, kInterval, received);
    }
    const std::int64_t before = flow.interval;
    flow.interval = received.picoseconds() / kInterval.picoseconds();
    return flow.interval != before;
  }

  struct Stored {
    SimTime departure{};
    Flow* flow = nullptr;
  };

  RedMarker marker_;
  RandomStream random_;
  Intervals intervals_;
  std::vector<Flow> flows_;
  std::deque<Stored> stored_;
  SimTime free_{};
  double queue_sum_ = 0.0;
  std::int64_t packets_ = 0;
};

}  // namespace

TEST_CASE("DCQCN flows at one queue come to the fixed point of the fluid model", "[transport]") {
  const DcqcnSettings settings = paper();
  const RedProfile red{.kmin = Bytes(5'000), .kmax = Bytes(200'000), .pmax = 0.01};
  const DcqcnFluid fluid{.line = kLine,
                         .additive = settings.additive,
                         .byte_counter = settings.byte_counter,
                         .rate_timer = settings.rate_timer,
                         .cnp_interval = kInterval,
                         .alpha_interval = settings.alpha_interval,
                         .threshold = settings.threshold,
                         .packet = kPacket,
                         .kmin = red.kmin,
                         .kmax = red.kmax,
                         .pmax = red.pmax};
  for (const int flows : {2, 4, 8, 10}) {
    const double expected = dcqcn_fixed_point(fluid, flows).queue;
    for (const Intervals intervals : {Intervals::OnTheClock, Intervals::SinceLastCnp}) {
      Queue queue(settings, red, flows, intervals);
      queue.run(40_ms);
      queue.restart();
      queue.run(140_ms);
      INFO(flows << " flows, " << queue.mean_queue() << " B of " << expected);
      const double most = intervals == Intervals::OnTheClock ? 1.2 : 1.4;
      REQUIRE(queue.mean_queue() > 0.9 * expected);
      REQUIRE(queue.mean_queue() < most * expected);
      REQUIRE(queue.evenness() > 0.8);
      REQUIRE(queue.packets() > 495'000);  // Of 500,000 that the line can carry.
    }
  }
}

}  // namespace trainyard
