// SPDX-License-Identifier: Apache-2.0
// `trainyard step` with a workload of another tool (docs/inputs/imported-workloads.md).
#pragma once

#include <iosfwd>
#include <optional>

#include "cli/common/options.h"
#include "parallelism/trace_import/imported_workload.h"

namespace trainyard {

// --workload-format, --compute-scale, --comm-groups.
[[nodiscard]] Options imported_options();

// The format of --workload. Nothing: it is one of ours. Throws ConfigError where an option of
// imported workloads is given and it is none.
[[nodiscard]] std::optional<ImportedFormat> imported_format(const OptionReader& reader);

// Returns the exit status. Throws ConfigError.
int run_imported_step(const OptionReader& reader, ImportedFormat format, std::ostream& out);

}  // namespace trainyard
