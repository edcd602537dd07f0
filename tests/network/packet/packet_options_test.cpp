// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "network/packet/packet_options.h"

#include "sim/config_error.h"
#include "support/controls.h"

namespace trainyard {
namespace {

using namespace literals;

TEST_CASE("the profile of NICs cuts once for a burst of CNPs, that of the paper for each") {
  for (const bool is_paper : {false, true}) {
    const DcqcnSettings settings =
        dcqcn_settings(is_paper ? CongestionControl::DcqcnPaper : CongestionControl::DcqcnNic,
                       gigabits_per_second(100));
    DcqcnReaction reaction(settings);
    for (std::int64_t i = 0; i < 3; ++i) {
      reaction.on_cnp(microseconds(i));
    }
    reaction.advance(5_us);
    const double expected = is_paper ? 100e9 / 8 : 100e9 / 2;
    REQUIRE(reaction.current() > 0.98 * expected);
    REQUIRE(reaction.current() < 1.03 * expected);
  }
  REQUIRE(cnp_interval(CongestionControl::DcqcnNic) == 4_us);
  REQUIRE(cnp_interval(CongestionControl::DcqcnPaper) == 50_us);
}

TEST_CASE("the steps of NICs grow with the rate of the line") {
  const auto slow = dcqcn_settings(CongestionControl::DcqcnNic, gigabits_per_second(25));
  const auto fast = dcqcn_settings(CongestionControl::DcqcnNic, gigabits_per_second(400));
  REQUIRE(slow.additive == Bandwidth(5'000'000));
  REQUIRE(fast.additive == Bandwidth(80'000'000));
  REQUIRE(fast.hyper == Bandwidth(800'000'000));
}

TEST_CASE("thresholds of marking are those of their sources") {
  const RedProfile hpcc = red_profile(EcnPreset::Hpcc, gigabits_per_second(100));
  REQUIRE(hpcc.kmin == Bytes(400'000));
  REQUIRE(hpcc.kmax == Bytes(1'600'000));
  REQUIRE(red_profile(EcnPreset::Dcqcn, gigabits_per_second(40)).kmin == Bytes(5'000));
  REQUIRE(red_profile(EcnPreset::Sonic, gigabits_per_second(400)).kmax == 2_MiB);
}

TEST_CASE("marking of a file stands before the presets, and must know the rate") {
  PacketOptions options = roce_options();
  REQUIRE(red_profile(options, gigabits_per_second(25)).value().kmin == Bytes(100'000));
  options.marking =
      MarkingPreset{.name = "mine",
                    .scaling = EcnScaling::Table,
                    .mark_at = MarkAt::Dequeue,
                    .rows = {{.rate = gigabits_per_second(100),
                              .red = {.kmin = Bytes(1'000), .kmax = Bytes(2'000), .pmax = 0.5}}}};
  REQUIRE(red_profile(options, gigabits_per_second(100)).value().kmax == Bytes(2'000));
  REQUIRE_THROWS_WITH(
      red_profile(options, gigabits_per_second(400)),
      "packet engine: ECN mine: expected thresholds for ports of 400Gb/s, found none");
  REQUIRE(!red_profile(PacketOptions{}, gigabits_per_second(100)));
}

TEST_CASE("a control brings the marking that it is meant for") {
  const auto ecn_with = [](const char* name) {
    PacketOptions options = roce_options();
    set_control(options, shipped_control(name));
    REQUIRE(uses_marks(options) == (options.ecn != EcnPreset::Off));
    return options.ecn;
  };
  REQUIRE(ecn_with("dctcp") == EcnPreset::Dctcp);
  REQUIRE(ecn_with("dcqcn-simai") == EcnPreset::Hpcc);
  REQUIRE(ecn_with("swift") == EcnPreset::Off);
  REQUIRE(ecn_with("none") == EcnPreset::Off);
  const RedProfile dctcp = red_profile(EcnPreset::Dctcp, gigabits_per_second(100));
  REQUIRE(dctcp.kmin == Bytes(300'000));
  REQUIRE(dctcp.kmax == dctcp.kmin);
}

TEST_CASE("controls that the engine does not have are refused") {
  const auto require_refused = [](ControlProfile profile, const std::string& message) {
    PacketOptions options;
    set_control(options, std::move(profile));
    REQUIRE_THROWS_MATCHES(check_control(options), ConfigError, Catch::Matchers::Message(message));
  };
  PacketOptions mixed;
  set_control(mixed, shipped_control("dcqcn-nic"));
  mixed.dcqcn = dcqcn_settings(CongestionControl::DcqcnNic, gigabits_per_second(100));
  REQUIRE_THROWS_WITH(
      check_control(mixed),
      "congestion control dcqcn-nic: expected its own settings, found others of DCQCN beside it");
  ControlProfile deferred = shipped_control("dcqcn-nic");
  std::get<DcqcnProfile>(deferred.rules).cnp_rule = CnpRule::Deferred;
  require_refused(deferred,
                  "congestion control dcqcn-nic: expected cnp_rule immediate, found deferred, "
                  "which the packet engine does not have");
}

TEST_CASE("a RoCE fabric has DCQCN, marks and PFC unless told otherwise") {
  const PacketOptions options = roce_options();
  REQUIRE(options.control == CongestionControl::DcqcnNic);
  REQUIRE(options.pfc);
  REQUIRE(options.ecn != EcnPreset::Off);
  REQUIRE(PacketOptions{}.control == CongestionControl::None);
}

}  // namespace
}  // namespace trainyard
