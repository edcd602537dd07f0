// SPDX-License-Identifier: Apache-2.0
#include "hw/transport/transport_profile.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <tuple>

#include "hw/packet/rdma_packet.h"
#include "sim/check.h"
#include "sim/fields.h"
#include "sim/yaml_names.h"

namespace trainyard {
namespace {

constexpr int kPriorityMax = kPriorities - 1;

// The exponent of a power of two from 1/128 to 64.
int alpha_exponent(const ConfigNode& value) {
  constexpr double kMin = 1.0 / 128;
  constexpr double kMax = 64.0;
  const double alpha = value.as_number(kMin, kMax);
  int exponent = 0;
  if (std::frexp(alpha, &exponent) != 0.5) {
    value.fail("a power of two from 1/128 to 64", value.found());
  }
  return exponent - 1;
}

// A name in `folder`, or a file beside the one that names it.
ControlProfile load_control(const std::filesystem::path& folder,
                            const std::filesystem::path& beside, const ConfigNode& name) {
  constexpr std::string_view kEnding = ".yaml";
  const std::string text = name.as_string();
  if (text.size() > kEnding.size() && text.substr(text.size() - kEnding.size()) == kEnding) {
    return ControlProfile::load(beside / text);
  }
  const std::vector<std::string> names = yaml_names_in(folder);
  const std::vector<std::string_view> choices(names.begin(), names.end());
  return ControlProfile::load(folder / (names[name.as_choice(choices)] + ".yaml"));
}

constexpr Whole kPriority{0, kPriorityMax};
constexpr std::array<std::string_view, 3> kHeadrooms{"standard", "sonic", "ns3"};
constexpr std::array<std::string_view, 2> kStormActions{"drop", "forward"};
constexpr std::array<std::string_view, 2> kOffOn{"off", "on"};
constexpr std::array<std::string_view, 2> kAdmissions{"guaranteed", "ns3"};
constexpr std::array<std::string_view, 3> kUnits{"connection", "flowlet", "packet"};
constexpr std::array<std::string_view, 3> kScalings{"linear", "fixed", "table"};
constexpr std::array<std::string_view, 2> kPlaces{"dequeue", "enqueue"};
constexpr Cited kAlpha{Via{Number{1.0 / 128, 64.0}, alpha_exponent}};
constexpr Cited kSomeTime{SomeTime{}};
constexpr Cited kSomeBytes{SomeAmount{}};

std::vector<int> distinct_priorities(const ConfigNode& node) {
  std::vector<int> priorities;
  for (const ConfigNode& item : node.items()) {
    const int priority = static_cast<int>(kPriority.value(item));
    if (std::find(priorities.begin(), priorities.end(), priority) != priorities.end()) {
      item.fail("each priority once", item.found());
    }
    priorities.push_back(priority);
  }
  return priorities;
}

void pfc_fields(Fields& fields, PfcProfile& pfc) {
  WatchdogSettings watchdog;
  bool is_watched = false;
  fields.required("priorities", pfc.priorities, Cited{Via{List{kPriority}, distinct_priorities}},
                  "Priorities without loss; `[]` is no PFC.");
  fields.required("quanta", pfc.quanta, Cited{Whole{2, kMaxQuanta}}, "Quanta of an XOFF.");
  fields.required("headroom", pfc.headroom, Cited{Choice{kHeadrooms}}, "Rule of the headroom.");
  fields.required("pipeline", pfc.pipeline, Cited{Duration{}},
                  "Delay of an XOFF in switches, one way, beside the cable.");
  fields.required("detection", watchdog.detection, kSomeTime,
                  "The watchdog finds a storm after this.");
  fields.required("restoration", watchdog.restoration, kSomeTime, "A storm is over after this.");
  fields.required("poll", watchdog.poll, kSomeTime, "Time between two looks.");
  fields.optional("action", watchdog.action, Cited{Choice{kStormActions}},
                  "What happens to packets of a storm.");
  fields.required("watchdog", is_watched, Cited{Choice{kOffOn}}, "Whether it runs.");
  if (is_watched) {
    pfc.watchdog = watchdog;
  }
}

void queue_fields(Fields& fields, QueueProfile& queues) {
  constexpr Whole kWeight{1, 1000};
  fields.required("strict", queues.strict, Cited{List{kPriority}},
                  "Priorities that go before all others, the highest first.");
  fields.required("weights", queues.weights, Cited{List{kWeight}},
                  "For each of the eight, full packets that it sends in a turn.");
  fields.check([&](const ConfigNode& node) {
    if (queues.weights.size() != kPriorities) {
      node.required("weights").required("value").fail("a weight for each of eight priorities",
                                                      std::to_string(queues.weights.size()));
    }
  });
}

std::uint32_t table_entries(const ConfigNode& node) {
  constexpr int kMaxEntries = 1 << 24;
  const auto entries = static_cast<std::uint32_t>(node.as_integer(1, kMaxEntries));
  if (!std::has_single_bit(entries)) {
    node.fail("a power of two", node.found());
  }
  return entries;
}

void adaptive_fields(Fields& fields, AdaptiveOptions& adaptive) {
  constexpr int kMaxGrades = 1'000'000;
  fields.required("unit", adaptive.unit, Cited{Choice{kUnits}},
                  "What a switch chooses a port for.");
  fields.required("step", adaptive.grades.step, kSomeBytes, "Bytes of a grade of a queue.");
  fields.required("grades", adaptive.grades.grades, Cited{Whole{1, kMaxGrades}},
                  "How many grades there are.");
  fields.required("slack", adaptive.grades.slack, Cited{Whole{0, kMaxGrades}},
                  "Grades by which a flowlet may be worse off and stay.");
  fields.required("gap", adaptive.gap, kSomeTime, "A flowlet begins after such a pause.");
  fields.required("entries", adaptive.entries, Cited{Via{Whole{1, 1 << 24}, table_entries}},
                  "Flowlets that a switch remembers, a power of two.");
}

void buffer_fields(Fields& fields, BufferProfile& buffer) {
  fields.required("size", buffer.size, kSomeBytes,
                  "Memory of a switch where the catalogue knows none.");
  fields.required("cell", buffer.cell, kSomeBytes, "Packets take whole cells.");
  fields.required("admission", buffer.admission, Cited{Choice{kAdmissions}},
                  "Whether full headroom loses what the reserve could hold: `ns3`.");
  fields.required("reserve", buffer.reserve, Cited{Amount{}}, "Reserve of a lossless group.");
  fields.required("resume_offset", buffer.resume_offset, Cited{Amount{}},
                  "How far below its threshold a lossless group resumes.");
  fields.required("lossless_alpha", buffer.lossless_alpha, kAlpha,
                  "Share of free memory of a lossless group, a power of two.");
  fields.required("lossy_alpha", buffer.lossy_alpha, kAlpha, "The same of egress queues.");
  fields.optional("queue", buffer.queue, kSomeBytes,
                  "What waits at each port of a switch at most, instead of shared memory.");
  fields.optional("burst", buffer.burst, kSomeBytes,
                  "What a link that is shaped by a token bucket sends at once; with `tcp`.");
  fields.optional("trim", buffer.trims, Cited{Choice{kOffOn}},
                  "Whether the headers of a packet without room go on, instead of its loss.");
}

// Legal, or marked as a what-if by `what_if: true` beside it.
struct PathMtu {
  static constexpr std::string_view kWhatIf = "Whether RDMA may lack such an MTU.";
  static void read(const Fields& parent, const ConfigNode& node, RdmaProfile& rdma) {
    constexpr Bytes kLargestFrame{16'384};
    kSomeBytes.read(parent, node, rdma.path_mtu);
    Fields(parent, node).optional("what_if", rdma.is_what_if, Flag{}, kWhatIf);
    const ConfigNode value = node.required("value");
    const bool is_legal = is_path_mtu(rdma.path_mtu);
    if (!is_legal && !rdma.is_what_if) {
      value.fail("a path MTU of RDMA: 256, 512, 1024, 2048 or 4096 B (others with `what_if: true`)",
                 value.found());
    }
    if (rdma.path_mtu > kLargestFrame) {
      value.fail("at most 16 KiB", value.found());
    }
    rdma.is_what_if = !is_legal;
  }
  static void describe(Schema& schema, RdmaProfile& rdma) {
    kSomeBytes.describe(schema, rdma.path_mtu);
    Fields(schema).optional("what_if", rdma.is_what_if, Flag{}, kWhatIf);
  }
};

void rdma_fields(Fields& fields, RdmaProfile& rdma) {
  constexpr int kMaxTimeout = 31;
  constexpr int kMaxRetries = 7;
  const auto timeout = [](const ConfigNode& node) {
    return retransmission_timeout(static_cast<int>(node.as_integer(0, kMaxTimeout)));
  };
  fields.required("path_mtu", rdma, PathMtu{}, "Payload of a packet.");
  fields.required("data_priority", rdma.data_priority, Cited{kPriority}, "Priority of data.");
  fields.required("control_priority", rdma.control_priority, Cited{kPriority},
                  "Priority of ACKs, NAKs and CNPs.");
  fields.required("ack_every", rdma.ack_every, Cited{Whole{0, kMaxOutstanding / 2}},
                  "Packets between ACKs, beside those at the ends of messages.");
  fields.required("recovery", rdma.recovery, Cited{Choice{row_names(kRetransmissions)}},
                  "What is sent again after a loss.");
  fields.required("timeout", rdma.retry.timeout, Cited{Via{Whole{0, kMaxTimeout}, timeout}},
                  "Retransmission timeout: 4.096 us times 2 to this power.");
  fields.required("retries", rdma.retry.retries, Cited{Whole{0, kMaxRetries}},
                  "Timeouts in a row before a connection fails.");
  rdma.selective.retries = rdma.retry.retries;
  fields.required("short_timeout", rdma.selective.short_timeout, kSomeTime,
                  "Selective repeat: timeout with few packets in flight.");
  fields.required("long_timeout", rdma.selective.long_timeout, kSomeTime,
                  "Selective repeat: timeout with more.");
}

void tcp_fields(Fields& fields, TcpProfile& tcp) {
  constexpr int kMostRetries = 255;
  TcpSettings& settings = tcp.settings;
  fields.required("mtu", tcp.mtu, kSomeBytes, "Payload of a frame of Ethernet, such as 1500 B.");
  fields.required("receive_window", settings.receive_window, kSomeBytes,
                  "Payload that may be under way to a receiver.");
  fields.required("ack_every", settings.ack_every, Cited{Whole{1, 1000}},
                  "Packets that one ACK answers.");
  fields.required("delayed_ack", settings.delayed_ack, kSomeTime,
                  "An ACK waits so long for more packets.");
  fields.required("quick_acks", settings.quick_acks, Cited{Whole{0, 1000}},
                  "Packets at the start of a connection that are answered each.");
  fields.required("duplicates", settings.duplicates, Cited{Whole{1, 1000}},
                  "Packets out of order after which reordering is no longer thought of.");
  fields.required("min_timeout", settings.min_timeout, kSomeTime,
                  "The least of what a timeout waits beyond the round trip.");
  fields.required("max_timeout", settings.max_timeout, kSomeTime, "The longest timeout.");
  fields.required("min_probe", settings.min_probe, kSomeTime,
                  "What a probe of the last packet waits beyond two round trips.");
  fields.required("retries", settings.retries, Cited{Whole{0, kMostRetries}},
                  "Timeouts in a row before a connection fails.");
  fields.check([&](const ConfigNode& node) {
    constexpr Bytes kSmallest{100};  // Enough for headers.
    constexpr Bytes kLargest{16'384};
    if (tcp.mtu < kSmallest || tcp.mtu > kLargest) {
      const ConfigNode value = node.required("mtu").required("value");
      value.fail("from 100 B to 16 KiB", value.found());
    }
  });
}

void preset_fields(Fields& fields, MarkingPreset& preset) {
  constexpr Bytes kMaxThreshold{std::int64_t{1} << 31};
  const auto row_fields = [&](Fields& inner, MarkingPreset::Row& row) {
    inner.where(preset.scaling != EcnScaling::Fixed,
                [&] { inner.required("rate", row.rate, Rate{}, "The port that the row is for."); });
    inner.required("kmin", row.red.kmin, Amount{}, "Marking begins at this queue.");
    inner.required("kmax", row.red.kmax, Amount{}, "All packets are marked above this queue.");
    inner.required("pmax", row.red.pmax, Number{0.0, 1.0}, "Share of marked packets at `kmax`.");
    inner.check([&](const ConfigNode& node) {
      if (row.red.kmax < row.red.kmin || row.red.kmax > kMaxThreshold) {
        const ConfigNode kmax = node.required("kmax");
        kmax.fail("a size from kmin to 2 GiB", kmax.found());
      }
    });
  };
  fields.evidence();
  fields.required("mark_at", preset.mark_at, Choice{kPlaces},
                  "Whether packets are marked when they leave or when they come.");
  fields.required(
      "scaling", preset.scaling, Choice{kScalings},
      "Whether thresholds grow with the rate, are the same for all, or those of a row.");
  fields.required("rows", preset.rows, List{Group{row_fields}}, "Thresholds.");
  fields.check([&](const ConfigNode& node) {
    const std::size_t count = preset.rows.size();
    if (count == 0 || (preset.scaling != EcnScaling::Table && count > 1)) {
      node.required("rows").fail("one row", std::to_string(count));
    }
  });
}

// A name in the file of presets, or `off`.
struct PresetName {
  const std::filesystem::path& folder;
  void read(const Fields& /*parent*/, const ConfigNode& node,
            std::optional<MarkingPreset>& preset) const {
    if (!is_off(node)) {
      preset = MarkingPreset::load(folder / "ecn.yaml", node);
    }
  }
  static void describe(Schema& schema) { Text::describe(schema); }
};

}  // namespace

void marking_fields(Fields& fields, MarkingPresets& presets) {
  fields.cite_sources();
  fields.required("presets", presets, Named{Group{preset_fields}}, "Profiles by name.");
}

MarkingPreset MarkingPreset::load(const std::filesystem::path& file, const ConfigNode& name) {
  ConfigDocument document = ConfigDocument::load(file);
  MarkingPresets presets;
  read_fields(document.root(), presets, marking_fields);
  document.finish();
  std::vector<std::string_view> names;
  for (const auto& [preset_name, preset] : presets) {
    names.push_back(preset_name);
  }
  names.emplace_back("off");
  const std::size_t choice = name.as_choice(names);
  CHECK(choice < presets.size(), "thresholds of marking that is off");
  const auto chosen = std::next(presets.begin(), static_cast<std::ptrdiff_t>(choice));
  chosen->second.name = chosen->first;
  return chosen->second;
}

std::optional<RedProfile> MarkingPreset::at(Bandwidth rate) const {
  if (scaling == EcnScaling::Linear) {
    return rows.front().red.scaled(rate, rows.front().rate);
  }
  for (const Row& row : rows) {
    const std::int64_t apart = std::abs(row.rate.bits_per_second() - rate.bits_per_second());
    if (scaling == EcnScaling::Fixed || apart <= rate.bits_per_second() / 1'000'000) {
      return row.red;
    }
  }
  return std::nullopt;
}

bool PfcProfile::is_lossless(int priority) const {
  return std::find(priorities.begin(), priorities.end(), priority) != priorities.end();
}

void transport_fields(Fields& fields, TransportProfile& profile,
                      const std::filesystem::path& folder, const std::filesystem::path& beside) {
  const auto control = [&](const ConfigNode& node) {
    return load_control(folder / "control", beside, node);
  };
  fields.optional("base", std::ignore, Unread{},
                  "File whose values hold where none is given here.");
  fields.optional("source", std::ignore, Unread{}, "Where the facts are from.");
  fields.where(true, [&] {  // Where keys are missing, those of the base hold.
    fields.cite_sources();
    fields.required("control", profile.control, Via{Text{}, control},
                    "Congestion control: a name in `control/`, or a file beside this one.");
    fields.required("ecn", profile.ecn, PresetName{folder},
                    "Marking: a preset of `ecn.yaml`, or `off`.");
    fields.required("pfc", profile.pfc, Group{pfc_fields}, "Flow control.");
    fields.required("buffer", profile.buffer, Group{buffer_fields}, "Memory of switches.");
    fields.required("rdma", profile.rdma, Group{rdma_fields}, "Packets, ACKs and losses.");
  });
  fields.optional("queues", profile.queues, Group{queue_fields},
                  "A queue for each priority, instead of one class of data.");
  fields.optional("tcp", profile.tcp, Group{tcp_fields}, "TCP instead of RDMA; `rdma` is unused.");
  fields.optional(
      "adaptive", profile.adaptive, Group{adaptive_fields},
      "How switches choose ports in a fabric with `routing: adaptive`: for each packet.");
}

TransportProfile TransportProfile::read(ConfigDocument& document,
                                        const std::filesystem::path& beside,
                                        const std::filesystem::path& folder) {
  document.compose(document.root(), folder);
  TransportProfile profile;
  Fields fields(document.root());
  transport_fields(fields, profile, folder, beside);
  document.finish();
  return profile;
}

}  // namespace trainyard
