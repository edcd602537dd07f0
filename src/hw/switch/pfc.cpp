// SPDX-License-Identifier: Apache-2.0
#include "hw/switch/pfc.h"

#include <algorithm>
#include <cmath>

#include "sim/check.h"

namespace trainyard {
namespace {

struct Reaction {
  std::int64_t gigabits;
  std::int64_t quanta;
};
constexpr std::array<Reaction, 8> kReactions{
    {{10, 67}, {25, 80}, {40, 118}, {50, 147}, {100, 394}, {200, 453}, {400, 905}, {800, 905}}};

// Header and FCS, preamble and gap.
constexpr std::int64_t kAroundPayload = 18 + 20;

// Bytes that `rate` carries in `time`, times `factor`, over `divisor`; rounded up or down.
std::int64_t carried(Bandwidth rate, SimTime time, std::int64_t factor, bool up) {
  __extension__ using Wide = __int128;
  constexpr Wide kBitsPicosecondsPerByte = Wide{8} * 1'000'000'000'000;
  const Wide amount = Wide{rate.bits_per_second()} * time.picoseconds() * factor;
  const Wide rounding = up ? kBitsPicosecondsPerByte - 1 : Wide{0};
  return static_cast<std::int64_t>((amount + rounding) / kBitsPicosecondsPerByte);
}

}  // namespace

SimTime pause_time(std::int64_t quanta, Bandwidth rate) {
  return quanta == 0 ? SimTime() : transfer_time(Bytes(quanta * kQuantumBytes), rate);
}

std::int64_t reaction_quanta(Bandwidth rate) {
  for (const Reaction& reaction : kReactions) {
    if (rate <= gigabits_per_second(reaction.gigabits)) {
      return reaction.quanta;
    }
  }
  return kReactions.back().quanta;
}

SimTime reaction_time(Bandwidth rate) {
  return pause_time(reaction_quanta(rate), rate);
}

PfcFrame PfcFrame::xoff(int priority, std::uint16_t quanta) {
  CHECK(priority >= 0 && priority < kPriorities, "no such priority");
  PfcFrame frame;
  frame.enabled = static_cast<std::uint8_t>(1U << static_cast<unsigned>(priority));
  frame.quanta[static_cast<std::size_t>(priority)] = quanta;
  return frame;
}

void PauseState::receive(const PfcFrame& frame, SimTime now, Bandwidth rate) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if ((frame.enabled >> i & 1U) == 0) {
      continue;
    }
    Lane& lane = lanes_[i];
    if (now >= lane.until) {  // The pause before is over: this one begins.
      lane.before += lane.until - lane.since;
      lane.since = now;
    }
    lane.until = now + pause_time(frame.quanta[i], rate);
  }
}

SimTime PauseState::paused_time(int priority, SimTime now) const {
  const Lane& lane = lanes_[static_cast<std::size_t>(priority)];
  return lane.before + (std::min(lane.until, now) - lane.since);
}

PauseRefresh::PauseRefresh(std::uint16_t quanta, Bandwidth rate)
    : period_(pause_time(quanta / 2, rate)), quanta_(quanta) {
  CHECK(quanta >= 2, "a pause too short to be renewed");
}

Bytes pfc_headroom(const HeadroomTerms& terms) {
  const std::int64_t way = carried(terms.rate, terms.delay + terms.pipeline, 2, true);
  const std::int64_t frame = terms.mtu.count() + kAroundPayload;
  return Bytes(way + 2 * frame + kPfcWireBytes.count() +
               kQuantumBytes * reaction_quanta(terms.rate));
}

Bytes sonic_headroom(const SonicHeadroomTerms& terms) {
  constexpr double kMetresPerSecond = 198e6;
  constexpr double kUnit = 1024.0;
  const auto cell = static_cast<double>(terms.cell.count());
  const double worst = cell > 128.0 ? cell / 64.0 : 2.0 * cell / (1.0 + cell);
  const double factor = terms.small_packets * worst + (1.0 - terms.small_packets);
  const double megabits = static_cast<double>(terms.rate.bits_per_second()) / 1e6;
  const double cable = 2.0 * terms.metres * megabits * 1e9 / kMetresPerSecond / (8.0 * kUnit);
  const auto response = static_cast<double>(kQuantumBytes * reaction_quanta(terms.rate));
  const double flight =
      static_cast<double>(terms.port_mtu.count()) + cable + terms.mac_phy_bytes + response;
  const double bytes = static_cast<double>(terms.lossless_mtu.count()) + flight * factor;
  return kib(static_cast<std::int64_t>(std::ceil(bytes / kUnit)));
}

Bytes ns3_headroom(Bandwidth rate, SimTime delay) {
  return Bytes(carried(rate, delay, 3, false));
}

Bytes headroom_by(HeadroomRule rule, const HeadroomTerms& terms) {
  constexpr double kMetresPerSecond = 2e8;
  switch (rule) {
    case HeadroomRule::Standard:
      return pfc_headroom(terms);
    case HeadroomRule::Sonic: {
      SonicHeadroomTerms sonic{.rate = terms.rate,
                               .metres = terms.delay.seconds() * kMetresPerSecond};
      sonic.port_mtu = std::max(sonic.port_mtu, terms.mtu);
      return sonic_headroom(sonic);
    }
    case HeadroomRule::Ns3:
      return ns3_headroom(terms.rate, terms.delay);
  }
  CHECK(false, "unknown rule of headroom");
}

WatchdogSettings WatchdogSettings::for_ports(int ports) {
  const std::int64_t factor = std::max(1, (ports + 31) / 32);
  WatchdogSettings settings;
  settings.detection = settings.detection * factor;
  settings.restoration = settings.restoration * factor;
  settings.poll = std::min(settings.poll * factor, seconds(1));
  return settings;
}

PauseWatchdog::Event PauseWatchdog::poll(const WatchdogSettings& settings, const Sample& sample) {
  const bool stuck =
      sample.has_packets && !sample.sent && sample.paused / settings.poll > settings.paused_share;
  const bool supports = in_storm_ ? sample.paused == SimTime() : stuck;
  evidence_ = supports ? evidence_ + settings.poll : SimTime();
  if (!in_storm_ && evidence_ >= settings.detection) {
    in_storm_ = true;
    evidence_ = SimTime();
    return Event::Storm;
  }
  if (in_storm_ && evidence_ >= settings.restoration) {
    in_storm_ = false;
    evidence_ = SimTime();
    return Event::Restored;
  }
  return Event::Nothing;
}

}  // namespace trainyard
