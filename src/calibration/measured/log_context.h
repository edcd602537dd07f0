// SPDX-License-Identifier: Apache-2.0
// Reads what the lines around a table of nccl-tests say about the run: operation, ranks, devices,
// launch, and whether it came to its end; as they are printed, or without the '#' that pasting
// takes.
#pragma once

#include <cstddef>
#include <set>
#include <string_view>
#include <vector>

#include "calibration/measured/measurement.h"

namespace trainyard {

// "all_reduce_perf", also with a suffix such as "_mpi" or a folder before it.
[[nodiscard]] std::optional<Operation> program_operation(std::string_view program);

// The rank of a line that lists a device.
[[nodiscard]] std::optional<int> listed_rank(std::string_view line);

class LogContext {
 public:
  // `line` must outlive this.
  void read(std::string_view line);

  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] bool failed() const { return failed_; }
  // Returns all of it as a table without rows.
  [[nodiscard]] MeasuredTable described() const;

 private:
  using Words = std::vector<std::string_view>;

  void read_launch(const Words& words);
  void read_device(const Words& words);
  void describe_operation(MeasuredTable& table) const;
  void describe_ranks(MeasuredTable& table) const;
  void describe_listed_ranks(MeasuredTable& table) const;

  MeasuredTable said_;  // Lines say this of the whole run.
  std::set<Operation> mentioned_;
  std::string_view version_;
  std::size_t device_lines_ = 0;
  std::set<int> listed_;
  std::set<std::string_view> hosts_;
  bool several_groups_ = false;
  bool simulated_ = false;
  bool is_rccl_ = false;
  bool in_place_only_ = false;
  bool failed_ = false;
  bool ended_ = false;
};

}  // namespace trainyard
