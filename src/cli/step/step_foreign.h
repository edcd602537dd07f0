// SPDX-License-Identifier: Apache-2.0
// `trainyard step` with a workload of another tool (docs/inputs/foreign-workloads.md).
#pragma once

#include <iosfwd>
#include <optional>

#include "cli/common/options.h"
#include "parallelism/trace_import/foreign_workload.h"

namespace trainyard {

// --workload-format, --compute-scale, --comm-groups.
[[nodiscard]] Options foreign_options();

// The format of --workload. Nothing: it is one of ours. Throws ConfigError where an option of
// foreign workloads is given and it is none.
[[nodiscard]] std::optional<ForeignFormat> foreign_format(const OptionReader& reader);

// Returns the exit status. Throws ConfigError.
int run_foreign_step(const OptionReader& reader, ForeignFormat format, std::ostream& out);

}  // namespace trainyard
