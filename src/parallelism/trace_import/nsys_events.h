// SPDX-License-Identifier: Apache-2.0
// Work of GPUs in exports of Nsight Systems: kernels, copies and fills, by stream.
//
// SQLite has tables CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY and _MEMSET with nanoseconds, devices and
// streams, and StringIds with the names (docs.nvidia.com/nsight-systems/UserGuide, "SQLite Schema
// Reference"). JSON has an object on each line: CudaEvents with kernel, memcpy or memset, and the
// texts as one list or one by one ("JSON and Text Format Description"). Neither says what a kernel
// of NCCL transfers: its recorded time counts.
#pragma once

#include <string_view>
#include <vector>

#include "parallelism/trace_import/kineto_events.h"

namespace trainyard {

// Whether a file is a database of SQLite.
[[nodiscard]] bool is_sqlite(std::string_view text);

// Whether each line of a text is an object of its own, which no profile of PyTorch is.
[[nodiscard]] bool is_lines_of_json(std::string_view text);

// One trace for each process and GPU, in this order. Throws ConfigError.
[[nodiscard]] std::vector<KinetoTrace> read_nsys_events(const ImportedFile& file);

}  // namespace trainyard
