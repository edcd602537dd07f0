// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <bit>

#include "support/collective_run.h"

namespace trainyard {
namespace {

TEST_CASE("a barrier takes one latency for each doubling of the ranks, whatever the size") {
  for (const int ranks : {1, 2, 3, 4, 5, 8, 9, 33}) {
    const int rounds = static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1)));
    for (const Fidelity fidelity : {Fidelity::Analytical, Fidelity::Flow}) {
      for (const Bytes size : {Bytes(0), mib(1)}) {
        INFO(ranks << " ranks, " << to_string(fidelity));
        REQUIRE(idle_time(
                    {.algorithm = &kDissemination, .operation = Operation::Barrier, .ranks = ranks},
                    size, fidelity) == kIdleLatency * rounds);
      }
    }
  }
}

}  // namespace
}  // namespace trainyard
