// SPDX-License-Identifier: Apache-2.0
// The event queue at a steady number of pending events: each event popped schedules one more (the
// "hold" model). Items are events. Few ties: delays drawn from a million picoseconds; many ties:
// from eight values, as in lock-step collectives.
#include <benchmark/benchmark.h>

#include "sim/random.h"
#include "sim/simulator.h"

namespace trainyard {
namespace {

class Holder final : public EventHandler {
 public:
  Holder(Simulator& simulator, std::uint64_t distinct, std::uint64_t spacing)
      : EventHandler(simulator),
        simulator_(simulator),
        random_(1, "hold"),
        distinct_(distinct),
        spacing_(spacing) {}
  void schedule() {
    // A multiply and shift instead of below(): the draw must not hide the queue.
    const std::uint64_t draw = (random_.next() >> 32) * distinct_ >> 32;
    simulator_.schedule(SimTime(static_cast<std::int64_t>((1 + draw) * spacing_)), *this, 0);
  }
  void on_event(std::uint64_t /*token*/) override { schedule(); }

 private:
  Simulator& simulator_;
  RandomStream random_;
  std::uint64_t distinct_;
  std::uint64_t spacing_;
};

void hold(benchmark::State& state, std::uint64_t distinct, std::uint64_t spacing) {
  Simulator simulator;
  Holder holder(simulator, distinct, spacing);
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    holder.schedule();
  }
  SimTime until;
  const std::uint64_t before = simulator.events_processed();
  for (auto _ : state) {
    until += SimTime(static_cast<std::int64_t>(distinct * spacing / 8));
    simulator.run_until(until);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(simulator.events_processed() - before));
}

void few_ties(benchmark::State& state) {
  hold(state, 1'000'000, 1);
}
void many_ties(benchmark::State& state) {
  hold(state, 8, 125'000);
}

BENCHMARK(few_ties)->Arg(1'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(many_ties)->Arg(1'000)->Arg(100'000)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainyard
