// SPDX-License-Identifier: Apache-2.0
#include "collectives/hccl/hccl_schedule.h"

#include <spdlog/fmt/fmt.h>

#include <bit>
#include <string>
#include <vector>

#include "collectives/algorithms/algorithms.h"
#include "collectives/hccl/written_schedule.h"
#include "sim/check.h"

namespace trainyard {
namespace {

using Rank = ScheduleWriter::Rank;
using Ranks = std::vector<Rank>;
using Chunks = ScheduleWriter::Chunks;
using Blocks = ScheduleWriter::Blocks;

// The member `i` places behind `self`, around.
std::uint32_t behind(std::uint32_t self, std::uint32_t i, std::uint32_t count) {
  return (self + i) % count;
}

class HcclWriter {
 public:
  HcclWriter(const HcclShape& shape, const HcclWay& way)
      : shape_(shape), way_(way), writer_(shape.ranks()) {}

  std::unique_ptr<Schedule> write(Operation operation) {
    std::uint32_t chunks = shape_.ranks();
    switch (operation) {
      case Operation::AllReduce:
        chunks = all_reduce();
        break;
      case Operation::AllGather:
        gather();
        break;
      case Operation::ReduceScatter:
        scatter();
        break;
      case Operation::AllToAll:
        chunks = exchange();
        break;
      case Operation::SendReceive:
        shift();
        break;
      case Operation::AllToAllV:
      case Operation::Barrier:
      case Operation::Broadcast:
      case Operation::Gather:
      case Operation::Reduce:
      case Operation::Scatter:
        CHECK(false, "an operation that HCCL has here");
    }
    return writer_.finish(operation, name(), chunks);
  }

 private:
  [[nodiscard]] std::string name() const {
    if (way_.inside == HcclInside::None) {
      return std::string(to_string(way_.between));
    }
    return way_.between == HcclBetween::None
               ? std::string(to_string(way_.inside))
               : fmt::format("{}+{}", to_string(way_.inside), to_string(way_.between));
  }

  [[nodiscard]] Rank rank(std::uint32_t server, std::uint32_t local) const {
    return server * shape_.per_server + local;
  }
  [[nodiscard]] Ranks server(std::uint32_t number) const {
    Ranks ranks;
    for (std::uint32_t local = 0; local < shape_.per_server; ++local) {
      ranks.push_back(rank(number, local));
    }
    return ranks;
  }
  [[nodiscard]] Ranks column(std::uint32_t local) const {
    Ranks ranks;
    for (std::uint32_t number = 0; number < shape_.servers; ++number) {
      ranks.push_back(rank(number, local));
    }
    return ranks;
  }
  // Each of these ranks' own chunk.
  [[nodiscard]] static Blocks own(const Ranks& ranks) {
    Blocks blocks;
    for (const Rank each : ranks) {
      blocks.push_back({each});
    }
    return blocks;
  }
  [[nodiscard]] Blocks of_servers() const {
    Blocks blocks;
    for (std::uint32_t number = 0; number < shape_.servers; ++number) {
      blocks.push_back(server(number));
    }
    return blocks;
  }
  [[nodiscard]] Blocks of_columns() const {
    Blocks blocks;
    for (std::uint32_t local = 0; local < shape_.per_server; ++local) {
      blocks.push_back(column(local));
    }
    return blocks;
  }

  // Block i is of ranks[i].
  void mesh(bool reduces, const Ranks& ranks, const Blocks& blocks) {
    const auto count = static_cast<std::uint32_t>(ranks.size());
    for (std::uint32_t self = 0; self < count; ++self) {
      for (std::uint32_t i = 1; i < count; ++i) {
        const std::uint32_t other = behind(self, i, count);
        writer_.send(ranks[self], ranks[other], blocks[reduces ? other : self]);
      }
      for (std::uint32_t i = 1; i < count; ++i) {
        const std::uint32_t other = behind(self, i, count);
        writer_.take(reduces ? StepKind::Reduce : StepKind::Receive, ranks[other], ranks[self],
                     blocks[reduces ? self : other]);
      }
    }
  }

