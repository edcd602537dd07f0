// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/traffic/shared_times.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "sim/config_error.h"
#include "support/step_times.h"

namespace trainyard {

TEST_CASE("what many ask for is computed once", "[shared-times]") {
  SteadyGroupTimes* made = nullptr;
  SharedTimes times([&] {
    auto one = std::make_unique<SteadyGroupTimes>(1e9);
    made = one.get();
    return one;
  });
  for (int time = 0; time < 3; ++time) {
    REQUIRE(times.collective(Operation::AllGather, {0, 1}, Bytes(2000)) == nanoseconds(1000));
    REQUIRE(times.transfer(0, 1, Bytes(1000)) == nanoseconds(1000));
    REQUIRE(times.collective(Operation::AllGather, {0, 2}, Bytes(2000)) == nanoseconds(1000));
  }
  REQUIRE(made->collectives == 2);
  REQUIRE(made->transfers == 1);
}

TEST_CASE("several threads ask at once", "[shared-times]") {
  std::atomic<int> makes{0};
  SharedTimes times([&] {
    ++makes;
    return std::make_unique<SteadyGroupTimes>(1e9);
  });
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (int size = 1; size < 200; ++size) {
          (void)times.collective(Operation::AllReduce, {0, 1}, Bytes(size));
        }
      });
    }
  }
  REQUIRE(makes <= 4);
}

TEST_CASE("one that throws leaves the others", "[shared-times]") {
  class Choosy final : public GroupTimes {
   public:
    SimTime collective(Operation, const std::vector<int>& ranks, Bytes) override {
      if (ranks.size() > 2) {
        throw ConfigError("too many");
      }
      return nanoseconds(1);
    }
    SimTime transfer(int, int, Bytes) override { return {}; }
  };
  SharedTimes times([] { return std::make_unique<Choosy>(); });
  REQUIRE_THROWS_AS(times.collective(Operation::AllReduce, {0, 1, 2}, Bytes(8)), ConfigError);
  REQUIRE(times.collective(Operation::AllReduce, {0, 1}, Bytes(8)) == nanoseconds(1));
}

TEST_CASE("what was lent with a plan answers no one who asks without", "[shared-times]") {
  class Planned final : public GroupTimes {
   public:
    void use_plan(const ParallelPlan& plan) override { time_ = nanoseconds(plan.tensor); }
    SimTime collective(Operation, const std::vector<int>&, Bytes) override { return time_; }
    SimTime transfer(int, int, Bytes) override { return time_; }

   private:
    SimTime time_;
  };
  int made = 0;
  SharedTimes times([&] {
    ++made;
    return std::make_unique<Planned>();
  });
  for (const int tensor : {2, 4}) {
    times.lend([&](GroupTimes& own) {
      own.use_plan({.tensor = tensor});
      REQUIRE(own.collective(Operation::AllReduce, {0, 1}, Bytes(8)) == nanoseconds(tensor));
    });
  }
  REQUIRE(times.collective(Operation::AllReduce, {0, 1}, Bytes(8)) == SimTime());
  REQUIRE(made == 2);
}

}  // namespace trainyard
