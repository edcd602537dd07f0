// SPDX-License-Identifier: Apache-2.0
// GOAL schedules, from the file to the result, one case a process so that the peak memory is that
// of the run:
//   goal_scale RANKS FILE [ENGINE]   a ring all_reduce of RANKS MiB on DGX H100 servers: 2 (N - 1)
//                                    rounds, 2 (N - 1) N messages of 1 MiB; ENGINE is flow or
//                                    analytical (each message alone)
// Writes FILE first if it is not there; other tools take it too. Prints one line: seconds to read
// and check, to run and attribute, peak memory, simulated time.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "parallelism/trace_import/imported_run.h"
#include "runs.h"
#include "sim/ids.h"

namespace trainyard {
namespace {

const std::filesystem::path kConfigs = std::filesystem::path(TRAINYARD_SOURCE_DIR) / "configs";

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void write_ring(const std::string& file, int ranks) {
  std::ofstream out(file);
  out << fmt::format("num_ranks {}\n\n", ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    std::string text = fmt::format("rank {} {{\n", rank);
    for (int round = 0; round < 2 * (ranks - 1); ++round) {
      text +=
          fmt::format("s{0}: send 1048576b to {1} tag {0}\nr{0}: recv 1048576b from {2} tag {0}\n",
                      round, (rank + 1) % ranks, (rank + ranks - 1) % ranks);
      if (round > 0) {
        text += fmt::format("s{0} requires r{1}\nr{0} requires r{1}\n", round, round - 1);
      }
    }
    out << text << "}\n\n";
  }
}

int run(int ranks, const std::string& file, Fidelity fidelity) {
  if (!std::filesystem::exists(file)) {
    write_ring(file, ranks);
  }
  const Catalogue catalogue = Catalogue::load(kConfigs / "hardware");
  ClusterOverrides overrides;
  overrides.nodes = (ranks + 7) / 8;
  const Cluster cluster =
      load_cluster(kConfigs / "clusters" / "dgx-h100.yaml", catalogue, overrides);
  const std::vector<int> servers = servers_of_gpus(cluster);

  auto start = std::chrono::steady_clock::now();
  const ImportedWorkload workload = read_imported(read_imported_files(file, ImportedFormat::Goal),
                                                  ImportedFormat::Goal, {.server_of_gpu = servers});
  const double reading = seconds_since(start);

  start = std::chrono::steady_clock::now();
  const bool shares = fidelity != Fidelity::Analytical;
  const GraphedRun ran =
      run_imported(cluster, workload, {.fidelity = fidelity, .shares_network = shares}, {});
  const double running = seconds_since(start);
  const std::size_t operations = workload.graph.operations().size();
  fmt::print(
      "goal {:>5} ranks, {:>10}: {} operations, read {:6.3f} s, run {:6.3f} s, {:4.0f} MiB, {:.0f} "
      "B an operation, {:.3f} us\n",
      ranks, shares ? "flow" : "analytical", operations, reading, running, peak_mebibytes(),
      peak_mebibytes() * 1024 * 1024 / static_cast<double>(operations),
      ran.result.finish.microseconds());
  return 0;
}

}  // namespace
}  // namespace trainyard

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() < 2 || arguments.size() > 3) {
    fmt::print(stderr, "goal_scale RANKS FILE [flow|analytical]\n");
    return 2;
  }
  const bool is_analytical = arguments.size() == 3 && arguments[2] == "analytical";
  return trainyard::run(
      std::stoi(arguments[0]), arguments[1],
      is_analytical ? trainyard::Fidelity::Analytical : trainyard::Fidelity::Flow);
}
