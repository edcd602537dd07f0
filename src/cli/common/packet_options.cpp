// SPDX-License-Identifier: Apache-2.0
#include "cli/common/packet_options.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "cli/common/common.h"
#include "cli/common/host_threads.h"
#include "hw/transport/retransmission.h"
#include "network/engines/packet_profile.h"
#include "report/formats/output.h"
#include "report/results/traffic_report.h"
#include "sim/fields.h"
#include "sim/printable.h"
#include "sim/yaml_names.h"
#include "topology/cluster/faults.h"

namespace trainyard {
namespace {

// In the order of the enumerations of the engine.
constexpr std::array<std::string_view, 2> kStormActions{"drop", "forward"};
constexpr std::array<std::string_view, 3> kUnits{"connection", "flowlet", "packet"};

// Refuses the value `found` of the option if `text`, of which it is made, is no time.
SimTime time_of(std::string_view option, const std::string& text, std::string_view expected,
                std::string_view found) {
  try {
    return parse_time(text);
  } catch (const UnitError&) {
    fail_option(option, expected, found);
  }
}

SimTime sample_interval(const OptionReader& reader) {
  const std::optional<std::string> text = reader.text("sample-every");
  if (!text) {
    return {};
  }
  constexpr std::string_view kExpected = "a time above zero, such as 10us";
  const SimTime interval = time_of("sample-every", *text, kExpected, *text);
  if (interval <= SimTime()) {
    fail_option("sample-every", kExpected, *text);
  }
  return interval;
}

// A control of the configs folder, or a file.
ControlProfile load_control(const std::string& name) {
  const std::filesystem::path file(name);
  if (file.has_parent_path() || file.has_extension()) {
    return ControlProfile::load(file);
  }
  const std::filesystem::path folder = configs_folder() / "transport" / "control";
  const std::vector<std::string> names = yaml_names_in(folder);
  if (std::ranges::find(names, name) == names.end()) {
    fail_option("control", fmt::format("a file, {}", alternatives(names)), name, names);
  }
  return ControlProfile::load(folder / (name + ".yaml"));
}

void read_control(const std::string& name, PacketOptions& packet) {
  if (const auto built_in = built_in_control(name)) {
    set_control(packet, *built_in);
  } else {
    set_control(packet, load_control(name));
  }
}

// A control that looks at marks, where credits took away those of RoCE.
void check_marks(const OptionReader& reader, const PacketOptions& packet) {
  const bool marks = packet.ecn != EcnPreset::Off || packet.marking;
  if (reader.given("credits") && uses_marks(packet) && !marks) {
    throw ConfigError(
        fmt::format("--control: expected --ecn NAME beside it and --credits, without which nothing "
                    "is marked for {}, found none",
                    control_name(packet)));
  }
}

double share_of(const OptionReader& reader, std::string_view option, std::string_view example) {
  const std::string text = *reader.text(option);
  const std::optional<double> rate = parse_number<double>(text);
  if (!rate || !(*rate >= 0.0 && *rate < 1.0)) {
    fail_option(option, fmt::format("a rate from 0 to less than 1, such as {}", example), text);
  }
  return *rate;
}

}  // namespace

Option fast_forward_option() {
  return {"fast-forward",
          "NAME",
          "with packets: off (the default), exact: what repeats to the picosecond is not simulated "
          "again, or bounded: nor what goes on at rates that stay within 1 %",
          {.choices = "off|exact|bounded", .needs = "fidelity=packet"}};
}

FastForward read_fast_forward(const OptionReader& reader) {
  return reader.given("fast-forward") ? static_cast<FastForward>(reader.choice("fast-forward"))
                                      : FastForward::Off;
}

Options sending_options(std::string_view needs) {
  Option fast_forward = fast_forward_option();
  fast_forward.traits.needs = needs.substr(0, needs.rfind("|mixed"));
  static const std::string markings =
      fmt::format("with packets: thresholds of marking: {}; hpcc is the default of DCQCN",
                  fmt::join(ecn_names(), ", "));
  static const std::string marking_choices = fmt::format("{}", fmt::join(ecn_names(), "|"));
  static const std::string retransmissions =
      fmt::format("{}", fmt::join(row_names(kRetransmissions), "|"));
  return with_needs(
      needs,
      {{"transport",
        "NAME|FILE",
        "with packets: buffers, thresholds, MTU and the following, as in configs/transport",
        {.role = Role::Input, .names = "transport"}},
       {"control",
        "NAME",
        "with packets: dcqcn-nic (the default), none, another name of configs/transport/control, "
        "such as hpcc, swift, timely or dctcp, or a file",
        {.names = "transport/control"}},
       {"ecn", "NAME", markings, {.choices = marking_choices}},
       {"pfc", "NAME", "with packets: on (the default) or off", {.choices = "on|off"}},
       {"mtu",  // InfiniBand Architecture Specification 1.4, path MTU.
        "BYTES",
        "with packets: payload of a full one, 256 to 4096 (the default)",
        {.choices = "4096|2048|1024|512|256"}},
       {"credits", "SIZE",
        "with packets: InfiniBand: buffer at the far end of each link of the fabric, such as 128K; "
        "no PFC, and neither marking nor control unless given"},
       {"server-credits", "SIZE",
        "with packets: what links inside servers hold beyond a round trip; adapters and PCIe "
        "switches take everything unless given"},
       {"retransmission",
        "NAME",
        "with packets: what becomes of lost ones: none (the default), go-back-n or selective",
        {.choices = retransmissions}},
       {"bit-errors", "RATE",
        "with packets: bit error rate of the links of the fabric, such as 1e-12"},
       {"loss", "SHARE",
        "with packets: what the links of the fabric lose of them, whatever their size, such as "
        "0.01"},
       fast_forward});
}

Option packet_threads_option(std::string_view needs) {
  return {"threads",
          "N",
          "with packets: cut the fabric into so many parts and work through them side by side "
          "(default: 1); never changes a result",
          {.needs = needs}};
}

Options packet_options(HasMixed has_mixed) {
  const bool mixes = has_mixed == HasMixed::Yes;
  const std::string_view needs = mixes ? "fidelity=packet|mixed" : "fidelity=packet";
  return joined(
      {sending_options(needs),
       Options{{"counters",
                "FILE",
                "with packets: write the counters of all ports there, as CSV",
                {.role = Role::Result, .needs = needs}},
               {"samples",
                "FILE",
                "with packets: write queues and rates over time there, as CSV",
                {.role = Role::Result,
                 .needs = mixes ? "fidelity=packet|mixed sample-every"
                                : "fidelity=packet sample-every"}},
               {"sample-every",
                "TIME",
                "of --samples, such as 10us",
                {.needs = mixes ? "fidelity=packet|mixed samples" : "fidelity=packet samples"}}}});
}

Options failure_options() {
  return with_needs("fidelity=packet",
                    {{"fail", "A,B@TIME",
                      "with packets: the cables between nodes A and B, or all of node A, fail at a "
                      "time such as 100us; may be given again",
                      kRepeated},
                     {"convergence",
                      "TIME",
                      "of --fail and with --retransmission: so long after a failure connections "
                      "over it take another path; without it they stay",
                      {.needs = "fidelity=packet fail"}}});
}

PacketRequest read_sending_options(const OptionReader& reader) {
  PacketRequest request;
  PacketOptions& packet = request.options;
  request.transport = reader.text("transport");
  if (request.transport) {
    packet = load_packet_options(find_config("transport", *request.transport),
                                 configs_folder() / "transport");
  }
  if (reader.given("credits")) {
    packet.fabric_credits = *reader.message_size("credits");
    packet.framing = RdmaLink::InfiniBand;
    packet.pfc = false;
    read_control("none", packet);
  }
  if (reader.given("server-credits")) {
    packet.server_credits = *reader.message_size("server-credits");
  }
  if (reader.given("control")) {
    read_control(reader.required_text("control"), packet);
  }
  if (reader.given("ecn")) {
    packet.ecn = static_cast<EcnPreset>(reader.choice("ecn"));
    packet.marking.reset();
    if (packet.ecn != EcnPreset::Off && !uses_marks(packet)) {
      throw ConfigError(
          fmt::format("--ecn: expected a control that looks at marks beside it, found {}",
                      control_name(packet)));
    }
  }
  check_marks(reader, packet);
  if (reader.given("pfc")) {
    packet.pfc = reader.word("pfc") == "on";
  }
  if (reader.given("mtu")) {
    packet.mtu = Bytes(std::int64_t{4096} >> reader.choice("mtu"));
  }
  if (reader.given("retransmission")) {
    packet.retransmission = static_cast<Retransmission>(reader.choice("retransmission"));
  }
  if (reader.given("bit-errors")) {
    packet.bit_error_rate = share_of(reader, "bit-errors", "1e-12");
  }
  if (reader.given("loss")) {
    packet.loss = share_of(reader, "loss", "0.01");
  }
  packet.fast_forward = read_fast_forward(reader);
  packet.team = reader.team();
  return request;
}

int read_packet_threads(const OptionReader& reader) {
  const Option* const row = reader.command().find("threads");
  if (row == nullptr || row->traits.needs.empty()) {
    return 1;  // There it says how many runs go at once.
  }
  return threads_for_host(reader.integer("threads", 1, kMaxPacketThreads)).value_or(1);
}

PacketRequest read_packet_options(const OptionReader& reader) {
  PacketRequest request = read_sending_options(reader);
  PacketOptions& packet = request.options;
  request.counters_file = output_file(reader, "counters");
  packet.queue_times = request.counters_file.has_value();
  request.samples_file = output_file(reader, "samples");
  packet.sample_every = sample_interval(reader);
  return request;
}

void read_failure_options(const OptionReader& reader, PacketRequest& request) {
  request.failures = reader.texts("fail");
  const std::optional<std::string> text = reader.text("convergence");
  if (!text) {
    return;
  }
  if (!request.options.sends_again()) {
    throw ConfigError(
        "--convergence: expected --retransmission go-back-n or selective beside it, found none: "
        "what was lost on the failed cable would never come");
  }
  request.options.convergence = time_of("convergence", *text, "a time such as 50ms", *text);
}

void find_failures(PacketRequest& request, const Topology& topology) {
  for (const std::string& failure : request.failures) {
    constexpr std::string_view kExpected = "nodes and a time such as leaf0,spine1@100us";
    const std::size_t at = failure.rfind('@');
    if (at == std::string::npos) {
      fail_option("fail", kExpected, failure);
    }
    const SimTime time = time_of("fail", failure.substr(at + 1), kExpected, failure);
    Fault fault;
    fault.option = "--fail " + escaped(failure);
    fault.ends = {failure.substr(0, at)};
    for (const LinkId link : links_of_fault(topology, fault)) {
      request.options.failures.push_back({.link = link, .time = time});
    }
  }
}

std::string describe(const PacketRequest& request) {
  const PacketOptions& packet = request.options;
  const std::string_view ecn =
      packet.marking ? packet.marking->name : ecn_names().at(static_cast<std::size_t>(packet.ecn));
  return fmt::format("{}congestion control {}, ECN {}, PFC {}, path MTU {}",
                     request.transport ? "transport " + *request.transport + ", " : "",
                     control_name(packet), ecn, packet.pfc ? "on" : "off", packet.mtu.count()) +
         (packet.fabric_credits > Bytes(0)
              ? fmt::format(", credits for {} a link{}", to_string(packet.fabric_credits),
                            packet.lanes ? " and class" : "")
              : "") +
         (packet.server_credits > Bytes(0)
              ? fmt::format(", credits inside servers for {} beyond a round trip",
                            to_string(packet.server_credits))
              : "") +
         (packet.watchdog
              ? fmt::format(", watchdogs {} after {}",
                            kStormActions.at(static_cast<std::size_t>(packet.watchdog->action)),
                            to_string(packet.watchdog->detection))
              : "") +
         (packet.adaptive ? fmt::format(", switches choose for each {}",
                                        kUnits.at(static_cast<std::size_t>(packet.adaptive->unit)))
                          : "") +
         (packet.fast_forward == FastForward::Exact ? ", fast-forward exact" : "") +
         (packet.fast_forward == FastForward::Bounded ? ", fast-forward bounded" : "") +
         (packet.sends_again()
              ? fmt::format(", retransmission {}", row_of(packet.retransmission).name)
              : "") +
         (packet.bit_error_rate > 0.0 ? fmt::format(", bit error rate {}", packet.bit_error_rate)
                                      : "") +
         (packet.loss > 0.0 ? fmt::format(", loss {}", packet.loss) : "") +
         (request.failures.empty()
              ? ""
              : fmt::format(", failures {}", fmt::join(request.failures, " "))) +
         (packet.convergence ? ", convergence " + to_string(*packet.convergence) : "");
}

void add_packet_notes(const PacketRequest& request, const RoutingOptions& routing,
                      std::vector<std::string>& notes) {
  notes.push_back("packets: " + describe(request));
  const int channels = routing.fabric.virtual_channels;
  if (channels == 1 || (!request.options.pfc && request.options.fabric_credits == Bytes(0))) {
    return;
  }
  notes.push_back(fmt::format(
      "packets: the {} virtual channels of the fabric did not influence the result: links have "
      "one, so packets may wait for each other in a circle where they would not",
      channels));
}

void write_packet_files(const PacketRequest& request, const Topology& topology,
                        const std::optional<std::vector<PortCounters>>& counters,
                        const std::optional<PacketSamples>& samples) {
  if (request.counters_file) {
    write_file(*request.counters_file, counters_csv(topology, *counters));
  }
  if (request.samples_file) {
    write_file(*request.samples_file, samples_csv(topology, *samples));
  }
}

std::string describe(const PacketStats& packets) {
  const std::string off =
      packets.skip_error > 0.0
          ? fmt::format(", at rates that are off by at most {:.2f} %", 100.0 * packets.skip_error)
          : "";
  const std::string skipped = packets.skipped_hops > 0
                                  ? fmt::format(" ({:.2f} % of them skipped{})",
                                                100.0 * static_cast<double>(packets.skipped_hops) /
                                                    static_cast<double>(packets.hops),
                                                off)
                                  : "";
  const std::string reasons = packets.bit_errors + packets.link_down > 0
                                  ? fmt::format(" ({} by bit errors, {} on failed links)",
                                                packets.bit_errors, packets.link_down)
                                  : "";
  const std::string storms = packets.storms > 0 ? fmt::format("{} of them in {} pause storms, ",
                                                              packets.storm_drops, packets.storms)
                                                : "";
  const std::string again =
      packets.retransmitted + packets.timeouts > 0
          ? fmt::format("{} sent again, {} timeouts, ", packets.retransmitted, packets.timeouts)
          : "";
  return fmt::format(
      "{} hops{}, {} marked, {} CNPs, {} pause frames, {:.3f} us paused in all, {} dropped{}, "
      "{}{}{}"
      "at most {} bytes waiting at one port",
      packets.hops, skipped, packets.marks, packets.cnps, packets.pauses,
      packets.paused_time.microseconds(), packets.drops, reasons, storms, again,
      packets.reordered > 0 ? fmt::format("{} out of order, ", packets.reordered) : "",
      packets.max_queued.count());
}

}  // namespace trainyard
