// SPDX-License-Identifier: Apache-2.0
// Measurements of one host by trainyard-calibrate-hosts (docs/accuracy/hosts.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/schedule/operation.h"
#include "sim/units.h"

namespace trainyard {

class Fields;

struct HostRow {
  std::string test;  // "ping-pong", "copy", "all_reduce", ...
  std::string path;  // "memory", "shared" or "tcp".
  int ranks = 0;
  Bytes size;           // Bytes of a message, or of a collective as nccl-tests counts them.
  double least = 0.0;   // The least time of one message, call or copy, in microseconds,
  double median = 0.0;  // and the median of all.
  double cpu = 0.0;     // CPU time of both ends of a message, in microseconds; 0: not measured.

  // Nothing where the row is no collective.
  [[nodiscard]] std::optional<Operation> operation() const;
  // Whether it is a collective of one rank on each host; others are within one host.
  [[nodiscard]] bool is_between_hosts() const;
};

struct HostSet {
  std::string name;  // The file, as the user names it.
  std::string cpu;
  int cores = 0;
  std::string mpi;
  std::vector<HostRow> rows;

  [[nodiscard]] int hosts() const;  // How many its rows took.
  // Whether ranks of the row had to share cores, which the model does not have.
  [[nodiscard]] bool is_crowded(const HostRow& row) const;
};

void host_set_fields(Fields& fields, HostSet& set);

// Returns whether the text says that it is such a file.
[[nodiscard]] bool is_host_set(std::string_view text);
// Rows of the same test, path, ranks and bytes, of several passes, are one with the least of each
// time. Throws ConfigError.
[[nodiscard]] HostSet parse_host_set(const std::string& text, const std::string& name);

}  // namespace trainyard