  // The blocks r, r - 2d, r - 4d, ... that NHR sends over the distance d.
  [[nodiscard]] static Chunks spread(std::uint32_t r, std::uint32_t distance,
                                     const Blocks& blocks) {
    const auto count = static_cast<std::uint32_t>(blocks.size());
    Chunks chunks;
    for (std::uint32_t i = 0; i < (count - 1 + distance) / (2 * distance); ++i) {
      const Chunks& block = blocks[(r + count - 2 * distance * i) % count];
      chunks.insert(chunks.end(), block.begin(), block.end());
    }
    return chunks;
  }
  void nonuniform(bool reduces, const Ranks& ranks, const Blocks& blocks) {
    const auto count = static_cast<std::uint32_t>(ranks.size());
    const std::uint32_t rounds = doubling_rounds(count);
    for (std::uint32_t self = 0; self < count; ++self) {
      for (std::uint32_t round = 0; round < rounds; ++round) {
        const std::uint32_t distance = 1U << (reduces ? round : rounds - 1 - round);
        const std::uint32_t above = (self + distance) % count;
        const std::uint32_t below = (self + count - distance) % count;
        const std::uint32_t to = reduces ? below : above;
        const std::uint32_t from = reduces ? above : below;
        writer_.send(ranks[self], ranks[to], spread(reduces ? below : self, distance, blocks));
        writer_.take(reduces ? StepKind::Reduce : StepKind::Receive, ranks[from], ranks[self],
                     spread(reduces ? self : below, distance, blocks));
      }
    }
  }
  // Whole to the first rank along a binomial tree, and back.
  void tree(const Ranks& ranks, const Chunks& chunks) {
    const auto count = static_cast<std::uint32_t>(ranks.size());
    for (std::uint32_t self = 0; self < count; ++self) {
      const std::uint32_t rounds =
          self == 0 ? doubling_rounds(count) : static_cast<std::uint32_t>(std::countr_zero(self));
      for (std::uint32_t round = 0; round < rounds; ++round) {
        if (self + (1U << round) < count) {
          writer_.take(StepKind::Reduce, ranks[self + (1U << round)], ranks[self], chunks);
        }
      }
      if (self != 0) {
        writer_.send(ranks[self], ranks[self - (1U << rounds)], chunks);
        writer_.take(StepKind::Receive, ranks[self - (1U << rounds)], ranks[self], chunks);
      }
      for (std::uint32_t round = rounds; round-- > 0;) {
        if (self + (1U << round) < count) {
          writer_.send(ranks[self], ranks[self + (1U << round)], chunks);
        }
      }
    }
  }

  // An operation among some ranks by what is between servers.
  void between(Operation operation, const Ranks& ranks, const Blocks& blocks) {
    const auto count = static_cast<int>(ranks.size());
    const auto embed = [&](Algorithm algorithm) {
      writer_.embed(*make_schedule(algorithm, operation,
                                   {.layout = flat_layout(count, 1), .root = RankId(0)}),
                    ranks, blocks);
    };
    switch (way_.between) {
      case HcclBetween::None:
        return;
      case HcclBetween::Ring:
      case HcclBetween::Pipeline:
        return embed(&kRing);
      case HcclBetween::HalvingDoubling:
        return embed(&kHalvingDoubling);
      case HcclBetween::Pairwise:
        return embed(&kPairwise);
      case HcclBetween::NhrTree: {
        Chunks all;
        for (const Chunks& block : blocks) {
          all.insert(all.end(), block.begin(), block.end());
        }
        return tree(ranks, all);
      }
      case HcclBetween::Nhr:
      case HcclBetween::Nb:
        if (operation != Operation::AllGather) {
          nonuniform(true, ranks, blocks);
        }
        if (operation != Operation::ReduceScatter) {
          nonuniform(false, ranks, blocks);
        }
    }
  }
  void columns(Operation operation) {
    for (std::uint32_t local = 0; local < shape_.per_server; ++local) {
      const Ranks ranks = column(local);
      between(operation, ranks, operation == Operation::AllReduce ? own(ranks) : of_servers());
    }
  }
  void meshes(bool reduces, bool of_column) {
    for (std::uint32_t number = 0; number < shape_.servers; ++number) {
      const Ranks ranks = server(number);
      mesh(reduces, ranks, of_column ? of_columns() : own(ranks));
    }
  }

