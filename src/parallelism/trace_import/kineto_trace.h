// SPDX-License-Identifier: Apache-2.0
// Traces of PyTorch's profiler (Kineto) as operation graphs: what the GPUs did, again.
//
// A trace says when operations ran, not why then. What is kept is the order that it has: an
// operation waits for the last one on each stream that had ended when it began. Where it began
// later than all of those ended, that gap is time of the host, from the latest of them on. On
// durations as recorded a rank so takes what was recorded; with other durations of collectives,
// what depends on them moves.
#pragma once

#include "parallelism/trace_import/imported_workload.h"

namespace trainyard {

// One file for each rank, or for some: the others are taken to come to every call in time. Throws
// ConfigError "FILE: event N (NAME): FIELD: ...". The graph is not checked yet.
[[nodiscard]] ImportedWorkload read_kineto(const std::vector<ImportedFile>& files,
                                           const ImportedTarget& target);

}  // namespace trainyard
