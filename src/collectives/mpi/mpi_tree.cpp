// SPDX-License-Identifier: Apache-2.0
#include "collectives/mpi/mpi_tree.h"

#include <algorithm>
#include <bit>

namespace trainyard {
namespace {

using Numbers = std::vector<std::uint32_t>;

// v plus the multiples of those powers of the base that divide v also when taken once more: the
// digits that v lacks at its end.
Numbers low_children(std::uint32_t v, std::uint32_t ranks, std::uint32_t base, bool far_first) {
  Numbers powers;
  for (std::uint32_t power = 1; power < ranks && v % (power * base) == 0; power *= base) {
    powers.push_back(power);
  }
  if (far_first) {
    std::ranges::reverse(powers);
  }
  Numbers children;
  for (const std::uint32_t power : powers) {
    for (std::uint32_t digit = 1; digit < base; ++digit) {
      if (v + power * digit < ranks) {
        children.push_back(v + power * digit);
      }
    }
  }
  return children;
}

Numbers binomial_children(std::uint32_t v, std::uint32_t ranks) {
  Numbers children;
  for (std::uint64_t power = std::uint64_t{1} << std::bit_width(v); v + power < ranks; power *= 2) {
    children.push_back(static_cast<std::uint32_t>(v + power));
  }
  return children;
}

Numbers binary_children(std::uint32_t v, std::uint32_t ranks) {
  const std::uint32_t level = std::bit_floor(v + 1);
  Numbers children;
  for (const std::uint32_t child : {v + level, v + 2 * level}) {
    if (child < ranks) {
      children.push_back(child);
    }
  }
  return children;
}

Numbers children_of(MpiTreeKind kind, std::uint32_t v, std::uint32_t ranks) {
  switch (kind) {
    case MpiTreeKind::Linear: {
      Numbers all;
      for (std::uint32_t other = 1; v == 0 && other < ranks; ++other) {
        all.push_back(other);
      }
      return all;
    }
    case MpiTreeKind::Chain:
      return v + 1 < ranks ? Numbers{v + 1} : Numbers{};
    case MpiTreeKind::Binary:
      return binary_children(v, ranks);
    case MpiTreeKind::Binomial:
      return binomial_children(v, ranks);
    case MpiTreeKind::InOrder:
      return low_children(v, ranks, 2, false);
    case MpiTreeKind::InOrderFar:
      return low_children(v, ranks, 2, true);
    case MpiTreeKind::Knomial:
      return low_children(v, ranks, 4, true);
    case MpiTreeKind::InOrderBinary:
      break;
  }
  return {};
}

void link(MpiTree& tree, std::uint32_t parent, std::uint32_t child) {
  tree.parent[child] = parent;
  tree.children[parent].push_back(child);
}

// The tree of `count` ranks from `first` on, whose root is the last of them.
void build_in_order(MpiTree& tree, std::uint32_t first, std::uint32_t count) {
  const std::uint32_t right = count / 2;
  const std::uint32_t root = first + count - 1;
  if (count > 1) {
    link(tree, root, root - 1);
    build_in_order(tree, first + right, count - right - 1);
  }
  if (count > 2) {
    link(tree, root, first + right - 1);
    build_in_order(tree, first, right);
  }
}

}  // namespace

Numbers MpiTree::below(std::uint32_t rank) const {
  Numbers all{rank};
  for (std::size_t next = 0; next < all.size(); ++next) {
    const Numbers& more = children[all[next]];
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

MpiTree mpi_tree(MpiTreeKind kind, std::uint32_t ranks, std::uint32_t root) {
  MpiTree tree{.root = kind == MpiTreeKind::InOrderBinary ? ranks - 1 : root,
               .parent = Numbers(ranks, MpiTree::kNone),
               .children = std::vector<Numbers>(ranks)};
  if (kind == MpiTreeKind::InOrderBinary) {
    build_in_order(tree, 0, ranks);
    return tree;
  }
  for (std::uint32_t v = 0; v < ranks; ++v) {
    for (const std::uint32_t child : children_of(kind, v, ranks)) {
      link(tree, (v + root) % ranks, (child + root) % ranks);
    }
  }
  return tree;
}

}  // namespace trainyard
