// SPDX-License-Identifier: Apache-2.0
#include "network/packet/packet_options.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {

PacketOptions roce_options() {
  PacketOptions options;
  options.control = CongestionControl::DcqcnNic;
  options.ecn = EcnPreset::Hpcc;
  options.pfc = true;
  // One ACK for 16 packets: an estimate, NICs coalesce and say not how.
  options.packets_per_ack = 16;
  return options;
}

DcqcnSettings dcqcn_settings(CongestionControl control, Bandwidth line) {
  constexpr Bandwidth kReference = gigabits_per_second(25);
  DcqcnSettings settings;
  settings.line = line;
  if (control == CongestionControl::DcqcnPaper) {
    // Zhu et al., SIGCOMM 2015, section 6 and figure 14; R_HAI, which it leaves open, as in the
    // simulation of its authors (bobzhuyb/ns3-rdma).
    settings.least = Bandwidth(10'000'000);  // It names none: an estimate.
    settings.additive = Bandwidth(40'000'000);
    settings.hyper = Bandwidth(200'000'000);
    return settings;
  }
  CHECK(control == CongestionControl::DcqcnNic, "no settings for a control that is not DCQCN");
  // Defaults of the firmware (mlxconfig: DCE_TCP_G 1019, INITIAL_ALPHA_VALUE 1023, DCE_TCP_RTT 1,
  // RATE_REDUCE_MONITOR_PERIOD 4, RPG_TIME_RESET 300, RPG_THRESHOLD 1, CLAMP_TGT_RATE 0,
  // CLAMP_TGT_RATE_AFTER_TIME_INC 1, RPG_MIN_DEC_FAC 50). The steps of the rate are 5 and 50 Mb/s
  // for each 25 Gb/s and the least rate 100 Mb/s, as simulations of current NICs have them.
  const double factor = static_cast<double>(line.bits_per_second()) /
                        static_cast<double>(kReference.bits_per_second());
  settings.least = Bandwidth(100'000'000);
  settings.additive = Bandwidth(5'000'000).scaled(factor);
  settings.hyper = Bandwidth(50'000'000).scaled(factor);
  settings.g = 5.0 / 1024;
  settings.initial_alpha = 1023.0 / 1024;
  settings.timing = CutTiming::Periodic;
  settings.alpha_interval = microseconds(1);
  settings.cut_interval = microseconds(4);
  settings.rate_timer = microseconds(300);
  settings.byte_counter = Bytes(0);
  settings.threshold = 1;
  settings.counts_first = false;
  settings.hyper_grows = false;
  settings.clamp_target = false;
  settings.least_share = 0.5;
  return settings;
}

SimTime cnp_interval(CongestionControl control) {
  return control == CongestionControl::DcqcnPaper ? microseconds(50) : microseconds(4);
}

void set_control(PacketOptions& options, ControlProfile profile) {
  options.control = CongestionControl::Profile;
  options.profile = std::move(profile);
  if (std::holds_alternative<DctcpProfile>(options.profile->rules)) {
    options.ecn = EcnPreset::Dctcp;
    options.marking.reset();
  } else if (!uses_marks(options)) {
    options.ecn = EcnPreset::Off;
    options.marking.reset();
  }
}

bool uses_marks(const PacketOptions& options) {
  return options.profile ? options.profile->dcqcn() != nullptr ||
                               std::holds_alternative<DctcpProfile>(options.profile->rules)
                         : options.control != CongestionControl::None;
}

void check_control(const PacketOptions& options) {
  CHECK((options.control == CongestionControl::Profile) == options.profile.has_value(),
        "a profile of congestion control that is not used, or none");
  if (!options.profile) {
    return;
  }
  const std::string& name = options.profile->name;
  if (options.dcqcn) {
    throw ConfigError(fmt::format(
        "congestion control {}: expected its own settings, found others of DCQCN beside it", name));
  }
  const DcqcnProfile* const dcqcn = options.profile->dcqcn();
  if (dcqcn != nullptr && dcqcn->cnp_rule == CnpRule::Deferred) {
    throw ConfigError(fmt::format(
        "congestion control {}: expected cnp_rule immediate, found deferred, which the packet "
        "engine does not have",
        name));
  }
}

RedProfile red_profile(EcnPreset preset, Bandwidth rate) {
  switch (preset) {
    case EcnPreset::Hpcc:
      return RedProfile{.kmin = Bytes(100'000), .kmax = Bytes(400'000), .pmax = 0.2}.scaled(
          rate, gigabits_per_second(25));
    case EcnPreset::Dcqcn:
      return {.kmin = Bytes(5'000), .kmax = Bytes(200'000), .pmax = 0.01};
    case EcnPreset::Sonic:
      return {.kmin = mib(1), .kmax = mib(2), .pmax = 0.05};
    case EcnPreset::Dctcp:
      return RedProfile{.kmin = Bytes(30'000), .kmax = Bytes(30'000), .pmax = 1.0}.scaled(
          rate, gigabits_per_second(10));
    case EcnPreset::Off:
      break;
  }
  CHECK(false, "no thresholds where nothing is marked");
}

std::optional<RedProfile> red_profile(const PacketOptions& options, Bandwidth rate) {
  if (options.red) {
    return options.red;
  }
  if (!options.marking) {
    return options.ecn == EcnPreset::Off ? std::nullopt
                                         : std::optional(red_profile(options.ecn, rate));
  }
  const std::optional<RedProfile> red = options.marking->at(rate);
  if (!red) {
    throw ConfigError(
        fmt::format("packet engine: ECN {}: expected thresholds for ports of {}, "
                    "found none",
                    options.marking->name, to_string(rate)));
  }
  return red;
}

}  // namespace trainyard
