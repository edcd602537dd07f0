// SPDX-License-Identifier: Apache-2.0
#include "report/results/plan_info.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace trainyard {
namespace {

using nccl::Algorithm;
using nccl::kAlgorithms;
using nccl::kFunctions;
using nccl::kProtocols;
using nccl::Protocol;

constexpr std::size_t kBlock = 3;             // Algorithms side by side.
constexpr std::size_t kRingCharacters = 127;  // rings.cc: dumpLine.

template <typename Name>
std::size_t at(Name name) {
  return static_cast<std::size_t>(name);
}

// Spells names as the line about a call does (src/include/nccl_common.h, src/enqueue.cc).
std::string_view call_name(Algorithm algorithm) {
  constexpr std::array<std::string_view, 7> kNames{
      "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
  return kNames[at(algorithm)];
}

std::string_view call_name(Protocol protocol) {
  constexpr std::array<std::string_view, 3> kNames{"LL", "LL128", "SIMPLE"};
  return kNames[at(protocol)];
}

}  // namespace

std::string graph_line(const nccl::Graph& graph) {
  // NCCL's are float, which shows in 45.099998.
  const auto intra = static_cast<float>(graph.bw_intra);
  const auto inter = static_cast<float>(graph.bw_inter);
  return fmt::format(
      "Pattern {}, crossNic {}, nChannels {}, bw {:f}/{:f}, type {}/{}, sameChannels {}\n",
      static_cast<int>(graph.pattern), graph.cross_nic, graph.channel_count, intra, inter,
      to_string(graph.type_intra), to_string(graph.type_inter), graph.same_channels ? 1 : 0);
}

std::string ring_lines(const nccl::Communicator& communicator) {
  const std::size_t width = std::to_string(communicator.ranks - 1).size();
  std::string text;
  for (std::size_t channel = 0; channel < communicator.rings.size(); ++channel) {
    std::string line = fmt::format("Channel {:02}/{:02} :", channel, communicator.rings.size());
    for (const int rank : communicator.rings[channel].order) {
      line += fmt::format(" {:>{}}", rank, width);
    }
    if (line.size() > kRingCharacters) {
      line = line.substr(0, kRingCharacters - 3) + "...";
    }
    text += line + '\n';
  }
  return text;
}

std::string tree_line(const nccl::Communicator& communicator, int rank) {
  std::string line = "Trees";
  const auto index = static_cast<std::size_t>(rank);
  for (std::size_t channel = 0; channel < communicator.trees.size(); ++channel) {
    const nccl::TreeChannel& tree = communicator.trees[channel];
    const auto& down = tree.down[index];
    line += fmt::format(" [{}] {}/{}/{}->{}->{}", channel, down[0], down[1], down[2], rank,
                        tree.up[index]);
  }
  return line + '\n';
}

std::string tuning_lines(const nccl::TuningTable& table) {
  std::string text;
  for (std::size_t block = 0; block * kBlock < kAlgorithms.size(); ++block) {
    const std::size_t first = block * kBlock;
    const auto algorithms =
        std::span(kAlgorithms).subspan(first, std::min(kBlock, kAlgorithms.size() - first));
    std::string names = "  Algorithm   |";
    std::string threads = " Max NThreads |";
    for (const Algorithm algorithm : algorithms) {
      names += fmt::format(" {:>14}   {:>14}   {:>14} |", "", to_string(algorithm), "");
      for (const Protocol protocol : kProtocols) {
        threads += fmt::format(" {:>14} |", table.max_threads[at(algorithm)][at(protocol)]);
      }
    }
    // Shows three algorithms even where there are fewer.
    std::string protocols = "  Protocol    |";
    for (std::size_t column = 0; column < kBlock; ++column) {
      for (const Protocol protocol : kProtocols) {
        protocols += fmt::format(" {:>14} |", to_string(protocol));
      }
    }
    text += names + '\n' + protocols + '\n' + threads + '\n';
    for (const nccl::Function function : kFunctions) {
      text += fmt::format("{:>13} |", to_string(function));
      for (const Algorithm algorithm : algorithms) {
        for (const Protocol protocol : kProtocols) {
          const nccl::TuningCell& cell = table.cell(function, algorithm, protocol);
          text += fmt::format("{:8.1f}/{:6.1f} |", cell.latency, cell.bandwidth);
        }
      }
      text += '\n';
    }
  }
  return text;
}

std::string threshold_line(const nccl::TuningTable& table) {
  const auto threshold = [&](Algorithm algorithm, Protocol protocol) {
    return table.thread_thresholds[at(algorithm)][at(protocol)];
  };
  const auto all = [&](Algorithm algorithm) {
    return fmt::format("{}/{}/{}", threshold(algorithm, Protocol::LL),
                       threshold(algorithm, Protocol::LL128),
                       threshold(algorithm, Protocol::Simple));
  };
  return fmt::format("threadThresholds {} | {} | {} | {}\n", all(Algorithm::Tree),
                     all(Algorithm::Ring), threshold(Algorithm::CollNetDirect, Protocol::Simple),
                     threshold(Algorithm::CollNetChain, Protocol::Simple));
}

std::string channels_line(const nccl::Communicator& communicator) {
  return fmt::format(
      "{} coll channels, {} collnet channels, {} nvls channels, {} p2p channels, {} p2p channels "
      "per peer\n",
      communicator.channels, communicator.channels, communicator.nvls_channels,
      communicator.p2p_channels, communicator.p2p_channels_per_peer);
}

std::string call_line(const nccl::CallPlan& plan) {
  return fmt::format("{}: {} Bytes -> Algo {} proto {} channel{{Lo..Hi}}={{0..{}}}\n",
                     to_string(plan.function), plan.bytes.count(), call_name(plan.algorithm),
                     call_name(plan.protocol), plan.channels - 1);
}

}  // namespace trainyard
