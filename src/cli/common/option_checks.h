// SPDX-License-Identifier: Apache-2.0
// Checks of options that exclude each other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/common/options.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

// The same file, by whatever path; both may be missing.
[[nodiscard]] bool is_same_file(const std::string& one, const std::string& other);
// Refuses an output that is what option `input` of the command reads: the value is a file, a folder
// of files, a name in configs, or has such a one in it ("server=FILE", "FILE@0-3"). Options that
// read nothing pass.
void check_not_read(const NamedFile& output, const Command& command, std::string_view input,
                    const std::string& value);
// The same for all that the command is given to read.
void check_not_read(const NamedFile& output, const OptionReader& reader);

// Refuses a key that is set twice by --NAME: "nodes=4" and "nodes=5" are no order to be kept.
void check_keys(std::string_view name, const std::vector<std::string>& settings);

// Refuses a --gpus-per-process that no run can have: processes have GPUs of one node, equally many.
void check_gpus_per_process(int gpus, const Cluster& cluster);

}  // namespace trainyard
