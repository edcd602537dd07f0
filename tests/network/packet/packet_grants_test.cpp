// SPDX-License-Identifier: Apache-2.0
// Receiver credits in the packet engine: line rate, queues and shares under incast, and that no
// lost packet stops a flow for ever.
#include "support/catch.h"

#include "network/packet_parts/packet_grants.h"

#include <algorithm>
#include <array>

#include "network/packet/packet.h"
#include "support/controls.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/packet_runs.h"
#include "support/traced_run.h"

namespace trainyard {
namespace {

using namespace literals;

const LinkSpec kHundred = fabric_link(gigabits_per_second(100), 1_us);
constexpr Picoseconds kSlot = 334'240;  // Of a full packet at 100 Gb/s.

PacketOptions credited(double speculative = 1.0) {
  PacketOptions options = controlled_packets("receiver-credit");
  options.verb = RdmaVerb::Send;
  std::get<CreditProfile>(options.profile->rules).speculative = speculative;
  return options;
}

// Of a connection of the receiving port, as the engine takes them.
CreditSettings settings_at_port(const PacketEngine& engine) {
  return std::get<CreditSettings>(engine.senders().control()->settings(0).rules);
}

struct IncastRun {
  std::vector<Picoseconds> ends;  // By sender.
  std::int64_t max_queued = 0;
  CreditSettings credits;
  Picoseconds last = 0;
};

IncastRun run_credited_incast(std::uint32_t senders, std::int64_t packets,
                              const PacketOptions& options) {
  const TestFabric fabric = one_switch(static_cast<int>(senders) + 1, kHundred);
  PacketEngine engine(fabric.topology, options);
  const LinkId last(2 * senders + 1);
  for (std::uint32_t i = 0; i < senders; ++i) {
    engine.add_connection(std::array{LinkId(2 * i), last});
    engine.send(i, {.time = 0, .size = 4096 * packets});
  }
  IncastRun run;
  run.ends.resize(senders);
  for (const PacketEngine::Completion& completion : run_windows(engine)) {
    run.ends[completion.order] = completion.time;
    run.last = std::max(run.last, completion.time);
  }
  REQUIRE(engine.incomplete() == 0);
  REQUIRE(engine.port(last)->counters.packets == senders * static_cast<std::uint64_t>(packets));
  run.max_queued = engine.port(last)->counters.max_queued;
  run.credits = settings_at_port(engine);
  return run;
}

TEST_CASE("with receiver credits one flow gets the line rate but for its request", "[grants]") {
  constexpr std::int64_t kPackets = 5000;
  const IncastRun run = run_credited_incast(1, kPackets, credited());
  const Picoseconds request = 86 * 80;
  REQUIRE(run.last == (kPackets + 1) * kSlot + (2_us).picoseconds() + request);
}

TEST_CASE("an incast under receiver credits drains at the rate of the link", "[grants]") {
  for (const std::uint32_t senders : {2U, 8U, 32U}) {
    for (const double speculative : {0.0, 0.5, 1.0}) {
      INFO(senders << " senders, " << speculative);
      constexpr std::int64_t kPackets = 400;
      const IncastRun run = run_credited_incast(senders, kPackets, credited(speculative));
      // The first packet waits for nothing, or for a request and its grant.
      const Picoseconds first = kSlot + (2_us).picoseconds() + 86 * 80;
      const Picoseconds asking = speculative == 0.0 ? 4 * 86 * 80 + (4_us).picoseconds() : 0;
      const Picoseconds link = senders * kPackets * kSlot;
      REQUIRE(run.last >= first + link);
      REQUIRE(run.last <= first + asking + link + 2 * kSlot);
      // What nobody asked for, once; then what may be on its way, and what senders overdraw.
      const std::int64_t unasked = run.credits.speculative.count() + 4178;
      const std::int64_t granted = run.credits.window.count() + 4178;
      REQUIRE(run.max_queued <= std::max(senders * unasked, granted));
      const auto [min, max] = std::minmax_element(run.ends.begin(), run.ends.end());
      REQUIRE(*max - *min <= 2 * senders * kSlot);
    }
  }
}

TEST_CASE("credits keep the queue of an incast small where windows at senders do not", "[grants]") {
  constexpr std::uint32_t kSenders = 16;
  const IncastRun credits = run_credited_incast(kSenders, 1000, credited(0.0));
  PacketOptions none = controlled_packets("none");
  none.verb = RdmaVerb::Send;
  const TestFabric fabric = one_switch(kSenders + 1, kHundred);
  PacketEngine engine(fabric.topology, none);
  for (std::uint32_t i = 0; i < kSenders; ++i) {
    engine.add_connection(std::array{LinkId(2 * i), LinkId(2 * kSenders + 1)});
    engine.send(i, {.time = 0, .size = 4'096'000});
  }
  static_cast<void>(run_windows(engine));
  REQUIRE(credits.max_queued * 100 < engine.port(LinkId(2 * kSenders + 1))->counters.max_queued);
  REQUIRE(credits.max_queued < 20 * 4178);
}

TEST_CASE("flows that begin later get the same share as those before", "[grants]") {
  const TestFabric fabric = one_switch(5, kHundred);
  PacketEngine engine(fabric.topology, credited());
  for (std::uint32_t i = 0; i < 4; ++i) {
    engine.add_connection(std::array{LinkId(2 * i), LinkId(9)});
    engine.send(i, {.time = (100_us * i).picoseconds(), .size = 400'000'000});
  }
  std::vector<PacketEngine::Completion> completions;
  std::array<std::int64_t, 4> before{};
  while (engine.next_border() <= (2_ms).picoseconds()) {
    engine.run_window(completions);
    if (engine.next_border() > (1_ms).picoseconds() && before[0] == 0) {
      for (std::uint32_t i = 0; i < 4; ++i) {
        before[i] = engine.senders().payload_sent(i);
      }
    }
  }
  for (std::uint32_t i = 0; i < 4; ++i) {
    const auto share = static_cast<double>(engine.senders().payload_sent(i) - before[i]);
    REQUIRE(share * 8 / 1e-3 / 25e9 == Approx(4096.0 / 4178).epsilon(0.02));
  }
}

// The port that grants tells the host of packets too, in the same order of time.
TEST_CASE("a slow receiver that grants gets all, as fast as it drains", "[grants]") {
  constexpr std::int64_t kPackets = 2000;
  const TestFabric fabric = one_switch(3, kHundred);
  PacketOptions options = credited();
  options.pfc = true;
  options.slow_hosts = {
      {.node = fabric.hosts[2],
       .receiver = {
           .drain = gigabits_per_second(25), .xoff = Bytes(40'000), .xon = Bytes(20'000)}}};
  std::vector<Picoseconds> ends;
  for (const int threads : {1, 3}) {
    options.threads = threads;
    options.min_shared = 1;
    PacketEngine engine(fabric.topology, options);
    for (std::uint32_t i = 0; i < 2; ++i) {
      engine.add_connection(std::array{LinkId(2 * i), LinkId(5)});
      engine.send(i, {.time = 0, .size = 4096 * kPackets});
    }
    std::vector<Picoseconds> times;
    for (const PacketEngine::Completion& completion : run_windows(engine)) {
      times.push_back(completion.time);
    }
    REQUIRE(times.size() == 2);
    REQUIRE(engine.incomplete() == 0);
    const SimTime drained = transfer_time(Bytes(2 * 4096 * kPackets), gigabits_per_second(25));
    REQUIRE(SimTime(times.back()) / drained == Approx(1.0).margin(0.05));
    REQUIRE((ends.empty() || ends == times));
    ends = times;
  }
}

// A longer path has a larger window. The pacer is full when the connection is added, and would at
// once grant what it has room for then: in the past.
TEST_CASE("it changes nothing when a connection over a longer path is set up", "[grants]") {
  LinkSpec far = kHundred;
  far.latency = 50_us;
  const TestFabric fabric = uneven_switch({kHundred, kHundred, far, kHundred});
  PacketOptions options = credited();
  std::get<CreditProfile>(options.profile->rules).window = 0.5;
  const auto run = [&](int threads, SimTime set_up) {
    options.threads = threads;
    options.min_shared = 1;
    PacketEngine engine(fabric.topology, options);
    for (std::uint32_t i = 0; i < 2; ++i) {
      engine.add_connection(std::array{LinkId(2 * i), LinkId(7)});
      engine.send(i, {.time = 0, .size = 4'000'000});
    }
    std::vector<PacketEngine::Completion> completions;
    while (engine.next_border() <= set_up.picoseconds()) {
      engine.run_window(completions);
    }
    engine.add_connection(std::array{LinkId(4), LinkId(7)});
    engine.send(2, {.time = (200_us).picoseconds(), .size = 4'000'000});
    std::vector<Picoseconds> ends;
    for (const PacketEngine::Completion& completion : run_windows(engine)) {
      ends.push_back(completion.time);
    }
    REQUIRE(ends.size() == 3);
    return ends;
  };
  const std::vector<Picoseconds> at_once = run(1, SimTime());
  for (const int threads : {1, 3}) {
    for (const SimTime set_up : {50_us, 120_us, 199_us}) {
      REQUIRE((run(threads, set_up) == at_once));
    }
  }
}

TEST_CASE("grants that are lost are said again", "[grants]") {
  const TestFabric fabric = one_switch(5, kHundred);
  for (const double speculative : {0.0, 1.0}) {
    PacketEngine engine(fabric.topology, credited(speculative));
    for (std::uint32_t i = 0; i < 4; ++i) {
      engine.add_connection(std::array{LinkId(2 * i), LinkId(9)});
      // By the link back only control packets come: one of five does not.
      engine.set_bit_error_rate(LinkId(2 * i + 1), 3.3e-4);
      engine.send(i, {.time = 0, .size = 2'000'000});
      engine.send(i, {.time = (1_ms).picoseconds(), .size = 100'000});
    }
    REQUIRE(run_windows(engine).size() == 8);
    REQUIRE(engine.stats().bit_errors > 100);
    REQUIRE(engine.failures().empty());
  }
}

TEST_CASE("a request that nobody answers is given up in the end, and said", "[grants]") {
  const TestFabric fabric = one_switch(3, kHundred);
  PacketEngine engine(fabric.topology, credited(0.0));
  engine.add_connection(std::array{LinkId(0), LinkId(5)});
  engine.add_connection(std::array{LinkId(2), LinkId(5)});
  engine.fail_link(LinkId(0), (50_us).picoseconds());
  engine.send(0, {.time = 0, .size = 4'000'000});
  engine.send(1, {.time = 0, .size = 4'000'000});
  // What was granted to the one that is gone stops the other one for a while only.
  const auto completions = run_windows(engine);
  REQUIRE(completions.size() == 1);
  REQUIRE(completions.front().order == 1);
  REQUIRE(completions.front().time < (2_ms).picoseconds());
  REQUIRE(engine.incomplete() == 1);
  REQUIRE(engine.failures().size() == 1);
  REQUIRE(engine.failures().front().connection == 0);
}

TEST_CASE("under credits no length of windows, way through a switch or thread changes a packet",
          "[grants]") {
  for (std::uint64_t seed = 0; seed < cases(20); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "credited packets");
    const TestFabric fabric = random_fabric(random);
    const Traffic traffic = random_traffic(fabric, random);
    PacketOptions options = credited(static_cast<double>(random.below(4)) / 2);
    options.mtu = Bytes(std::int64_t{1024} << random.below(3));
    options.verb = random.below(2) == 0 ? RdmaVerb::Send : RdmaVerb::Write;
    options.forwarding =
        random.below(2) == 0 ? Forwarding::StoreAndForward : Forwarding::CutThrough;
    options.retransmission = static_cast<Retransmission>(random.below(3));
    options.retry.timeout = 300_us;
    auto& credits = std::get<CreditProfile>(options.profile->rules);
    credits.quantum = Bytes(static_cast<std::int64_t>(500 + random.below(9'000)));
    credits.window = 0.5 + static_cast<double>(random.below(30)) / 10;
    credits.patience = microseconds(static_cast<std::int64_t>(20 + random.below(500)));
    if (options.retransmission != Retransmission::None && random.below(2) == 0) {
      options.bit_error_rate = 3e-7;
    }
    const TracedRun run = run_traced(fabric, traffic, options);
    const bool is_whole =
        std::ranges::all_of(run.arrivals, [](const auto& time) { return time.has_value(); });
    REQUIRE(is_whole == !run.complaint);
    REQUIRE((options.bit_error_rate > 0 || run.stats.retransmitted == 0));
    options.longest_window = SimTime(static_cast<std::int64_t>(5'000 + random.below(200'000)));
    options.always_exact = random.below(2) == 0;
    options.threads = 1 + static_cast<int>(random.below(4));
    options.min_shared = 1;
    const TracedRun other = run_traced(fabric, traffic, options);
    REQUIRE((other.starts == run.starts));
    REQUIRE((other.arrivals == run.arrivals));
  }
}

}  // namespace
}  // namespace trainyard
