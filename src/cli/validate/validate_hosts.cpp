// SPDX-License-Identifier: Apache-2.0
#include "cli/validate/validate_hosts.h"

#include <algorithm>
#include <cstddef>

#include "cli/common/common.h"
#include "cli/common/options.h"
#include "topology/cluster/cluster.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

}  // namespace

bool is_host_file(const std::filesystem::path& file) {
  return is_host_set(read_file(file.string(), kMaxBytes));
}

HostValidationReport validate_hosts(const HostValidationRequest& request) {
  // Inside a host no message takes a link of the cluster: any server does that has enough GPUs.
  const Cluster cluster = load_cluster(request.configs / "clusters" / "dgx-a100.yaml",
                                       load_default_catalogue(), {.nodes = 1});
  const MpiRules rules = MpiRules::load(request.configs / "mpi" / "open-mpi-4.1.yaml");
  const MpiProfile profile = MpiProfile::load(request.profile);
  HostValidationReport report{.profile = request.profile.string()};
  for (const std::filesystem::path& file : request.files) {
    HostSet set = parse_host_set(read_file(file.string(), kMaxBytes), file.string());
    const auto is_wanted = [&](const HostRow& row) {
      return request.only.empty() ||
             std::ranges::any_of(request.only, [&](const std::string& text) {
               return row.test == text || file.filename().string().find(text) != std::string::npos;
             });
    };
    std::erase_if(set.rows, [&](const HostRow& row) { return !is_wanted(row); });
    if (!set.rows.empty()) {
      HostPredictions predictions =
          predict_host(set, cluster, rules, profile, task_runner(request.threads, "validate"));
      report.hosts.push_back({.set = std::move(set), .predictions = std::move(predictions)});
    }
  }
  if (report.hosts.empty()) {
    fail_option("only", "a test, or part of the name of a file", request.only.front());
  }
  return report;
}

}  // namespace trainyard
