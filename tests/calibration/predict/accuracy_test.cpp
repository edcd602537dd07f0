// SPDX-License-Identifier: Apache-2.0
// Bus bandwidth of rings (and of operations that go straight) for the largest measured message,
// against every measured table in validation/nccl that NCCL ran as rings, or would have: what the
// link rates of the catalogue are worth. docs/accuracy/accuracy.md is written from the result
// (UPDATE_GOLDEN=1) and must agree with it.
//
// A budget is the error that was seen when the case was added, rounded up to a whole per cent. It
// may only go down.
#include "support/catch.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "calibration/measured/measurement.h"
#include "collectives/run/run.h"
#include "hw/parts/catalogue.h"
#include "support/page_part.h"
#include "support/paths.h"
#include "topology/cluster/cluster.h"

namespace trainyard {
namespace {

const std::filesystem::path kRoot = source_dir();

struct Case {
  std::string table;
  std::string cluster;
  int nodes;
  int gpus_per_node;
  double budget_percent;
  std::string remark;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"v100-1x8-hybrid-cube-mesh-allreduce", "dgx-1", 1, 8, 3, "six disjoint rings"},
      {"dgx2-1x12-v100-broadcast", "dgx-2", 1, 12, 1, ""},
      {"dgx2-1x12-v100-reduce", "dgx-2", 1, 12, 1, ""},
      {"a100-1x8-nvswitch-allreduce-1process", "dgx-a100", 1, 8, 2, ""},
      {"dgx-a100-2x8-hdr-allreduce-ring", "dgx-a100", 2, 8, 2, "Ring forced"},
      {"azure-ndmv4-2x8-a100-hdr-allreduce", "dgx-a100", 2, 8, 2, ""},
      {"oci-a100-2x8-roce-allreduce-nccl2.29.3", "dgx-a100", 2, 8, 2, "RoCE"},
      {"h100-1x4-nvswitch-allreduce-ring-simple", "dgx-h100", 1, 4, 2, "Ring forced"},
      {"h100-1x8-nvswitch-reducescatter", "dgx-h100", 1, 8, 2, ""},
      {"h100-1x8-nvswitch-allgather", "dgx-h100", 1, 8, 2, ""},
      {"h100-1x8-nvswitch-sendrecv", "dgx-h100", 1, 8, 1, ""},
      {"h100-1x8-nvswitch-alltoall", "dgx-h100", 1, 8, 7, "all pairs at once"},
      {"b300-1x8-nvswitch-allreduce-ring", "hgx-b200", 1, 8, 1, "Ring forced; NVLink 5 as B200"},
      {"mi300x-1x8-xgmi-allreduce-rccl", "mi300x", 1, 8, 1, "RCCL; its own rate was used"},
      {"h100-10x1-400g-allreduce", "h100-1gpu-400g", 10, 1, 2, "plain Clos, one leaf"},
      {"h100-8x8-400g-allreduce", "dgx-h100", 8, 8, 20,
       "fabric not stated; NCCL stops at 16 channels"},
      {"h100-10x8-400g-allreduce", "dgx-h100", 10, 8, 20, "the same; 344.9 at its best size"},
      {"rtx4090-1x8-pcie4-p2p-allreduce", "rtx4090-pcie", 1, 8, 5, "PCIe only"},
  };
  return all;
}

struct Outcome {
  Bytes size;
  double predicted = 0.0;  // Bus bandwidth in GB/s.
  double measured = 0.0;
  [[nodiscard]] double error_percent() const { return 100.0 * (predicted / measured - 1.0); }
};

Outcome outcome_of(const Case& item) {
  const Catalogue catalogue = Catalogue::load(kRoot / "configs" / "hardware");
  const Cluster cluster =
      load_cluster(kRoot / "configs" / "clusters" / (item.cluster + ".yaml"), catalogue,
                   {.nodes = item.nodes, .gpus_per_node = item.gpus_per_node});
  const MeasuredTable table =
      load_measurement(kRoot / "validation" / "nccl" / (item.table + ".yaml"));
  REQUIRE(table.operation.has_value());
  REQUIRE(table.ranks == item.nodes * item.gpus_per_node);
  const MeasuredRow& row = table.rows.back();
  const Algorithm algorithm = default_algorithm(*table.operation);
  const CollectiveResult result = run_collective(
      cluster, {.operation = *table.operation, .algorithm = algorithm, .size = row.size});
  const double algbw = static_cast<double>(row.size.count()) / result.time.seconds() / 1e9;
  return {.size = row.size,
          .predicted = algbw * bus_factor(*table.operation, *table.ranks),
          .measured = row.busbw_gbps};
}

constexpr const char* kBegin = "<!-- written by tests/calibration/predict/accuracy_test.cpp -->\n";
constexpr const char* kEnd = "<!-- end -->\n";

}  // namespace

TEST_CASE("large messages reach the measured bus bandwidth within their budgets") {
  std::string text =
      "| measured table | cluster file | size | measured GB/s | predicted GB/s | error | remark |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const Case& item : cases()) {
    const Outcome outcome = outcome_of(item);
    INFO(item.table << ": predicted " << outcome.predicted << ", measured " << outcome.measured);
    REQUIRE(std::abs(outcome.error_percent()) <= item.budget_percent);
    text +=
        fmt::format("| {} | {}, {} x {} | {} | {:.1f} | {:.1f} | {:+.1f} % | {} |\n", item.table,
                    item.cluster, item.nodes, item.gpus_per_node, to_string(outcome.size),
                    outcome.measured, outcome.predicted, outcome.error_percent(), item.remark);
  }

  hold_part("docs/accuracy/accuracy.md", kBegin, kEnd, text);
}

}  // namespace trainyard
