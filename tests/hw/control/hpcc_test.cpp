// SPDX-License-Identifier: Apache-2.0
// HPCC ACK by ACK against the golden script, two flows at one queue against the golden run, and the
// counters of the wire format.
#include "support/catch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "hw/control/hpcc.h"
#include "sim/random.h"
#include "support/transport_goldens.h"

namespace trainyard {
namespace {

using namespace literals;

HpccSettings settings_of_hpcc(const GoldenParams& params, Bandwidth line) {
  HpccSettings settings;
  settings.line = line;
  settings.base_rtt = nanoseconds(params.integer("T_ns"));
  settings.eta = params.number("eta");
  settings.max_stage = static_cast<int>(params.integer("maxStage"));
  settings.additive = params.number("W_AI_bytes");
  return settings;
}

// One full update of a flow in the closed loop.
struct Update {
  double nanoseconds = 0.0;
  std::size_t flow = 0;
  double utilisation = 0.0;
  double reference = 0.0;
  double gigabits = 0.0;
};

// Two senders of packets of 1000 B behind one port, ACKed one by one; times in nanoseconds.
class ClosedLoop {
 public:
  ClosedLoop(const HpccSettings& settings, double second_start) : settings_(settings) {
    senders_.emplace_back(settings_);
    senders_.emplace_back(settings_);
    senders_[1].next_start = second_start;
  }

  void run(double end) {
    while (true) {
      const double send = std::min(next_send(0), next_send(1));
      const double ack = acks_.empty() ? kNever : acks_.front().time;
      const double now = std::min(send, ack);
      if (now > end) {
        return;
      }
      if (ack <= send) {
        acknowledge();
      } else {
        transmit(next_send(0) <= next_send(1) ? 0 : 1);
      }
    }
  }

  [[nodiscard]] const std::vector<Update>& updates() const { return updates_; }
  [[nodiscard]] double peak() const { return peak_; }

 private:
  static constexpr double kNever = 1e300;
  static constexpr double kPacket = 1000.0;
  static constexpr double kLink = 12.5;  // Bytes a nanosecond.
  static constexpr double kToSwitch = 1000.0;

  struct Sender {
    explicit Sender(const HpccSettings& settings) : control(settings) {}
    Hpcc control;
    double next_start = 0.0;
    double ready = 0.0;  // When the window last let go.
    std::uint64_t sent = 0;
    std::uint64_t acked = 0;
  };
  struct Ack {
    double time = 0.0;
    std::size_t flow = 0;
    std::uint64_t sequence = 0;
    double departed = 0.0;
    double total = 0.0;
    double queue = 0.0;
  };

  double next_send(std::size_t flow) const {
    const Sender& sender = senders_[flow];
    const double in_flight = static_cast<double>(sender.sent - sender.acked);
    if (in_flight + kPacket > sender.control.window_bytes()) {
      return kNever;
    }
    return std::max(sender.next_start, sender.ready);
  }

  void transmit(std::size_t flow) {
    Sender& sender = senders_[flow];
    const double now = next_send(flow);
    const double rate = sender.control.window_bytes() / 13000.0;
    sender.next_start = now + kPacket / rate;
    sender.sent += 1000;
    const double arrival = now + kToSwitch;
    const double departed = std::max(arrival, free_) + kPacket / kLink;
    free_ = departed;
    total_ += kPacket;
    peak_ = std::max(peak_, (departed - arrival) * kLink);
    // In the order of departure, which is that of sending.
    acks_.push_back({departed + 13000.0 - kToSwitch - kPacket / kLink, flow, sender.sent, departed,
                     total_, 0.0});
    waiting_.push_back({arrival, departed});
  }

  // What came before `departed` and leaves after it.
  double queue_behind(double departed) {
    while (!waiting_.empty() && waiting_.front().departed <= departed) {
      waiting_.pop_front();
    }
    double queue = 0.0;
    for (const Waiting& packet : waiting_) {
      queue += packet.arrival <= departed ? kPacket : 0.0;
    }
    return queue;
  }

