// SPDX-License-Identifier: Apache-2.0
#include "support/long_incast.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/check.h"
#include "sim/random.h"
#include "support/fabrics.h"

namespace trainyard {
namespace {

// More than a link carries in any test.
constexpr std::int64_t kEndless = std::int64_t{1} << 40;

struct Start {
  SimTime time{};
  std::uint32_t flow = 0;
};

std::vector<Start> starts_of(const LongIncast& incast) {
  std::vector<Start> starts;
  RandomStream random(incast.seed, "starts");
  for (std::uint32_t flow = 0; flow < incast.flows; ++flow) {
    const auto within = static_cast<std::uint64_t>(incast.spread.picoseconds()) + 1;
    const auto drawn = SimTime(static_cast<std::int64_t>(random.below(within)));
    starts.push_back(
        {.time = flow < incast.starts.size() ? incast.starts[flow] : drawn, .flow = flow});
  }
  std::stable_sort(starts.begin(), starts.end(),
                   [](const Start& a, const Start& b) { return a.time < b.time; });
  return starts;
}

LinkId link_to(std::uint32_t host) {
  return LinkId(2 * host + 1);
}

IncastSample sample(const PacketEngine& engine, std::uint32_t flows, SimTime time) {
  IncastSample taken{.time = time, .queue = engine.port(link_to(flows))->queued_bytes};
  for (std::uint32_t flow = 0; flow < flows; ++flow) {
    const Port& port = *engine.port(LinkId(2 * flow));
    taken.rates.push_back(engine.rate(flow));
    taken.sent.push_back(static_cast<std::int64_t>(port.counters.bytes));
  }
  return taken;
}

}  // namespace

IncastRun run_long_incast(const LongIncast& incast, SimTime time) {
  const TestFabric fabric = one_switch(static_cast<int>(incast.flows) + 1, incast.link);
  PacketEngine engine(fabric.topology, incast.options);
  for (std::uint32_t flow = 0; flow < incast.flows; ++flow) {
    engine.add_connection(std::array{LinkId(2 * flow), link_to(incast.flows)});
  }
  for (const Start& start : starts_of(incast)) {
    const bool is_endless = start.flow >= incast.sizes.size();
    const std::int64_t size = is_endless ? kEndless : incast.sizes[start.flow].count();
    engine.send(start.flow, {.time = start.time.picoseconds(), .size = size});
  }
  IncastRun run;
  std::vector<PacketEngine::Completion> completions;
  for (SimTime next = incast.interval; next <= time; next += incast.interval) {
    while (engine.next_border() <= next.picoseconds()) {
      engine.run_window(completions);
    }
    run.samples.push_back(sample(engine, incast.flows, next));
  }
  CHECK(completions.size() <= incast.sizes.size(), "a flow without end came to its end");
  run.stats = engine.stats();
  for (std::uint32_t flow = 0; flow < incast.flows; ++flow) {
    run.pauses += engine.port(LinkId(2 * flow))->counters.pauses_received;
  }
  run.carried = static_cast<std::int64_t>(engine.port(link_to(incast.flows))->counters.bytes);
  return run;
}

IncastSummary summarise(const LongIncast& incast, const IncastRun& run, SimTime from, SimTime to) {
  IncastSummary summary;
  const IncastSample* first = nullptr;
  const IncastSample* last = nullptr;
  double sum = 0.0;
  double squares = 0.0;
  std::int64_t count = 0;
  for (const IncastSample& taken : run.samples) {
    if (taken.time <= from) {
      first = &taken;
    } else if (taken.time <= to) {
      CHECK(first != nullptr, "no sample before the time that is summed up");
      last = &taken;
      const auto queue = static_cast<double>(taken.queue);
      summary.queue_min = count == 0 ? taken.queue : std::min(summary.queue_min, taken.queue);
      summary.queue_max = std::max(summary.queue_max, taken.queue);
      sum += queue;
      squares += queue * queue;
      ++count;
    }
  }
  CHECK(last != nullptr, "no sample in the time that is summed up");
  summary.queue_mean = sum / static_cast<double>(count);
  const double variance =
      squares / static_cast<double>(count) - summary.queue_mean * summary.queue_mean;
  summary.queue_deviation = std::sqrt(std::max(0.0, variance));
  const double seconds = (last->time - first->time).seconds();
  double all = 0.0;
  for (std::uint32_t flow = 0; flow < incast.flows; ++flow) {
    const auto bytes = static_cast<double>(last->sent[flow] - first->sent[flow]);
    summary.rates.push_back(8.0 * bytes / seconds);
    all += summary.rates.back();
  }
  const double mean = all / incast.flows;
  for (const double rate : summary.rates) {
    summary.share_error = std::max(summary.share_error, std::abs(rate - mean) / mean);
  }
  summary.used = all / static_cast<double>(incast.link.bandwidth.bits_per_second());
  return summary;
}

}  // namespace trainyard
