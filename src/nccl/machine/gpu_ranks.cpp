// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine/gpu_ranks.h"

#include <algorithm>

namespace trainyard::nccl {
namespace {

bool has_own_ranks(const std::vector<const NcclGpu*>& gpus) {
  std::vector<int> ranks;
  for (const NcclGpu* gpu : gpus) {
    ranks.push_back(gpu->rank.value_or(-1));
  }
  std::sort(ranks.begin(), ranks.end());
  return !ranks.empty() && ranks.front() >= 0 &&
         std::adjacent_find(ranks.begin(), ranks.end()) == ranks.end();
}

}  // namespace

std::map<const NcclGpu*, int> number_gpus(const std::vector<NcclSystem>& servers) {
  std::map<const NcclGpu*, int> ranks;
  int next = 0;
  for (const NcclSystem& server : servers) {
    std::vector<const NcclGpu*> gpus;
    visit_devices(server, [&gpus](const NcclPci& device) {
      for (const NcclGpu& gpu : device.gpus) {
        gpus.push_back(&gpu);
      }
    });
    if (has_own_ranks(gpus)) {
      std::sort(gpus.begin(), gpus.end(),
                [](const NcclGpu* a, const NcclGpu* b) { return *a->rank < *b->rank; });
    }
    for (const NcclGpu* gpu : gpus) {
      ranks.emplace(gpu, next++);
    }
  }
  return ranks;
}

}  // namespace trainyard::nccl
