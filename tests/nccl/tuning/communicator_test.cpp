// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/tuning/communicator.h"

#include "nccl/tuning/init.h"
#include "support/built_clusters.h"

namespace trainyard::nccl {
namespace {

Communicator of_ranks(const Cluster& whole, const std::vector<int>& ranks) {
  Cluster part = whole;
  keep_ranks(whole.gpus, ranks, part);
  return make_communicator(job_nodes(part, Domains::Joined), {}).communicator;
}

}  // namespace

TEST_CASE("rails decide alike but for their NICs, groups of other sizes do not", "[nccl]") {
  const Cluster whole = shipped_cluster("dgx-h100", {.nodes = 3});
  const Communicator first = of_ranks(whole, {0, 8, 16});
  const Communicator last = of_ranks(whole, {7, 15, 23});
  REQUIRE(first.nics.front().ring_out != last.nics.front().ring_out);
  REQUIRE(differ_in_nics_alone(first, last));
  REQUIRE_FALSE(differ_in_nics_alone(first, of_ranks(whole, {0, 8})));
  REQUIRE_FALSE(differ_in_nics_alone(first, of_ranks(whole, {0, 1, 8})));
  Communicator fewer = first;
  fewer.nics.front().ring_out.front() = fewer.nics.front().ring_out.back() + 1;
  REQUIRE_FALSE(differ_in_nics_alone(first, fewer));  // NICs that were one are two.
}

}  // namespace trainyard::nccl
