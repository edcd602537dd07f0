// SPDX-License-Identifier: Apache-2.0
// What is seen of queues and rates over time, where it is known from the traffic.
#include "support/catch.h"

#include "network/packet/packet_samples.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "support/fabrics.h"
#include "support/packet_runs.h"

namespace trainyard {
namespace {

using namespace literals;

constexpr std::int64_t kSentPackets = 1'000;
constexpr std::int64_t kSamplesFrame = 4'158;
constexpr Picoseconds kPacketTime = 334'240;  // At 100 Gb/s.

// Two hosts send to a third, all at 100 Gb/s: the queue rises by a packet each packet time until
// they are done, then falls as fast.
struct TwoToOne {
  explicit TwoToOne(const PacketOptions& options)
      : fabric(one_switch(3, fabric_link(gigabits_per_second(100), 1_us))),
        engine(fabric.topology, options) {
    engine.trace(&starts);
    for (const std::uint32_t up : {0U, 2U}) {
      const std::uint32_t connection = engine.add_connection(std::array{LinkId(up), LinkId(5)});
      engine.send(connection, {.time = 0, .size = 4'096 * kSentPackets});
    }
    REQUIRE(run_windows(engine).size() == 2);
  }

  TestFabric fabric;
  std::vector<PacketStart> starts;
  PacketEngine engine;
};

TEST_CASE("a queue that rises and falls is seen rising and falling") {
  PacketOptions options = line_options();
  options.sample_every = 20_us;
  const TwoToOne run(options);
  const std::vector<QueueSample> queues = run.engine.samples()->queues;
  // 2,000 packets take 668 us.
  REQUIRE(queues.size() >= 33);
  for (std::size_t i = 0; i + 1 < queues.size(); ++i) {
    const QueueSample& sample = queues[i];
    const auto due = static_cast<std::int64_t>(i + 1) * (20_us).picoseconds();
    REQUIRE(sample.link == LinkId(5));
    REQUIRE(!sample.is_paused);
    REQUIRE(sample.time.picoseconds() >= due);
    REQUIRE(sample.time.picoseconds() < due + run.engine.window());
    const std::int64_t packets = (sample.time.picoseconds() - 1'000'000) / kPacketTime;
    const std::int64_t waiting = std::min(packets, 2 * kSentPackets - packets);
    INFO(i << " " << to_string(sample.time));
    REQUIRE(std::abs(sample.bytes.count() - std::max<std::int64_t>(0, waiting) * kSamplesFrame) <=
            3 * kSamplesFrame);
  }
  REQUIRE(queues.back().bytes == 0_B);  // When all is over.
  REQUIRE(queues[queues.size() - 2].bytes > 0_B);
}

TEST_CASE("rates over time add up to what was sent, with retransmission too") {
  PacketOptions options = line_options();
  options.sample_every = 50_us;
  options.retransmission =
      GENERATE(Retransmission::None, Retransmission::GoBackN, Retransmission::SelectiveRepeat);
  const TwoToOne run(options);
  std::array<double, 2> sent{};
  std::array<SimTime, 2> before{};
  const PacketSamples samples = run.engine.samples().value();
  for (const RateSample& sample : samples.rates) {
    const std::size_t number = sample.connection.value();
    REQUIRE(sample.source == run.fabric.hosts[number]);
    REQUIRE(sample.target == run.fabric.hosts[2]);
    REQUIRE(sample.limit == gigabits_per_second(100));
    // In whole packets of 4,178 B for 4,096 B.
    REQUIRE(sample.sent <= gigabits_per_second(99));
    sent[number] += static_cast<double>(sample.sent.bits_per_second()) *
                    (sample.time - before[number]).seconds() / 8;
    before[number] = sample.time;
  }
  REQUIRE(samples.rates.size() >= 14);  // 668 us, two flows.
  for (const double bytes : sent) {
    REQUIRE(bytes == Approx(4'096.0 * kSentPackets).epsilon(1e-6));
  }
}

TEST_CASE("percentiles of a queue that rises and falls evenly are parts of its peak") {
  PacketOptions options = line_options();
  REQUIRE(!TwoToOne(options).engine.queue_percentile(Port{}, 50));
  REQUIRE(!TwoToOne(options).engine.samples());
  options.queue_times = true;
  const TwoToOne run(options);
  const Port& port = *run.engine.port(LinkId(5));
  const auto peak = static_cast<double>(port.counters.max_queued);
  REQUIRE(peak == Approx(kSamplesFrame * kSentPackets).epsilon(0.01));
  for (const int percent : {50, 99}) {
    const auto bytes = static_cast<double>(run.engine.queue_percentile(port, percent)->count());
    REQUIRE(bytes > 0.98 * percent / 100 * peak);
    REQUIRE(bytes <= std::min(peak, 1.27 * percent / 100 * peak));
  }
  REQUIRE(run.engine.queue_percentile(*run.engine.port(LinkId(0)), 99) == 0_B);
}

TEST_CASE("a connection is seen from its first message on, and not while it has none") {
  PacketOptions options = line_options();
  options.sample_every = 5_us;
  const TestFabric fabric = one_switch(3, fabric_link(gigabits_per_second(100), 1_us));
  PacketEngine engine(fabric.topology, options);
  for (const std::uint32_t up : {0U, 2U}) {
    engine.add_connection(std::array{LinkId(up), LinkId(5)});
  }
  engine.send(0, {.time = 0, .size = 100'000});
  REQUIRE(run_windows(engine).size() == 1);
  engine.send(1, {.time = (1_ms).picoseconds(), .size = 100'000});
  // While the one is under way and the other one begins, too.
  std::vector<PacketEngine::Completion> completions;
  engine.run_window(completions);
  engine.send(0, {.time = (1_ms).picoseconds() + 4'000'000, .size = 100'000});
  REQUIRE(run_windows(engine).size() == 2);
  const PacketSamples samples = engine.samples().value();
  std::array<int, 2> late{};
  for (const RateSample& sample : samples.rates) {
    const bool is_late = sample.time >= 1_ms;
    REQUIRE((is_late || (sample.connection == ConnectionId(0) && sample.time < 20_us)));
    late.at(sample.connection.value()) += is_late ? 1 : 0;
  }
  // Not of the time in which there was nothing to look at.
  const auto first =
      std::find_if(samples.rates.begin(), samples.rates.end(),
                   [](const RateSample& sample) { return sample.connection == ConnectionId(1); });
  REQUIRE(first->sent > gigabits_per_second(40));
  REQUIRE(late[0] >= 2);  // 25 packets of each take 17 us.
  REQUIRE(late[1] >= 2);
  REQUIRE(late[1] <= 6);
}

// The only packets are lost, and nobody stops waiting for them before the timeout, in 4.3 s.
TEST_CASE("a run with more samples than memory is for ends with an error") {
  PacketOptions options = recovering_options(Retransmission::GoBackN);
  options.sample_every = 100_ns;
  const TestFabric fabric = one_switch(2, fabric_link(gigabits_per_second(100), 1_us));
  PacketEngine engine(fabric.topology, options);
  engine.add_connection(std::array{LinkId(0), LinkId(3)});
  engine.fail_link(LinkId(0), 0);
  engine.send(0, {.time = 0, .size = 100'000});
  REQUIRE_THROWS_WITH(
      run_windows(engine),
      Catch::Matchers::StartsWith("packet engine: expected an interval that makes at most 5000000 "
                                  "samples of queues and rates, found 100ns, which makes more in "
                                  "the first "));
}

TEST_CASE("who looks changes nothing") {
  PacketOptions options = roce_options();
  options.buffer = 500'000_B;
  options.ecn = EcnPreset::Dcqcn;  // Below the thresholds of pauses.
  const TwoToOne plain(options);
  options.queue_times = true;
  options.sample_every = 3_us;
  const TwoToOne observed(options);
  REQUIRE(plain.engine.stats().pauses > 0);
  REQUIRE(plain.engine.stats().cnps > 0);
  REQUIRE(observed.starts.size() == plain.starts.size());
  std::vector<PacketStart> a = plain.starts;
  std::vector<PacketStart> b = observed.starts;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  REQUIRE(a == b);
  const auto is_paused = [](const QueueSample& sample) { return sample.is_paused; };
  const PacketSamples samples = observed.engine.samples().value();
  REQUIRE(std::any_of(samples.queues.begin(), samples.queues.end(), is_paused));
  REQUIRE(std::any_of(samples.rates.begin(), samples.rates.end(), [](const RateSample& sample) {
    return sample.limit < gigabits_per_second(100);
  }));
  // Two runs see the same.
  const TwoToOne again(options);
  const PacketSamples others = again.engine.samples().value();
  REQUIRE(others.queues.size() == samples.queues.size());
  for (std::size_t i = 0; i < others.queues.size(); ++i) {
    REQUIRE(others.queues[i].time == samples.queues[i].time);
    REQUIRE(others.queues[i].bytes == samples.queues[i].bytes);
  }
}

}  // namespace
}  // namespace trainyard
