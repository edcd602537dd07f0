// SPDX-License-Identifier: Apache-2.0
// The runtime nccl on many servers, one case a process so that the peak memory is that of the run:
//   nccl_scale SERVERS [ALGORITHM]   all_reduce on DGX H100, 8 B to 8 GiB; NCCL's own choice, or
//                                    ring, tree, nvlstree forced as by NCCL_ALGO
// Prints one line: seconds to build the cluster, for the communicator, for all 31 sizes, memory.
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "nccl/machine/job_nodes.h"
#include "nccl/timing/profile.h"
#include "nccl/timing/timing.h"
#include "nccl/tuning/choice.h"
#include "nccl/tuning/init.h"
#include "topology/cluster/cluster.h"

namespace trainyard {
namespace {

const std::filesystem::path kConfigs = std::filesystem::path(TRAINYARD_SOURCE_DIR) / "configs";

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024.0;
}

int run(int servers, const std::string& algorithm) {
  const Catalogue catalogue = Catalogue::load(kConfigs / "hardware");
  const nccl::Profile profile = nccl::Profile::load(kConfigs / "nccl" / "profile.yaml");
  auto start = std::chrono::steady_clock::now();
  ClusterOverrides overrides;
  overrides.nodes = servers;
  const Cluster cluster =
      load_cluster(kConfigs / "clusters" / "dgx-h100.yaml", catalogue, overrides);
  const double build = seconds_since(start);

  start = std::chrono::steady_clock::now();
  nccl::InitOptions options;
  if (!algorithm.empty()) {
    options.environment = nccl::Environment::parse(std::vector{"NCCL_ALGO=" + algorithm});
  }
  const nccl::JobNodes nodes = nccl::job_nodes(cluster, nccl::Domains::Joined);
  const nccl::Communicator communicator = nccl::make_communicator(nodes, options).communicator;
  const double search = seconds_since(start);

  start = std::chrono::steady_clock::now();
  nccl::Timer timer(cluster, communicator, profile, options.environment, {});
  SimTime last;
  for (Bytes size(8); size <= gib(8); size = size * 2) {
    last = timer
               .collective(nccl::plan_call(communicator, options.environment,
                                           nccl::Function::AllReduce, size))
               .time;
  }
  const double timing = seconds_since(start);
  fmt::print(
      "{:>8} {:>5} GPUs: cluster {:6.3f} s  communicator {:6.3f} s  31 sizes {:6.3f} s  {:4.0f} "
      "MiB  8 GiB take {:.0f} us\n",
      algorithm.empty() ? "auto" : algorithm, communicator.ranks, build, search, timing, peak_mib(),
      last.microseconds());
  return 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty() || arguments.size() > 2) {
    fmt::print(stderr, "nccl_scale SERVERS [ALGORITHM]\n");
    return 2;
  }
  return trainyard::run(std::stoi(arguments[0]), arguments.size() == 2 ? arguments[1] : "");
}
