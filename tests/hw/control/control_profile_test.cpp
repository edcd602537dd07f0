// SPDX-License-Identifier: Apache-2.0
// The shipped congestion controls: what their files say, and what that means for a port.
#include "support/catch.h"

#include <filesystem>
#include <string>

#include "hw/control/control_profile.h"
#include "support/paths.h"

namespace trainyard {
namespace {

using namespace literals;

std::filesystem::path folder() {
  return source_dir() / "configs/transport/control";
}

ControlProfile shipped(const std::string& name) {
  return ControlProfile::load(folder() / (name + ".yaml"));
}

// 400 Gb/s and 8 us: 400 kB in flight.
constexpr PortTerms kPort{
    .line = gigabits_per_second(400), .base_rtt = microseconds(8), .packet = Bytes(4178)};

template <typename Settings>
Settings settings_for(const std::string& name, const PortTerms& port = kPort) {
  return std::get<Settings>(shipped(name).settings(port).rules);
}

}  // namespace

TEST_CASE("the NIC's DCQCN is that of the firmware, with increases for the speed of the port",
          "[transport]") {
  const ControlProfile profile = shipped("dcqcn-nic");
  REQUIRE(profile.name == "dcqcn-nic");
  REQUIRE(profile.traits().cnp_interval == 4_us);
  const auto settings = settings_for<DcqcnSettings>("dcqcn-nic");
  REQUIRE(settings.timing == CutTiming::Periodic);
  REQUIRE(settings.g == 5.0 / 1024);
  REQUIRE(settings.alpha_interval == 1_us);
  REQUIRE(settings.cut_interval == 4_us);
  REQUIRE(settings.rate_timer == 300_us);
  REQUIRE(settings.byte_counter == Bytes(0));
  REQUIRE(!settings.clamp_target);
  REQUIRE(settings.additive == Bandwidth(80'000'000));
  REQUIRE(settings.hyper == Bandwidth(800'000'000));
  REQUIRE(settings.line == gigabits_per_second(400));
}

TEST_CASE("the paper's DCQCN is the default of the settings, whatever the port", "[transport]") {
  const auto settings = settings_for<DcqcnSettings>("dcqcn-paper");
  const DcqcnSettings expected;
  REQUIRE(settings.timing == expected.timing);
  REQUIRE(settings.g == expected.g);
  REQUIRE(settings.alpha_interval == expected.alpha_interval);
  REQUIRE(settings.rate_timer == expected.rate_timer);
  REQUIRE(settings.byte_counter == expected.byte_counter);
  REQUIRE(settings.threshold == expected.threshold);
  REQUIRE(settings.counts_first);
  REQUIRE(settings.hyper_grows);
  REQUIRE(settings.clamp_target);
  REQUIRE(settings.additive == Bandwidth(40'000'000));
}

TEST_CASE("of the simulators' DCQCN only SimAI's has a window", "[transport]") {
  REQUIRE(settings_for<DcqcnSettings>("dcqcn-hpcc").window == Bytes(0));
  REQUIRE(settings_for<DcqcnSettings>("dcqcn-simai").window == Bytes(400'000));
  REQUIRE(settings_for<DcqcnSettings>("dcqcn-hpcc").min == gigabits_per_second(1));
  REQUIRE(settings_for<DcqcnSettings>("dcqcn-simai").rate_timer == 900_us);
  const PortTerms slow{.line = Bandwidth(500'000'000), .base_rtt = 8_us, .packet = Bytes(1106)};
  REQUIRE(settings_for<DcqcnSettings>("dcqcn-hpcc", slow).min == slow.line);
}

TEST_CASE("windows follow the port: a round trip at line rate", "[transport]") {
  REQUIRE(settings_for<HpccSettings>("hpcc").additive == Approx(160e6 / 8 * 8e-6));
  REQUIRE(settings_for<DctcpSettings>("dctcp").first_window == Bytes(400'000));
  REQUIRE(settings_for<SwiftSettings>("swift").first_window == Approx(400'000.0 / 4178));
  REQUIRE(settings_for<CreditSettings>("receiver-credit").window == Bytes(600'000));
  REQUIRE(settings_for<TimelySettings>("timely").additive == Bandwidth(400'000'000));
}

TEST_CASE("the traits of a control say what it needs of receivers and switches", "[transport]") {
  REQUIRE(!shipped("none").traits().needs_acks());
  REQUIRE(shipped("none").traits().marks == MarkSignal::None);
  REQUIRE(!shipped("dcqcn-nic").traits().needs_acks());
  REQUIRE(shipped("dcqcn-nic").traits().marks == MarkSignal::Cnps);
  REQUIRE(shipped("dcqcn-nic").traits().marking.empty());
  REQUIRE(shipped("dcqcn-simai").traits().packets_for_ack(Bytes(4178)) == 1);
  REQUIRE(shipped("hpcc").traits().telemetry == IntFormat::Exact);
  REQUIRE(shipped("timely").traits().packets_for_ack(Bytes(4178)) == 4);
  REQUIRE(!shipped("dctcp").traits().needs_ack_times);
  REQUIRE(shipped("dctcp").traits().marking == "dctcp");
  REQUIRE(shipped("receiver-credit").traits().is_receiver_driven);
}

TEST_CASE("each shipped control runs at ports of any speed", "[transport]") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    const ControlProfile profile = ControlProfile::load(entry.path());
    for (const std::int64_t gigabits : {1, 25, 100, 800}) {
      const ControlSettings settings = profile.settings(
          {.line = gigabits_per_second(gigabits), .base_rtt = 10_us, .packet = Bytes(4178)});
      SenderControl control(settings);
      REQUIRE(control.rate(1_us) <= settings.line);
      REQUIRE(control.window() >= settings.packet);
    }
    ++files;
  }
  REQUIRE(files == 14);
}

}  // namespace trainyard
