// SPDX-License-Identifier: Apache-2.0
// Measured transfers: what bandwidth and latency tests printed on real machines, with the cluster
// and the devices that stand for them (validation/transfers/, docs/inputs/measurements.md).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hw/parts/catalogue.h"
#include "sim/fields.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// Selects which transfers of a row run at once.
enum class TransferSet {
  Pair,  // `from` to `to`.
  PeerToPeer,
  HostToDevice,
  DeviceToHost,
};

struct MeasuredTransfer {
  std::string what;
  std::string cluster;                // A name in configs/clusters, or a file.
  std::vector<std::string> settings;  // As --set takes them.
  std::optional<int> nodes;
  TransferSet set = TransferSet::Pair;
  std::string from;  // Names of devices, for Pair.
  std::string to;
  bool both_ways = false;
  bool is_latency = false;
  // The measured range: GB/s of all transfers together, or microseconds one way.
  double min = 0.0;
  double greatest = 0.0;
  // The error that was seen when the row was added, rounded up.
  double budget_percent = 0.0;
  std::string remark;  // Why the error is what it is; may be empty.

  // Returns the error from the nearer end of the range; zero inside it.
  [[nodiscard]] double error_percent(double predicted) const;
};

struct TransferMeasurements {
  std::string source;
  std::vector<MeasuredTransfer> rows;
};

// Rows of a file. A cluster that is a file is relative to `file`.
void transfer_fields(Fields& fields, TransferMeasurements& all, const std::filesystem::path& file);

// Throws ConfigError with file, line and column.
[[nodiscard]] TransferMeasurements load_transfers(const std::filesystem::path& file);

// Returns the prediction of the flow engine, in the unit of the row. `clusters` is the folder of
// shipped clusters.
[[nodiscard]] double predict(const MeasuredTransfer& row, const std::filesystem::path& clusters,
                             const Catalogue& catalogue);

}  // namespace trainyard
