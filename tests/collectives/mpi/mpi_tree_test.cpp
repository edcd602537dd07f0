// SPDX-License-Identifier: Apache-2.0
// Trees of Open MPI reach every rank once, and have the shapes that their names say.
#include "support/catch.h"

#include "collectives/mpi/mpi_tree.h"

#include <algorithm>
#include <bit>

namespace trainyard {

TEST_CASE("every tree reaches every rank once from its root", "[collectives][mpi]") {
  for (const MpiTreeKind kind :
       {MpiTreeKind::Linear, MpiTreeKind::Chain, MpiTreeKind::Binary, MpiTreeKind::Binomial,
        MpiTreeKind::InOrder, MpiTreeKind::Knomial, MpiTreeKind::InOrderBinary}) {
    for (std::uint32_t ranks = 1; ranks <= 40; ++ranks) {
      for (const std::uint32_t root : {0U, ranks / 2, ranks - 1}) {
        const MpiTree tree = mpi_tree(kind, ranks, root);
        INFO(static_cast<int>(kind) << " " << ranks << " " << root);
        std::vector<std::uint32_t> all = tree.below(tree.root);
        REQUIRE(all.size() == ranks);
        std::ranges::sort(all);
        REQUIRE(std::ranges::adjacent_find(all) == all.end());
        REQUIRE(tree.parent[tree.root] == MpiTree::kNone);
      }
    }
  }
}

TEST_CASE("trees have the children that Open MPI gives them", "[collectives][mpi]") {
  using Numbers = std::vector<std::uint32_t>;
  REQUIRE(mpi_tree(MpiTreeKind::Binomial, 8, 0).children[1] == Numbers{3, 5});
  REQUIRE(mpi_tree(MpiTreeKind::InOrder, 8, 0).children[4] == Numbers{5, 6});
  REQUIRE(mpi_tree(MpiTreeKind::InOrder, 8, 1).children[1] == Numbers{2, 3, 5});
  REQUIRE(mpi_tree(MpiTreeKind::Binary, 8, 0).children[2] == Numbers{4, 6});
  REQUIRE(mpi_tree(MpiTreeKind::Knomial, 20, 0).children[0] == Numbers{16, 4, 8, 12, 1, 2, 3});
  REQUIRE(mpi_tree(MpiTreeKind::InOrderBinary, 7, 0).children[6] == Numbers{5, 2});
  REQUIRE(mpi_tree(MpiTreeKind::InOrderBinary, 7, 0).children[2] == Numbers{1, 0});
}

}  // namespace trainyard
