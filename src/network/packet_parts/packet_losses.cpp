// SPDX-License-Identifier: Apache-2.0
#include "network/packet_parts/packet_losses.h"

#include <algorithm>
#include <bit>
#include <string>

#include "sim/check.h"

namespace trainyard {

double packet_error_rate(double bit_error_rate, std::int64_t bits) {
  CHECK(bits >= 0, "a packet of negative size");
  double rate = 0.0;
  const auto count = static_cast<std::uint64_t>(bits);
  for (auto bit = static_cast<int>(std::bit_width(count)) - 1; bit >= 0; --bit) {
    rate *= 2.0 - rate;
    if ((count >> bit & 1U) != 0) {
      rate += bit_error_rate - rate * bit_error_rate;
    }
  }
  return rate;
}

void PacketLosses::set_bit_error_rate(LinkId link, double rate, double loss) {
  CHECK(rate >= 0.0 && rate < 1.0, "no rate of bit errors");
  CHECK(loss >= 0.0 && loss < 1.0, "no share of packets");
  Lossy& lossy = links_[link.value()];
  lossy.bit_error_rate = rate;
  lossy.loss = loss;
  lossy.last_bytes = -1;
  if (!lossy.stream) {
    lossy.stream.emplace(seed_, "bit errors of link " + std::to_string(link.value()));
  }
}

void PacketLosses::fail(LinkId link, Picoseconds time) {
  Lossy& lossy = links_[link.value()];
  lossy.fails_at = std::min(lossy.fails_at, time);
}

bool PacketLosses::has_bit_error_rate(LinkId link) const {
  const auto found = links_.find(link.value());
  return found != links_.end() && found->second.stream.has_value();
}

Picoseconds PacketLosses::fails_at(LinkId link) const {
  const auto found = links_.find(link.value());
  return found == links_.end() ? kNeverTime : found->second.fails_at;
}

bool PacketLosses::loses(LinkId link, std::int64_t bytes, Picoseconds arrival) {
  const auto found = links_.find(link.value());
  if (found == links_.end()) {
    return false;
  }
  Lossy& lossy = found->second;
  if (arrival > lossy.fails_at) {
    ++lossy.tally.link_down;
    return true;
  }
  if (lossy.bit_error_rate <= 0.0 && lossy.loss <= 0.0) {
    return false;
  }
  if (bytes != lossy.last_bytes) {
    lossy.last_bytes = bytes;
    const double flipped = packet_error_rate(lossy.bit_error_rate, 8 * bytes);
    lossy.last_rate = flipped + lossy.loss - flipped * lossy.loss;
  }
  const bool is_lost = lossy.stream->uniform() < lossy.last_rate;
  lossy.tally.bit_errors += is_lost ? 1 : 0;
  return is_lost;
}

PacketLosses::Tally PacketLosses::tally(LinkId link) const {
  const auto found = links_.find(link.value());
  return found == links_.end() ? Tally{} : found->second.tally;
}

PacketLosses::Tally PacketLosses::tally() const {
  Tally sum;
  for (const auto& [link, lossy] : links_) {
    sum.bit_errors += lossy.tally.bit_errors;
    sum.link_down += lossy.tally.link_down;
  }
  return sum;
}

}  // namespace trainyard
