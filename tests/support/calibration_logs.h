// SPDX-License-Identifier: Apache-2.0
// Logs of nccl-tests whose times a test knows.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "calibration/predict/nccl_prediction.h"
#include "calibration/predict/validation_case.h"
#include "collectives/schedule/operation.h"
#include "support/built_clusters.h"

namespace trainyard {

struct LogTime {
  Bytes size;
  double microseconds = 0.0;
};

// As *_perf prints it, of one node.
[[nodiscard]] inline std::string log_text(Operation operation, int ranks,
                                          const std::vector<LogTime>& times) {
  std::string text = fmt::format(
      "# Collective test starting: {}_perf\n"
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) graph: 0\n#\n# Using devices\n",
      to_string(operation));
  for (int rank = 0; rank < ranks; ++rank) {
    text += fmt::format(
        "#  Rank {0:2} Group  0 Pid 12{0:03} on node0 device {0:2} [0x{0:02x}] GPU\n", rank);
  }
  text +=
      "#\n#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
  for (const LogTime& one : times) {
    const double algbw = static_cast<double>(one.size.count()) / one.microseconds / 1e3;
    text += fmt::format("{:12} {:12}     float     sum      -1 {:8.2f} {:7.2f} {:7.2f}      0\n",
                        one.size.count(), one.size.count() / 4, one.microseconds, algbw,
                        algbw * bus_factor(operation, ranks));
  }
  return text + "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1\n";
}

// What the event model says of one DGX H100 with `profile`, each time changed by `noise`.
[[nodiscard]] inline std::vector<LogTime> model_times(const nccl::Profile& profile,
                                                      Operation operation, int ranks,
                                                      const std::vector<Bytes>& sizes,
                                                      const std::function<double()>& noise) {
  ValidationCase item;
  item.cluster = kConfigsFolder / "clusters" / "dgx-h100.yaml";
  item.nodes = 1;
  item.gpus_per_node = ranks;
  item.ranks = ranks;
  const Cluster cluster = shipped_cluster("dgx-h100", item.overrides());
  NcclSession session(item, cluster, profile, operation, sizes);
  std::vector<LogTime> times;
  for (std::size_t row = 0; row < sizes.size(); ++row) {
    times.push_back({sizes[row], session.time(row).microseconds() * noise()});
  }
  return times;
}

}  // namespace trainyard
