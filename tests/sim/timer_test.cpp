// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "sim/timer.h"

#include <vector>

namespace trainyard {
namespace {

class Owner final : public TimerOwner {
 public:
  explicit Owner(Simulator& simulator) : simulator_(simulator) {}
  void on_timer() override { times_.push_back(simulator_.now()); }
  [[nodiscard]] const std::vector<SimTime>& times() const { return times_; }

 private:
  Simulator& simulator_;
  std::vector<SimTime> times_;
};

TEST_CASE("a timer fires once after its delay") {
  Simulator simulator;
  Owner owner(simulator);
  Timer timer(simulator, owner);
  REQUIRE_FALSE(timer.armed());
  timer.arm(nanoseconds(5));
  REQUIRE(timer.armed());
  simulator.run();
  REQUIRE(owner.times() == std::vector<SimTime>{nanoseconds(5)});
  REQUIRE_FALSE(timer.armed());
}

TEST_CASE("a cancelled timer does not fire, also when cancelled at its own instant") {
  Simulator simulator;
  Owner owner(simulator);
  Timer timer(simulator, owner);
  class Canceller final : public EventHandler {
   public:
    Canceller(Simulator& owner_of_events, Timer& victim)
        : EventHandler(owner_of_events), victim_(victim) {}
    void on_event(std::uint64_t /*token*/) override { victim_.cancel(); }

   private:
    Timer& victim_;
  };
  Canceller canceller(simulator, timer);
  simulator.schedule(nanoseconds(5), canceller, 0);
  timer.arm(nanoseconds(5));
  simulator.run();
  REQUIRE(owner.times().empty());
  REQUIRE_FALSE(timer.armed());
  timer.cancel();  // Of a timer that is not armed: nothing.
  simulator.run();
  REQUIRE(owner.times().empty());
}

TEST_CASE("arming again forgets the earlier arming, sooner or later") {
  Simulator simulator;
  Owner owner(simulator);
  Timer timer(simulator, owner);
  SECTION("later") {
    timer.arm(nanoseconds(5));
    timer.arm(nanoseconds(9));
    simulator.run();
    REQUIRE(owner.times() == std::vector<SimTime>{nanoseconds(9)});
  }
  SECTION("sooner") {
    timer.arm(nanoseconds(9));
    timer.arm(nanoseconds(5));
    simulator.run();
    REQUIRE(owner.times() == std::vector<SimTime>{nanoseconds(5)});
  }
  SECTION("after a cancel") {
    timer.arm(nanoseconds(5));
    timer.cancel();
    timer.arm(nanoseconds(5));
    simulator.run();
    REQUIRE(owner.times() == std::vector<SimTime>{nanoseconds(5)});
  }
}

TEST_CASE("a timer may be armed again when it fires") {
  Simulator simulator;
  class Repeater final : public TimerOwner {
   public:
    explicit Repeater(Simulator& simulator) : timer_(simulator, *this) { on_timer(); }
    void on_timer() override {
      if (++fired_ <= 4) {
        timer_.arm(nanoseconds(3));
      }
    }
    [[nodiscard]] int fired() const { return fired_; }

   private:
    Timer timer_;
    int fired_ = 0;
  };
  Repeater repeater(simulator);
  simulator.run();
  REQUIRE(repeater.fired() == 5);
  REQUIRE(simulator.now() == nanoseconds(12));
}

}  // namespace
}  // namespace trainyard
