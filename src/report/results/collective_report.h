// SPDX-License-Identifier: Apache-2.0
// The result of a collective run over message sizes, in nccl-tests' columns plus ours.
//
// The text form is read by tools that read nccl-tests output, and by load_measurement: the columns
// size to busbw are in nccl-tests' places and number format, ours follow, a missing value is "-".
// Ranks on nodes that differ are written as SLURM writes SLURM_TASKS_PER_NODE, "8(x4),6": four
// nodes of 8 and one of 6; in JSON as a list of {"nodes": 4, "gpus_per_node": 8}.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "calibration/fit/intervals.h"
#include "calibration/measured/measurement.h"
#include "collectives/schedule/operation.h"
#include "parallelism/run/tier_volumes.h"
#include "report/formats/document.h"
#include "sim/units.h"

namespace trainyard {

// The decision of NCCL for a row, and the parts of its time. Columns of CSV and JSON.
struct NcclCall {
  std::optional<int> threads = {};  // Threads of one channel's block; sends and receives: nothing.
  Bytes chunk;
  SimTime device;                          // Time of the kernel.
  SimTime host;                            // Time of launching it.
  std::optional<double> estimate_us = {};  // NCCL's own, by which it chooses.
  std::string reason = {};                 // Why this way.
};

struct CollectiveRow {
  Bytes size;
  std::string algorithm;
  int channels = 0;
  std::string protocol;
  SimTime time;
  double algbw_gbps = 0.0;
  double busbw_gbps = 0.0;
  std::uint64_t transfers = 0;
  // The fastest of the rows of its size. Shown only if a size has several rows.
  bool best = false;
  std::optional<MeasuredRow> measured;
  std::uint64_t fingerprint = 0;
  std::optional<SimTime> bound;  // No algorithm is faster.
  // Set in all rows or in none, which then have transfers.
  std::optional<NcclCall> nccl = {};
  std::optional<TimeInterval> interval = {};  // The 90 % interval; in all rows or in none.
  std::vector<TierVolume> volumes = {};       // Bytes on links, by tier.
};

struct CollectiveReport {
  Operation operation = Operation::AllReduce;
  std::string cluster;
  std::string runtime;
  std::string fidelity;
  int ranks = 0;
  std::vector<int> node_gpus;  // Ranks on each node.
  int root = 0;                // Root of operations that have one.
  std::vector<CollectiveRow> rows;
  // One line each, shown below the table.
  std::vector<std::string> notes;
  // The measured table that the rows are compared with; adds its columns and the error summary.
  std::optional<std::string> measured_name;
  std::optional<std::string> measured_source;
  bool show_fingerprint = false;
  RunInputs inputs = {};     // In JSON.
  bool show_bounds = false;  // Rows have bounds: adds them, and how close each row comes.
  std::vector<std::string> estimates = {};  // See Document::estimates.
};

// The size from which on, up to the next one, the algorithm is the fastest.
struct Crossover {
  Bytes size;
  std::string algorithm;
};

// Ascending; of rows that are marked.
[[nodiscard]] std::vector<Crossover> crossovers(const std::vector<CollectiveRow>& rows);

// Marks the fastest row of each size (the first of equals) as best, and no other.
void mark_best(std::vector<CollectiveRow>& rows);

[[nodiscard]] Document document_of(const CollectiveReport& report);

// A number as nccl-tests prints it in `width` characters: two decimals, fewer if it would be wider.
[[nodiscard]] std::string nccl_number(double value, int width);

}  // namespace trainyard
