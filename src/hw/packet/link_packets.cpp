// SPDX-License-Identifier: Apache-2.0
#include "hw/packet/link_packets.h"

#include <array>
#include <cmath>

#include "sim/check.h"

namespace trainyard {

Bandwidth pcie_raw_rate(int generation, int lanes) {
  CHECK(generation >= 3 && generation <= 5, "no generation with 128b/130b");
  const std::int64_t transfers = std::int64_t{8'000'000'000} << (generation - 3);
  return Bandwidth((transfers * lanes * 128 + 65) / 130);
}

double pcie_share(Bytes payload, std::int64_t overhead) {
  return static_cast<double>(payload.count()) / static_cast<double>(payload.count() + overhead);
}

std::optional<std::int64_t> pcie_control_interval(int lanes, Bytes max_payload) {
  struct Row {
    std::int64_t payload, by8, by16;
  };
  constexpr std::array<Row, 3> kRows{{{128, 163, 144}, {256, 203, 168}, {512, 182, 182}}};
  for (const Row& row : kRows) {
    if (row.payload == max_payload.count() && (lanes == 8 || lanes == 16)) {
      return lanes == 8 ? row.by8 : row.by16;
    }
  }
  return std::nullopt;
}

double pcie_control_share(std::int64_t interval) {
  constexpr double kAck = 8.0;
  constexpr double kUpdate = 8.0;
  constexpr double kSkip = 4.0 / 1538.0;
  return 1.0 - (kAck + kUpdate) / static_cast<double>(interval) - kSkip;
}

Bandwidth pcie_read_bound(int tags, Bytes request, SimTime latency) {
  CHECK(latency > SimTime(), "reads of no latency");
  const double bits = 8.0 * tags * static_cast<double>(request.count());
  return Bandwidth(std::llround(bits / latency.seconds()));
}

double nvlink_share(Bytes payload, int extra, int answers) {
  CHECK(payload > Bytes(0) && payload <= Bytes(kNvlinkMostPayload), "no payload of one packet");
  const std::int64_t flits = (payload.count() + kNvlinkFlitBytes - 1) / kNvlinkFlitBytes;
  const std::int64_t wire = (flits + 1 + extra + answers) * kNvlinkFlitBytes;
  return static_cast<double>(payload.count()) / static_cast<double>(wire);
}

}  // namespace trainyard