  // Step k sends on the block of server m - k, while the mesh has it.
  void pipelined_gather() {
    const std::uint32_t servers = shape_.servers;
    for (std::uint32_t number = 0; number < servers; ++number) {
      const std::uint32_t next = (number + 1) % servers;
      const std::uint32_t last = (number + servers - 1) % servers;
      for (std::uint32_t local = 0; local < shape_.per_server; ++local) {
        const Rank self = rank(number, local);
        for (std::uint32_t k = 0; k < servers; ++k) {
          const std::uint32_t block = (number + servers - k) % servers;
          const bool goes_on = k + 1 < servers;
          if (goes_on) {
            writer_.send(self, rank(next, local), {rank(block, local)});
          }
          to_others(number, local, [&](std::uint32_t /*other*/) { return rank(block, local); });
          if (goes_on) {
            const std::uint32_t before = (block + servers - 1) % servers;
            writer_.take(StepKind::Receive, rank(last, local), self, {rank(before, local)});
          }
          from_others(StepKind::Receive, number, local,
                      [&](std::uint32_t other) { return rank(block, other); });
        }
      }
    }
  }
  // The same backwards in time and direction.
  void pipelined_scatter() {
    const std::uint32_t servers = shape_.servers;
    for (std::uint32_t number = 0; number < servers; ++number) {
      const std::uint32_t next = (number + 1) % servers;
      const std::uint32_t last = (number + servers - 1) % servers;
      for (std::uint32_t local = 0; local < shape_.per_server; ++local) {
        const Rank self = rank(number, local);
        for (std::uint32_t k = servers; k-- > 0;) {
          const std::uint32_t block = (number + servers - k) % servers;
          const bool goes_on = k + 1 < servers;
          if (goes_on) {
            const std::uint32_t before = (block + servers - 1) % servers;
            writer_.send(self, rank(last, local), {rank(before, local)});
          }
          to_others(number, local, [&](std::uint32_t other) { return rank(block, other); });
          from_others(StepKind::Reduce, number, local,
                      [&](std::uint32_t /*other*/) { return rank(block, local); });
          if (goes_on) {
            writer_.take(StepKind::Reduce, rank(next, local), self, {rank(block, local)});
          }
        }
      }
    }
  }
  template <typename ChunkOf>
  void to_others(std::uint32_t number, std::uint32_t local, ChunkOf chunk) {
    for (std::uint32_t i = 1; i < shape_.per_server; ++i) {
      const std::uint32_t other = behind(local, i, shape_.per_server);
      writer_.send(rank(number, local), rank(number, other), {chunk(other)});
    }
  }
  template <typename ChunkOf>
  void from_others(StepKind kind, std::uint32_t number, std::uint32_t local, ChunkOf chunk) {
    for (std::uint32_t i = 1; i < shape_.per_server; ++i) {
      const std::uint32_t other = behind(local, i, shape_.per_server);
      writer_.take(kind, rank(number, other), rank(number, local), {chunk(other)});
    }
  }

