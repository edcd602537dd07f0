// SPDX-License-Identifier: Apache-2.0
#include "hw/control/control_profile.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "hw/parts/sourced_reader.h"
#include "sim/config.h"

namespace trainyard {
namespace {

// Reads the values of one profile.
class Reader {
 public:
  explicit Reader(const ConfigNode& root) : root_(root), sourced_(root) {}

  [[nodiscard]] ConfigNode node(std::string_view key) const { return sourced_.value(root_, key); }
  [[nodiscard]] double number(std::string_view key, double least, double most) const {
    return node(key).as_number(least, most);
  }
  [[nodiscard]] double share(std::string_view key) const { return number(key, 0.0, 1.0); }
  [[nodiscard]] int count(std::string_view key, int least, int most) const {
    return static_cast<int>(node(key).as_integer(least, most));
  }
  [[nodiscard]] bool flag(std::string_view key) const { return node(key).as_bool(); }
  [[nodiscard]] SimTime time(std::string_view key) const { return node(key).as_time(); }
  // A time above zero.
  [[nodiscard]] SimTime some_time(std::string_view key) const {
    return trainyard::some_time(node(key));
  }
  [[nodiscard]] Bytes some_bytes(std::string_view key) const {
    return trainyard::some_bytes(node(key));
  }
  [[nodiscard]] RateRule rate(std::string_view key) const {
    RateRule rule{.rate = node(key).as_bandwidth()};
    if (const std::optional<ConfigNode> per = root_.required(key).optional("per")) {
      rule.per = per->as_bandwidth();
    }
    return rule;
  }
  // The index of one of `choices`.
  template <std::size_t N>
  [[nodiscard]] std::size_t choice(std::string_view key,
                                   const std::array<std::string_view, N>& choices) const {
    return node(key).as_choice(choices);
  }

 private:
  ConfigNode root_;
  SourcedReader sourced_;
};

constexpr int kMany = 1000;

void read_increase(const Reader& reader, DcqcnSettings& settings) {
  settings.rate_timer = reader.some_time("rate_timer");
  const ConfigNode counter = reader.node("byte_counter");
  settings.byte_counter = is_off(counter) ? Bytes(0) : reader.some_bytes("byte_counter");
  settings.threshold = reader.count("threshold", 1, kMany);
  constexpr std::array<std::string_view, 2> kRecoveries{"below", "up-to"};
  settings.fast_recovery = static_cast<FastRecovery>(reader.choice("fast_recovery", kRecoveries));
  settings.counts_first = reader.flag("counts_first");
  settings.hyper_grows = reader.flag("hyper_grows");
  settings.cap_target = reader.flag("cap_target");
}

DcqcnProfile read_dcqcn(const Reader& reader) {
  DcqcnProfile profile;
  DcqcnSettings& settings = profile.settings;
  constexpr std::array<std::string_view, 2> kTimings{"on-cnp", "periodic"};
  settings.timing = static_cast<CutTiming>(reader.choice("timing", kTimings));
  settings.g = reader.share("g");
  settings.initial_alpha = reader.share("initial_alpha");
  settings.alpha_interval = reader.some_time("alpha_interval");
  settings.alpha_weight = reader.share("alpha_weight");
  settings.least_share = reader.share("least_share");
  if (settings.timing == CutTiming::Periodic) {
    settings.cut_interval = reader.some_time("cut_interval");
    const ConfigNode first = reader.node("first_rate");
    settings.first_rate = is_off(first) ? Bandwidth(0) : first.as_bandwidth();
  }
  read_increase(reader, settings);
  settings.clamp_target = reader.flag("clamp_target");
  settings.clamp_after_timer = reader.flag("clamp_after_timer");
  profile.least = reader.rate("least_rate");
  profile.additive = reader.rate("additive_increase");
  profile.hyper = reader.rate("hyper_increase");
  constexpr std::array<std::string_view, 2> kWindows{"off", "bdp"};
  profile.has_window = reader.choice("window", kWindows) == 1;
  constexpr std::array<std::string_view, 2> kCnpRules{"immediate", "deferred"};
  profile.cnp_rule = static_cast<CnpRule>(reader.choice("cnp_rule", kCnpRules));
  profile.cnp_interval = reader.time("cnp_interval");
  return profile;
}

HpccProfile read_hpcc(const Reader& reader) {
  HpccProfile profile;
  profile.settings.eta = reader.number("eta", 0.01, 1.0);
  profile.settings.max_stage = reader.count("max_stage", 0, kMany);
  profile.settings.wire_counters = reader.flag("wire_counters");
  profile.additive = reader.rate("additive_increase");
  return profile;
}

SwiftProfile read_swift(const Reader& reader) {
  constexpr double kMostPackets = 1e6;
  SwiftProfile profile;
  SwiftSettings& settings = profile.settings;
  settings.additive = reader.number("additive", 1e-6, kMostPackets);
  settings.beta = reader.share("beta");
  settings.max_decrease = reader.share("max_decrease");
  settings.base_target = reader.some_time("base_target");
  settings.hop_target = reader.time("hop_target");
  settings.flow_range = reader.time("flow_range");
  settings.flow_least = reader.number("flow_least", 1e-6, kMostPackets);
  settings.flow_most = reader.number("flow_most", settings.flow_least * 1.001, kMostPackets);
  const ConfigNode host = reader.node("host_target");
  settings.host_target = is_off(host) ? SimTime() : reader.some_time("host_target");
  settings.least_window = reader.number("least_window", 1e-6, 1.0);
  settings.reset_timeouts = reader.count("reset_timeouts", 1, kMany);
  profile.first_window = reader.number("first_window", 1e-3, kMany);
  profile.most_window = reader.number("most_window", profile.first_window, kMany);
  return profile;
}

TimelyProfile read_timely(const Reader& reader) {
  TimelyProfile profile;
  TimelySettings& settings = profile.settings;
  settings.weight = reader.share("weight");
  settings.beta = reader.share("beta");
  settings.low = reader.some_time("low");
  settings.high = reader.some_time("high");
  if (settings.high < settings.low) {
    reader.node("high").fail("a time not below `low`", reader.node("high").found());
  }
  settings.least_rtt = reader.some_time("least_rtt");
  settings.hyper_after = reader.count("hyper_after", 1, kMany);
  settings.hyper_steps = reader.number("hyper_steps", 1.0, kMany);
  profile.additive = reader.rate("additive_increase");
  profile.least = reader.rate("least_rate");
  profile.segment = reader.some_bytes("segment");
  return profile;
}

DctcpProfile read_dctcp(const Reader& reader) {
  DctcpProfile profile;
  profile.settings.g = reader.share("g");
  profile.settings.initial_alpha = reader.share("initial_alpha");
  return profile;
}

CreditProfile read_credit(const Reader& reader) {
  return {.quantum = reader.some_bytes("quantum"),
          .window = reader.number("window", 0.01, kMany),
          .speculative = reader.number("speculative", 0.0, kMany),
          .patience = reader.some_time("patience")};
}

// Line rate x base RTT, at least a packet.
Bytes bdp(const PortTerms& port) {
  __extension__ using Wide = __int128;
  constexpr Wide kBits = Wide{8} * 1'000'000'000'000;
  const Wide bytes = Wide{port.line.bits_per_second()} * port.base_rtt.picoseconds() / kBits;
  return std::max(Bytes(static_cast<std::int64_t>(bytes)), port.packet);
}

Bytes times(Bytes size, double factor) {
  return Bytes(static_cast<std::int64_t>(static_cast<double>(size.count()) * factor));
}

// What a profile means for a port.
struct Resolve {
  const PortTerms& port;

