// SPDX-License-Identifier: Apache-2.0
// The options that describe the NCCL that is planned or timed: its release, variables and files.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/common/options.h"
#include "nccl/tuning/init.h"
#include "nccl/types/environment.h"
#include "nccl/types/types.h"

namespace trainyard {

struct NcclOptions {
  nccl::Version version = nccl::kNewestVersion;
  nccl::Environment environment = {};
  std::optional<std::string> graph_file = {};
  std::optional<std::string> tuner_file = {};
  std::vector<std::string> notes = {};  // Remarks on the above, for readers of the results.

  // Reads the graph file. Throws ConfigError.
  [[nodiscard]] nccl::InitOptions init_options() const;
};

// --nccl-version, --env, --graph-file, --tuner-csv.
[[nodiscard]] Options nccl_options();

// --nccl-version alone: the nearest release that is known, and a note where it is another one.
void read_nccl_version(const OptionReader& reader, NcclOptions& read);

// `more` are assignments NAME=VALUE that other options stand for. Throws ConfigError; `topology`
// says what to give instead of NCCL_TOPO_FILE, which is refused.
[[nodiscard]] NcclOptions read_nccl_options(const OptionReader& reader, std::string_view topology,
                                            std::span<const std::string> more = {});

}  // namespace trainyard
