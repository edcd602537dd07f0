// SPDX-License-Identifier: Apache-2.0
// Computes the share of their rate that packets of NVLink and PCI Express leave of links in a
// server. Shares of the raw rate per direction, as real numbers.
//
// The catalogue's pcie_efficiency() is another thing: the model by which UCX says what a transfer
// reaches. Here are the bounds by the specification alone.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/units.h"

namespace trainyard {

// PCI Express 3.0 to 5.0 Base Specifications. Bytes around the payload of a transaction, with
// framing and sequence number (4) and LCRC (4).
inline constexpr std::int64_t kPcieWriteOverhead = 24;       // Header of 16: 64-bit address.
inline constexpr std::int64_t kPcieCompletionOverhead = 20;  // Header of 12.
inline constexpr std::int64_t kPcieReadRequestBytes = 24;
inline constexpr Bytes kPcieReadBoundary{64};  // RCB: root complexes may answer in such pieces.

// Data rate of one direction after 128b/130b, for generation 3, 4 or 5.
[[nodiscard]] Bandwidth pcie_raw_rate(int generation, int lanes);
// payload / (payload + overhead)
[[nodiscard]] double pcie_share(Bytes payload, std::int64_t overhead);
// Bytes of transactions between two ACKs, and between two updates of credits, that the
// specification recommends for this largest payload; absent for what its tables do not hold.
[[nodiscard]] std::optional<std::int64_t> pcie_control_interval(int lanes, Bytes max_payload);
// Returns the share that ACKs and updates at that interval and skip ordered sets (4 of 1538
// symbols) leave: a lower bound, as real devices send fewer.
[[nodiscard]] double pcie_control_share(std::int64_t interval);
// The bound on reads by the requests that may be open: tags x request size / latency.
[[nodiscard]] Bandwidth pcie_read_bound(int tags, Bytes request, SimTime latency);

// NVLink 1 and 2 (NVIDIA's P100 and V100 white papers; later generations are assumed to be alike):
// flits of 16 B, a header flit for each packet of at most 256 B of payload.
inline constexpr std::int64_t kNvlinkFlitBytes = 16;
inline constexpr std::int64_t kNvlinkMostPayload = 256;
// Returns the share for packets of `payload` bytes, 1 ... 256, with `extra` flits (byte enables,
// address extension); `answers` are flits of responses to equal traffic the other way, which go the
// same way as the data.
[[nodiscard]] double nvlink_share(Bytes payload, int extra = 0, int answers = 0);

}  // namespace trainyard
