// SPDX-License-Identifier: Apache-2.0
#include "network/packet/packet_options.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <utility>

#include "network/packet/packet_retransmission.h"
#include "network/packet_parts/packet_team.h"
#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

// In the order of CongestionControl.
constexpr std::array<std::string_view, 3> kBuiltIn{"none", "dcqcn-nic", "dcqcn-paper"};

// Thresholds for ports of the rate `per`, which grow with the rate, or for any port (0).
struct EcnRow {
  std::string_view name;
  RedProfile red{};
  Bandwidth per{};
};
// In the order of EcnPreset.
constexpr std::array<EcnRow, 6> kEcnRows = {
    {{.name = "off"},
     {.name = "hpcc",
      .red = {.kmin = Bytes(100'000), .kmax = Bytes(400'000), .pmax = 0.2},
      .per = gigabits_per_second(25)},
     {.name = "dcqcn", .red = {.kmin = Bytes(5'000), .kmax = Bytes(200'000), .pmax = 0.01}},
     {.name = "sonic", .red = {.kmin = mib(1), .kmax = mib(2), .pmax = 0.05}},
     {.name = "dctcp",
      .red = {.kmin = Bytes(30'000), .kmax = Bytes(30'000), .pmax = 1.0},
      .per = gigabits_per_second(10)},
     {.name = "nscc",
      .red = {.kmin = Bytes(30'000), .kmax = Bytes(120'000), .pmax = 1.0},
      .per = gigabits_per_second(100)}}};

// Sets the marking that the control is meant for.
void set_marking(PacketOptions& options) {
  const ControlTraits traits = control_traits(options);
  if (traits.marks != MarkSignal::None && traits.marking.empty()) {
    return;
  }
  const auto* const row = std::ranges::find(
      kEcnRows, traits.marks == MarkSignal::None ? "off" : traits.marking, &EcnRow::name);
  CHECK(row != kEcnRows.end(), "a control with a marking that is no preset");
  options.ecn = EcnPreset(row - kEcnRows.begin());
  options.marking.reset();
}

constexpr std::int64_t kMaxMtu = 65'000;  // Packet::wire has 16 bits.

void expect(bool holds, std::string_view what) {
  if (!holds) {
    throw ConfigError(fmt::format("packet engine: expected {}", what));
  }
}

void check_lanes(const PacketOptions& options) {
  if (!options.lanes) {
    return;
  }
  for (const int weight : options.lanes->weights) {
    expect(weight >= 1, fmt::format("weights of classes of at least 1, found {}", weight));
  }
  CHECK(options.lanes->usual < LaneOptions::kLanes, "no such class");
}

void check_pauses(const PacketOptions& options) {
  // A slower drain would take longer for a large buffer than time has picoseconds.
  constexpr Bandwidth kMinDrain(1'000'000);
  constexpr Bytes kMaxBuffer = mib(64);
  expect(options.pfc || (!options.watchdog && options.slow_hosts.empty()),
         "PFC where hosts pause or watchdogs look for pauses, found none");
  for (const SlowHost& host : options.slow_hosts) {
    const SlowReceiverSettings& receiver = host.receiver;
    expect(receiver.drain >= kMinDrain && receiver.xon >= Bytes(0) &&
               receiver.xon <= receiver.xoff && receiver.xoff <= kMaxBuffer &&
               host.until >= host.from,
           "slow receivers that drain at 1 Mb/s at least, go on at no more than they stop at, stop "
           "at 64 MiB at most, and end after they begin; found another");
  }
  if (options.watchdog) {
    const WatchdogSettings& watchdog = *options.watchdog;
    const SimTime min = std::min({watchdog.poll, watchdog.detection, watchdog.restoration});
    expect(min >= nanoseconds(2) && watchdog.paused_share >= 0.5,
           "times of a watchdog of 2 ns or more and a share of at least half, found less");
    expect(!options.lanes, "one class of data where watchdogs look for pauses, found several");
  }
}

}  // namespace

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
    settings.min = Bandwidth(10'000'000);  // It names none: an estimate.
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
  settings.min = Bandwidth(100'000'000);
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
  settings.min_share = 0.5;
  return settings;
}

