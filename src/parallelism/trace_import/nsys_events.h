// SPDX-License-Identifier: Apache-2.0
// Work of GPUs in the SQLite export of Nsight Systems: kernels, copies and fills, by stream.
//
// Tables CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY and _MEMSET with nanoseconds, devices and streams, and
// StringIds with the names (docs.nvidia.com/nsight-systems/UserGuide, "SQLite Schema Reference").
// It does not say what a kernel of NCCL transfers: its recorded time counts.
#pragma once

#include <string_view>
#include <vector>

#include "parallelism/trace_import/kineto_events.h"

namespace trainyard {

// Whether a file is a database of SQLite.
[[nodiscard]] bool is_sqlite(std::string_view text);

// One trace for each process and GPU, in this order. Throws ConfigError.
[[nodiscard]] std::vector<KinetoTrace> read_nsys_events(const ImportedFile& file);

}  // namespace trainyard