  ControlRules operator()(const NoControlProfile&) const {
    return LineRateSettings{.line = port.line};
  }
  ControlRules operator()(const DcqcnProfile& profile) const {
    DcqcnSettings settings = profile.settings;
    settings.line = port.line;
    settings.least = std::min(profile.least.at(port.line), port.line);
    settings.additive = profile.additive.at(port.line);
    settings.hyper = profile.hyper.at(port.line);
    return settings;
  }
  ControlRules operator()(const HpccProfile& profile) const {
    HpccSettings settings = profile.settings;
    settings.line = port.line;
    settings.base_rtt = port.base_rtt;
    const auto rate = static_cast<double>(profile.additive.at(port.line).bits_per_second());
    settings.additive = rate / 8.0 * port.base_rtt.seconds();
    settings.least_window = static_cast<double>(port.packet.count());
    return settings;
  }
  ControlRules operator()(const SwiftProfile& profile) const {
    SwiftSettings settings = profile.settings;
    const double packets =
        static_cast<double>(bdp(port).count()) / static_cast<double>(port.packet.count());
    settings.first_window = packets * profile.first_window;
    settings.most_window = packets * profile.most_window;
    return settings;
  }
  ControlRules operator()(const TimelyProfile& profile) const {
    TimelySettings settings = profile.settings;
    settings.line = port.line;
    settings.additive = profile.additive.at(port.line);
    settings.least = std::min(profile.least.at(port.line), port.line);
    return settings;
  }
  ControlRules operator()(const DctcpProfile& profile) const {
    DctcpSettings settings = profile.settings;
    settings.packet = port.packet;
    settings.first_window = bdp(port);
    return settings;
  }
  ControlRules operator()(const CreditProfile& profile) const {
    return CreditSettings{.line = port.line,
                          .quantum = profile.quantum,
                          .window = std::max(times(bdp(port), profile.window), profile.quantum),
                          .speculative = times(bdp(port), profile.speculative),
                          .patience = profile.patience};
  }
};

}  // namespace

Bandwidth RateRule::at(Bandwidth line) const {
  if (per == Bandwidth(0)) {
    return rate;
  }
  const double factor =
      static_cast<double>(line.bits_per_second()) / static_cast<double>(per.bits_per_second());
  return std::max(rate.scaled(factor), Bandwidth(1));
}

ControlProfile ControlProfile::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  const ConfigNode root = document.root();
  const Reader reader(root);
  ControlProfile profile;
  profile.name = file.stem().string();
  static constexpr std::array<std::string_view, 7> kAlgorithms{
      "none", "dcqcn", "hpcc", "swift", "timely", "dctcp", "receiver-credit"};
  switch (root.required("algorithm").as_choice(kAlgorithms)) {
    case 0:
      break;
    case 1:
      profile.rules = read_dcqcn(reader);
      break;
    case 2:
      profile.rules = read_hpcc(reader);
      break;
    case 3:
      profile.rules = read_swift(reader);
      break;
    case 4:
      profile.rules = read_timely(reader);
      break;
    case 5:
      profile.rules = read_dctcp(reader);
      break;
    default:
      profile.rules = read_credit(reader);
  }
  document.finish();
  return profile;
}

ControlSettings ControlProfile::settings(const PortTerms& port) const {
  ControlSettings settings;
  settings.rules = std::visit(Resolve{port}, rules);
  settings.line = port.line;
  settings.packet = port.packet;
  const DcqcnProfile* rates = dcqcn();
  settings.dcqcn_window = rates != nullptr && rates->has_window ? bdp(port) : Bytes(0);
  if (const auto* timely = std::get_if<TimelyProfile>(&rules)) {
    settings.timely_segment = timely->segment;
  }
  return settings;
}

}  // namespace trainyard
