// SPDX-License-Identifier: Apache-2.0
// DCQCN's parts together at one queue: marker, notification points and reaction points come to rest
// where the fluid model says (Zhu et al., SIGCOMM 2015, section 5).
//
// The fluid model takes the chance of a CNP for each 50 us on the clock. A notification point
// counts them from the last CNP, so that CNPs are fewer, and queues rest a fifth to a third higher.
#include "support/catch.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <optional>
#include <variant>
#include <vector>

#include "hw/control/dcqcn.h"
#include "hw/switch/ecn.h"
#include "hw/transport/transport_profile.h"
#include "sim/random.h"
#include "support/dcqcn_fluid.h"
#include "support/paths.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr Bytes kPacket{1000};
constexpr SimTime kToQueue = microseconds(1);
constexpr SimTime kToReceiver = microseconds(1);
constexpr SimTime kCnpDelay = microseconds(2);

DcqcnSettings paper() {
  DcqcnSettings settings;
  settings.line = gigabits_per_second(40);
  settings.min = Bandwidth(10'000'000);
  settings.additive = Bandwidth(40'000'000);
  settings.hyper = Bandwidth(200'000'000);
  return settings;
}

enum class Intervals { OnTheClock, SinceLastCnp };

struct Setup {
  DcqcnSettings settings{};
  RedProfile red{};
  int flows = 0;
  SimTime cnp_interval{};
  Intervals intervals = Intervals::SinceLastCnp;
  // Senders wait while more is stored, as if PFC stopped them; otherwise they begin near their fair
  // share.
  std::optional<Bytes> bound{};
};

// Flows that always have something to send, paced, to one port; packet by packet.
class Queue {
 public:
  explicit Queue(const Setup& setup) : setup_(setup), marker_(setup.red), random_(kSeed, "marks") {
    RandomStream start(kSeed, "start");
    const auto line = static_cast<double>(setup.settings.line.bits_per_second());
    for (int i = 0; i < setup.flows; ++i) {
      const double near_fair = std::min(line / setup.flows * (0.5 + start.uniform()), line);
      flows_.emplace_back(setup_.settings, setup.bound ? line : near_fair);
      flows_.back().next = nanoseconds(static_cast<std::int64_t>(start.below(1000)));
      if (!setup.bound) {
        flows_.back().reaction.on_cnp(SimTime());  // Switches its limiter on.
      }
    }
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void run(SimTime until) {
    while (true) {
      Flow& flow = *std::min_element(flows_.begin(), flows_.end(),
                                     [](const Flow& a, const Flow& b) { return a.next < b.next; });
      if (flow.next > until) {
        return;
      }
      if (setup_.bound && flow.next < free_) {
        const SimTime full = transfer_time(*setup_.bound, setup_.settings.line);
        if (free_ - flow.next > full) {
          flow.next = free_ - full;
          continue;
        }
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
  // Jain's index: 1 if all have sent the same, 1 / n if one has sent all.
  [[nodiscard]] double fairness() const {
    double sum = 0.0;
    double squares = 0.0;
    for (const Flow& flow : flows_) {
      const auto sent = static_cast<double>(flow.sent);
      sum += sent;
      squares += sent * sent;
    }
    return sum * sum / (squares * static_cast<double>(flows_.size()));
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
    free_ = std::max(free_, arrival) + transfer_time(kPacket, setup_.settings.line);
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
    if (setup_.intervals == Intervals::SinceLastCnp) {
      return flow.notification.on_marked(setup_.cnp_interval, received);
    }
    const std::int64_t before = flow.interval;
    flow.interval = received.picoseconds() / setup_.cnp_interval.picoseconds();
    return flow.interval != before;
  }

  struct Stored {
    SimTime departure{};
    Flow* flow = nullptr;
  };

  Setup setup_;
  RedMarker marker_;
  RandomStream random_;
  std::vector<Flow> flows_;
  std::deque<Stored> stored_;
  SimTime free_{};
  double queue_sum_ = 0.0;
  std::int64_t packets_ = 0;
};

}  // namespace

TEST_CASE("DCQCN flows at one queue come to the fixed point of the fluid model",
          "[transport][long]") {
  Setup setup{.settings = paper(),
              .red = {.kmin = Bytes(5'000), .kmax = Bytes(200'000), .pmax = 0.01},
              .cnp_interval = 50_us};
  const DcqcnFluid fluid{.line = setup.settings.line,
                         .additive = setup.settings.additive,
                         .byte_counter = setup.settings.byte_counter,
                         .rate_timer = setup.settings.rate_timer,
                         .cnp_interval = setup.cnp_interval,
                         .alpha_interval = setup.settings.alpha_interval,
                         .threshold = setup.settings.threshold,
                         .packet = kPacket,
                         .kmin = setup.red.kmin,
                         .kmax = setup.red.kmax,
                         .pmax = setup.red.pmax};
  for (const int flows : {2, 4, 8, 10}) {
    setup.flows = flows;
    const double expected = dcqcn_fixed_point(fluid, flows).queue;
    for (const Intervals intervals : {Intervals::OnTheClock, Intervals::SinceLastCnp}) {
      setup.intervals = intervals;
      Queue queue(setup);
      queue.run(40_ms);
      queue.restart();
      queue.run(140_ms);
      INFO(flows << " flows, " << queue.mean_queue() << " B of " << expected);
      const double max = intervals == Intervals::OnTheClock ? 1.2 : 1.4;
      REQUIRE(queue.mean_queue() > 0.9 * expected);
      REQUIRE(queue.mean_queue() < max * expected);
      REQUIRE(queue.fairness() > 0.99);
      REQUIRE(queue.packets() > 495'000);  // Of 500,000 that the line can carry.
    }
  }
}

TEST_CASE("the shipped DCQCN settles after an incast from line rate, where PFC bounds the queue",
          "[transport]") {
  const std::filesystem::path folder = source_dir() / "configs/transport";
  ConfigDocument document = ConfigDocument::load(folder / "default.yaml");
  const TransportProfile profile = TransportProfile::read(document, folder, folder);
  const Bandwidth line = gigabits_per_second(100);
  const ControlSettings control =
      profile.control.settings({.line = line, .base_rtt = 4_us, .packet = kPacket});
  for (const int flows : {2, 4, 16}) {
    Queue queue({.settings = std::get<DcqcnSettings>(control.rules),
                 .red = profile.ecn->at(line).value(),
                 .flows = flows,
                 .cnp_interval = profile.control.traits().cnp_interval,
                 .bound = Bytes(5'000'000)});
    queue.run(20_ms);
    queue.restart();
    queue.run(60_ms);
    INFO(flows << " flows, " << queue.mean_queue() << " B, fairness " << queue.fairness());
    REQUIRE(queue.fairness() > 0.98);
    REQUIRE(queue.packets() > 485'000);       // Of 500,000.
    REQUIRE(queue.mean_queue() < 1'600'000);  // Kmax
  }
}

}  // namespace trainyard
