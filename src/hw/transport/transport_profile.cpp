// SPDX-License-Identifier: Apache-2.0
#include "hw/transport/transport_profile.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "hw/packet/rdma_packet.h"
#include "hw/parts/sourced_reader.h"
#include "sim/check.h"
#include "sim/yaml_names.h"

namespace trainyard {
namespace {

constexpr int kPriorityMost = kPriorities - 1;

// The exponent of a power of two from 1/128 to 64.
int alpha_exponent(const ConfigNode& value) {
  constexpr double kLeast = 1.0 / 128;
  constexpr double kMost = 64.0;
  const double alpha = value.as_number(kLeast, kMost);
  int exponent = 0;
  if (std::frexp(alpha, &exponent) != 0.5) {
    value.fail("a power of two from 1/128 to 64", value.found());
  }
  return exponent - 1;
}

int priority(const ConfigNode& value) {
  return static_cast<int>(value.as_integer(0, kPriorityMost));
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

RedProfile read_red(const ConfigNode& row) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  RedProfile red{.kmin = row.required("kmin").as_bytes(),
                 .kmax = row.required("kmax").as_bytes(),
                 .pmax = row.required("pmax").as_number(0.0, 1.0)};
  const ConfigNode kmax = row.required("kmax");
  if (red.kmax < red.kmin || red.kmax > Bytes(kMost)) {
    kmax.fail("a size from kmin to 2 GiB", kmax.found());
  }
  return red;
}

PfcProfile read_pfc(const SourcedReader& reader, const ConfigNode& node) {
  PfcProfile pfc;
  for (const ConfigNode& item : reader.value(node, "priorities").items()) {
    if (pfc.is_lossless(priority(item))) {
      item.fail("each priority once", item.found());
    }
    pfc.priorities.push_back(priority(item));
  }
  pfc.quanta = static_cast<std::uint16_t>(reader.value(node, "quanta").as_integer(2, kMaxQuanta));
  static constexpr std::array<std::string_view, 3> kRules{"standard", "sonic", "ns3"};
  pfc.headroom = static_cast<HeadroomRule>(reader.value(node, "headroom").as_choice(kRules));
  pfc.pipeline = reader.value(node, "pipeline").as_time();
  WatchdogSettings watchdog{.detection = some_time(reader.value(node, "detection")),
                            .restoration = some_time(reader.value(node, "restoration")),
                            .poll = some_time(reader.value(node, "poll"))};
  if (node.optional("action")) {
    static constexpr std::array<std::string_view, 2> kActions{"drop", "forward"};
    watchdog.action = static_cast<StormAction>(reader.value(node, "action").as_choice(kActions));
  }
  static constexpr std::array<std::string_view, 2> kSwitches{"off", "on"};
  if (reader.value(node, "watchdog").as_choice(kSwitches) == 1) {
    pfc.watchdog = watchdog;
  }
  return pfc;
}

QueueProfile read_queues(const SourcedReader& reader, const ConfigNode& node) {
  constexpr int kMostWeight = 1000;
  QueueProfile queues;
  for (const ConfigNode& item : reader.value(node, "strict").items()) {
    queues.strict.push_back(priority(item));
  }
  const ConfigNode weights = reader.value(node, "weights");
  for (const ConfigNode& item : weights.items()) {
    queues.weights.push_back(static_cast<int>(item.as_integer(1, kMostWeight)));
  }
  if (queues.weights.size() != kPriorities) {
    weights.fail("a weight for each of eight priorities", std::to_string(queues.weights.size()));
  }
  return queues;
}

AdaptiveOptions read_adaptive(const SourcedReader& reader, const ConfigNode& node) {
  constexpr int kMostGrades = 1'000'000;
  constexpr int kMostEntries = 1 << 24;
  AdaptiveOptions adaptive;
  static constexpr std::array<std::string_view, 3> kUnits{"connection", "flowlet", "packet"};
  adaptive.unit = static_cast<AdaptiveOptions::Unit>(reader.value(node, "unit").as_choice(kUnits));
  adaptive.grades = {.step = some_bytes(reader.value(node, "step")),
                     .grades = reader.value(node, "grades").as_integer(1, kMostGrades),
                     .slack = reader.value(node, "slack").as_integer(0, kMostGrades)};
  adaptive.gap = some_time(reader.value(node, "gap"));
  const ConfigNode entries = reader.value(node, "entries");
  adaptive.entries = static_cast<std::uint32_t>(entries.as_integer(1, kMostEntries));
  if (!std::has_single_bit(adaptive.entries)) {
    entries.fail("a power of two", entries.found());
  }
  return adaptive;
}

BufferProfile read_buffer(const SourcedReader& reader, const ConfigNode& node) {
  static constexpr std::array<std::string_view, 2> kRules{"guaranteed", "ns3"};
  return {
      .size = some_bytes(reader.value(node, "size")),
      .cell = some_bytes(reader.value(node, "cell")),
      .admission = static_cast<AdmissionRule>(reader.value(node, "admission").as_choice(kRules)),
      .reserve = reader.value(node, "reserve").as_bytes(),
      .resume_offset = reader.value(node, "resume_offset").as_bytes(),
      .lossless_alpha = alpha_exponent(reader.value(node, "lossless_alpha")),
      .lossy_alpha = alpha_exponent(reader.value(node, "lossy_alpha"))};
}

// Legal, or marked as a what-if by `what_if: true` beside it.
void read_mtu(const SourcedReader& reader, const ConfigNode& node, RdmaProfile& rdma) {
  constexpr Bytes kLargestFrame{16'384};
  const ConfigNode value = reader.value(node, "path_mtu");
  rdma.path_mtu = some_bytes(value);
  if (const auto what_if = node.required("path_mtu").optional("what_if")) {
    rdma.is_what_if = what_if->as_bool();
  }
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

RdmaProfile read_rdma(const SourcedReader& reader, const ConfigNode& node) {
  constexpr int kMostTimeout = 31;
  constexpr int kMostRetries = 7;
  RdmaProfile rdma;
  read_mtu(reader, node, rdma);
  rdma.data_priority = priority(reader.value(node, "data_priority"));
  rdma.control_priority = priority(reader.value(node, "control_priority"));
  rdma.ack_every = reader.value(node, "ack_every").as_integer(0, kMostOutstanding / 2);
  rdma.recovery =
      static_cast<Retransmission>(reader.value(node, "recovery").as_choice(retransmission_names()));
  const auto exponent = reader.value(node, "timeout").as_integer(0, kMostTimeout);
  rdma.retry.timeout = retransmission_timeout(static_cast<int>(exponent));
  rdma.retry.retries = static_cast<int>(reader.value(node, "retries").as_integer(0, kMostRetries));
  rdma.selective.retries = rdma.retry.retries;
  rdma.selective.short_timeout = some_time(reader.value(node, "short_timeout"));
  rdma.selective.long_timeout = some_time(reader.value(node, "long_timeout"));
  return rdma;
}

}  // namespace

MarkingPreset MarkingPreset::load(const std::filesystem::path& file, const ConfigNode& name) {
  static constexpr std::array<std::string_view, 3> kScalings{"linear", "fixed", "table"};
  static constexpr std::array<std::string_view, 2> kPlaces{"dequeue", "enqueue"};
  ConfigDocument document = ConfigDocument::load(file);
  const SourcedReader reader(document.root());
  std::vector<MarkingPreset> presets;
  for (const auto& [preset_name, node] : document.root().required("presets").entries()) {
    reader.check(node);
    MarkingPreset preset;
    preset.name = preset_name;
    preset.mark_at = static_cast<MarkAt>(node.required("mark_at").as_choice(kPlaces));
    preset.scaling = static_cast<EcnScaling>(node.required("scaling").as_choice(kScalings));
    const ConfigNode rows = node.required("rows");
    for (const ConfigNode& row : rows.items()) {
      const bool has_rate = preset.scaling != EcnScaling::Fixed;
      preset.rows.push_back({.rate = has_rate ? row.required("rate").as_bandwidth() : Bandwidth(0),
                             .red = read_red(row)});
    }
    if (preset.rows.empty() || (preset.scaling != EcnScaling::Table && preset.rows.size() > 1)) {
      rows.fail("one row", std::to_string(preset.rows.size()));
    }
    presets.push_back(std::move(preset));
  }
  document.finish();
  std::vector<std::string_view> names;
  for (const MarkingPreset& preset : presets) {
    names.push_back(preset.name);
  }
  names.emplace_back("off");
  const std::size_t choice = name.as_choice(names);
  CHECK(choice < presets.size(), "thresholds of marking that is off");
  return presets[choice];
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

TransportProfile TransportProfile::load(const std::filesystem::path& file,
                                        const std::filesystem::path& folder,
                                        const ConfigSets& sets) {
  ConfigDocument document = ConfigDocument::load(file);
  return read(document, file.parent_path(), folder, sets);
}

TransportProfile TransportProfile::read(ConfigDocument& document,
                                        const std::filesystem::path& beside,
                                        const std::filesystem::path& folder,
                                        const ConfigSets& sets) {
  document.compose(document.root(), folder);
  for (const auto& [path, value] : sets) {
    document.set(path, value);
  }
  const ConfigNode root = document.root();
  if (const std::optional<ConfigNode> source = root.optional("source")) {
    static_cast<void>(source->as_string());
  }
  const SourcedReader reader(root);
  TransportProfile profile;
  profile.control = load_control(folder / "control", beside, root.required("control"));
  const ConfigNode ecn = root.required("ecn");
  if (!is_off(ecn)) {
    profile.ecn = MarkingPreset::load(folder / "ecn.yaml", ecn);
  }
  profile.pfc = read_pfc(reader, root.required("pfc"));
  profile.buffer = read_buffer(reader, root.required("buffer"));
  profile.rdma = read_rdma(reader, root.required("rdma"));
  if (const std::optional<ConfigNode> queues = root.optional("queues")) {
    profile.queues = read_queues(reader, *queues);
  }
  if (const std::optional<ConfigNode> adaptive = root.optional("adaptive")) {
    profile.adaptive = read_adaptive(reader, *adaptive);
  }
  document.finish();
  return profile;
}

IngressLimits TransportProfile::ingress_limits(int priority, const LinkTerms& link) const {
  if (!pfc.is_lossless(priority)) {
    return {.threshold = {.kind = BufferThreshold::Kind::Unlimited}};
  }
  constexpr std::int64_t kAroundPayload = 18 + 20;
  const Bytes flight = headroom_by(pfc.headroom, {.rate = link.rate,
                                                  .delay = link.delay,
                                                  .mtu = link.frame - Bytes(kAroundPayload),
                                                  .pipeline = pfc.pipeline});
  return {.lossless = true,
          .reserve = buffer.reserve,
          .headroom = flight + link.frame + buffer.cell,
          .threshold = {.alpha_exponent = buffer.lossless_alpha},
          .resume_offset = buffer.resume_offset};
}

BufferThreshold TransportProfile::egress_threshold(int priority) const {
  if (pfc.is_lossless(priority)) {
    return {.kind = BufferThreshold::Kind::Unlimited};
  }
  return {.kind = BufferThreshold::Kind::Dynamic, .alpha_exponent = buffer.lossy_alpha};
}

SharedBufferSettings TransportProfile::buffer_settings(std::optional<Bytes> size) const {
  return {.size = size.value_or(buffer.size), .cell = buffer.cell, .rule = buffer.admission};
}

}  // namespace trainyard
