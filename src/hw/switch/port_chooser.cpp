// SPDX-License-Identifier: Apache-2.0
#include "hw/switch/port_chooser.h"

#include "sim/random.h"

namespace trainyard {

PortChooser::PortChooser(const AdaptiveOptions& options, std::uint64_t seed)
    : grades_(options.grades), random_(seed) {
  if (options.unit == AdaptiveOptions::Unit::Flowlet) {
    flowlets_.emplace(options.gap, options.entries);
  }
}

std::uint32_t PortChooser::draw() {
  random_ += 0x9E3779B97F4A7C15;  // The step of splitmix64.
  return static_cast<std::uint32_t>(mix64(random_) >> 32);
}

std::uint32_t PortChooser::choose(std::span<const std::int64_t> queued, std::uint64_t flow,
                                  SimTime now) {
  if (!flowlets_) {
    return choose_port(grades_, queued, kNoPort, draw());
  }
  const std::uint32_t chosen = flowlets_->choice(hash64(flow), now, [&](std::uint32_t previous) {
    return choose_port(grades_, queued, previous, draw());
  });
  // Flows that share an entry may have other numbers of ports.
  return chosen % static_cast<std::uint32_t>(queued.size());
}

}  // namespace trainyard
