// SPDX-License-Identifier: Apache-2.0
// Prints the results of `trainyard plan`: the decisions of NCCL for a communicator and for messages
// of several sizes.
#pragma once

#include <string>
#include <vector>

#include "collectives/schedule/operation.h"
#include "nccl/tuning/call_plan.h"
#include "nccl/tuning/communicator.h"
#include "report/formats/document.h"
#include "sim/units.h"

namespace trainyard {

struct PlannedCall {
  Operation operation = Operation::AllReduce;
  Bytes size;  // As nccl-tests counts: of all_gather and reduce_scatter the whole.
  nccl::CallPlan plan = {};
};

struct PlanReport {
  std::string source;  // The cluster, or the topology file.
  nccl::Communicator communicator;
  std::vector<PlannedCall> calls = {};  // One operation behind the other, sizes ascending.
  std::vector<std::string> notes = {};  // One line each; what the twin is not sure about.
};

// Shows what the search found, channels, NCCL's cost model, and for each size what is chosen and
// what everything else would have cost.
[[nodiscard]] Document document_of(const PlanReport& report);

// The lines that NCCL prints at NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING, without
// what stands before a message ("host:pid:tid [0] NCCL INFO "): graphs, rings, trees of rank 0, the
// cost model, the counts of channels, and the choice for each call. Notes follow behind "# ".
[[nodiscard]] std::string render_plan_info(const PlanReport& report);

}  // namespace trainyard
