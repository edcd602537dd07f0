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

// Words that people say for --topo-file.
inline constexpr std::string_view kTopologyWords = "topo topology nccl-xml xml";

// --env, --graph-file, --tuner-csv; with --nccl-version in front for commands without a runtime.
[[nodiscard]] Options nccl_variables();
[[nodiscard]] Options nccl_options();

// `more` are assignments NAME=VALUE that other options stand for. Throws ConfigError; `topology`
// says what to give instead of NCCL_TOPO_FILE, which is refused.
[[nodiscard]] NcclOptions read_nccl_variables(const OptionReader& reader, std::string_view topology,
                                              std::span<const std::string> more = {});
[[nodiscard]] NcclOptions read_nccl_options(const OptionReader& reader, std::string_view topology);

}  // namespace trainyard
