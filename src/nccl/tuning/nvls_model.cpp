// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/nvls_model.h"

#include <algorithm>
#include <cstddef>

#include "nccl/tuning/tuning_constants.h"
#include "nccl/types/gpu_generation.h"

namespace trainyard::nccl {
namespace {

double ranks_per_node(const Communicator& communicator) {
  return static_cast<double>(communicator.ranks) / communicator.nodes;
}

// GB/s of one channel from 2.28 on.
double efficient(const Communicator& communicator, Function function, bool tree,
                 const Graph& graph) {
  const TuningConstants& constants = tuning_constants(communicator.version);
  const std::size_t row = gpu_generation(communicator.min_compute_capability).tuning_row;
  const double ppn = ranks_per_node(communicator);
  double intra = graph.bw_intra * constants.nvls_efficiency[row] * (graph.channel_count - 1) /
                 graph.channel_count;
  intra *= function == Function::AllReduce ? 2.0 : (ppn - 1.0) / ppn;
  const double inter = graph.bw_inter * (communicator.nodes <= 2 && tree ? 2.0 : 1.0);
  const double one = std::min(intra, inter);
  const auto scale = static_cast<std::size_t>(std::min(communicator.nodes, 3) - 1);
  return tree ? std::min(one, constants.nvls_tree_max[row][scale]) : one;
}

double one_channel(const Communicator& communicator, Function function, bool tree,
                   const Graph& graph) {
  switch (tuning_constants(communicator.version).nvls_model) {
    case NvlsModel::None:
    case NvlsModel::RingGraph:
    case NvlsModel::OwnGraph:
      return communicator.nodes <= 2 ? graph.bw_intra : graph.bw_inter;
    case NvlsModel::OtherGpus:
      if (gathers_or_scatters(function)) {
        const double ppn = ranks_per_node(communicator);
        return std::min(graph.bw_intra * (ppn - 1.0) / ppn, graph.bw_inter * 0.9);
      }
      break;
    case NvlsModel::Slower:
    case NvlsModel::WholeGather:
      break;
    case NvlsModel::Efficiency:
      return efficient(communicator, function, tree, graph);
  }
  return std::min(graph.bw_intra, graph.bw_inter * (tree && communicator.nodes > 2 ? 0.5 : 1.0));
}

}  // namespace

bool has_nvls(const Communicator& communicator, Function function, Algorithm algorithm) {
  switch (tuning_constants(communicator.version).nvls_model) {
    case NvlsModel::None:
      return false;
    case NvlsModel::RingGraph:
      return algorithm == Algorithm::Nvls && communicator.nodes == 1 &&
             communicator.aligned.nvls.exists();
    case NvlsModel::OwnGraph:
      return function == Function::AllReduce;
    case NvlsModel::Slower:
    case NvlsModel::WholeGather:
    case NvlsModel::OtherGpus:
    case NvlsModel::Efficiency:
      break;
  }
  return true;
}

bool joins_by_nvls_tree(const Communicator& communicator, const Environment& environment) {
  constexpr int kHeads = 32;  // NCCL_MAX_NVLS_ARITY.
  return communicator.max_ranks_per_node() <= kHeads || environment.nvls_enable == 1;
}

float nvls_bandwidth(const Communicator& communicator, Function function, Algorithm algorithm,
                     const Graph& graph) {
  const double one = one_channel(communicator, function, algorithm == Algorithm::NvlsTree, graph);
  const std::size_t row = gpu_generation(communicator.min_compute_capability).tuning_row;
  return static_cast<float>(
      std::min(graph.channel_count * one, tuning_constants(communicator.version).bus_max[row]));
}

float nvls_ratio(const Communicator& communicator, Function function, Algorithm algorithm,
                 int steps) {
  const bool gathers = gathers_or_scatters(function);
  switch (tuning_constants(communicator.version).nvls_model) {
    case NvlsModel::None:
    case NvlsModel::RingGraph:
      return 0.75F;
    case NvlsModel::OwnGraph:
      if (algorithm == Algorithm::NvlsTree) {
        return static_cast<float>(0.7 * communicator.nodes / (2.0 * (communicator.nodes - 1)));
      }
      break;
    case NvlsModel::Slower:
      break;
    case NvlsModel::WholeGather:
    case NvlsModel::OtherGpus:
      if (gathers) {
        return 1.0F;
      }
      break;
    case NvlsModel::Efficiency:
      return gathers ? 1.0F : static_cast<float>(1.0 * communicator.ranks / steps);
  }
  return static_cast<float>(5.0 / 6.0);
}

}  // namespace trainyard::nccl
