// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "hw/control/callback_control.h"

#include <vector>

#include "hw/control/control_profile.h"
#include "sim/config_error.h"
#include "sim/host/run_host.h"
#include "support/program.h"

namespace trainyard {
namespace {

// Remembers what it is told, and answers with what it is given.
class CallbackRecorder final : public ControlCallback {
 public:
  std::vector<ControlEvent> events;
  ControlPace answer;

 private:
  ControlPace pace(const ControlEvent& event) override {
    events.push_back(event);
    return answer;
  }
};

class CallbackHost final : public RunHost {
 public:
  CallbackRecorder recorder;

  [[nodiscard]] ControlCallback* control() override { return &recorder; }

 private:
  void log(std::string_view /*line*/) override {}
  void show_progress(std::string_view /*line*/) override {}
  [[nodiscard]] bool wants_progress() const override { return false; }
  [[nodiscard]] bool wants_end() const override { return false; }
};

constexpr PortTerms kCallbackPort{
    .line = gigabits_per_second(100), .base_rtt = microseconds(8), .packet = Bytes(4178)};

}  // namespace

TEST_CASE("a callback hears what happens to each flow, and its answer holds until the next event",
          "[transport]") {
  CallbackHost host;
  CallbackRecorder& recorder = host.recorder;
  const CallbackProfile profile{.callback = &recorder};
  const ControlSettings settings{kCallbackPort, CallbackControl::settings(profile, kCallbackPort)};
  SenderControl first(settings);
  recorder.answer = {.window_bytes = 100'000, .bits_per_second = 25'000'000'000};
  SenderControl second(settings);
  REQUIRE(recorder.events.size() == 2);
  REQUIRE(recorder.events[0].kind == ControlEvent::Kind::Start);
  REQUIRE(recorder.events[1].flow == 1);
  REQUIRE(recorder.events[1].line_bits_per_second == 100'000'000'000);
  REQUIRE(recorder.events[1].base_rtt_ps == 8'000'000);
  REQUIRE(recorder.events[1].packet_bytes == 4178);
  REQUIRE(first.window() == kUnlimitedWindow);
  REQUIRE(first.rate(SimTime()) == kCallbackPort.line);
  REQUIRE(second.window() == Bytes(100'000));
  REQUIRE(second.rate(SimTime()) == gigabits_per_second(25));

  recorder.answer = {.window_bytes = 1, .bits_per_second = 800'000'000'000};
  first.on_ack({.now = microseconds(9),
                .rtt = microseconds(7),
                .acked = 4178,
                .next = 8356,
                .size = Bytes(4178),
                .is_marked = true});
  const ControlEvent& ack = recorder.events.back();
  REQUIRE(ack.kind == ControlEvent::Kind::Ack);
  REQUIRE(ack.flow == 0);
  REQUIRE(ack.now_ps == 9'000'000);
  REQUIRE(ack.rtt_ps == 7'000'000);
  REQUIRE(ack.acked == 4178);
  REQUIRE(ack.next == 8356);
  REQUIRE(ack.size_bytes == 4178);
  REQUIRE(ack.is_marked);
  REQUIRE(first.window() == kCallbackPort.packet);       // At least a packet,
  REQUIRE(first.rate(SimTime()) == kCallbackPort.line);  // and at most the rate of the port.
  REQUIRE(second.window() == Bytes(100'000));
}

TEST_CASE("a callback is told of losses and timeouts, and of no round trip that nobody knows",
          "[transport]") {
  CallbackHost host;
  const CallbackProfile profile{.callback = &host.recorder};
  const ControlSettings settings{kCallbackPort, CallbackControl::settings(profile, kCallbackPort)};
  SenderControl flow(settings);
  flow.on_loss(microseconds(2));
  flow.on_timeout(microseconds(3));
  flow.on_ack({.now = microseconds(4), .rtt = microseconds(4), .tells_rtt = false});
  const std::vector<ControlEvent>& events = host.recorder.events;
  REQUIRE(events.size() == 4);
  REQUIRE(events[1].kind == ControlEvent::Kind::Loss);
  REQUIRE(events[1].now_ps == 2'000'000);
  REQUIRE(events[2].kind == ControlEvent::Kind::Timeout);
  REQUIRE(events[3].kind == ControlEvent::Kind::Ack);
  REQUIRE(events[3].rtt_ps == 0);
}

TEST_CASE("a file of a callback is for the host of a run that has one", "[transport]") {
  const ScratchFolder folder;
  const auto file = folder.write("mine.yaml", "sources: {}\nalgorithm: callback\n");
  REQUIRE_THROWS_WITH(
      ControlProfile::load(file),
      Catch::Matchers::EndsWith("algorithm: expected a program that calls the library with a "
                                "control of its own, found \"callback\""));
  CallbackHost host;
  const HostScope scope(&host);
  const ControlProfile profile = ControlProfile::load(file);
  REQUIRE(profile.name == "mine");
  REQUIRE(profile.traits().marks == MarkSignal::Echoes);
  REQUIRE(SenderControl(profile.settings(kCallbackPort)).window() == kUnlimitedWindow);
  REQUIRE(host.recorder.events.size() == 1);
}

}  // namespace trainyard
