// SPDX-License-Identifier: Apache-2.0
#include "collectives/mpi/mpi_messages.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <utility>
#include <vector>

namespace trainyard {
namespace {

using Rank = MpiWriter::Rank;
using Chunks = MpiWriter::Chunks;

// Ranks of which every one takes part in halving: N to the next power of two below.
struct Halving {
  explicit Halving(Rank ranks) : power(std::bit_floor(ranks)), pairs(ranks - power) {}
  Rank power;  // M,
  Rank pairs;  // and E.
  // The rank that is number n of those that take part, the even or the odd one of its pair.
  [[nodiscard]] Rank rank(Rank n, bool odd) const {
    return n < pairs ? 2 * n + (odd ? 1 : 0) : n + pairs;
  }
};

}  // namespace

void MpiWriter::embed(const Schedule& inner, std::uint32_t chunks) {
  const std::uint32_t count = inner.shape().chunk_count;
  ScheduleWriter::Blocks blocks;
  for (std::uint32_t chunk = 0; chunk < count; ++chunk) {
    const auto cut = [&](std::uint64_t index) {
      return static_cast<std::uint32_t>(index * chunks / count);
    };
    blocks.push_back(MpiWriter::span(cut(chunk), cut(chunk + 1) - cut(chunk)));
  }
  writer_.embed(inner, MpiWriter::span(0, ranks_), blocks);
}

void write_down(MpiWriter& writer, MpiTreeKind kind) {
  const MpiTree tree = mpi_tree(kind, writer.ranks(), writer.root());
  for (Rank self = 0; self < writer.ranks(); ++self) {
    if (self != tree.root) {
      writer.take(StepKind::Receive, tree.parent[self], self, {0});
    }
    for (const Rank child : tree.children[self]) {
      writer.send(self, child, {0});
    }
  }
}

// A linear one begins with the last rank.
void write_up(MpiWriter& writer, MpiTreeKind kind) {
  MpiTree tree = mpi_tree(kind, writer.ranks(), writer.root());
  if (kind == MpiTreeKind::Linear) {
    std::ranges::sort(tree.children[tree.root], std::greater());
  }
  for (Rank self = 0; self < writer.ranks(); ++self) {
    for (const Rank child : tree.children[self]) {
      writer.take(StepKind::Reduce, child, self, {0});
    }
    if (self != tree.root) {
      writer.send(self, tree.parent[self], {0});
    }
  }
  if (tree.root != writer.root()) {
    writer.send(tree.root, writer.root(), {0});
    writer.take(StepKind::Receive, tree.root, writer.root(), {0});
  }
}

namespace {

// Blocks of a tree; the root of a linear one goes through ranks by their numbers.
MpiTree block_tree(const MpiWriter& writer, MpiTreeKind kind) {
  MpiTree tree = mpi_tree(kind, writer.ranks(), writer.root());
  if (kind == MpiTreeKind::Linear) {
    std::ranges::sort(tree.children[tree.root]);
  }
  return tree;
}

}  // namespace

void write_gather(MpiWriter& writer, MpiTreeKind kind, bool asks) {
  const MpiTree tree = block_tree(writer, kind);
  for (Rank self = 0; self < writer.ranks(); ++self) {
    for (const Rank child : tree.children[self]) {
      if (asks) {
        writer.send(self, child, {});
      }
      writer.take(StepKind::Receive, child, self, tree.below(child));
    }
    if (self != tree.root) {
      if (asks) {
        writer.take(StepKind::Receive, tree.root, self, {});
      }
      writer.send(self, tree.parent[self], tree.below(self));
    }
  }
}

// From the farthest child on, or in the order of numbers.
void write_scatter(MpiWriter& writer, MpiTreeKind kind) {
  MpiTree tree = block_tree(writer, kind);
  if (kind != MpiTreeKind::Linear) {
    for (std::vector<Rank>& children : tree.children) {
      std::ranges::reverse(children);
    }
  }
  for (Rank self = 0; self < writer.ranks(); ++self) {
    if (self != tree.root) {
      writer.take(StepKind::Receive, tree.parent[self], self, tree.below(self));
    }
    for (const Rank child : tree.children[self]) {
      writer.send(self, child, tree.below(child));
    }
  }
}

namespace {

// A rank keeps one part of its chunks in a round of halving, and gives the other one away.
struct Window {
  Chunks kept;
  Chunks given;
};

// Halving of M chunks by number n of those that take part, from the nearest partner on.
std::vector<Window> write_halving(MpiWriter& writer, const Halving& halving, Rank n, bool odd) {
  Rank first = 0;
  Rank count = halving.power;
  std::vector<Window> windows;
  for (Rank mask = 1; mask < halving.power; mask *= 2) {
    count /= 2;
    const bool is_low = (n & mask) == 0;
    const Chunks low = MpiWriter::span(first, count);
    const Chunks high = MpiWriter::span(first + count, count);
    windows.push_back({.kept = is_low ? low : high, .given = is_low ? high : low});
    first += is_low ? 0 : count;
    writer.swap(halving.rank(n, odd), halving.rank(n ^ mask, odd), windows.back().given,
                StepKind::Reduce, windows.back().kept);
  }
  return windows;
}

// Halving and doubling back.
void write_rounds(MpiWriter& writer, const Halving& halving, bool odd) {
  for (Rank n = 0; n < halving.power; ++n) {
    std::vector<Window> windows = write_halving(writer, halving, n, odd);
    for (Rank mask = halving.power / 2; mask > 0; mask /= 2) {
      const auto& [kept, given] = windows.back();
      writer.swap(halving.rank(n, odd), halving.rank(n ^ mask, odd), kept, StepKind::Receive,
                  given);
      windows.pop_back();
    }
  }
}

}  // namespace

// M chunks: halves and halves of them are whole chunks.
void write_rabenseifner(MpiWriter& writer) {
  const Halving halving(writer.ranks());
  const Rank power = halving.power;
  const Chunks left = MpiWriter::span(0, power / 2);
  const Chunks right = MpiWriter::span(power / 2, power - power / 2);
  for (Rank even = 0; even < 2 * halving.pairs; even += 2) {
    writer.swap(even, even + 1, right, StepKind::Reduce, left);
    writer.take(StepKind::Receive, even + 1, even, right);
    writer.swap(even + 1, even, left, StepKind::Reduce, right);
    writer.send(even + 1, even, right);
  }
  write_rounds(writer, halving, false);
  for (Rank even = 0; even < 2 * halving.pairs; even += 2) {
    writer.send(even, even + 1, MpiWriter::span(0, power));
    writer.take(StepKind::Receive, even, even + 1, MpiWriter::span(0, power));
  }
}

void write_reduce_scatter_allgather(MpiWriter& writer) {
  const Halving halving(writer.ranks());
  const Chunks all = MpiWriter::span(0, halving.power);
  for (Rank even = 0; even < 2 * halving.pairs; even += 2) {
    writer.send(even, even + 1, all);
    writer.take(StepKind::Reduce, even, even + 1, all);
  }
  write_rounds(writer, halving, true);
  for (Rank even = 0; even < 2 * halving.pairs; even += 2) {
    writer.send(even + 1, even, all);
    writer.take(StepKind::Receive, even + 1, even, all);
  }
}

// The odd ones of the pairs are idle. Where the root is one of them, it takes the place of the
// first rank after the halving.
void write_reduce_scatter_gather(MpiWriter& writer) {
  const Halving halving(writer.ranks());
  const Rank root = writer.root();
  const Rank power = halving.power;
  const bool is_idle = root < 2 * halving.pairs && root % 2 == 1;
  const Rank target = root < 2 * halving.pairs ? (is_idle ? 0 : root / 2) : root - halving.pairs;
  const auto holder = [&](Rank n) { return n == 0 && is_idle ? root : halving.rank(n, false); };
  for (Rank even = 0; even < 2 * halving.pairs; even += 2) {
    writer.send(even + 1, even, MpiWriter::span(0, power));
    writer.take(StepKind::Reduce, even + 1, even, MpiWriter::span(0, power));
  }
  for (Rank n = 0; n < power; ++n) {
    std::vector<Window> windows = write_halving(writer, halving, n, false);
    if (holder(n) != halving.rank(n, false)) {
      writer.send(halving.rank(n, false), root, {0});
      writer.take(StepKind::Receive, halving.rank(n, false), root, {0});
    }
    for (Rank mask = power / 2; mask > 0; mask /= 2) {
      const auto& [kept, given] = windows.back();
      const Rank other = n ^ mask;
      // The root is in the partner's half of those that still have something.
      if (other / mask == target / mask) {
        writer.send(holder(n), holder(other), kept);
        break;
      }
      writer.take(StepKind::Receive, holder(other), holder(n), given);
      windows.pop_back();
    }
  }
}

namespace {

Rank mirrored(Rank n, Rank power) {
  Rank result = 0;
  for (Rank mask = 1; mask < power; mask *= 2) {
    result = 2 * result + ((n & mask) != 0 ? 1 : 0);
  }
  return result;
}

// The chunks of `count` of the M blocks; of the first E each has two.
Chunks blocks_of(const Halving& halving, Rank first, Rank count) {
  const auto begin = [&](Rank block) { return block + std::min(block, halving.pairs); };
  return MpiWriter::span(begin(first), begin(first + count) - begin(first));
}

}  // namespace

void write_butterfly(MpiWriter& writer) {
  const Halving halving(writer.ranks());
  const Rank power = halving.power;
  for (Rank even = 0; even < 2 * halving.pairs; even += 2) {
    writer.send(even, even + 1, MpiWriter::span(0, writer.ranks()));
    writer.take(StepKind::Reduce, even, even + 1, MpiWriter::span(0, writer.ranks()));
    const Rank owner = halving.rank(mirrored(even / 2, power), true);
    writer.take(StepKind::Receive, owner, even, {even});
  }
  for (Rank n = 0; n < power; ++n) {
    const Rank self = halving.rank(n, true);
    Rank first = 0;
    Rank count = power;
    for (Rank mask = 1; mask < power; mask *= 2) {
      count /= 2;
      const bool is_low = (n & mask) == 0;
      writer.swap(self, halving.rank(n ^ mask, true),
                  blocks_of(halving, is_low ? first + count : first, count), StepKind::Reduce,
                  blocks_of(halving, is_low ? first : first + count, count));
      first += is_low ? 0 : count;
    }
    const Rank target = mirrored(n, power);
    const Rank partner = halving.rank(target, true);
    if (target < halving.pairs) {
      writer.send(self, partner - 1, {partner - 1});
    }
    if (target != n) {
      writer.swap(self, partner, {partner}, StepKind::Receive, {self});
    }
  }
}

// For even N. In round i the neighbours swap what the round before has brought.
void write_neighbors(MpiWriter& writer) {
  const Rank ranks = writer.ranks();
  const auto pair_of = [&](std::uint32_t first) {
    return Chunks{first % ranks, (first + 1) % ranks};
  };
  for (Rank self = 0; self < ranks; ++self) {
    const bool is_even = self % 2 == 0;
    const std::array<Rank, 2> neighbors{(self + (is_even ? 1 : ranks - 1)) % ranks,
                                        (self + (is_even ? ranks - 1 : 1)) % ranks};
    const Rank own = is_even ? self : neighbors[0];
    std::array<Rank, 2> taken{own, own};
    Rank sent = own;
    writer.swap(self, neighbors[0], {self}, StepKind::Receive, {neighbors[0]});
    for (std::uint32_t round = 1; round < ranks / 2; ++round) {
      const std::uint32_t side = round % 2;
      const bool rises = (side == 0) == is_even;
      taken[side] = (taken[side] + (rises ? 2 : ranks - 2)) % ranks;
      writer.swap(self, neighbors[side], pair_of(sent), StepKind::Receive, pair_of(taken[side]));
      sent = taken[side];
    }
  }
}

// Two chunks. Ranks with odd numbers from the root on are below its first child and have the first.
void write_split(MpiWriter& writer) {
  const Rank ranks = writer.ranks();
  const MpiTree tree = mpi_tree(MpiTreeKind::Binary, ranks, writer.root());
  for (Rank v = 0; v < ranks; ++v) {
    const auto real = [&](Rank number) { return (number + writer.root()) % ranks; };
    const Rank self = real(v);
    const std::uint32_t half = (v + 1) % 2;
    if (v == 0) {
      for (std::uint32_t i = 0; i < tree.children[self].size(); ++i) {
        writer.send(self, tree.children[self][i], {i});
      }
    } else {
      writer.take(StepKind::Receive, tree.parent[self], self, {half});
      for (const Rank child : tree.children[self]) {
        writer.send(self, child, {half});
      }
    }
    const bool is_last_of_even = ranks % 2 == 0 && v == ranks - 1;
    if (v == 0 && ranks % 2 == 0) {
      writer.send(self, real(ranks - 1), {1});
    } else if (is_last_of_even) {
      writer.take(StepKind::Receive, writer.root(), self, {1});
    } else if (v != 0) {
      writer.swap(self, real(half == 0 ? v + 1 : v - 1), {half}, StepKind::Receive, {1 - half});
    }
  }
}

namespace {

// Ranks by their numbers from the root on; blocks have those of the ranks that get them.
struct FromRoot {
  explicit FromRoot(const MpiWriter& writer) : ranks(writer.ranks()), root(writer.root()) {}
  Rank ranks;
  Rank root;
  [[nodiscard]] Rank real(Rank number) const { return (number + root) % ranks; }
  [[nodiscard]] Chunks blocks(Rank first, Rank size) const {
    return MpiWriter::span(first, std::min(size, ranks - first));
  }
};

void write_binomial_scatter(MpiWriter& writer, const FromRoot& from, Rank v) {
  Rank mask = v == 0 ? std::bit_ceil(from.ranks) : v & (~v + 1);
  if (v != 0) {
    writer.take(StepKind::Receive, from.real(v - mask), from.real(v), from.blocks(v, mask));
  }
  for (mask /= 2; mask > 0; mask /= 2) {
    if (v + mask < from.ranks) {
      writer.send(from.real(v), from.real(v + mask), from.blocks(v + mask, mask));
    }
  }
}

}  // namespace

void write_scatter_allgather(MpiWriter& writer) {
  const FromRoot from(writer);
  const Rank ranks = from.ranks;
  for (Rank v = 0; v < ranks; ++v) {
    const Rank self = from.real(v);
    write_binomial_scatter(writer, from, v);
    for (Rank mask = 1; mask < ranks; mask *= 2) {
      const Rank other = v ^ mask;
      const Rank mine = v / mask * mask;
      const Rank others = other / mask * mask;
      if (other < ranks) {
        writer.swap(self, from.real(other), from.blocks(mine, mask), StepKind::Receive,
                    from.blocks(others, mask));
      }
      if (others + mask <= ranks) {
        continue;
      }
      // The upper one of the two groups is not whole: the lower has ranks without a partner.
      const Rank with_partner = ranks > mine + mask ? ranks - mine - mask : 0;
      for (Rank step = mask / 2; step > 0 && with_partner > 0; step /= 2) {
        const Rank peer = v ^ step;
        const Rank limit = v / (2 * step) * (2 * step) + with_partner;
        if (peer > v && v < limit && peer >= limit) {
          writer.send(self, from.real(peer), from.blocks(mine + mask, mask));
        } else if (peer < v && peer < limit && v >= limit) {
          writer.take(StepKind::Receive, from.real(peer), self, from.blocks(mine + mask, mask));
        }
      }
    }
  }
}

void write_scatter_ring(MpiWriter& writer) {
  const FromRoot from(writer);
  const Rank ranks = from.ranks;
  for (Rank v = 0; v < ranks; ++v) {
    write_binomial_scatter(writer, from, v);
    for (Rank round = 1; round < ranks; ++round) {
      writer.send(from.real(v), from.real(v + 1), {(v + ranks - round + 1) % ranks});
      writer.take(StepKind::Receive, from.real(v + ranks - 1), from.real(v),
                  {(v + ranks - round) % ranks});
    }
  }
}

void write_pairwise_sums(MpiWriter& writer) {
  const Rank ranks = writer.ranks();
  for (Rank self = 0; self < ranks; ++self) {
    for (Rank round = 1; round < ranks; ++round) {
      const Rank target = (self + round) % ranks;
      writer.send(self, target, {target});
      writer.take(StepKind::Reduce, (self + ranks - round) % ranks, self, {self});
    }
  }
}

// Powers of two exchange with r xor i, others with r + i and r - i.
void write_pairwise_exchange(MpiWriter& writer) {
  const Rank ranks = writer.ranks();
  for (Rank self = 0; self < ranks; ++self) {
    for (Rank round = 1; round < ranks; ++round) {
      const bool mirrors = std::has_single_bit(ranks);
      const Rank target = mirrors ? self ^ round : (self + round) % ranks;
      const Rank source = mirrors ? self ^ round : (self + ranks - round) % ranks;
      writer.send(self, target, {self * ranks + target});
      writer.take(StepKind::Receive, source, self, {source * ranks + self});
    }
  }
}

// Batches of MPIR_CVAR_ALLTOALL_THROTTLE ranks, by default 32 (src/mpi/coll/cvars.txt); a rank's
// own block is one of the first.
void write_scattered(MpiWriter& writer) {
  constexpr Rank kBatch = 32;
  const Rank ranks = writer.ranks();
  for (Rank self = 0; self < ranks; ++self) {
    for (Rank first = 0; first < ranks; first += kBatch) {
      const Rank end = std::min(first + kBatch, ranks);
      for (Rank round = std::max(first, Rank{1}); round < end; ++round) {
        const Rank target = (self + ranks - round) % ranks;
        writer.send(self, target, {self * ranks + target});
      }
      for (Rank round = std::max(first, Rank{1}); round < end; ++round) {
        const Rank source = (self + round) % ranks;
        writer.take(StepKind::Receive, source, self, {source * ranks + self});
      }
    }
  }
}

}  // namespace trainyard
