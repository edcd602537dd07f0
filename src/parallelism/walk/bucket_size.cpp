// SPDX-License-Identifier: Apache-2.0
#include "parallelism/walk/bucket_size.h"

#include <algorithm>

namespace trainyard {

std::int64_t bucket_parameters(const ParallelPlan& plan) {
  constexpr std::int64_t kMin = 40'000'000;
  constexpr std::int64_t kOfRank = 1'000'000;
  return std::max(kMin, kOfRank * plan.gradient_ranks());
}

}  // namespace trainyard
