// SPDX-License-Identifier: Apache-2.0
// Senders under controls that ACKs drive: packet by packet against an ordinary simulation, and what
// each control is known for.
#include "support/catch.h"

#include "network/packet/packet_control.h"

#include <algorithm>
#include <array>

#include "network/packet/packet.h"
#include "sim/config_error.h"
#include "support/controls.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/naive_packets.h"
#include "support/recorder.h"

namespace trainyard {
namespace {

using namespace literals;

struct ControlledRun {
  std::vector<PacketStart> starts;
  std::vector<SimTime> arrivals;
};

ControlledRun run_engine_with(const TestFabric& fabric, const Traffic& traffic,
                              const PacketOptions& options) {
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  PacketNetwork network(simulator, routing, options);
  ControlledRun run;
  network.engine().trace(&run.starts);
  run.arrivals.resize(traffic.messages.size());
  for (const Woken& event : play(simulator, network, fabric, traffic)) {
    run.arrivals[event.token] = event.time;
  }
  std::sort(run.starts.begin(), run.starts.end());
  return run;
}

TEST_CASE("with a window every packet and ACK leaves every port when an ordinary simulation says",
          "[control]") {
  for (const char* const name : {"dctcp", "swift", "hpcc", "timely", "nscc"}) {
    for (std::uint64_t seed = 0; seed < cases(60); ++seed) {
      INFO(name << " seed=" << seed);
      RandomStream random(seed, "controlled packets");
      const TestFabric fabric = random_fabric(random);
      Traffic traffic = random_traffic(fabric, random);
      for (TestMessage& message : traffic.messages) {
        message.size = Bytes(message.size.count() / 8);
      }
      PacketOptions options = controlled_packets(name);
      options.ecn = EcnPreset::Dctcp;
      options.mtu = Bytes(std::int64_t{1024} << random.below(3));
      options.verb = random.below(2) == 0 ? RdmaVerb::Send : RdmaVerb::Write;
      options.forwarding =
          random.below(2) == 0 ? Forwarding::StoreAndForward : Forwarding::CutThrough;
      if (random.below(4) == 0) {
        options.fabric_credits =
            (options.mtu + 140_B) * (1 + static_cast<std::int64_t>(random.below(8)));
      }
      const ControlledRun fast = run_engine_with(fabric, traffic, options);
      const auto paths = paths_of(fabric, traffic);
      // Connections of a node to itself have no packets: the engine does not number them.
      std::vector<std::uint32_t> number(paths.size());
      std::uint32_t next = 0;
      for (std::size_t i = 0; i < paths.size(); ++i) {
        number[i] = paths[i].empty() ? kNoIndex : next++;
      }
      NaivePacketRun naive = run_naive_packets(fabric, traffic, paths, options);
      for (PacketStart& start : naive.starts) {
        start.connection = number[start.connection];
      }
      std::sort(naive.starts.begin(), naive.starts.end());
      REQUIRE(fast.starts == naive.starts);
      REQUIRE(fast.arrivals == naive.arrivals);
    }
  }
}

TEST_CASE("a window is filled and never exceeded", "[control]") {
  // Nothing is marked, so that the window stays as it is: line rate x T.
  const TestFabric fabric = one_switch(3, fabric_link(gigabits_per_second(100), 1_us));
  PacketEngine engine(fabric.topology, controlled_packets("dctcp"));
  for (std::uint32_t i = 0; i < 2; ++i) {
    engine.add_connection(std::array{LinkId(2 * i), LinkId(5)});
    engine.send(i, {.time = 0, .size = 4'000'000});
  }
  std::int64_t max = 0;
  std::vector<PacketEngine::Completion> completions;
  while (engine.next_border() != kNeverTime) {
    engine.run_window(completions);
    for (std::uint32_t i = 0; i < 2; ++i) {
      max = std::max(max, engine.senders().control()->in_flight(i));
      REQUIRE(engine.senders().control()->in_flight(i) <=
              engine.senders().control()->control(i).window().count());
    }
  }
  REQUIRE(completions.size() == 2);
  REQUIRE(engine.senders().control()->in_flight(0) == 0);
  REQUIRE(max > engine.senders().control()->control(0).window().count() - 4178);
  // T: a full packet there, its ACK back, and one packet more.
  const Bytes bdp = engine.senders().control()->control(0).window();
  const SimTime rtt = (334'240_ps + 1_us) * 2 + (6'880_ps + 1_us) * 2 + 334'240_ps;
  REQUIRE(bdp.count() == rtt.picoseconds() / 80);
}

TEST_CASE("one flow gets the line rate, and eta of it with HPCC", "[control]") {
  constexpr std::int64_t kPackets = 2000;
  for (const char* const name :
       {"dctcp", "swift", "timely", "hpcc", "dcqcn-simai", "none", "nscc"}) {
    INFO(name);
    const TestFabric fabric = one_switch(2, fabric_link(gigabits_per_second(100), 1_us));
    PacketOptions options = controlled_packets(name);
    options.verb = RdmaVerb::Send;
    PacketEngine engine(fabric.topology, options);
    engine.add_connection(std::array{LinkId(0), LinkId(3)});
    engine.send(0, {.time = 0, .size = 4096 * kPackets});
    std::vector<PacketEngine::Completion> completions;
    while (engine.next_border() != kNeverTime) {
      engine.run_window(completions);
    }
    REQUIRE(completions.size() == 1);
    const SimTime full =
        transfer_time(Bytes(engine.fabric().wire_of(4096, false)), gigabits_per_second(100));
    const SimTime at_line = full * (kPackets + 1) + 2_us;
    const double share = at_line / SimTime(completions[0].time);
    if (options.profile->traits().telemetry != IntFormat::None) {
      REQUIRE(full == picoseconds((4096 + 82 + 42) * 80));  // INT is on the line.
      REQUIRE(share > 0.945);
      REQUIRE(share < 0.955);
    } else {
      REQUIRE(share == 1.0);
    }
  }
}

class Starter final : public EventHandler {
 public:
  Starter(Simulator& simulator, Network& network)
      : EventHandler(simulator), network_(network), done_(simulator) {}
  void on_event(std::uint64_t token) override {
    network_.send(ConnectionId(static_cast<std::uint32_t>(token)), 40_GiB, done_, token);
  }