  void acknowledge() {
    const Ack ack = acks_.front();
    acks_.pop_front();
    Sender& sender = senders_[ack.flow];
    const IntHop hop{.rate = gigabits_per_second(100),
                     .time = SimTime(std::llround(ack.departed * 1e3)),
                     .sent_bytes = static_cast<std::uint64_t>(ack.total),
                     .queue = Bytes(std::llround(queue_behind(ack.departed)))};
    const double before = sender.control.reference_window();
    const int stage = sender.control.stage();
    sender.acked = ack.sequence;
    sender.ready = ack.time;
    sender.control.on_ack(ack.sequence, sender.sent, {&hop, 1});
    if (sender.control.reference_window() != before || sender.control.stage() != stage) {
      updates_.push_back({ack.time, ack.flow, sender.control.utilisation(),
                          sender.control.reference_window(),
                          static_cast<double>(sender.control.rate().bits_per_second()) / 1e9});
    }
  }

  struct Waiting {
    double arrival = 0.0;
    double departed = 0.0;
  };

  HpccSettings settings_;
  std::vector<Sender> senders_;
  std::deque<Ack> acks_;
  std::deque<Waiting> waiting_;
  std::vector<Update> updates_;
  double free_ = 0.0;
  double total_ = 0.0;
  double peak_ = 0.0;
};

}  // namespace

TEST_CASE("HPCC follows the golden script ACK by ACK", "[transport]") {
  const ConfigNode section = transport_goldens("hpcc_scripted");
  const GoldenParams params(section);
  const Bandwidth line(std::llround(params.number("bottleneck_Bpns") * 8e9));
  const HpccSettings settings = settings_of_hpcc(params, line);
  Hpcc hpcc(settings);
  REQUIRE(hpcc.window_bytes() == params.number("W_init_bytes"));
  const GoldenTable table(section);
  REQUIRE(table.rows() == 18);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const IntHop hop{.rate = line,
                     .time = nanoseconds(table.integer(row, "ts_ns")),
                     .sent_bytes = static_cast<std::uint64_t>(table.integer(row, "txBytes")),
                     .queue = Bytes(table.integer(row, "qlen"))};
    const double reference = hpcc.reference_window();
    hpcc.on_ack(static_cast<std::uint64_t>(table.integer(row, "ack_seq")),
                static_cast<std::uint64_t>(table.integer(row, "snd_nxt")), {&hop, 1});
    INFO("row " << row);
    REQUIRE(hpcc.utilisation() == Approx(table.number(row, "U")).margin(0.51e-9));
    REQUIRE(hpcc.stage() == table.integer(row, "incStage"));
    REQUIRE(hpcc.reference_window() == Approx(table.number(row, "Wc")).margin(0.51e-3));
    REQUIRE(hpcc.window_bytes() == Approx(table.number(row, "W")).margin(0.51e-3));
    const double rate = static_cast<double>(hpcc.rate().bits_per_second()) / 1e9;
    REQUIRE(rate == Approx(table.number(row, "rate_Gbps")).margin(0.51e-6));
    REQUIRE((hpcc.reference_window() == reference || table.text(row, "kind") == "full"));
  }
}

TEST_CASE("two HPCC flows at one queue come to share it as in the golden run", "[transport]") {
  const ConfigNode section = transport_goldens("hpcc_closed_loop");
  const GoldenParams params(section);
  const HpccSettings settings = settings_of_hpcc(params, gigabits_per_second(100));
  for (const double second_start : {0.0, 200e3}) {
    const std::string run = second_start > 0.0 ? "second_starts_at_200us" : "both_start_at_0";
    const ConfigNode golden = section.required(run);
    const GoldenTable table(section.required("both_start_at_0").required("columns"), golden);
    ClosedLoop loop(settings, second_start);
    loop.run(table.number(table.rows() - 1, "t_ns") + 1.0);
    const double peak = golden_number(golden.required("peak_queue_bytes").as_string());
    REQUIRE(loop.peak() == Approx(peak).epsilon(0.02));
    const std::vector<Update>& updates = loop.updates();
    REQUIRE(updates.size() >= table.rows());
    const std::size_t first = updates.size() - table.rows();
    for (std::size_t row = 0; row < table.rows(); ++row) {
      const Update& update = updates[first + row];
      INFO(run << " row " << row);
      REQUIRE(update.flow == static_cast<std::size_t>(table.integer(row, "flow")));
      REQUIRE(update.nanoseconds == Approx(table.number(row, "t_ns")).epsilon(0.001));
      REQUIRE(update.utilisation == Approx(table.number(row, "U")).epsilon(0.02));
      REQUIRE(update.reference == Approx(table.number(row, "Wc")).epsilon(0.02));
      REQUIRE(update.gigabits == Approx(table.number(row, "rate_Gbps")).epsilon(0.02));
    }
  }
}

