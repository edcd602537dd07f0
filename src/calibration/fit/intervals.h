// SPDX-License-Identifier: Apache-2.0
// The 90 % interval of a predicted time: what was measured over what was foreseen, on machines that
// no constant was fitted to (docs/accuracy/intervals.md).
//
// Errors of a machine are off together, so every system weighs the same, however many rows its
// tables have. An interval is that of the family of machines and the range of sizes; where the
// machine has a GPU, a link or a network that no table shows together, it is that of the systems
// which were alone with a constant of theirs.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "calibration/fit/ledger.h"
#include "calibration/fit/time_band.h"
#include "nccl/timing/profile.h"
#include "sim/fields.h"
#include "sim/units.h"

namespace trainyard {

// The regimes in which launch and latency, both, or bandwidth decide about a time.
enum class SizeRegime { Latency, Between, Bandwidth };
inline constexpr std::array kSizeRegimes{SizeRegime::Latency, SizeRegime::Between,
                                         SizeRegime::Bandwidth};
// "latency", "between", "bandwidth".
[[nodiscard]] std::string_view to_string(SizeRegime regime);
// Below 64 KiB, below 16 MiB, and from there on.
[[nodiscard]] SizeRegime regime_of(Bytes size);

// Machines whose errors have the same causes: "nvswitch", "pcie" (and bridges and meshes) on one
// node; "rdma" (servers with NVSwitch), "rdma-rack" (racks of them), "rdma-mesh" (servers with a
// mesh of NVLink), "rdma-pcie" (others) and "other-network" on several; "xgmi" those of RCCL.
[[nodiscard]] std::string family_of(const nccl::MachineKind& machine);
// The family of machines that no table shows.
inline constexpr std::string_view kUnlikeAny = "unlike-any";

// Returns whether each regime has rows of two systems at least, without which there are no
// intervals.
[[nodiscard]] bool gives_intervals(std::span<const LedgerRow> ledger);

class Intervals {
 public:
  // Makes the intervals from these rows, but for those of one system ("" leaves none out).
  [[nodiscard]] static Intervals of(std::span<const LedgerRow> ledger, std::string_view without);
  // Rows of such a file.
  void fields(Fields& fields);
  // Throws ConfigError.
  [[nodiscard]] static Intervals load(const std::filesystem::path& file);
  [[nodiscard]] std::string to_yaml() const;

  // Returns whether a table shows such a machine.
  [[nodiscard]] bool is_known(const nccl::MachineKind& machine) const {
    return known_.contains(machine);
  }
  [[nodiscard]] const TimeBand& band(const nccl::MachineKind& machine, Bytes size) const;
  [[nodiscard]] TimeInterval around(SimTime predicted, const nccl::MachineKind& machine,
                                    Bytes size) const;

 private:
  std::set<nccl::MachineKind> known_;
  std::map<std::pair<std::string, SizeRegime>, TimeBand> bands_;  // Bands by family.
};

// The interval of each row that the rows of all other systems give.
class IntervalsOfOthers {
 public:
  explicit IntervalsOfOthers(std::span<const LedgerRow> ledger);
  // Returns the interval of a row of that ledger.
  [[nodiscard]] TimeInterval of(const LedgerRow& row) const;

 private:
  std::map<std::string, Intervals> without_;  // Intervals by system.
};

// Counts how many rows of each class lie in the intervals that rows of other systems give.
struct Coverage {
  std::size_t rows = 0;
  std::size_t inside = 0;
  [[nodiscard]] double share() const {
    return rows == 0 ? 1.0 : static_cast<double>(inside) / static_cast<double>(rows);
  }
};
// Counts the coverage of the rows that count, with the intervals around what was predicted of them.
[[nodiscard]] Coverage coverage_of(const Validation& validation, const Intervals& intervals);
// Returns the coverage by class, and that of "all".
[[nodiscard]] std::map<std::string, Coverage> coverage_of(std::span<const LedgerRow> ledger);

}  // namespace trainyard
