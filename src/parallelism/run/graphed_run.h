// SPDX-License-Identifier: Apache-2.0
// Runs graphs of operations on a cluster, whatever workload they were made of: steps of
// transformers and of recommendation models, and imported traces.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/hccl/hccl_profile.h"
#include "nccl/timing/profile.h"
#include "network/contract/network.h"
#include "network/engines/network_extras.h"
#include "network/packet/packet_options.h"
#include "parallelism/closed_forms/step_time.h"
#include "parallelism/graph/graph_jitter.h"
#include "parallelism/graph/graph_runner.h"
#include "parallelism/graph/graph_traffic.h"
#include "parallelism/graph/operation_graph.h"
#include "parallelism/memory/step_memory.h"
#include "parallelism/operators/step_parts.h"
#include "parallelism/traffic/cluster_times.h"
#include "parallelism/workload/gpu_rates.h"
#include "sim/simulator.h"
#include "topology/cluster/cluster.h"

namespace trainyard {

enum class StepMethod : std::uint8_t {
  ClosedForms,  // step_time.h
  Graph,        // step_graph.h
};

// A rank that computes slower than the others.
struct SlowRank {
  int rank = 0;
  std::int64_t ppm = 1'000'000;  // Its times over those of the others.
};

// Limit for a graph that is not folded.
inline constexpr int kMaxUnfoldedRanks = 1024;

// Rates of no GPU.
[[nodiscard]] const GpuRates& no_rates();

// The tables that do not change from one run to the next.
struct StepTables {
  const GpuRates& rates = no_rates();  // Traces bring the times of their kernels.
  // Times of collectives as NCCL runs them; nothing: links and latencies only, at `fidelity`.
  const nccl::Profile* nccl = nullptr;
  const HcclProfile* hccl = nullptr;    // Times as HCCL runs them; without `nccl`.
  Fidelity fidelity = Fidelity::Flow;   // Also of transfers between stages.
  std::optional<Fidelity> engine = {};  // Between nodes, of collectives as NCCL runs them.
  nccl::Version nccl_version = nccl::kNewestVersion;
  StepMethod method = StepMethod::ClosedForms;
  // For StepMethod::Graph:
  std::optional<SlowRank> slow_rank = {};
  ComputeJitter jitter = {};  // If any: every rank.
  // Every rank, and all traffic on one network, at `fidelity` but not Fidelity::Analytical; without
  // `nccl`. With at most kMaxUnfoldedRanks.
  bool shares_network = false;
  PacketOptions packets = roce_options();  // How packets are sent on that network,
  NetworkExtras extras = {};               // and what else is asked of it.
  nccl::SearchMemory* searches = nullptr;  // Searches of communicators, shared with other steps.
};

// The result of the run of a graph.
struct GraphedRun {
  GraphResult result;
  std::vector<StepParts> ranks = {};  // Parts by rank in the graph; add up to `result.finish`.
  std::size_t busiest = 0;            // Rank among these that waits least for others.
  // Collectives and messages that were asked for, and those that were simulated: the others are
  // equal ones. Zero where all are on one network.
  std::size_t calls = 0;
  std::size_t simulated = 0;
  std::optional<PacketStats> packets = {};  // Counts of packets on one network.
  ExtraResults extras = {};                 // Of that network.
  // Names what collectives were beyond the rows that the profile rests on, if it says.
  std::vector<std::string> beyond_profile = {};
};

// The run of a workload that has no closed forms.
struct LoweredRun : GraphedRun {
  OperationGraph graph = OperationGraph(0);
  StepTime step;  // The parts are those of the rank that waits least, StepTime::critical_rank.
  std::optional<SimTime> usual_time = {};  // Without slow rank and jitter.
  MemoryUse memory = {};                   // Memory of the rank that holds most.
  Bytes memory_size = {};
  std::string memory_verdict = {};
  double peak = 0.0;  // Dense, of one GPU in the precision of the workload; FLOP/s.

  [[nodiscard]] int gpus() const { return graph.ranks(); }
  [[nodiscard]] bool fits() const { return memory.device() <= memory_size; }
};

// Runs `run.graph` and sets its times, with the time `fixed` of any step. Throws ConfigError, which
// begins with `name`.
void run_lowered(const Cluster& cluster, const StepTables& tables, SimTime fixed,
                 std::string_view name, LoweredRun& run);
// Throws ConfigError where the tables ask for more ranks on one network than are simulated.
void check_unfolded(const StepTables& tables, int ranks);

class GraphOnCluster {
 public:
  // The arguments must outlive this. Rank r of a graph is the GPU r.
  GraphOnCluster(const Cluster& cluster, const StepTables& tables);

  // Calls `use` with traffic on a simulator of its own: all on one network, or each alone, as the
  // tables have it.
  void with_traffic(const std::function<void(Simulator&, GraphTraffic&)>& use);
  // Throws ConfigError, which begins with `name`, for a run that does not end, with who waits for
  // whom.
  [[nodiscard]] GraphedRun run(const OperationGraph& graph, const GraphRunOptions& options,
                               std::string_view name);
  [[nodiscard]] ClusterTimes& times() { return *times_; }
  // Returns the counts of the last traffic on one network, if it was of packets.
  [[nodiscard]] const std::optional<PacketStats>& packets() const { return packets_; }
  [[nodiscard]] const ExtraResults& extras() const { return extras_; }

 private:
  const Cluster& cluster_;
  const StepTables& tables_;
  std::optional<ClusterTimes> times_;
  std::optional<PacketStats> packets_;
  ExtraResults extras_;
};

}  // namespace trainyard
