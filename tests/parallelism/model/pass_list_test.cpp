// SPDX-License-Identifier: Apache-2.0
#include "parallelism/model/pass_list.h"

#include "support/catch.h"

namespace trainyard {

TEST_CASE("a list of passes counts the micro-batches of each kind and chunk", "[pipeline]") {
  PassList list;
  list.forward(1);
  list.forward();
  list.forward();
  list.input_gradient(1);
  list.input_gradient(0);
  REQUIRE(list.forwards() == 2);
  REQUIRE(list.backwards(1) == 1);
  REQUIRE(list.pending() == 2);
  REQUIRE(list.weight_gradient(0));
  list.weight_gradient();
  REQUIRE(!list.weight_gradient(1));
  list.pair(1, 0);
  REQUIRE(std::move(list).passes() ==
          std::vector<Pass>{{.chunk = 1},
                            {},
                            {.micro_batch = 1},
                            {.kind = PassKind::InputGradient, .chunk = 1},
                            {.kind = PassKind::InputGradient},
                            {.kind = PassKind::WeightGradient},
                            {.kind = PassKind::WeightGradient, .chunk = 1},
                            {.micro_batch = 1, .chunk = 1, .with_next = true},
                            {.kind = PassKind::Backward, .micro_batch = 1}});
}

}  // namespace trainyard
