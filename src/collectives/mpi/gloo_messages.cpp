// SPDX-License-Identifier: Apache-2.0
// Sources: facebookincubator/gloo @cc441984208d, gloo/allreduce.cc, reduce.cc, allgather.cc and
// allreduce_ring_chunked.h. In all rings here two messages of a rank are under way: it waits for
// the message of two steps before, adds it up, and sends the next one.
#include "collectives/mpi/gloo_messages.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace trainyard {
namespace {

using Rank = MpiWriter::Rank;
using Chunks = MpiWriter::Chunks;

// One way round a ring of a rank's neighbours, in so many steps. `sent` and `taken` say which chunk
// goes in a step, `kind` what is done with it.
template <typename Sent, typename Taken, typename Kind>
void write_round(MpiWriter& writer, Rank self, bool down, std::uint32_t steps, Sent sent,
                 Taken taken, Kind kind) {
  constexpr std::uint32_t kUnderWay = 2;
  const Rank ranks = writer.ranks();
  const Rank lower = (self + ranks - 1) % ranks;
  const Rank upper = (self + 1) % ranks;
  for (std::uint32_t step = 0; step < steps + kUnderWay; ++step) {
    if (step >= kUnderWay) {
      const std::uint32_t before = step - kUnderWay;
      writer.take(kind(before), down ? upper : lower, self, {taken(before)});
    }
    if (step < steps) {
      writer.send(self, down ? lower : upper, {sent(step)});
    }
  }
}

constexpr auto kAdds = [](std::uint32_t /*step*/) { return StepKind::Reduce; };
constexpr auto kStores = [](std::uint32_t /*step*/) { return StepKind::Receive; };

}  // namespace

std::uint32_t gloo_segments(const MpiCall& call) {
  const std::int64_t longest = mib(1).count();  // AllreduceOptionsImpl::kMaxSegmentSize.
  const std::int64_t ranks = call.ranks;
  const std::int64_t needed = (call.size.count() + longest - 1) / longest;
  return static_cast<std::uint32_t>(std::max((needed + ranks - 1) / ranks, std::int64_t{2}) *
                                    ranks);
}

void write_gloo_ring(MpiWriter& writer) {
  const Rank ranks = writer.ranks();
  const std::uint32_t segments = gloo_segments(writer.call());
  const std::uint32_t each = segments / ranks;
  const std::uint32_t steps = segments - each;
  for (Rank self = 0; self < ranks && ranks > 1; ++self) {
    const auto from = [&](Rank first) {
      return [=](std::uint32_t step) { return (first * each + step) % segments; };
    };
    write_round(writer, self, true, steps, from(self + 1), from(self + 2), kAdds);
    write_round(writer, self, true, steps, from(self), from(self + 1), kStores);
  }
}

// With more than two segments for each rank, Gloo goes on with the sums for longer than it must;
// what comes then is of no use to who gets it, and is taken as if it were stored.
void write_gloo_reduce(MpiWriter& writer) {
  const Rank ranks = writer.ranks();
  const std::uint32_t segments = gloo_segments(writer.call());
  const std::uint32_t each = segments / ranks;
  const auto kind = [&](std::uint32_t step) {
    return step < segments - each ? StepKind::Reduce : StepKind::Receive;
  };
  for (Rank self = 0; self < ranks && ranks > 1; ++self) {
    const auto from = [&](Rank first) {
      return [=](std::uint32_t step) { return (first * each + step) % segments; };
    };
    write_round(writer, self, true, segments - 2, from(self + 1), from(self + 2), kind);
    for (Rank other = 0; other < ranks; ++other) {
      if (self == writer.root() && other != self) {
        writer.take(StepKind::Receive, other, self, MpiWriter::span(other * each, each));
      }
    }
    if (self != writer.root()) {
      writer.send(self, writer.root(), MpiWriter::span(self * each, each));
    }
  }
}

// Notices that an inbox is free are those that a receive is posted.
void write_gloo_ring_chunked(MpiWriter& writer) {
  const Rank ranks = writer.ranks();
  const std::uint32_t chunks = 2 * ranks;
  const auto kind = [&](std::uint32_t step) {
    return step < chunks - 2 ? StepKind::Reduce : StepKind::Receive;
  };
  for (Rank self = 0; self < ranks && ranks > 1; ++self) {
    // Pairs of chunks go by falling numbers.
    const auto from = [&](Rank first) {
      return [=](std::uint32_t step) {
        return (2 * first + 2 * chunks - step / 2 * 2 + step % 2) % chunks;
      };
    };
    write_round(writer, self, false, 2 * (chunks - 2), from(self), from(self + ranks - 1), kind);
  }
}

void write_gloo_ring_gather(MpiWriter& writer) {
  const Rank ranks = writer.ranks();
  for (Rank self = 0; self < ranks; ++self) {
    const auto from = [&](Rank first) {
      return
          [=](std::uint32_t step) { return (first + ranks - step / 2) % ranks + step % 2 * ranks; };
    };
    write_round(writer, self, false, 2 * (ranks - 1), from(self), from(self + ranks - 1), kStores);
  }
}

namespace {

// A Cube is the group of a rank in a step, with the chunks that the group has.
struct Cube {
  Rank base = 0;
  Rank distance = 1;
  Rank size = 2;
  std::uint32_t first = 0;
  std::uint32_t length = 0;  // Each member has as many.
  [[nodiscard]] Rank rank(Rank member) const { return base + member * distance; }
  [[nodiscard]] Chunks chunks(Rank member) const {
    return MpiWriter::span(first + member * length, length);
  }
};

std::vector<Cube> cubes_of(Rank self, Rank ranks) {
  std::vector<Cube> groups;
  Cube group{.length = ranks};
  for (Rank left = ranks; left > 1; left /= group.size) {
    group.size = left % 2 == 0 ? 2 : left;
    const Rank member = self / group.distance % group.size;
    group.base = self - member * group.distance;
    group.length /= group.size;
    groups.push_back(group);
    group.first += member * group.length;
    group.distance *= group.size;
  }
  return groups;
}

}  // namespace

// Groups of two as long as two divides what is left, and then one of all that is left.
void write_gloo_bcube(MpiWriter& writer) {
  for (Rank self = 0; self < writer.ranks(); ++self) {
    const std::vector<Cube> groups = cubes_of(self, writer.ranks());
    const auto exchange = [&](const Cube& group, bool adds) {
      const Rank own = (self - group.base) / group.distance;
      for (Rank member = 0; member < group.size; ++member) {
        if (member != own) {
          writer.send(self, group.rank(member), group.chunks(adds ? member : own));
        }
      }
      for (Rank member = 0; member < group.size; ++member) {
        if (member != own) {
          writer.take(adds ? StepKind::Reduce : StepKind::Receive, group.rank(member), self,
                      group.chunks(adds ? own : member));
        }
      }
    };
    for (const Cube& group : groups) {
      exchange(group, true);
    }
    for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
      exchange(*group, false);
    }
  }
}

}  // namespace trainyard
