// SPDX-License-Identifier: Apache-2.0
// Packets that are lost and sent again: against an ordinary simulation packet by packet, and what
// must hold whatever is lost.
#include "support/catch.h"

#include "network/packet/packet_reliability.h"

#include <algorithm>
#include <array>

#include "network/packet/packet.h"
#include "sim/config_error.h"
#include "support/controls.h"
#include "support/effort.h"
#include "support/fabrics.h"
#include "support/messages.h"
#include "support/naive_reliable.h"
#include "support/traced_run.h"

namespace trainyard {
namespace {

using namespace literals;

PacketOptions lossy_options(RandomStream& random) {
  PacketOptions options{.rates = RateMeaning::Line};
  options.mtu = Bytes(std::int64_t{256} << random.below(5));
  options.verb = random.below(2) == 0 ? RdmaVerb::Send : RdmaVerb::Write;
  options.forwarding = random.below(2) == 0 ? Forwarding::StoreAndForward : Forwarding::CutThrough;
  options.retransmission =
      random.below(2) == 0 ? Retransmission::GoBackN : Retransmission::SelectiveRepeat;
  options.packets_per_ack = static_cast<int>(random.below(3)) * 8;
  options.buffer = Bytes(static_cast<std::int64_t>(6'000 + random.below(60'000)));
  options.retry.timeout = SimTime(static_cast<std::int64_t>(20'000'000 + random.below(80'000'000)));
  options.retry.retries = static_cast<int>(random.below(8));
  options.selective.short_timeout = options.retry.timeout;
  options.selective.long_timeout = options.retry.timeout * 3;
  options.selective.retries = options.retry.retries;
  options.selective.window = static_cast<std::int64_t>(random.below(3)) * 20;
  return options;
}

void compare(const TracedRun& fast, const NaiveReliableRun& naive) {
  REQUIRE(fast.starts.size() == naive.starts.size());
  REQUIRE(fast.starts == naive.starts);
  REQUIRE(fast.arrivals == naive.arrivals);
  REQUIRE(fast.stats.drops == naive.drops + naive.bit_errors + naive.link_down);
  REQUIRE(fast.stats.bit_errors == naive.bit_errors);
  REQUIRE(fast.stats.link_down == naive.link_down);
  REQUIRE(fast.stats.retransmitted == naive.resent);
  REQUIRE(fast.stats.timeouts == naive.timeouts);
  REQUIRE(fast.stats.failures == naive.failures);
}

const LinkSpec kReliabilityLink = fabric_link(gigabits_per_second(100), 1_us);

Traffic everybody_to_the_last(std::uint32_t senders, std::uint32_t messages, Bytes size) {
  Traffic traffic;
  for (std::uint32_t i = 0; i < senders * messages; ++i) {
    if (i < senders) {
      traffic.connections.push_back({.source = i, .target = senders});
    }
    traffic.messages.push_back({.connection = i % senders, .time = SimTime(), .size = size});
  }
  return traffic;
}

TEST_CASE("numbers of packets are told from their lower bits") {
  constexpr Psn kFar = (Psn{5} << 32) + 7;
  REQUIRE(whole_number(7, kFar) == kFar);
  REQUIRE(whole_number(9, kFar) == kFar + 2);
  REQUIRE(whole_number(0xffff'ffff, kFar) == kFar - 8);
  REQUIRE(whole_number(3, 0) == 3);
}

TEST_CASE("a message is complete when its packets are, and forgotten when they are acknowledged") {
  for (const Retransmission kind : {Retransmission::GoBackN, Retransmission::SelectiveRepeat}) {
    ReliableConnection ends(recovering_options(kind), {.window = 100});
    ends.add(10'000, 0, 0);
    ends.add(0, 5, 1);
    ends.post_due(0);
    std::vector<ReliableConnection::Piece> pieces;
    while (ends.can_send()) {
      pieces.push_back(ends.send(0));
    }
    REQUIRE(pieces.size() == 3);
    REQUIRE(pieces[0].begins_message);
    REQUIRE(pieces[2].ends_message);
    REQUIRE(pieces[2].payload == 10'000 - 2 * 4096);
    ends.post_due(5);
    REQUIRE(ends.can_send());
    const ReliableConnection::Piece empty = ends.send(5);
    REQUIRE(empty.number == 3);
    REQUIRE(empty.payload == 0);
    REQUIRE((empty.begins_message && empty.ends_message));
    REQUIRE(ends.deadline() != kNeverTime);
    // The second packet is lost.
    for (const std::uint32_t number : {0U, 2U, 3U}) {
      const auto answer = ends.on_packet(number, number == 2, 16);
      REQUIRE(ends.take_completed() == 0);
      if (answer.is_sent) {
        ends.on_answer(answer.number, answer.is_nak, 10);
      }
    }
    std::uint32_t completed = 0;
    while (ends.can_send()) {
      const auto piece = ends.send(20);
      REQUIRE(piece.is_again);
      const auto answer =
          ends.on_packet(static_cast<std::uint32_t>(piece.number), piece.ends_message, 16);
      completed += ends.take_completed();
      if (answer.is_sent) {
        ends.on_answer(answer.number, answer.is_nak, 30);
      }
    }
    REQUIRE(completed == 2);
    REQUIRE(ends.deadline() == kNeverTime);
    REQUIRE(ends.resent() == (kind == Retransmission::GoBackN ? 3 : 1));
  }
}

TEST_CASE("where nothing is lost, retransmission changes no packet") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "lossless");
    const TestFabric fabric = random_fabric(random);
    const Traffic traffic = traffic_between_hosts(fabric, random, 16);
    PacketOptions options = recovering_options(Retransmission::None);
    const TracedRun without = run_traced(fabric, traffic, options);
    options.retransmission = Retransmission::GoBackN;
    const TracedRun with = run_traced(fabric, traffic, options);
    REQUIRE(with.starts == without.starts);
    REQUIRE(with.arrivals == without.arrivals);
    REQUIRE(with.stats.retransmitted == 0);
    REQUIRE(with.stats.timeouts == 0);
    REQUIRE(!with.complaint);
  }
}

TEST_CASE("without retransmission nothing of a connection counts behind a loss") {
  PacketOptions options = recovering_options(Retransmission::None);
  options.buffer = 100'000_B;
  const TestFabric fabric = one_switch(5, kReliabilityLink);
  // The buffer overflows while the second messages are sent.
  const TracedRun run = run_traced(fabric, everybody_to_the_last(4, 8, 8'000_B), options);
  REQUIRE(run.stats.drops > 0);
  for (std::size_t first = 0; first < 4; ++first) {
    bool is_broken = false;
    for (std::size_t i = first; i < run.arrivals.size(); i += 4) {
      REQUIRE((!is_broken || !run.arrivals[i]));
      is_broken = !run.arrivals[i];
    }
    REQUIRE(run.arrivals[first]);
  }
  REQUIRE(run.complaint);
}

TEST_CASE("an incast into a small buffer arrives as a whole, by fewer packets if only holes go") {
  const TestFabric fabric = one_switch(9, kReliabilityLink);
  const Traffic traffic = everybody_to_the_last(8, 2, 1_MiB);
  std::array<std::uint64_t, 2> resent{};
  for (const std::size_t i : {0U, 1U}) {
    PacketOptions options =
        recovering_options(i == 0 ? Retransmission::GoBackN : Retransmission::SelectiveRepeat);
    options.buffer = 400'000_B;
    options.retry.timeout = 200_us;
    options.retry.retries = 100;
    const TracedRun run = run_traced(fabric, traffic, options);
    REQUIRE(!run.complaint);
    REQUIRE(run.stats.drops > 0);
    REQUIRE(run.stats.retransmitted >= run.stats.drops);
    resent[i] = run.stats.retransmitted;
  }
  REQUIRE(resent[0] > 2 * resent[1]);
}

TEST_CASE("where switches trim, an incast loses nothing and no timer runs out") {
  constexpr std::uint32_t kSenders = 32;
  const TestFabric fabric = one_switch(kSenders + 1, kReliabilityLink);
  const Traffic traffic = everybody_to_the_last(kSenders, 1, 500'000_B);
  PacketOptions options = recovering_options(Retransmission::SelectiveRepeat);
  options.buffer = 400'000_B;
  options.trims = true;
  const TracedRun run = run_traced(fabric, traffic, options);
  REQUIRE(!run.complaint);
  REQUIRE(run.stats.drops == 0);
  REQUIRE(run.stats.timeouts == 0);
  REQUIRE(run.stats.retransmitted > 100);
  // The last link is never idle: it has all data, and headers of each packet that was sent again.
  constexpr double kPayload = 1280.0;            // us, at 100 Gb/s.
  constexpr double kPackets = 1306.0;            // The same with their headers, 4178 for 4096.
  constexpr double kTrimmed = 84.0 * 8.0 / 1e5;  // us: 64 B, preamble and gap.
  const double headers = kTrimmed * static_cast<double>(run.stats.retransmitted);
  const double last = (**std::ranges::max_element(run.arrivals)).microseconds();
  INFO(last << " us, of which headers " << headers);
  REQUIRE(last > kPayload + headers);
  REQUIRE(last < 1.03 * (kPackets + headers));
  options.longest_window = 100_ns;
  options.threads = 2;
  const TracedRun again = run_traced(fabric, traffic, options);
  REQUIRE(again.starts == run.starts);
  REQUIRE(again.arrivals == run.arrivals);
}

TEST_CASE("what was trimmed waits for room in the window before it is sent again") {
  constexpr std::uint32_t kSenders = 64;
  const TestFabric fabric = one_switch(kSenders + 1, kReliabilityLink);
  const Traffic traffic = everybody_to_the_last(kSenders, 1, 500'000_B);
  PacketOptions options = recovering_options(Retransmission::SelectiveRepeat);
  set_control(options, shipped_control("nscc"));
  options.buffer = 100'000_B;
  options.trims = true;
  const TracedRun run = run_traced(fabric, traffic, options);
  REQUIRE(!run.complaint);
  REQUIRE(run.stats.drops == 0);
  const std::uint64_t packets = kSenders * (500'000 / 4096 + 1);
  INFO(run.stats.retransmitted << " of " << packets << " packets again");
  REQUIRE(run.stats.retransmitted > packets / 10);
  REQUIRE(run.stats.retransmitted < 6 * packets);
}

TEST_CASE("trimming is refused where nothing is sent again, or nothing is lost") {
  const auto check = [](PacketOptions options) {
    options.trims = true;
    check_options(options);
  };
  PacketOptions good = recovering_options(Retransmission::SelectiveRepeat);
  good.buffer = 400'000_B;
  check(good);
  PacketOptions bad = good;
  bad.retransmission = Retransmission::GoBackN;
  REQUIRE_THROWS_AS(check(bad), ConfigError);
  bad = good;
  bad.pfc = true;
  REQUIRE_THROWS_AS(check(bad), ConfigError);
  bad = good;
  bad.buffer = 0_B;
  REQUIRE_THROWS_AS(check(bad), ConfigError);
}

TEST_CASE("packets that links lose are sent again when an ordinary simulation says") {
  std::uint64_t bit_errors = 0;
  std::uint64_t link_down = 0;
  std::uint64_t failures = 0;
  for (std::uint64_t seed = 0; seed < cases(300); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "links");
    const TestFabric fabric = random_fabric(random);
    const Traffic traffic = traffic_between_hosts(fabric, random, 16);
    PacketOptions options = lossy_options(random);
    options.seed = seed;
    if (random.below(2) == 0) {
      options.buffer = Bytes(0);
    }
    if (random.below(3) > 0) {
      options.bit_error_rate = random.below(2) == 0 ? 3e-7 : 3e-6;
    }
    NaiveFailures pulled;
    for (std::uint64_t left = random.below(3); left > 0; --left) {
      const auto link = static_cast<std::uint32_t>(random.below(fabric.topology.link_count()));
      pulled.emplace_back(link, SimTime(static_cast<std::int64_t>(random.below(200'000'000))));
    }
    const NaiveReliableRun naive =
        run_naive_reliable(fabric, traffic, paths_of(fabric, traffic), options, pulled);
    options.always_exact = random.below(3) == 0;
    options.longest_window = SimTime(static_cast<std::int64_t>(random.below(3)) * 7'000'000);
    for (const auto& [link, time] : pulled) {
      options.failures.push_back({.link = link, .time = time});
    }
    const TracedRun fast = run_traced(fabric, traffic, options);
    compare(fast, naive);
    bit_errors += fast.stats.bit_errors;
    link_down += fast.stats.link_down;
    failures += fast.stats.failures;
    const bool is_whole = std::all_of(fast.arrivals.begin(), fast.arrivals.end(),
                                      [](const auto& time) { return time.has_value(); });
    REQUIRE(is_whole == !fast.complaint);
    REQUIRE((is_whole || fast.stats.failures > 0));
  }
  REQUIRE(bit_errors > cases(1'000));
  REQUIRE(link_down > cases(10'000));
  REQUIRE(failures > cases(100));
}

TEST_CASE("a timeout of nothing is the user's mistake") {
  const TestFabric fabric = one_switch(2, kReliabilityLink);
  PacketOptions options = recovering_options(Retransmission::GoBackN);
  options.retry.timeout = SimTime();
  REQUIRE_THROWS_AS(PacketEngine(fabric.topology, options), ConfigError);
  options = recovering_options(Retransmission::SelectiveRepeat);
  options.selective.short_timeout = SimTime();
  REQUIRE_THROWS_AS(PacketEngine(fabric.topology, options), ConfigError);
}

TEST_CASE("packets that no buffer holds are sent again when an ordinary simulation says") {
  std::uint64_t drops = 0;
  std::uint64_t resent = 0;
  std::uint64_t failures = 0;
  for (std::uint64_t seed = 0; seed < cases(300); ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "overflow");
    const TestFabric fabric = random_fabric(random);
    const Traffic traffic = traffic_between_hosts(fabric, random, 16);
    PacketOptions options = lossy_options(random);
    const NaiveReliableRun naive =
        run_naive_reliable(fabric, traffic, paths_of(fabric, traffic), options);
    options.always_exact = random.below(3) == 0;
    options.longest_window = SimTime(static_cast<std::int64_t>(random.below(3)) * 7'000'000);
    const TracedRun fast = run_traced(fabric, traffic, options);
    compare(fast, naive);
    drops += fast.stats.drops;
    resent += fast.stats.retransmitted;
    failures += fast.stats.failures;
    // All bytes are delivered, or the loss is said.
    const bool is_whole = std::all_of(fast.arrivals.begin(), fast.arrivals.end(),
                                      [](const auto& time) { return time.has_value(); });
    REQUIRE(is_whole == !fast.complaint);
    REQUIRE((is_whole || fast.stats.failures > 0));
  }
  REQUIRE(drops > cases(5'000));
  REQUIRE(resent > cases(5'000));
  REQUIRE(failures >= cases(5));
}

}  // namespace
}  // namespace trainyard
