// SPDX-License-Identifier: Apache-2.0
#include "hw/control/hpcc.h"

#include <algorithm>
#include <cmath>

#include "hw/control/control_fields.h"
#include "sim/check.h"

namespace trainyard {
namespace {

constexpr std::uint64_t kSentUnit = 128;
constexpr std::uint64_t kSentWrap = kSentUnit << 20;
constexpr std::int64_t kTimeUnit = 1000;  // Picoseconds.
constexpr std::int64_t kTimeWrap = kTimeUnit << 24;
constexpr std::int64_t kQueueUnit = 80;
constexpr std::int64_t kMaxQueue = ((std::int64_t{1} << 17) - 1) * kQueueUnit;

double per_picosecond(Bandwidth rate) {
  return static_cast<double>(rate.bits_per_second()) / 8e12;
}

void remember(IntMemory& memory, std::span<const IntHop> hops) {
  for (std::size_t i = 0; i < hops.size(); ++i) {
    memory.seen[i] = {.time = hops[i].time,
                      .sent_bytes = hops[i].sent_bytes,
                      .queue = hops[i].queue,
                      .port = hops[i].port};
  }
  memory.hops = static_cast<std::uint8_t>(hops.size());
}

bool is_known_path(const IntMemory& memory, std::span<const IntHop> hops) {
  return memory.hops > 0 && std::ranges::equal(hops, std::span(memory.seen).first(memory.hops), {},
                                               &IntHop::port, &IntMemory::Seen::port);
}

}  // namespace

IntHop rounded_to_wire(const IntHop& hop) {
  IntHop wire = hop;
  wire.time = SimTime(hop.time.picoseconds() / kTimeUnit * kTimeUnit % kTimeWrap);
  wire.sent_bytes = hop.sent_bytes / kSentUnit * kSentUnit % kSentWrap;
  wire.queue = Bytes(std::min(hop.queue.count() / kQueueUnit * kQueueUnit, kMaxQueue));
  return wire;
}

Hpcc::Hpcc(const HpccSettings& settings)
    : settings_(&settings),
      first_window_(per_picosecond(settings.line) * settings.base_rtt.real_picoseconds()),
      window_(first_window_),
      reference_(first_window_) {
  CHECK(first_window_ > 0.0, "a window of nothing");
  CHECK(settings.eta > 0.0 && settings.eta <= 1.0, "eta is no share");
}

Bandwidth Hpcc::rate() const {
  const double bits = window_ * 8e12 / settings_->base_rtt.real_picoseconds();
  return std::min(Bandwidth(std::llround(bits)), settings_->line);
}

SimTime Hpcc::time_between(const Seen& seen, const IntHop& hop) const {
  const SimTime difference = hop.time - seen.time;
  const bool has_wrapped = settings_->wire_counters && difference < SimTime();
  return has_wrapped ? difference + SimTime(kTimeWrap) : difference;
}

double Hpcc::bytes_between(const Seen& seen, const IntHop& hop) const {
  const std::uint64_t difference = hop.sent_bytes - seen.sent_bytes;
  return static_cast<double>(settings_->wire_counters ? difference % kSentWrap : difference);
}

void Hpcc::measure(std::span<const IntHop> hops, const IntMemory& memory) {
  const double rtt = settings_->base_rtt.real_picoseconds();
  double max = 0.0;
  double interval = 0.0;
  for (std::size_t i = 0; i < hops.size(); ++i) {
    const SimTime time = time_between(memory.seen[i], hops[i]);
    if (time <= SimTime()) {
      continue;  // Nothing new from this link.
    }
    const double link = per_picosecond(hops[i].rate);
    const double sent = bytes_between(memory.seen[i], hops[i]) / time.real_picoseconds();
    const auto queue = static_cast<double>(std::min(hops[i].queue, memory.seen[i].queue).count());
    const double use = queue / (link * rtt) + sent / link;
    if (use > max) {
      max = use;
      interval = time.real_picoseconds();
    }
  }
  const double weight = std::min(interval, rtt) / rtt;
  utilisation_ = (1.0 - weight) * utilisation_ + weight * max;
}

void Hpcc::update(bool is_full) {
  const double min = settings_->min_window > 0.0 ? settings_->min_window : settings_->additive;
  const bool is_over = utilisation_ >= settings_->eta || stage_ >= settings_->max_stage;
  const double scaled = is_over ? reference_ / (utilisation_ / settings_->eta) : reference_;
  window_ = std::clamp(scaled + settings_->additive, std::min(min, first_window_), first_window_);
  if (is_full) {
    stage_ = is_over ? 0 : stage_ + 1;
    reference_ = window_;
  }
}

void Hpcc::on_ack(std::uint64_t acked, std::uint64_t next, std::span<const IntHop> hops,
                  IntMemory* other) {
  IntMemory& memory = other == nullptr ? memory_ : *other;
  hops = hops.first(std::min(hops.size(), kMaxIntHops));
  if (!is_known_path(memory, hops)) {
    remember(memory, hops);
    last_update_ = next;
    return;
  }
  const bool is_full = acked > last_update_;
  measure(hops, memory);
  update(is_full);
  if (is_full) {
    last_update_ = next;
  }
  remember(memory, hops);
}

void HpccControl::fields(Fields& fields, HpccProfile& profile) {
  fields.required("eta", profile.settings.eta, Cited{Number{0.01, 1.0}}, "What a link is used to.");
  fields.required("max_stage", profile.settings.max_stage, Cited{Whole{0, control::kMany}},
                  "Additive steps before the next multiplicative one.");
  fields.required("wire_counters", profile.settings.wire_counters, control::kFlag,
                  "Whether INT has the bits of the wire, and wraps.");
  fields.required("additive_increase", profile.additive, control::PerRate{},
                  "Times the base RTT this is W_AI.");
}

HpccSettings HpccControl::settings(const HpccProfile& profile, const PortTerms& port) {
  HpccSettings settings = profile.settings;
  settings.line = port.line;
  settings.base_rtt = port.base_rtt;
  const auto rate = static_cast<double>(profile.additive.at(port.line).bits_per_second());
  settings.additive = rate / 8.0 * port.base_rtt.seconds();
  settings.min_window = static_cast<double>(port.packet.count());
  return settings;
}

}  // namespace trainyard
