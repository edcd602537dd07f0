// SPDX-License-Identifier: Apache-2.0
// A cluster as its YAML file describes it, built into a Topology.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hw/parts/catalogue.h"
#include "sim/config.h"
#include "sim/ids.h"
#include "topology/graph/topology.h"
#include "topology/routing/routing.h"

namespace trainyard {

// The values of a cluster file that the command line may change.
struct ClusterOverrides {
  std::optional<int> nodes = {};           // Servers.
  std::optional<int> gpus_per_node = {};   // GPUs used in each server, at most those it has.
  std::vector<std::string> settings = {};  // "key.path=value", as --set takes them.
  std::vector<std::string> pulls = {};     // "A,B" or "A", as --pull takes them.
  std::vector<std::string> parts = {};     // Files and folders of the user's own parts.
};

struct Cluster {
  std::string name;
  Catalogue catalogue = {};  // Its parts, and all links.
  Topology topology;
  RoutingOptions routing;
  int nodes = 0;
  int gpus_per_node = 0;         // Count of the server with most.
  std::vector<int> server_gpus;  // GPUs of each server that ranks use.
  // Server by server: rank r of a job is gpus[r].
  std::vector<NodeId> gpus;
  // NICs of one server that its GPUs use for the fabric, of the server with fewest; zero where GPUs
  // are attached directly.
  int nics_per_node = 0;
  // One line for each value of the catalogue that this cluster uses and that is an estimate.
  std::vector<std::string> estimates;
  // The same for each of the user's own parts that it uses: "PART: KEY = VALUE, ...: SOURCE".
  std::vector<std::string> own_parts = {};
  // One line for each thing that a user should know before trusting results: broken links, ...
  std::vector<std::string> warnings = {};
};

// Reads, checks and builds. Throws ConfigError with file, line, column and key path.
[[nodiscard]] Cluster load_cluster(const std::filesystem::path& file, const Catalogue& catalogue,
                                   const ClusterOverrides& overrides);
// The same for a document that is already parsed.
[[nodiscard]] Cluster build_cluster(ConfigDocument& document, const Catalogue& catalogue,
                                    const ClusterOverrides& overrides);

// The kinds of GPU that the servers of a cluster file have, of which nothing is built. Throws
// ConfigError.
[[nodiscard]] std::vector<GpuModel> kinds_of_gpus(const std::filesystem::path& file,
                                                  const Catalogue& catalogue,
                                                  const ClusterOverrides& overrides);

// Leaves `part` no other ranks than these of `gpus`, those of the whole cluster, in rising order;
// nodes and links stay. `ranks` may not be empty.
void keep_ranks(const std::vector<NodeId>& gpus, std::vector<int> ranks, Cluster& part);

// Servers that follow one another and have the same number of GPUs.
struct ServerRun {
  int servers = 0;
  int gpus = 0;  // GPUs of each server.
};

[[nodiscard]] std::vector<ServerRun> server_runs(const std::vector<int>& server_gpus);
// "8" if all servers have 8; otherwise as SLURM writes SLURM_TASKS_PER_NODE: "8(x4),6" are four
// servers of 8 and one of 6.
[[nodiscard]] std::string server_runs_text(const std::vector<int>& server_gpus);

}  // namespace trainyard