 private:
  Network& network_;
  Recorder done_;
};

// What is seen of a link of 100 Gb/s that flows share, after the start.
struct SharedLink {
  double use = 0.0;       // Of its rate.
  double fairness = 0.0;  // Jain's index of the bytes of the flows.
  double min = 0.0;       // Share of the smallest flow, of an equal one.
  double mean_queue = 0.0;
  std::int64_t max_queued = 0;
  double mean_delay = 0.0;   // Of the queue, in seconds,
  double mean_target = 0.0;  // and Swift's target of the round trip.
};

// Host i sends to the last one without end from 100 us x i on. The time from `half` to its double
// is looked at, each microsecond.
SharedLink share_link(std::uint32_t flows, const PacketOptions& options, SimTime half) {
  const Bandwidth rate = gigabits_per_second(100);
  const TestFabric fabric = one_switch(static_cast<int>(flows) + 1, fabric_link(rate, 5_us));
  Simulator simulator;
  Routing routing(fabric.topology, {});
  PacketNetwork network(simulator, routing, options);
  Starter starter(simulator, network);
  for (std::uint32_t i = 0; i < flows; ++i) {
    static_cast<void>(network.connect({.source = fabric.hosts[i], .target = fabric.hosts[flows]}));
    simulator.schedule_at(100_us * i, starter, i);
  }
  const PacketEngine& engine = network.engine();
  const auto sent = [&](std::uint32_t link) {
    return static_cast<double>(engine.port(LinkId(link))->counters.bytes);
  };
  simulator.run_until(half);
  std::vector<double> bytes;
  for (std::uint32_t i = 0; i <= flows; ++i) {
    bytes.push_back(-sent(i < flows ? 2 * i : 2 * flows + 1));
  }
  SharedLink seen;
  double samples = 0.0;
  for (SimTime now = half; now < half * 2; now += 1_us) {
    simulator.run_until(now);
    const std::int64_t queued = engine.port(LinkId(2 * flows + 1))->queued_bytes;
    seen.mean_queue += static_cast<double>(queued);
    seen.max_queued = std::max(seen.max_queued, queued);
    if (const auto* swift = engine.senders().control()->control(0).as<Swift>()) {
      seen.mean_target += swift->target(1).seconds();
    }
    samples += 1.0;
  }
  simulator.run_until(half * 2);
  double sum = 0.0;
  double squares = 0.0;
  seen.min = 1e30;
  for (std::uint32_t i = 0; i < flows; ++i) {
    bytes[i] += sent(2 * i);
    sum += bytes[i];
    squares += bytes[i] * bytes[i];
    seen.min = std::min(seen.min, bytes[i]);
  }
  seen.fairness = sum * sum / squares / flows;
  seen.min *= flows / sum;
  seen.use = (bytes[flows] + sent(2 * flows + 1)) * 8 / half.seconds() / 100e9;
  seen.mean_queue /= samples;
  seen.mean_delay = seen.mean_queue * 8 / 100e9;
  seen.mean_target /= samples;
  return seen;
}

TEST_CASE("with HPCC flows share 95 % of a link fairly and hardly a packet waits",
          "[control][long]") {
  PacketOptions options = controlled_packets("hpcc");
  options.mtu = 1024_B;
  for (const std::uint32_t flows : {2U, 4U, 16U}) {
    INFO(flows);
    const SharedLink seen = share_link(flows, options, 20_ms);
    REQUIRE(seen.fairness > 0.99);
    REQUIRE(seen.use > 0.945);  // Additive increase adds a little to eta.
    REQUIRE(seen.use < 0.96);
    REQUIRE(seen.mean_queue < 2 * 1148);
    REQUIRE(seen.max_queued <= 10 * 1148);
  }
}

// Three senders are one switch away from the target, one three. With a T for each path, a queue is
// a larger part of what the near ones may have under way, and the far one has six times as much.
// Hosts have no noise, so phases decide within a factor of two who has more.
TEST_CASE("with HPCC a longer path has no larger share", "[control][long]") {
  const LinkSpec link = fabric_link(gigabits_per_second(100), 1_us);
  const TestFabric fabric = clos({.hosts_per_leaf = 4, .spines = 1}, link, link);
  PacketOptions options = controlled_packets("hpcc");
  options.mtu = 1024_B;
  Simulator simulator;
  Routing routing(fabric.topology, {});
  PacketNetwork network(simulator, routing, options);
  Starter starter(simulator, network);
  for (std::uint32_t i = 0; i < 4; ++i) {
    static_cast<void>(network.connect({.source = fabric.hosts[i + 1], .target = fabric.hosts[0]}));
    simulator.schedule_at(100_us * i, starter, i);
  }
  const PacketSenders& senders = network.engine().senders();
  const PacketControl& control = *senders.control();
  std::array<double, 4> sent{};
  simulator.run_until(60_ms);
  for (std::uint32_t i = 0; i < 4; ++i) {
    REQUIRE(&control.settings(i) == &control.settings(3));  // One T for all.
    sent.at(i) = -static_cast<double>(senders.payload_sent(i));
  }
  simulator.run_until(120_ms);
  for (std::uint32_t i = 0; i < 4; ++i) {
    sent.at(i) += static_cast<double>(senders.payload_sent(i));
  }
  INFO(sent[0] << " " << sent[1] << " " << sent[2] << " " << sent[3]);
  const double near = (sent[0] + sent[1] + sent[2]) / 3;
  REQUIRE(sent[3] < 2 * near);
  REQUIRE(sent[3] > near / 2);
}

TEST_CASE("with DCTCP flows keep the queue around the threshold", "[control][long]") {
  PacketOptions options{.rates = RateMeaning::Line};
  set_control(options, shipped_control("dctcp"));
  REQUIRE(options.ecn == EcnPreset::Dctcp);
  for (const std::uint32_t flows : {2U, 4U, 16U}) {
    INFO(flows);
    const SharedLink seen = share_link(flows, options, 40_ms);
    // A step and hosts without noise: phases of packets decide who is marked (Floyd, Jacobson, On
    // traffic phase effects, 1992), and shares stay unequal, with an index of 0.7 to 1 here.
    REQUIRE(seen.min > 0.2);
    REQUIRE(seen.use > 0.999);
    REQUIRE(seen.mean_queue > 0.75 * 300'000);
    REQUIRE(seen.mean_queue < 1.1 * 300'000);
  }
  options.ecn = EcnPreset::Hpcc;  // Marks by chance.
  for (const std::uint32_t flows : {4U, 16U}) {
    REQUIRE(share_link(flows, options, 40_ms).fairness > 0.99);
  }
}

TEST_CASE("with Swift the round trip stays at its target", "[control]") {
  const PacketOptions options = controlled_packets("swift");
  for (const std::uint32_t flows : {2U, 4U, 16U}) {
    INFO(flows);
    const SharedLink seen = share_link(flows, options, 20_ms);
    REQUIRE(seen.fairness > 0.99);
    REQUIRE(seen.use > 0.999);
    // Four links of 5 us and two packets, then the queue.
    const double delay = 20e-6 + 2 * 0.334e-6 + seen.mean_delay;
    REQUIRE(delay > 0.9 * seen.mean_target);
    REQUIRE(delay < 1.1 * seen.mean_target);
  }
}

TEST_CASE("with NSCC flows share a link fairly and keep the queueing delay near the target",
          "[control]") {
  PacketOptions options{.rates = RateMeaning::Line};
  set_control(options, shipped_control("nscc"));
  REQUIRE(options.ecn == EcnPreset::Nscc);
  for (const std::uint32_t flows : {2U, 8U}) {
    const SharedLink seen = share_link(flows, options, 20_ms);
    // Four links of 5 us, two packets and an ACK: the base RTT, which is the target.
    const double target = 20e-6 + 2 * 0.334e-6 + 2 * 0.007e-6;
    INFO(flows << " flows: fairness " << seen.fairness << ", use " << seen.use << ", delay "
               << seen.mean_delay / target << " targets");
    REQUIRE(seen.fairness > 0.95);
    REQUIRE(seen.use > 0.999);
    REQUIRE(seen.mean_delay > 0.5 * target);
    REQUIRE(seen.mean_delay < 1.25 * target);
  }
}

// The first windows of 64 senders make a queue of 6 ms at a target that is slower than they are.
// Nothing is lost, but timeouts are shorter. ACKs of what was sent again tell no delay, but they do
// come: so timeouts are not in a row, and no window falls to the least one, behind which a
// connection would wait for a thousand round trips.
TEST_CASE("with Swift timeouts that are shorter than the queue do not stop anybody", "[control]") {
  constexpr std::uint32_t kSenders = 64;
  std::vector<LinkSpec> links(kSenders, fabric_link(gigabits_per_second(100), 2_us));
  links.push_back(fabric_link(gigabits_per_second(10), 2_us));
  const TestFabric fabric = uneven_switch(links);
  Traffic traffic;
  for (std::uint32_t i = 0; i < kSenders; ++i) {
    traffic.connections.push_back({.source = i, .target = kSenders});
    traffic.messages.push_back({.connection = i, .time = 10_us * i, .size = 1_MiB});
  }
  PacketOptions options = controlled_packets("swift");
  options.verb = RdmaVerb::Send;
  options.retransmission = Retransmission::SelectiveRepeat;
  options.selective.short_timeout = 3_ms;
  options.selective.long_timeout = 3_ms;
  Simulator simulator;
  Routing routing(fabric.topology, kTestRouting);
  PacketNetwork network(simulator, routing, options);
  const std::vector<Woken> done = play(simulator, network, fabric, traffic);
  REQUIRE(done.size() == kSenders);
  const PacketStats stats = network.stats().packets;
  REQUIRE(stats.drops == 0);
  REQUIRE(stats.timeouts > kSenders);
  const SimTime packet = transfer_time(4178_B, gigabits_per_second(10));
  const auto packets = static_cast<std::int64_t>(kSenders * 256 + stats.retransmitted);
  REQUIRE(done.back().time / (packet * packets) < 1.05);
}

// Its flows need not come to equal shares (Zhu et al., CoNEXT 2016), and these do not.
TEST_CASE("with TIMELY flows keep a link busy and the round trip below its upper bound",
          "[control]") {
  PacketOptions options = controlled_packets("timely");
  options.pfc = true;
  for (const std::uint32_t flows : {2U, 4U, 16U}) {
    INFO(flows);
    const SharedLink seen = share_link(flows, options, 20_ms);
    REQUIRE(seen.use > 0.9);
    REQUIRE(seen.min > 0.0);
    REQUIRE(seen.mean_delay < 100e-6);
  }
}

TEST_CASE("DCQCN from a file does what the built-in one does, packet by packet", "[control]") {
  const TestFabric fabric = one_switch(5, fabric_link(gigabits_per_second(100), 1_us));
  Traffic traffic;
  for (std::uint32_t i = 0; i < 4; ++i) {
    traffic.connections.push_back({.source = i, .target = 4});
    traffic.messages.push_back({.connection = i, .time = 10_us * i, .size = 4_MiB});
  }
  PacketOptions built_in = roce_options();
  built_in.rates = RateMeaning::Line;
  built_in.ecn = EcnPreset::Dcqcn;
  PacketOptions file = built_in;
  set_control(file, shipped_control("dcqcn-nic"));
  REQUIRE(file.ecn == EcnPreset::Dcqcn);
  const ControlledRun one = run_engine_with(fabric, traffic, built_in);
  const ControlledRun other = run_engine_with(fabric, traffic, file);
  REQUIRE(one.starts.size() > 8000);
  REQUIRE(one.starts == other.starts);
}

TEST_CASE("HPCC is told of each hop what the packet found there", "[control]") {
  const ControlProfile profile = shipped_control("hpcc");
  PacketControl control(profile, 4220);
  const std::array<PacketControl::Hop, 2> hops{
      PacketControl::Hop{.bits_per_second = 100'000'000'000, .link = 7, .position = 11},
      PacketControl::Hop{.bits_per_second = 400'000'000'000, .link = 9, .position = 13}};
  control.add(gigabits_per_second(100), 10'000'000, 10, hops);
  Hpcc alone(std::get<HpccSettings>(control.settings(0).rules));
  constexpr std::uint32_t kPackets = 40;  // More than the rings begin with.
  const auto stamp = [](std::uint32_t packet, std::uint32_t hop) {
    return PacketControl::Stamp{.time = 1'000'000 * hop + 350'000 * packet + 1,
                                .sent_bytes = 4220 * packet + 100 * hop,
                                .queue = packet % 3 * 4200};
  };
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    REQUIRE(control.in_flight(0) == 4220 * i);
    control.on_sent(0, {.number = i, .wire = 4220, .position = 10, .time = 340'000 * i});
    control.stamp(0, i, 11, stamp(i, 0));
    control.stamp(0, i, 13, stamp(i, 1));
  }
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    control.on_ack(0, i + 1, false, 20'000'000 + 350'000 * i);
    control.on_ack(0, i + 1, false, 20'000'000 + 350'000 * i);  // Nothing new.
    std::array<IntHop, 2> path;
    for (std::uint32_t hop = 0; hop < 2; ++hop) {
      const PacketControl::Stamp written = stamp(i, hop);
      path.at(hop) = {.rate = gigabits_per_second(hop == 0 ? 100 : 400),
                      .time = SimTime(written.time),
                      .sent_bytes = written.sent_bytes,
                      .queue = Bytes(written.queue),
                      .port = 7 + 2 * hop};
    }
    alone.on_ack(4220 * (i + 1), 4220 * kPackets, path);
    REQUIRE(control.control(0).as<Hpcc>()->window_bytes() == alone.window_bytes());
    REQUIRE(control.in_flight(0) == 4220 * (kPackets - i - 1));
  }
  REQUIRE(alone.window_bytes() < 125'000);  // It did change.
}

TEST_CASE("TIMELY needs an ACK for a segment, controls with a window one for each packet",
          "[control]") {
  const auto packets = [](const char* name) {
    return shipped_control(name).traits().packets_for_ack(Bytes(4178));
  };
  REQUIRE(packets("timely") == 4);  // 16 KiB.
  REQUIRE(packets("hpcc") == 1);
  REQUIRE(packets("dcqcn-simai") == 1);
  REQUIRE(packets("dcqcn-nic") == 0);
  REQUIRE(packets("none") == 0);
}

TEST_CASE("samples show the pace of a control", "[control]") {
  const TestFabric fabric = one_switch(2, fabric_link(gigabits_per_second(100), 1_us));
  PacketEngine engine(fabric.topology, controlled_packets("hpcc"));
  engine.add_connection(std::array{LinkId(0), LinkId(3)});
  REQUIRE(engine.senders().rate(0, 0) == 100e9);
  engine.send(0, {.time = 0, .size = 4'000'000});
  std::vector<PacketEngine::Completion> completions;
  while (completions.empty()) {
    engine.run_window(completions);
  }
  REQUIRE(engine.senders().rate(0, completions[0].time) < 96e9);
  REQUIRE(engine.senders().rate(0, completions[0].time) > 94e9);
}

TEST_CASE("HPCC looks at eight switches and refuses paths of more", "[control]") {
  const LinkSpec link = fabric_link(gigabits_per_second(100), 1_us);
  const TestFabric fabric = switch_row(link, std::vector<LinkSpec>(8, link));
  Traffic traffic;
  traffic.connections.push_back({.source = 0, .target = 8});
  traffic.connections.push_back({.source = 0, .target = 7});
  const auto paths = paths_of(fabric, traffic);
  PacketEngine engine(fabric.topology, controlled_packets("hpcc"));
  REQUIRE_THROWS_MATCHES(
      engine.add_connection(paths[0]), ConfigError,
      Catch::Matchers::Message(
          "congestion control hpcc: expected paths of at most 8 switches, found one of 9"));
  PacketEngine swift(fabric.topology, controlled_packets("swift"));
  REQUIRE(swift.add_connection(paths[0]) == 0);
  PacketEngine shorter(fabric.topology, controlled_packets("hpcc"));
  REQUIRE(shorter.add_connection(paths[1]) == 0);
}

}  // namespace
}  // namespace trainyard
