// SPDX-License-Identifier: Apache-2.0
// Precision follows NCCL: constants are double and results float, because equal times decide.
#include "nccl/tuning/tuning.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <span>

#include "nccl/tuning/chunking.h"
#include "nccl/tuning/first_model.h"
#include "nccl/tuning/nvls_model.h"
#include "nccl/tuning/rccl_tuning.h"
#include "nccl/tuning/tuning_constants.h"
#include "nccl/types/release.h"
#include "sim/check.h"

namespace trainyard::nccl {
namespace {

constexpr int kMaxNvlsArity = 32;    // NCCL_MAX_NVLS_ARITY
constexpr int kMaxDirectArity = 8;   // NCCL_MAX_DIRECT_ARITY + 1
constexpr float kPciBandwidth = 12;  // PCI_BW, src/graph/topo.h

template <typename Name>
std::size_t at(Name name) {
  return static_cast<std::size_t>(name);
}

// float as NCCL keeps it, from an expression in double.
float narrow(double value) {
  return static_cast<float>(value);
}

std::size_t tuning_row(const Communicator& input, const TuningConstants& constants) {
  const int oldest = input.min_compute_capability;
  return constants.has_exact_rows && oldest != 80 && oldest != 90
             ? 0
             : gpu_generation(oldest).tuning_row;
}

class Model {
 public:
  Model(const Communicator& input, const Environment& environment)
      : input_(input),
        environment_(environment),
        generation_(gpu_generation(input.min_compute_capability)),
        has_models_(release(input.version, generation_).has_tuning_models),
        constants_(has_models_ ? rccl_constants(input.aligned.rccl_model)
                               : tuning_constants(input.version)),
        row_(tuning_row(input, constants_)),
        scale_(static_cast<std::size_t>(std::min(input.nodes, 3) - 1)),
        ppn_(narrow(static_cast<double>(input.ranks) / input.nodes)) {}

  // A cell that is switched off keeps its latency, as NCCL prints it, and loses its bandwidth.
  [[nodiscard]] TuningCell cell(Function function, Algorithm algorithm, Protocol protocol) const {
    if (input_.version == Version::V2_4) {
      const SelectionFilter& selection = environment_.selection;
      const bool wanted =
          selection.allows(function, algorithm) && selection.allows(function, protocol);
      return wanted ? first_model_cell(input_, function, algorithm, protocol).value_or(TuningCell())
                    : TuningCell();
    }
    const Graph& graph = graph_of(algorithm);
    if (!exists(function, algorithm, protocol, graph)) {
      return {};
    }
    TuningCell cell{.latency = latency(function, algorithm, protocol, graph), .bandwidth = 0.0};
    if (graph.exists() && enabled(function, algorithm, protocol, graph)) {
      cell.bandwidth =
          bus_bandwidth(function, algorithm, protocol, graph) * ratio(function, algorithm);
    }
    return cell;
  }

  [[nodiscard]] int steps(Function function) const {
    return function == Function::AllReduce ? 2 * (input_.ranks - 1)
           : gathers_or_scatters(function) ? input_.ranks - 1
                                           : input_.ranks;
  }

 private:
  [[nodiscard]] const Graph& graph_of(Algorithm algorithm) const {
    switch (algorithm) {
      case Algorithm::Tree:
      case Algorithm::Pat:
        return input_.aligned.tree;
      case Algorithm::Ring:
        return input_.aligned.ring;
      case Algorithm::CollNetDirect:
        return input_.aligned.collnet_direct;
      case Algorithm::CollNetChain:
        return input_.aligned.collnet_chain;
      case Algorithm::Nvls:
      case Algorithm::NvlsTree:
      case Algorithm::AllPairs:
        break;
    }
    return constants_.nvls_model == NvlsModel::RingGraph ? input_.aligned.ring
                                                         : input_.aligned.nvls;
  }

  // Returns false for what NCCL passes over, so that its latency too is zero.
  [[nodiscard]] bool exists(Function function, Algorithm algorithm, Protocol protocol,
                            const Graph& graph) const {
    if (has_models_ && rccl_share(input_, function, algorithm, protocol) == 0.0F) {
      return false;
    }
    if (algorithm == Algorithm::Ring) {
      return true;
    }
    if (algorithm == Algorithm::Pat) {
      return gathers_or_scatters(function) && protocol == Protocol::Simple && pat();
    }
    if (uses_nvls(algorithm) &&
        (protocol != Protocol::Simple || graph.channel_count < 2 || environment_.nvls_enable == 0 ||
         !has_nvls(input_, function, algorithm))) {
      return false;
    }
    return function == Function::AllReduce ||
           (gathers_or_scatters(function) &&
            (algorithm == Algorithm::Nvls || algorithm == Algorithm::CollNetDirect));
  }

  // The network adds up in its switches (SHARP), but does not gather there.
  [[nodiscard]] bool collnet() const {
    return input_.aligned.collnet_chain.exists() && environment_.collnet_enable &&
           input_.nodes >= environment_.collnet_node_threshold;
  }

  [[nodiscard]] bool pat() const {
    if (!constants_.has_pat) {
      return false;
    }
    return environment_.pat_enable == 2 ? input_.nodes == input_.ranks
                                        : environment_.pat_enable == 1;
  }

  // Returns false for what NCCL switches off although the graph would allow it, or what the user
  // switches off.
  [[nodiscard]] bool enabled(Function function, Algorithm algorithm, Protocol protocol,
                             const Graph& graph) const {
    const SelectionFilter& selection = environment_.selection;
    if (!selection.allows(function, algorithm) || !selection.allows(function, protocol)) {
      return false;
    }
    if (protocol == Protocol::LL128 && !selection.forces(function, protocol) &&
        !ll128_by_default(graph)) {
      return false;
    }
    const bool several = input_.nodes > 1;
    switch (algorithm) {
      case Algorithm::Tree:
      case Algorithm::Ring:
      case Algorithm::Pat:
        return true;
      case Algorithm::AllPairs:
        return false;
      case Algorithm::CollNetChain:
        return collnet() && protocol == Protocol::Simple;
      case Algorithm::CollNetDirect:
        return collnet() && protocol == Protocol::Simple && input_.has_nvswitch &&
               input_.max_ranks_per_node() <= kMaxDirectArity &&
               !(gathers_or_scatters(function) && several);
      case Algorithm::NvlsTree:
        return several && joins_by_nvls_tree(input_, environment_);
      case Algorithm::Nvls:
        break;
    }
    return (!several || collnet()) && (function == Function::AllReduce ||
                                       (input_.max_ranks_per_node() <= kMaxNvlsArity && !several));
  }

  [[nodiscard]] bool ll128_by_default(const Graph& graph) const {
    if (has_models_) {
      return rccl_has_ll128(generation_, graph, environment_);
    }
    const Ll128Rule& rule = constants_.ll128;
    const std::span<const int> known = rule.compute_capabilities;
    const int oldest = input_.min_compute_capability;
    const bool newer = generation_.mixes_ll128;
    const bool far = newer && rule.reaches_pxn && environment_.ll128_c2c;
    return (known.empty() || std::find(known.begin(), known.end(), oldest) != known.end()) &&
           graph.type_inter <= (far ? PathType::Pxn : rule.inter) &&
           graph.type_intra <= rule.intra &&
           ((newer && rule.mixes) || oldest == input_.max_compute_capability);
  }

  // GB/s of all channels on their wires. Without collnet a graph's bandwidth between nodes counts
  // from three nodes on.
  [[nodiscard]] float bus_bandwidth(Function function, Algorithm algorithm, Protocol protocol,
                                    const Graph& graph) const {
    const float one =
        narrow(input_.nodes <= 2 || uses_collnet(algorithm) ? graph.bw_intra : graph.bw_inter);
    if (has_models_) {
      return static_cast<float>(graph.channel_count) * one *
             rccl_share(input_, function, algorithm, protocol);
    }
    const float bus =
        narrow(std::min(static_cast<double>(graph.channel_count) * static_cast<double>(one),
                        constants_.bus_max[row_]));
    switch (algorithm) {
      case Algorithm::Tree:
        return tree(protocol, graph, bus);
      case Algorithm::Ring:
        return ring(function, protocol, graph, bus);
      case Algorithm::Pat:
        return narrow(bus * constants_.pat_share);
      case Algorithm::Nvls:
      case Algorithm::NvlsTree:
        return nvls_bandwidth(input_, function, algorithm, graph);
      case Algorithm::CollNetDirect:
        return collnet_direct(function, graph, bus);
      case Algorithm::CollNetChain:
      case Algorithm::AllPairs:
        break;
    }
    return bus;
  }

  [[nodiscard]] float ring(Function function, Protocol protocol, const Graph& graph,
                           float bus) const {
    const bool one_way =
        input_.nodes == 1 && function != Function::AllReduce && function != Function::Reduce;
    switch (protocol) {
      case Protocol::LL:
        return narrow(std::min(ll_max(), bus * (one_way ? constants_.ring_ll_share_one_way
                                                        : constants_.ring_ll_share)));
      case Protocol::LL128:
        return narrow(std::min(
            {bus * (ppn_ < 2.0F ? constants_.ring_ll128_share_alone : constants_.ring_ll128_share),
             constants_.ring_ll128_total[at(function)],
             graph.channel_count * constants_.ring_ll128_channel[at(function)],
             graph.channel_count * constants_.ring_ll128_max[row_][scale_]}));
      case Protocol::Simple:
        break;
    }
    return bus;
  }

  [[nodiscard]] float tree(Protocol protocol, const Graph& graph, float bus) const {
    const bool ampere = input_.min_compute_capability == 80;  // Alone has a limit of its own.
    const double total = ampere && protocol == Protocol::LL128
                             ? constants_.tree_total_ll128_ampere[scale_]
                             : constants_.tree_total[scale_];
    bus = narrow(std::min({bus * constants_.tree_share, total,
                           graph.channel_count * constants_.tree_simple_max[row_][scale_]}));
    if (protocol == Protocol::LL) {
      bus = narrow(std::min(bus * constants_.tree_ll_share, ll_max()));
    } else if (protocol == Protocol::LL128) {
      const double lines =
          input_.nodes == 1 ? constants_.tree_ll128_share_one_node : constants_.tree_ll128_share;
      bus = narrow(
          std::min(bus * lines, graph.channel_count * constants_.tree_ll128_max[row_][scale_]));
    }
    return graph.pattern == GraphPattern::Tree ? narrow(bus * constants_.simple_tree_share) : bus;
  }

  [[nodiscard]] float collnet_direct(Function function, const Graph& graph, float bus) const {
    if (gathers_or_scatters(function)) {
      return narrow(ppn_ * std::min(graph.bw_intra, graph.bw_inter * 0.9));
    }
    const double load = ppn_ / static_cast<double>(graph.channel_count);
    bus = narrow(bus / (load - (load - 1.0) / 2.0));
    return generation_.slows_collnet ? narrow(bus * 0.85) : bus;
  }

  [[nodiscard]] double ll_max() const {
    const bool second = input_.cpu == CpuKind::Amd || input_.cpu == CpuKind::Mixed;
    return constants_.ll_max[input_.nodes == 1 ? row_ : second ? 1 : 0][scale_];
  }

  // Returns the ratio of the payload's bandwidth to that on the wires.
  [[nodiscard]] float ratio(Function function, Algorithm algorithm) const {
    if (uses_nvls(algorithm)) {
      return nvls_ratio(input_, function, algorithm, steps(function));
    }
    if (algorithm == Algorithm::Ring) {
      return narrow(1.0 * input_.ranks / steps(function));
    }
    return gathers_or_scatters(function) ? 1.0F : 0.5F;
  }

  [[nodiscard]] float intra_latency(Algorithm algorithm, Protocol protocol,
                                    const Graph& graph) const {
    const bool slow = protocol == Protocol::LL && input_.nodes > 1;
    const double factor = slow ? constants_.ll_hop_factor : 1.0;
    if (graph.type_intra == PathType::Nvl) {
      return narrow(constants_.nvlink_latency[at(algorithm)][at(protocol)] * factor);
    }
    // POWER: PCIe as slow for trees as for rings.
    const bool like_ring = input_.cpu == CpuKind::Power && algorithm == Algorithm::Tree &&
                           protocol == Protocol::Simple;
    return narrow(
        constants_.pci_latency[at(like_ring ? Algorithm::Ring : algorithm)][at(protocol)] * factor);
  }

  // With one rank per node nothing hides the latency of the network, which is then that of trees.
  // Simple waits twice for the network's own latency, for the flush.
  [[nodiscard]] float inter_latency(Algorithm algorithm, Protocol protocol,
                                    const Graph& graph) const {
    const bool alone = constants_.alone_waits_as_tree && input_.nodes == input_.ranks;
    const Algorithm row = alone ? Algorithm::Tree : algorithm;
    const float network = narrow(graph.latency_inter);
    const float own = narrow(constants_.net_latency[at(row)][at(protocol)]);
    if (constants_.nic_latency != NicLatency::Adds) {
      const bool stated = constants_.nic_latency == NicLatency::Replaces && network > 0.0F;
      return stated ? network : own;
    }
    const float once = own + network;
    return protocol == Protocol::Simple ? once + network : once;
  }

  [[nodiscard]] float latency(Function function, Algorithm algorithm, Protocol protocol,
                              const Graph& graph) const {
    const float base = narrow(constants_.base_latency[at(algorithm)][at(protocol)]);
    const float intra = intra_latency(algorithm, protocol, graph);
    const float inter = inter_latency(algorithm, protocol, graph);
    const auto levels = static_cast<float>(std::bit_width(static_cast<unsigned>(input_.nodes)) - 1);
    const int ranks_per_node = input_.ranks / input_.nodes;
    const auto hops = static_cast<float>(ranks_per_node - 1);
    switch (algorithm) {
      case Algorithm::Ring:
        return base + ring_latency(function, protocol, graph, inter);
      case Algorithm::Tree:
        return base + 2.0F * (hops * intra + levels * inter);
      case Algorithm::CollNetDirect:
        return narrow(base + 2.0 * (std::min(1.0F, hops) * intra + hops * 0.4) + inter);
      case Algorithm::CollNetChain:
        return base + 2.0F * hops * intra + inter;
      case Algorithm::Nvls:
        return base + intra + (input_.nodes > 1 ? inter : 0.0F);
      case Algorithm::NvlsTree: {
        const bool chain = constants_.nvls_model == NvlsModel::OwnGraph;
        return base + intra +
               2.0F * (chain ? static_cast<float>(input_.nodes - 1) : levels) * inter;
      }
      case Algorithm::Pat:
      case Algorithm::AllPairs:
        break;
    }
    return narrow(base + levels * (inter / 3.5) + 2.8 * input_.ranks);
  }

  [[nodiscard]] float ring_latency(Function function, Protocol protocol, const Graph& graph,
                                   float inter) const {
    if (is_rooted(function)) {
      const bool chunks = protocol == Protocol::Simple && !graph.same_channels;
      const Algorithm row = chunks ? Algorithm::Tree : Algorithm::Ring;
      const float hop = input_.nodes > 1 ? narrow(constants_.net_latency[at(row)][at(protocol)])
                                         : intra_latency(row, protocol, graph);
      return graph.same_channels ? hop : static_cast<float>(steps(function)) * hop;
    }
    float intra = intra_latency(Algorithm::Ring, protocol, graph);
    int inter_steps = 0;
    if (input_.nodes > 1 && constants_.is_network_everywhere) {
      inter_steps = steps(function);
    } else if (input_.nodes > 1) {
      if (constants_.has_host_overhead) {
        intra = std::max(intra, net_overhead() * (protocol == Protocol::Simple ? 3.0F : 1.0F));
      }
      inter_steps = function == Function::AllReduce
                        ? 2 * (input_.nodes - 1) + constants_.more_network_steps
                        : input_.nodes - 1;
    }
    return static_cast<float>(steps(function) - inter_steps) * intra +
           static_cast<float>(inter_steps) * inter;
  }

  // Microseconds of the CPU for each message (getNetOverhead).
  [[nodiscard]] float net_overhead() const {
    if (environment_.net_overhead) {
      return narrow(static_cast<double>(*environment_.net_overhead) * 1e-3);
    }
    return input_.cpu == CpuKind::Amd ? 2.0F : 1.0F;
  }

  const Communicator& input_;
  const Environment& environment_;
  const GpuGeneration& generation_;
  bool has_models_;
  const TuningConstants& constants_;
  std::size_t row_;
  std::size_t scale_;
  float ppn_;
};

// NCCL_MAX_NTHREADS and the limits of the protocols, src/include/device.h.
void set_threads(const Communicator& input, const Environment& environment, TuningTable& table) {
  constexpr int kMax = 640;
  constexpr int kMaxSimple = 512;
  constexpr int kSlow = 256;
  for (auto& threads : table.max_threads) {
    threads = {0, 0, kMax};
  }
  // NCCL never sets it, so that PAT keeps all channels.
  table.max_threads[at(Algorithm::Pat)] = {};
  const int all = environment.threads.value_or(kMaxSimple);
  const int ll128 = environment.ll128_threads.value_or(kMax);
  const Graph& ring = input.aligned.ring;
  const bool slow = narrow(ring.bw_intra * ring.channel_count) <= kPciBandwidth;
  if (const int fixed = release(input.version, input.min_compute_capability).threads; fixed > 0) {
    table.max_threads.fill({fixed, fixed, fixed});
    return;
  }
  if (input.version == Version::V2_4) {
    for (auto& threads : table.max_threads) {
      threads.fill(std::min(all, kFirstModelThreads));
    }
    return;
  }
  table.max_threads[at(Algorithm::Tree)] = {all, ll128, all};
  table.max_threads[at(Algorithm::Ring)] = {
      all, ll128, environment.threads.value_or(slow ? kSlow : kMaxSimple)};
}

// NCCL_LL_THREAD_THRESHOLD and the like, src/include/comm.h.
void set_thresholds(const Communicator& input, const Environment& environment, TuningTable& table) {
  const bool first = input.version == Version::V2_4;
  for (auto& thresholds : table.thread_thresholds) {
    thresholds = {8, 8, first ? 0 : 64};
  }
  table.thread_thresholds[at(Algorithm::Ring)][at(Protocol::LL)] *= input.ranks;
  table.thread_thresholds[at(Algorithm::CollNetDirect)][at(Protocol::Simple)] = 512;
  table.thread_thresholds[at(Algorithm::CollNetChain)][at(Protocol::Simple)] = 512;
  for (std::size_t i = 0; i < environment.thread_thresholds.size(); ++i) {
    table.thread_thresholds[i / 3][i % 3] = environment.thread_thresholds[i];
  }
}

// Returns whether a factor by size corrects the bandwidth.
bool corrected(const Communicator& communicator, Function function, Algorithm algorithm,
               int log_size) {
  if (function != Function::AllReduce || log_size < 0) {
    return false;
  }
  if (algorithm == Algorithm::Tree) {
    return communicator.version != Version::V2_4 &&
           log_size < static_cast<int>(kTreeCorrections) - 1;
  }
  const bool x86 = communicator.cpu != CpuKind::Arm && communicator.cpu != CpuKind::Power;
  return algorithm == Algorithm::NvlsTree && x86 &&
         gpu_generation(communicator.min_compute_capability).corrects_nvls_tree &&
         tuning_constants(communicator.version).corrects_nvls_tree &&
         log_size < static_cast<int>(kTreeCorrections);
}

}  // namespace

TuningTable make_tuning_table(const Communicator& input, const Environment& environment) {
  CHECK(input.ranks >= 2 && input.nodes >= 1 && input.nodes <= input.ranks,
        "a tuning table needs two ranks, and nodes with a rank each");
  const Model model(input, environment);
  TuningTable table;
  for (const Function function : kFunctions) {
    for (const Algorithm algorithm : kAlgorithms) {
      for (const Protocol protocol : kProtocols) {
        table.cells[at(function)][at(algorithm)][at(protocol)] =
            model.cell(function, algorithm, protocol);
      }
    }
  }
  set_threads(input, environment, table);
  set_thresholds(input, environment, table);
  return table;
}

std::optional<float> algorithm_time(const Communicator& communicator, Function function,
                                    Algorithm algorithm, Protocol protocol, Bytes bytes,
                                    int operations) {
  const TuningCell& cell = communicator.tuning.cell(function, algorithm, protocol);
  auto bandwidth = static_cast<float>(cell.bandwidth);
  auto latency = static_cast<float>(cell.latency);
  if (bandwidth == 0.0F ||
      first_model_takes_simple(communicator, function, algorithm, protocol, bytes)) {
    return std::nullopt;
  }
  const std::int64_t size = bytes.count();
  const int log_size = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size) >> 6U)) - 1;
  const GpuGeneration& generation = gpu_generation(communicator.min_compute_capability);
  const bool has_models = release(communicator.version, generation).has_tuning_models;
  if (has_models) {
    bandwidth *= rccl_factor(communicator, algorithm, protocol, log_size);
  } else if (corrected(communicator, function, algorithm, log_size)) {
    bandwidth *=
        tree_correction(protocol, communicator.version)[static_cast<std::size_t>(log_size)];
  }
  const bool ring = algorithm == Algorithm::Ring;
  if (!has_models && ring && protocol == Protocol::Simple && communicator.nodes > 1 &&
      function == Function::AllReduce) {
    latency =
        narrow(latency * plateau_factor(tuning_constants(communicator.version).plateau, generation,
                                        communicator.ranks, communicator.channels, size));
  }
  constexpr int kMaxCollectivesPerBatch = 8;  // 1024 bytes of a batch, 128 of a collective.
  const int times = ring ? operations : divide_up(operations, kMaxCollectivesPerBatch);
  return latency * static_cast<float>(times) + static_cast<float>(size) / (1000.0F * bandwidth);
}

}  // namespace trainyard::nccl
