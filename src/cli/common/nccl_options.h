// SPDX-License-Identifier: Apache-2.0
// The options that describe the NCCL that is planned or timed: its release, variables and files,
// and those of `trainyard collective --runtime nccl`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/common/options.h"
#include "collectives/schedule/operation.h"
#include "nccl/machine/job_nodes.h"
#include "nccl/timing/timing.h"
#include "nccl/tuning/init.h"
#include "nccl/tuning/tuner_csv.h"
#include "nccl/types/environment.h"
#include "nccl/types/types.h"

namespace trainyard {

struct NcclOptions {
  nccl::Version version = nccl::kNewestVersion;
  nccl::Environment environment = {};
  std::optional<std::string> graph_file = {};
  std::optional<std::string> tuner_file = {};
  std::vector<std::string> notes = {};  // Remarks on the above, for readers of the results.

  // Read the graph file, and that of the tuner if there is one. Throw ConfigError.
  [[nodiscard]] nccl::InitOptions init_options() const;
  [[nodiscard]] std::optional<nccl::TunerTable> tuner() const;
  // Whether NVLink domains of several servers are used.
  [[nodiscard]] nccl::Domains domains() const;
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

// A row of each size: NCCL's own choice, or what is forced on it.
struct NcclChoice {
  std::optional<nccl::Algorithm> algorithm = {};
  std::optional<nccl::Protocol> protocol = {};
  NcclOptions options = {};  // With NCCL_ALGO and NCCL_PROTO as above.
};

struct NcclRequest {
  std::vector<NcclChoice> choices;  // At least one. They differ in what they force alone.
  nccl::LaunchMode mode = {};
  bool compares_all = false;  // NCCL's choice comes first, then each algorithm that it has.
};

// Those of nccl_variables(), and of how NCCL is called.
[[nodiscard]] Options nccl_run_options();

// Throws ConfigError for what NCCL or the event model does not have for an operation.
[[nodiscard]] NcclRequest read_nccl_request(const OptionReader& reader, Operation operation,
                                            nccl::Version version);

}  // namespace trainyard
