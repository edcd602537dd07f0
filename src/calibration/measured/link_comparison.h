// SPDX-License-Identifier: Apache-2.0
// Compares what tools measured of the links of a machine (pasted_output.h) with what the simulator
// says of the same transfers on its cluster file.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "calibration/measured/pasted_output.h"
#include "hw/parts/catalogue.h"
#include "sim/units.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

struct LinkComparison {
  std::string file;
  std::string test;
  Bytes size;              // Size, for perftest.
  std::size_t values = 0;  // Number of values that `measured` is the median of.
  bool is_latency = false;
  double measured = 0.0;  // GB/s, or us.
  double min = 0.0;
  double max = 0.0;
  std::optional<double> simulated = {};  // The median over the same pairs.
  std::string remark = {};               // Why nothing is simulated.
};

// One for each test, of perftest for each test and size, in the order of the output. `one` is the
// cluster with one server, `two` with two, for perftest: from the first memory of one to that of
// the other. OSU does not say where its ranks are: with `two` they are the first GPUs, or memories,
// of two servers, otherwise the first GPUs of one.
[[nodiscard]] std::vector<LinkComparison> compare_links(const PastedOutput& output,
                                                        const std::string& file, const Cluster& one,
                                                        const Cluster* two);

}  // namespace trainyard