TEST_CASE("a flow alone keeps its links at eta and a little above, never under", "[transport]") {
  HpccSettings settings;
  settings.line = gigabits_per_second(100);
  settings.base_rtt = 10_us;
  settings.additive = 100.0;
  Hpcc hpcc(settings);
  IntHop hop{.rate = settings.line};
  std::uint64_t sent = 0;
  for (int i = 0; i < 2000; ++i) {  // A window each round trip, nothing ever queued.
    const auto window = static_cast<std::uint64_t>(hpcc.window().count());
    hop.time += 10_us;
    hop.sent_bytes += window;
    sent += window;
    hpcc.on_ack(sent, sent, {&hop, 1});
  }
  REQUIRE(hpcc.utilisation() == Approx(0.95).margin(0.02));
  REQUIRE(hpcc.rate() < settings.line);
}

TEST_CASE("of several links the busiest counts, and another path starts anew", "[transport]") {
  HpccSettings settings;
  settings.line = gigabits_per_second(100);
  settings.base_rtt = 10_us;
  settings.additive = 100.0;
  Hpcc hpcc(settings);
  std::array<IntHop, 2> hops{IntHop{.rate = settings.line}, IntHop{.rate = settings.line}};
  hpcc.on_ack(1000, 2000, hops);
  for (IntHop& hop : hops) {
    hop.time = 10_us;
  }
  hops[0].sent_bytes = 25'000;
  hops[1].sent_bytes = 100'000;
  hops[1].queue = Bytes(1'000'000);  // Only now: not counted, as before it was empty.
  hpcc.on_ack(3000, 4000, hops);
  REQUIRE(hpcc.utilisation() == Approx(0.8));
  hpcc.on_ack(5000, 6000, {hops.data(), 1});
  REQUIRE(hpcc.utilisation() == Approx(0.8));
  hops[0].port = 7;  // A counter that has never been seen, and is less than that of the other.
  hops[0].sent_bytes = 10;
  hops[0].time = 20_us;
  hpcc.on_ack(7000, 8000, {hops.data(), 1});
  REQUIRE(hpcc.utilisation() == Approx(0.8));
}

TEST_CASE("counters that wrap on the wire give the same utilisation but for their units",
          "[transport]") {
  HpccSettings settings;
  settings.line = gigabits_per_second(400);
  settings.base_rtt = 12_us;
  settings.additive = 500.0;
  HpccSettings wire = settings;
  wire.wire_counters = true;
  Hpcc exact(settings);
  Hpcc rounded(wire);
  RandomStream random(5, "int");
  IntHop hop{.rate = settings.line};
  std::uint64_t acked = 0;
  for (int i = 0; i < 5000; ++i) {  // 60 ms and 3 GB: each counter wraps several times.
    hop.time += 12_us;
    hop.sent_bytes += 400'000 + random.below(200'000);
    hop.queue = Bytes(static_cast<std::int64_t>(random.below(50'000)));
    acked += 600'000;
    exact.on_ack(acked, acked, {&hop, 1});
    const IntHop coarse = rounded_to_wire(hop);
    rounded.on_ack(acked, acked, {&coarse, 1});
    REQUIRE(rounded.utilisation() == Approx(exact.utilisation()).epsilon(0.002));
  }
  REQUIRE(rounded_to_wire({.queue = mib(100)}).queue == Bytes(131'071 * 80));
}

}  // namespace trainyard