  // Returns the number of chunks.
  std::uint32_t all_reduce() {
    if (way_.inside == HcclInside::Star) {
      star();
      return 1;
    }
    if (way_.between == HcclBetween::Pipeline) {
      pipelined_scatter();
      pipelined_gather();
      return shape_.ranks();
    }
    meshes(true, true);
    columns(Operation::AllReduce);
    meshes(false, true);
    return shape_.ranks();
  }
  void star() {
    for (Rank other = 1; other < shape_.ranks(); ++other) {
      writer_.send(other, 0, {0});
      writer_.take(StepKind::Reduce, other, 0, {0});
    }
    for (Rank other = 1; other < shape_.ranks(); ++other) {
      writer_.send(0, other, {0});
      writer_.take(StepKind::Receive, 0, other, {0});
    }
  }
  void gather() {
    if (way_.between == HcclBetween::Pipeline) {
      pipelined_gather();
      return;
    }
    meshes(false, false);
    columns(Operation::AllGather);
  }
  void scatter() {
    if (way_.between == HcclBetween::Pipeline) {
      pipelined_scatter();
      return;
    }
    columns(Operation::ReduceScatter);
    meshes(true, false);
  }
  // Chunk source * N + target. Returns how many there are.
  std::uint32_t exchange() {
    const std::uint32_t all = shape_.ranks();
    // Lists what the sources of a server, or one rank, have for the targets of a column or server.
    const auto chunks = [&](const Ranks& sources, const Ranks& targets) {
      Chunks list;
      for (const Rank source : sources) {
        for (const Rank target : targets) {
          list.push_back(source * all + target);
        }
      }
      return list;
    };
    if (way_.inside == HcclInside::None) {
      Ranks ranks;
      Blocks blocks;
      for (Rank each = 0; each < all; ++each) {
        ranks.push_back(each);
      }
      for (std::uint32_t chunk = 0; chunk < all * all; ++chunk) {
        blocks.push_back({chunk});
      }
      between(Operation::AllToAll, ranks, blocks);
      return all * all;
    }
    const auto exchanged = [&](const Ranks& ranks, Algorithm algorithm, auto block) {
      Blocks blocks;
      for (std::uint32_t source = 0; source < ranks.size(); ++source) {
        for (std::uint32_t target = 0; target < ranks.size(); ++target) {
          blocks.push_back(block(source, target));
        }
      }
      writer_.embed(*make_schedule(algorithm, Operation::AllToAll,
                                   {.layout = flat_layout(static_cast<int>(ranks.size()), 1),
                                    .root = RankId(0)}),
                    ranks, blocks);
    };
    for (std::uint32_t number = 0; number < shape_.servers; ++number) {
      exchanged(server(number), &kDirect, [&](std::uint32_t source, std::uint32_t target) {
        return chunks({rank(number, source)}, column(target));
      });
    }
    for (std::uint32_t local = 0; local < shape_.per_server; ++local) {
      exchanged(column(local), &kPairwise, [&](std::uint32_t source, std::uint32_t target) {
        return chunks(server(source), {rank(target, local)});
      });
    }
    return all * all;
  }
  void shift() {
    const std::uint32_t all = shape_.ranks();
    for (Rank self = 0; self < all; ++self) {
      writer_.send(self, (self + 1) % all, {self});
    }
    for (Rank self = 0; self < all; ++self) {
      writer_.take(StepKind::Receive, self, (self + 1) % all, {self});
    }
  }

  HcclShape shape_;
  HcclWay way_;
  ScheduleWriter writer_;
};

}  // namespace

std::string_view to_string(HcclInside inside) {
  switch (inside) {
    case HcclInside::None:
      return "-";
    case HcclInside::Mesh:
      return "mesh";
    case HcclInside::Star:
      return "star";
  }
  CHECK(false, "a value of the enumeration");
}

std::string_view to_string(HcclBetween between) {
  switch (between) {
    case HcclBetween::None:
      return "-";
    case HcclBetween::Ring:
      return "ring";
    case HcclBetween::HalvingDoubling:
      return "H-D_R";
    case HcclBetween::Nhr:
      return "NHR";
    case HcclBetween::NhrTree:
      return "NHR-tree";
    case HcclBetween::Nb:
      return "NB";
    case HcclBetween::Pipeline:
      return "pipeline";
    case HcclBetween::Pairwise:
      return "pairwise";
  }
  CHECK(false, "a value of the enumeration");
}

std::unique_ptr<Schedule> hccl_schedule(Operation operation, const HcclShape& shape,
                                        const HcclWay& way) {
  return HcclWriter(shape, way).write(operation);
}

}  // namespace trainyard
