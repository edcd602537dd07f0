// SPDX-License-Identifier: Apache-2.0
// Order, limits and fingerprint of runs.
#include "support/catch.h"

#include "sim/simulator.h"

#include <vector>

#include "sim/random.h"
#include "support/recorder.h"

namespace trainyard {
namespace {

// Schedules two more events in each of its first ones, at random delays with many ties.
class Branching final : public EventHandler {
 public:
  Branching(Simulator& simulator, std::uint64_t seed)
      : EventHandler(simulator), simulator_(simulator), random_(seed, "branching") {}

  void on_event(std::uint64_t token) override {
    last_ = token;
    for (int child = 0; child < 2 && left_ > 0; ++child) {
      --left_;
      const SimTime delay(static_cast<std::int64_t>(random_.below(50)));
      simulator_.schedule(delay, *this, random_.next() % 1000);
    }
  }
  [[nodiscard]] std::uint64_t last() const { return last_; }

 private:
  Simulator& simulator_;
  RandomStream random_;
  int left_ = 500;
  std::uint64_t last_ = 0;
};

struct Outcome {
  std::uint64_t fingerprint;
  std::uint64_t events;
  SimTime end;
  std::uint64_t last;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome branching_run(std::uint64_t seed) {
  Simulator simulator;
  Branching branching(simulator, seed);
  simulator.schedule(SimTime(), branching, 1);
  simulator.run();
  return {simulator.fingerprint(), simulator.events_processed(), simulator.now(), branching.last()};
}

// Runs (time, token) on one handler and returns the fingerprint.
std::uint64_t fingerprint_of(const std::vector<Woken>& events) {
  Simulator simulator;
  Recorder recorder(simulator);
  for (const Woken& event : events) {
    simulator.schedule_at(event.time, recorder, event.token);
  }
  simulator.run();
  return simulator.fingerprint();
}

TEST_CASE("events run by time, then in the order of scheduling, and the clock follows them") {
  Simulator simulator;
  Recorder recorder(simulator);
  simulator.schedule(nanoseconds(7), recorder, 0);
  simulator.schedule(nanoseconds(5), recorder, 1);
  simulator.schedule_at(nanoseconds(7), recorder, 2);
  simulator.schedule(SimTime(), recorder, 3);
  simulator.run();
  REQUIRE(recorder.events() ==
          std::vector<Woken>{
              {SimTime(), 3}, {nanoseconds(5), 1}, {nanoseconds(7), 0}, {nanoseconds(7), 2}});
  REQUIRE(simulator.now() == nanoseconds(7));
  REQUIRE(simulator.events_processed() == 4);
}

TEST_CASE("run_until includes its limit, stands at the last event and can be continued") {
  Simulator simulator;
  Recorder recorder(simulator);
  for (int i = 1; i <= 5; ++i) {
    simulator.schedule(nanoseconds(10 * i), recorder, static_cast<std::uint64_t>(i));
  }
  simulator.run_until(nanoseconds(30));
  REQUIRE(recorder.tokens() == std::vector<std::uint64_t>{1, 2, 3});
  simulator.run_until(nanoseconds(39));
  REQUIRE(simulator.now() == nanoseconds(30));
  simulator.schedule(nanoseconds(5), recorder, 9);
  simulator.run();
  REQUIRE(recorder.tokens() == std::vector<std::uint64_t>{1, 2, 3, 9, 4, 5});
}

TEST_CASE("a run in slices is the run in one piece") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed=" << seed);
    Simulator simulator;
    Branching branching(simulator, seed);
    simulator.schedule(SimTime(), branching, 1);
    for (std::int64_t limit = 0; limit < 2'000; limit += 13) {
      simulator.run_until(SimTime(limit));
    }
    simulator.run();
    REQUIRE(simulator.fingerprint() == branching_run(seed).fingerprint);
  }
}

TEST_CASE("equal runs have equal fingerprints, other runs others") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed=" << seed);
    REQUIRE(branching_run(seed) == branching_run(seed));
    REQUIRE(branching_run(seed).events == 501);
    REQUIRE(branching_run(seed).fingerprint != branching_run(seed + 1).fingerprint);
  }
}

TEST_CASE("the fingerprint sees order, time and token") {
  const std::uint64_t base = fingerprint_of({{nanoseconds(1), 4}, {nanoseconds(1), 5}});
  REQUIRE(base == fingerprint_of({{nanoseconds(1), 4}, {nanoseconds(1), 5}}));
  REQUIRE(base != fingerprint_of({{nanoseconds(1), 5}, {nanoseconds(1), 4}}));
  REQUIRE(base != fingerprint_of({{nanoseconds(1), 4}, {nanoseconds(2), 5}}));
  REQUIRE(base != fingerprint_of({{nanoseconds(1), 4}, {nanoseconds(1), 6}}));
  REQUIRE(base != fingerprint_of({{nanoseconds(1), 4}}));
}

TEST_CASE("the fingerprint sees which handler ran, by order of construction") {
  const auto run = [](bool second) {
    Simulator simulator;
    Recorder a(simulator);
    Recorder b(simulator);
    REQUIRE(a.handler_id() == 0);
    REQUIRE(b.handler_id() == 1);
    simulator.schedule(nanoseconds(1), second ? b : a, 4);
    simulator.run();
    return simulator.fingerprint();
  };
  REQUIRE(run(false) == run(false));
  REQUIRE(run(false) != run(true));
}

TEST_CASE("the fingerprint of a run is the same number on every machine") {
  REQUIRE(branching_run(1).fingerprint == 0x15ea2d4b9d0a5ecf);
}

TEST_CASE("two simulators in one process do not see each other") {
  Simulator first;
  Simulator second;
  Branching a(first, 3);
  Branching b(second, 4);
  first.schedule(SimTime(), a, 1);
  second.schedule(SimTime(), b, 1);
  for (std::int64_t limit = 0; limit < 2'000; limit += 10) {
    first.run_until(SimTime(limit));
    second.run_until(SimTime(limit));
  }
  first.run();
  second.run();
  REQUIRE(first.fingerprint() == branching_run(3).fingerprint);
  REQUIRE(second.fingerprint() == branching_run(4).fingerprint);
}

}  // namespace
}  // namespace trainyard
