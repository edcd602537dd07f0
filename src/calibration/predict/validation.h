// SPDX-License-Identifier: Apache-2.0
// Predictions held against measured tables: each case, each class of systems, and all together.
//
// The error of a row is |ln(predicted / measured)|. What is measured is the out-of-place time, or
// the in-place time where the case says so; where the two differ by more than a quarter, the
// smaller one counts, because a single spike is the usual reason. A row that the case excludes is
// predicted and shown, but does not count. Of a linear sweep (`one_row_per_doubling`) the row with
// the median time per byte represents all whose sizes round to the same power of two, so that a
// table counts by its range and not by its rows; the median takes care of spikes there.
//
// Figures of a group of tables come twice. Over tables: the median of the tables' medians, the
// median of their 90th percentiles, the mean of their biases; every table weighs the same. Over
// rows: all rows of all tables in one heap. All medians and percentiles are by nearest rank
// (comparison.h).
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "calibration/measured/comparison.h"
#include "calibration/predict/validation_case.h"
#include "hw/parts/catalogue.h"
#include "nccl/timing/profile.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct PredictedTime {
  SimTime time;
  // Description of what ran, in a few words: "Ring LL128, 24 channels". May be empty.
  std::string how = {};
  nccl::MachineKind machine = {};  // Machine whose constants it rests on; for predictors of NCCL.
};

// The times of the operation with these sizes, in their order, all positive. May throw ConfigError:
// the case is then not covered. Called from several threads at once.
using Predictor =
    std::function<std::vector<PredictedTime>(const ValidationCase& item, const Cluster& cluster,
                                             Operation operation, std::span<const Bytes> sizes)>;

struct ValidationRow {
  Bytes size;
  SimTime measured;
  bool in_place = false;       // `measured` is the in-place time.
  bool columns_apart = false;  // The two columns differ by more than a quarter.
  int stands_for = 1;          // Rows of the table, itself included.
  std::string excluded = {};   // Why it does not count; empty if it does.
  std::optional<PredictedTime> predicted = {};

  // ln(predicted / measured).
  [[nodiscard]] double log_ratio() const;
};

// Errors over rows; bias is the mean of ln(predicted / measured), positive where predictions are
// too slow.
struct ErrorFigures {
  RegimeError large;
  RegimeError small;
  double bias_large = 0.0;
  double bias_small = 0.0;
};
// `with_excluded`: also of the rows that do not count.
enum class CountedRows { Counted, Every };
[[nodiscard]] ErrorFigures error_figures(std::span<const ValidationRow> rows, CountedRows counted);

struct CaseResult {
  ValidationCase item;
  Operation operation = Operation::AllReduce;
  std::vector<ValidationRow> rows;
  std::string not_covered;  // Why it was not predicted; empty if it was.
  ErrorFigures errors;
  // Index of the row with the largest error among the rows that count. None if the case excludes
  // all: it is covered, but not scored.
  std::optional<std::size_t> worst = {};
  // Median of |ln(in place / out of place)| of the rows of 64 KiB and up that have both: how well
  // the measurement agrees with itself.
  std::optional<double> noise = {};
};

// The rows of a table that are looked at, with what was measured.
[[nodiscard]] std::vector<ValidationRow> validation_rows(const LoadedCase& loaded);

// The cluster of a case. Throws ConfigError, also where it has another number of GPUs.
[[nodiscard]] Cluster cluster_of(const ValidationCase& item, const Catalogue& catalogue);

// Builds the cluster, predicts and scores. Throws nothing of the user's: what goes wrong is in
// `not_covered`.
[[nodiscard]] CaseResult run_case(const LoadedCase& loaded, const Catalogue& catalogue,
                                  const Predictor& predict);

struct TableFigures {
  std::size_t tables = 0;  // Number of tables that have rows of the regime.
  double median = 0.0;     // Median of the tables' medians.
  double p90 = 0.0;        // Median of the tables' 90th percentiles.
  double bias = 0.0;       // Mean of the tables' biases.
};

// Rows that count, of sizes from the one named to the next.
struct SizeRange {
  Bytes from;
  RegimeError error;
  double bias = 0.0;
};
inline constexpr std::array kSizeRanges{Bytes(0), kib(1), kib(64), mib(1), mib(16), mib(256)};

struct GroupResult {
  std::string name;
  int cases = 0;
  int covered = 0;  // Predicted.
  int scored = 0;   // Number of these that have rows that count.
  TableFigures large;
  TableFigures small;
  ErrorFigures rows;                    // Over the rows that count.
  ErrorFigures every_row;               // Over all that were predicted.
  std::vector<SizeRange> by_size = {};  // One for each of kSizeRanges.
  std::size_t excluded = 0;             // Rows that the cases exclude.
};
[[nodiscard]] GroupResult group_of(std::string name, std::span<const CaseResult* const> cases);

struct Validation {
  std::vector<CaseResult> cases;
  std::vector<GroupResult> classes;  // In the order of their names.
  GroupResult all;
};
[[nodiscard]] Validation validation_of(std::vector<CaseResult> cases);

}  // namespace trainyard
