// SPDX-License-Identifier: Apache-2.0
#include "hw/switch/pfc.h"

#include <algorithm>
#include <array>
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

std::int64_t reaction_quanta(Bandwidth rate) {
  for (const Reaction& reaction : kReactions) {
    if (rate <= gigabits_per_second(reaction.gigabits)) {
      return reaction.quanta;
    }
  }
  return kReactions.back().quanta;
}

SimTime reaction_time(Bandwidth rate) {
  return transfer_time(Bytes(reaction_quanta(rate) * kQuantumBytes), rate);
}

Bytes pfc_headroom(const HeadroomTerms& terms) {
  const std::int64_t way = carried(terms.rate, terms.delay + terms.pipeline, 2, true);
  const std::int64_t frame = terms.mtu.count() + kAroundPayload;
  return Bytes(way + 2 * frame + kPfcWireBytes.count() +
               kQuantumBytes * reaction_quanta(terms.rate));
}

Bytes sonic_headroom(Bandwidth rate, double metres, Bytes mtu) {
  constexpr double kMetresPerSecond = 198e6;
  constexpr double kUnit = 1024.0;
  constexpr Bytes kPortMtu{9100};
  constexpr double kLosslessMtu = 1024.0;
  constexpr double kMacPhyBytes = 819.2;
  constexpr double kWorstPacking = 144.0 / 64.0;  // The smallest packets, a cell of 144 B for each.
  const double megabits = static_cast<double>(rate.bits_per_second()) / 1e6;
  const double cable = 2.0 * metres * megabits * 1e9 / kMetresPerSecond / (8.0 * kUnit);
  const auto response = static_cast<double>(kQuantumBytes * reaction_quanta(rate));
  const double flight =
      static_cast<double>(std::max(kPortMtu, mtu).count()) + cable + kMacPhyBytes + response;
  return kib(static_cast<std::int64_t>(std::ceil((kLosslessMtu + flight * kWorstPacking) / kUnit)));
}

Bytes headroom_by(HeadroomRule rule, const HeadroomTerms& terms) {
  constexpr double kMetresPerSecond = 2e8;
  switch (rule) {
    case HeadroomRule::Standard:
      return pfc_headroom(terms);
    case HeadroomRule::Sonic:
      return sonic_headroom(terms.rate, terms.delay.seconds() * kMetresPerSecond, terms.mtu);
    case HeadroomRule::Ns3:
      return Bytes(carried(terms.rate, terms.delay, 3, false));
  }
  CHECK(false, "unknown rule of headroom");
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
