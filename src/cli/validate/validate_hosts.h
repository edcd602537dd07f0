// SPDX-License-Identifier: Apache-2.0
// The part of `trainyard validate` for measurements of hosts.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/accuracy/host_report.h"

namespace trainyard {

// Whether this is a file of trainyard-calibrate-hosts. Throws ConfigError for a file that cannot be
// read.
[[nodiscard]] bool is_host_file(const std::filesystem::path& file);

struct HostValidationRequest {
  std::vector<std::filesystem::path> files;
  std::filesystem::path configs;
  std::vector<std::string> only;  // Tests, or parts of names of files; empty: all.
  std::filesystem::path profile;  // Costs of MPI's messages.
  unsigned threads = 0;           // 0: all cores.
};

// Throws ConfigError.
[[nodiscard]] HostValidationReport validate_hosts(const HostValidationRequest& request);

}  // namespace trainyard
