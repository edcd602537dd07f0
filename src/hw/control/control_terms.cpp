// SPDX-License-Identifier: Apache-2.0
#include "hw/control/control_terms.h"

#include <algorithm>

namespace trainyard {

Bytes bdp(const PortTerms& port) {
  __extension__ using Wide = __int128;
  constexpr Wide kBits = Wide{8} * 1'000'000'000'000;
  const Wide bytes = Wide{port.line.bits_per_second()} * port.base_rtt.picoseconds() / kBits;
  return std::max(Bytes(static_cast<std::int64_t>(bytes)), port.packet);
}

Bandwidth RateRule::at(Bandwidth line) const {
  if (per == Bandwidth(0)) {
    return rate;
  }
  const double factor =
      static_cast<double>(line.bits_per_second()) / static_cast<double>(per.bits_per_second());
  return std::max(rate.scaled(factor), Bandwidth(1));
}

int ControlTraits::packets_for_ack(Bytes packet) const {
  const std::int64_t whole = (bytes_per_ack + packet - Bytes(1)).count() / packet.count();
  return bytes_per_ack > Bytes(0) ? static_cast<int>(whole) : packets_per_ack;
}

}  // namespace trainyard