SimTime cnp_interval(CongestionControl control) {
  return control == CongestionControl::DcqcnPaper ? microseconds(50) : microseconds(4);
}

std::optional<CongestionControl> built_in_control(std::string_view name) {
  const auto* const found = std::ranges::find(kBuiltIn, name);
  return found == kBuiltIn.end() ? std::nullopt
                                 : std::optional(CongestionControl(found - kBuiltIn.begin()));
}

std::string_view control_name(const PacketOptions& options) {
  return options.profile ? std::string_view(options.profile->name)
                         : kBuiltIn.at(static_cast<std::size_t>(options.control));
}

ControlTraits control_traits(const PacketOptions& options) {
  if (options.profile) {
    return options.profile->traits();
  }
  return options.control == CongestionControl::None
             ? ControlTraits{}
             : ControlTraits{.marks = MarkSignal::Cnps,
                             .cnp_interval = cnp_interval(options.control)};
}

void set_control(PacketOptions& options, ControlProfile profile) {
  options.control = CongestionControl::Profile;
  options.profile = std::move(profile);
  set_marking(options);
}

void set_control(PacketOptions& options, CongestionControl built_in) {
  options.control = built_in;
  options.profile.reset();
  set_marking(options);
}

bool uses_marks(const PacketOptions& options) {
  return control_traits(options).marks != MarkSignal::None;
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
  if (options.profile->traits().cnp_rule == CnpRule::Deferred) {
    throw ConfigError(fmt::format(
        "congestion control {}: expected cnp_rule immediate, found deferred, which the packet "
        "engine does not have",
        name));
  }
}

void check_adaptive(const PacketOptions& options) {
  if (!options.adaptive || options.adaptive->unit == AdaptiveOptions::Unit::Connection) {
    return;
  }
  const AdaptiveOptions& adaptive = *options.adaptive;
  expect(std::has_single_bit(adaptive.entries),
         fmt::format("a power of two as entries of flowlets, found {}", adaptive.entries));
  expect(adaptive.grades.step >= Bytes(1) && adaptive.grades.grades >= 1 &&
             adaptive.grades.slack >= 0 && adaptive.gap >= SimTime(),
         "grades of at least 1 B, at least one of them, and no gap or slack below 0, found others");
  expect(control_traits(options).telemetry == IntFormat::None,
         "a congestion control that does not look at the links of a path where switches choose "
         "ports, since senders do not know which; found one that does");
  expect(row_of(options.retransmission).takes_overtaking ||
             adaptive.unit != AdaptiveOptions::Unit::Packet,
         "no go-back-N where switches choose a port for each packet, since packets that overtake "
         "would count as lost; found it (selective repeat goes with it, or choices for flowlets or "
         "connections)");
}

void check_trimming(const PacketOptions& options) {
  if (!options.trims) {
    return;
  }
  expect(options.retransmission == Retransmission::SelectiveRepeat,
         "selective repeat where switches trim packets, found none");
  expect(!options.pfc && options.fabric_credits <= Bytes(0) && options.buffer > Bytes(0) &&
             !control_traits(options).is_receiver_driven,
         "switches with a buffer, and neither PFC nor credits, where they trim packets; found "
         "others");
}

// Refuses what RDMA has and TCP has not, or not here.
void check_tcp(const PacketOptions& options) {
  const bool is_tcp = options.retransmission == Retransmission::Tcp;
  expect(is_tcp == (options.framing == RdmaLink::Tcp),
         "the frames and the retransmission of TCP together, as a transport with the section tcp "
         "has them, found one of both");
  expect(options.port_queue <= Bytes(0) ||
             (!options.pfc && options.buffer <= Bytes(0) && options.fabric_credits <= Bytes(0)),
         "a bound of each port or PFC, a shared buffer, or credits, found both");
  expect(options.port_queue <= Bytes(0) || (!options.lanes && !options.adaptive),
         "one class of data and no switches that choose ports where each port has a bound, found "
         "others");
  const Bytes full = wire_bytes(options.framing, RdmaOpcode::SendOnly, options.mtu);
  expect(options.burst <= Bytes(0) || (is_tcp && options.burst >= full),
         "buckets on links only with TCP, and for a full packet at least, found others");
  if (!is_tcp) {
    return;
  }
  const ControlTraits traits = control_traits(options);
  expect(!options.pfc && options.server_credits <= Bytes(0) && options.fabric_credits <= Bytes(0) &&
             !options.lanes && !options.adaptive,
         "no PFC, credits, classes of data or switches that choose ports with TCP, found one");
  expect(traits.marks != MarkSignal::Cnps && traits.telemetry == IntFormat::None &&
             !traits.is_receiver_driven,
         fmt::format("a control with TCP that needs nothing but ACKs and marks, found {}",
                     control_name(options)));
}

