// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "sim/host/run_host.h"

#include <string>
#include <string_view>
#include <thread>

#include "sim/simulator.h"

namespace trainyard {
namespace {

class Host final : public RunHost {
 public:
  void log(std::string_view /*line*/) override {}
  void show_progress(std::string_view /*line*/) override {}
  [[nodiscard]] bool wants_progress() const override { return true; }
  [[nodiscard]] bool wants_end() const override { return ends; }
  bool ends = false;
};

// Wakes itself for ever, and asks for the end once it was woken often.
class Endless final : public EventHandler {
 public:
  Endless(Simulator& simulator, Host& host)
      : EventHandler(simulator), simulator_(simulator), host_(host) {}
  void on_event(std::uint64_t /*token*/) override {
    host_.ends = simulator_.events_processed() > 1'000'000;
    simulator_.schedule(SimTime(1), *this, 0);
  }

 private:
  Simulator& simulator_;
  Host& host_;
};

}  // namespace

TEST_CASE("a thread has the host of its innermost scope, and other threads have none") {
  REQUIRE(run_host() == nullptr);
  Host outer;
  {
    const HostScope scope(&outer);
    REQUIRE(run_host() == &outer);
    {
      const HostScope none(nullptr);
      REQUIRE(run_host() == nullptr);
    }
    REQUIRE(run_host() == &outer);
    RunHost* elsewhere = &outer;
    std::thread([&] { elsewhere = run_host(); }).join();
    REQUIRE(elsewhere == nullptr);
  }
  REQUIRE(run_host() == nullptr);
}

TEST_CASE("only the outermost display of a host is shown") {
  Host host;
  REQUIRE(host.take_display());
  REQUIRE(!host.take_display());
  host.give_display_back();
  REQUIRE(host.take_display());
}

TEST_CASE("a host ends a run between two events, and without a host nothing does") {
  Host host;
  host.ends = true;
  end_if_cancelled();
  const HostScope scope(&host);
  REQUIRE_THROWS_AS(end_if_cancelled(), RunCancelled);
  Simulator simulator;
  Endless endless(simulator, host);
  simulator.schedule(SimTime(1), endless, 0);
  REQUIRE_THROWS_AS(simulator.run(), RunCancelled);
  REQUIRE(simulator.events_processed() > 1'000'000);
  REQUIRE(simulator.events_processed() < 1'100'000);
}

}  // namespace trainyard
