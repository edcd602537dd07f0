// SPDX-License-Identifier: Apache-2.0
// Chakra execution traces as operation graphs.
//
// Nodes wait for their control and data dependencies. Computation of a GPU takes its recorded
// duration; nodes of one stream, where the attribute is there, and else all of a GPU, run one at a
// time, as they become ready; nodes of the CPU (is_cpu_op) likewise. Collectives of a process group
// run in the order of their recorded start, then of the file, as far as dependencies leave it open,
// which must be the same on all ranks. Messages are eager (Handover::Eager).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "parallelism/trace_import/imported_workload.h"

namespace trainyard {

// One file for each rank, or for some: the others are taken to come to every call in time. Throws
// ConfigError "FILE: node N (NAME): FIELD: ...". The graph is not checked yet.
[[nodiscard]] ImportedWorkload read_chakra(const std::vector<ImportedFile>& files,
                                           const ImportedTarget& target);

// Groups of ranks as ASTRA-sim's comm_group.json has them: {"0": [0, 1], "1": [2, 3]}. Throws
// ConfigError.
[[nodiscard]] std::map<std::string, std::vector<int>> read_comm_groups(const ImportedFile& file);

}  // namespace trainyard