void check_options(const PacketOptions& options) {
  const std::int64_t mtu = options.mtu.count();
  expect(mtu >= 1 && mtu <= kMaxMtu,
         fmt::format("an MTU from 1 to {} B, found {} B", kMaxMtu, mtu));
  expect(options.bit_error_rate >= 0.0 && options.bit_error_rate < 1.0,
         fmt::format("a bit error rate from 0 to less than 1, found {}", options.bit_error_rate));
  expect(options.loss >= 0.0 && options.loss < 1.0,
         fmt::format("a share of lost packets from 0 to less than 1, found {}", options.loss));
  expect(options.threads >= 1 && options.threads <= kMaxPacketThreads,
         fmt::format("from 1 to {} threads, found {}", kMaxPacketThreads, options.threads));
  expect(!options.pfc || options.fabric_credits <= Bytes(0),
         "PFC or credits between switches, found both");
  expect(!options.convergence || options.sends_again(),
         "retransmission where paths change after a failure, found none");
  // A wait is bits over rate.
  expect(!options.dcqcn || options.dcqcn->min >= Bandwidth(1),
         fmt::format("a least rate of DCQCN of at least 1 bit/s, found {}",
                     options.dcqcn ? options.dcqcn->min.bits_per_second() : 0));
  expect(Retransmissions::shortest_timeout(options) > SimTime(),
         "a retransmission timeout of more than 0, found less");
  check_control(options);
  check_lanes(options);
  check_adaptive(options);
  check_trimming(options);
  check_tcp(options);
  check_pauses(options);
  check_fast_forward(options);
  check_team(options);
}

void check_team(const PacketOptions& options) {
  if (options.team == nullptr || options.team->size() == 1) {
    return;
  }
  expect(options.fast_forward == FastForward::Off,
         "no fast-forward where several processes work together, found it");
  expect(options.sample_every == SimTime(),
         "no samples where several processes work together, found some");
  expect(!options.trims,
         "no switches that trim packets where several processes work together, found some");
}

void check_fast_forward(const PacketOptions& options) {
  if (options.fast_forward == FastForward::Off) {
    return;
  }
  const std::array<std::pair<bool, std::string_view>, 10> found{{
      {options.profile.has_value(), "a control with windows or rates of its own"},
      {options.sends_again(), "retransmission"},
      {options.fabric_credits > Bytes(0) || options.server_credits > Bytes(0), "credits"},
      {options.lanes.has_value(), "several classes of data"},
      {options.adaptive.has_value(), "switches that choose ports"},
      {!options.slow_hosts.empty() || options.watchdog, "hosts that pause, or watchdogs"},
      {!options.failures.empty() || options.draws_losses(), "links that lose packets"},
      {options.port_queue > Bytes(0), "ports with a bound"},
      {options.queue_times, "percentiles of queues"},
      {options.sample_every > SimTime(), "samples"},
  }};
  for (const auto& [is_there, what] : found) {
    expect(!is_there,
           fmt::format("no fast-forward beside what needs every packet, found {}", what));
  }
}

std::vector<std::string_view> ecn_names() {
  std::vector<std::string_view> names;
  for (const EcnRow& row : kEcnRows) {
    names.push_back(row.name);
  }
  return names;
}

RedProfile red_profile(EcnPreset preset, Bandwidth rate) {
  CHECK(preset != EcnPreset::Off, "no thresholds where nothing is marked");
  const EcnRow& row = kEcnRows.at(static_cast<std::size_t>(preset));
  return row.per == Bandwidth(0) ? row.red : row.red.scaled(rate, row.per);
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
