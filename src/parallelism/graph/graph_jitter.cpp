// SPDX-License-Identifier: Apache-2.0
#include "parallelism/graph/graph_jitter.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "sim/check.h"
#include "sim/random.h"

namespace trainyard {
namespace {

constexpr std::int64_t kUnchanged = 1'000'000;

std::int64_t draw(RandomStream& random, std::int64_t mean_ppm) {
  return kUnchanged + std::llround(static_cast<double>(mean_ppm) * random.exponential());
}

}  // namespace

GraphRunOptions with_jitter(GraphRunOptions options, const ComputeJitter& jitter,
                            const OperationGraph& graph) {
  CHECK(!graph.is_folded(), "ranks that stand for themselves alone");
  const auto ranks = static_cast<std::size_t>(graph.ranks());
  if (jitter.rank_ppm > 0) {
    options.compute_ppm.resize(ranks, kUnchanged);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      RandomStream random(jitter.seed, fmt::format("slowness of rank {}", rank));
      std::int64_t& ppm = options.compute_ppm[rank];
      ppm = std::llround(static_cast<double>(ppm) / static_cast<double>(kUnchanged) *
                         static_cast<double>(draw(random, jitter.rank_ppm)));
    }
  }
  if (jitter.operation_ppm > 0) {
    std::vector<RandomStream> streams;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      streams.emplace_back(jitter.seed, fmt::format("operations of rank {}", rank));
    }
    options.operation_ppm.assign(graph.operations().size(), kUnchanged);
    for (std::uint32_t index = 0; index < options.operation_ppm.size(); ++index) {
      const OperationId id(index);
      if (graph.operation(id).kind == GraphOperationKind::Compute) {
        options.operation_ppm[index] =
            draw(streams[static_cast<std::size_t>(graph.rank_of(id))], jitter.operation_ppm);
      }
    }
  }
  return options;
}

}  // namespace trainyard
