// SPDX-License-Identifier: Apache-2.0
#include "collectives/mpi/mpi_schedule.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "collectives/algorithms/algorithms.h"
#include "collectives/mpi/gloo_messages.h"
#include "collectives/mpi/mpi_messages.h"
#include "sim/check.h"

namespace trainyard {
namespace {

// Adapters for the table below.
template <MpiTreeKind kKind>
void down(MpiWriter& writer) {
  write_down(writer, kKind);
}
template <MpiTreeKind kKind>
void up(MpiWriter& writer) {
  write_up(writer, kKind);
}
template <MpiTreeKind kKind, bool kAsks = false>
void gather(MpiWriter& writer) {
  write_gather(writer, kKind, kAsks);
}
template <MpiTreeKind kKind>
void scatter(MpiWriter& writer) {
  write_scatter(writer, kKind);
}

// How many chunks a schedule is written in.
enum class Cut : std::uint8_t { Whole, Halves, Power, Ranks, TwoEach, Pairs, Segments };

std::uint32_t count_of(Cut cut, const MpiCall& call) {
  const auto ranks = static_cast<std::uint32_t>(call.ranks);
  switch (cut) {
    case Cut::Whole:
      return 1;
    case Cut::Halves:
      return 2;
    case Cut::Power:
      return std::bit_floor(ranks);
    case Cut::Ranks:
      return ranks;
    case Cut::TwoEach:
      return 2 * ranks;
    case Cut::Pairs:
      return ranks * ranks;
    case Cut::Segments:
      return gloo_segments(call);
  }
  CHECK(false, "a value of the enumeration");
}

// Numbers of ranks.
bool are_two(std::uint32_t ranks) {
  return ranks <= 2;
}
bool are_power(std::uint32_t ranks) {
  return std::has_single_bit(ranks);
}

// An algorithm is written, is one of the literature, or calls two operations one after the other.
struct MpiRow {
  MpiLibrary library = MpiLibrary::OpenMpi;
  Operation operation;
  std::string_view name;
  Cut cut = Cut::Ranks;
  void (*write)(MpiWriter& writer) = nullptr;
  Algorithm literature = nullptr;
  // Copies that a rank first makes in its memory: times the whole size, and times a block. What it
  // then sends is the copy of the whole, or that of the block.
  int wholes = 0;
  int blocks = 0;
  bool sends_block = false;
  // Receives of a rank that are posted in advance, and sends that need not have ended before the
  // next one; 0: all.
  std::uint32_t under_way = 1;
  bool (*can)(std::uint32_t ranks) = nullptr;  // Missing: any number.
  struct Part {
    Operation operation = Operation::Reduce;
    std::string_view name = {};  // Empty: the rules choose.
  };
  std::array<Part, 2> parts = {};
};

using enum Operation;
using enum MpiLibrary;
using enum MpiTreeKind;

constexpr std::array kRows{
    MpiRow{.operation = AllReduce,
           .name = "basic_linear",
           .cut = Cut::Whole,
           .parts = {{{Reduce, "linear"}, {Broadcast, "basic_linear"}}}},
    MpiRow{.operation = AllReduce, .name = "nonoverlapping", .parts = {{{Reduce}, {Broadcast}}}},
    MpiRow{.operation = AllReduce,
           .name = "recursive_doubling",
           .literature = &kRecursiveDoubling,
           .wholes = 1},
    MpiRow{.operation = AllReduce, .name = "ring", .literature = &kRing, .wholes = 1},
    MpiRow{.operation = AllReduce,
           .name = "rabenseifner",
           .cut = Cut::Power,
           .write = write_rabenseifner,
           .wholes = 1},
    MpiRow{
        .operation = Broadcast, .name = "basic_linear", .cut = Cut::Whole, .write = down<Linear>},
    MpiRow{.operation = Broadcast, .name = "chain", .cut = Cut::Whole, .write = down<Chain>},
    MpiRow{.operation = Broadcast, .name = "pipeline", .cut = Cut::Whole, .write = down<Chain>},
    MpiRow{.operation = Broadcast,
           .name = "split_binary_tree",
           .cut = Cut::Halves,
           .write = write_split},
    MpiRow{.operation = Broadcast, .name = "binary_tree", .cut = Cut::Whole, .write = down<Binary>},
    MpiRow{.operation = Broadcast, .name = "binomial", .cut = Cut::Whole, .write = down<Binomial>},
    MpiRow{.operation = Broadcast, .name = "knomial", .cut = Cut::Whole, .write = down<Knomial>},
    MpiRow{.operation = Broadcast, .name = "scatter_allgather", .write = write_scatter_allgather},
    MpiRow{.operation = Reduce, .name = "linear", .cut = Cut::Whole, .write = up<Linear>},
    MpiRow{.operation = Reduce, .name = "chain", .cut = Cut::Whole, .write = up<Chain>},
    MpiRow{.operation = Reduce, .name = "pipeline", .cut = Cut::Whole, .write = up<Chain>},
    MpiRow{.operation = Reduce, .name = "binary", .cut = Cut::Whole, .write = up<Binary>},
    MpiRow{.operation = Reduce, .name = "binomial", .cut = Cut::Whole, .write = up<InOrder>},
    MpiRow{.operation = Reduce,
           .name = "in-order_binary",
           .cut = Cut::Whole,
           .write = up<InOrderBinary>},
    MpiRow{.operation = AllGather,
           .name = "linear",
           .parts = {{{Gather, "basic_linear"}, {Broadcast, "basic_linear"}}}},
    MpiRow{.operation = AllGather,
           .name = "bruck",
           .literature = &kBruck,
           .wholes = 1,
           .blocks = 1,
           .sends_block = true},
    MpiRow{.operation = AllGather,
           .name = "recursive_doubling",
           .literature = &kRecursiveDoubling,
           .blocks = 1,
           .sends_block = true},
    MpiRow{.operation = AllGather,
           .name = "ring",
           .literature = &kRing,
           .blocks = 1,
           .sends_block = true},
    MpiRow{.operation = AllGather,
           .name = "neighbor",
           .write = write_neighbors,
           .blocks = 1,
           .sends_block = true},
    MpiRow{.operation = AllGather,
           .name = "two_proc",
           .literature = &kRecursiveDoubling,
           .blocks = 1,
           .can = are_two},
    MpiRow{.operation = ReduceScatter,
           .name = "non-overlapping",
           .parts = {{{Reduce}, {Scatter, "basic_linear"}}}},
    MpiRow{.operation = ReduceScatter,
           .name = "recursive_halving",
           .literature = &kHalvingDoublingFar,
           .wholes = 1},
    MpiRow{.operation = ReduceScatter, .name = "ring", .literature = &kRing, .wholes = 1},
    MpiRow{.operation = ReduceScatter, .name = "butterfly", .write = write_butterfly, .wholes = 1},
    MpiRow{.operation = AllToAll,
           .name = "linear",
           .cut = Cut::Pairs,
           .literature = &kDirect,
           .blocks = 1,
           .under_way = 0},
    MpiRow{.operation = AllToAll,
           .name = "pairwise",
           .cut = Cut::Pairs,
           .literature = &kPairwise,
           .blocks = 1},
    MpiRow{.operation = AllToAll,
           .name = "modified_bruck",
           .cut = Cut::Pairs,
           .literature = &kBruck,
           .wholes = 2},
    MpiRow{.operation = AllToAll,
           .name = "linear_sync",
           .cut = Cut::Pairs,
           .literature = &kDirect,
           .blocks = 1,
           .under_way = 0},
    MpiRow{.operation = AllToAll,
           .name = "two_proc",
           .cut = Cut::Pairs,
           .literature = &kDirect,
           .blocks = 1,
           .can = are_two},
    MpiRow{.operation = Gather, .name = "basic_linear", .write = gather<Linear>},
    MpiRow{.operation = Gather, .name = "binomial", .write = gather<InOrder>},
    MpiRow{.operation = Gather, .name = "linear_sync", .write = gather<Linear, true>},
    MpiRow{.operation = Scatter, .name = "basic_linear", .write = scatter<Linear>},
    MpiRow{.operation = Scatter, .name = "binomial", .write = scatter<InOrder>},
    MpiRow{.operation = Scatter, .name = "linear_nb", .write = scatter<Linear>},
    MpiRow{.library = Mpich,
           .operation = AllReduce,
           .name = "recursive_doubling",
           .literature = &kRecursiveDoubling,
           .wholes = 1},
    MpiRow{.library = Mpich,
           .operation = AllReduce,
           .name = "reduce_scatter_allgather",
           .cut = Cut::Power,
           .write = write_reduce_scatter_allgather,
           .wholes = 1},
    MpiRow{.library = Mpich,
           .operation = Broadcast,
           .name = "binomial",
           .cut = Cut::Whole,
           .write = down<InOrderFar>},
    MpiRow{.library = Mpich,
           .operation = Broadcast,
           .name = "scatter_recursive_doubling_allgather",
           .write = write_scatter_allgather},
    MpiRow{.library = Mpich,
           .operation = Broadcast,
           .name = "scatter_ring_allgather",
           .write = write_scatter_ring},
    MpiRow{.library = Mpich,
           .operation = Reduce,
           .name = "binomial",
           .cut = Cut::Whole,
           .write = up<InOrder>,
           .wholes = 1},
    MpiRow{.library = Mpich,
           .operation = Reduce,
           .name = "reduce_scatter_gather",
           .cut = Cut::Power,
           .write = write_reduce_scatter_gather,
           .wholes = 1},
    MpiRow{.library = Mpich,
           .operation = AllGather,
           .name = "brucks",
           .literature = &kBruck,
           .wholes = 1,
           .blocks = 1,
           .sends_block = true},
    MpiRow{.library = Mpich,
           .operation = AllGather,
           .name = "recursive_doubling",
           .literature = &kRecursiveDoubling,
           .blocks = 1,
           .sends_block = true,
           .can = are_power},
    MpiRow{.library = Mpich,
           .operation = AllGather,
           .name = "ring",
           .literature = &kRing,
           .blocks = 1,
           .sends_block = true},
    MpiRow{.library = Mpich,
           .operation = ReduceScatter,
           .name = "recursive_halving",
           .literature = &kHalvingDoublingFar,
           .wholes = 1},
    MpiRow{.library = Mpich,
           .operation = ReduceScatter,
           .name = "pairwise",
           .write = write_pairwise_sums,
           .blocks = 1},
    MpiRow{.library = Mpich,
           .operation = AllToAll,
           .name = "brucks",
           .cut = Cut::Pairs,
           .literature = &kBruck,
           .wholes = 2},
    MpiRow{.library = Mpich,
           .operation = AllToAll,
           .name = "scattered",
           .cut = Cut::Pairs,
           .write = write_scattered,
           .blocks = 1},
    MpiRow{.library = Mpich,
           .operation = AllToAll,
           .name = "pairwise",
           .cut = Cut::Pairs,
           .write = write_pairwise_exchange,
           .blocks = 1},
    MpiRow{.library = Mpich, .operation = Gather, .name = "binomial", .write = gather<InOrder>},
    MpiRow{.library = Mpich, .operation = Scatter, .name = "binomial", .write = scatter<InOrder>},
    MpiRow{.library = Gloo,
           .operation = AllReduce,
           .name = "ring",
           .cut = Cut::Segments,
           .write = write_gloo_ring,
           .under_way = 2},
    MpiRow{.library = Gloo, .operation = AllReduce, .name = "bcube", .write = write_gloo_bcube},
    MpiRow{.library = Gloo,
           .operation = AllReduce,
           .name = "halving_doubling",
           .literature = &kHalvingDoubling,
           .can = are_power},
    MpiRow{.library = Gloo,
           .operation = AllReduce,
           .name = "ring_chunked",
           .cut = Cut::TwoEach,
           .write = write_gloo_ring_chunked,
           .under_way = 2},
    MpiRow{.library = Gloo,
           .operation = Broadcast,
           .name = "binomial",
           .cut = Cut::Whole,
           .write = down<Binomial>,
           .under_way = 0},
    MpiRow{.library = Gloo,
           .operation = Reduce,
           .name = "ring",
           .cut = Cut::Segments,
           .write = write_gloo_reduce,
           .under_way = 2},
    MpiRow{.library = Gloo,
           .operation = AllGather,
           .name = "ring",
           .cut = Cut::TwoEach,
           .write = write_gloo_ring_gather,
           .blocks = 1,
           .under_way = 2},
    MpiRow{.library = Gloo,
           .operation = AllToAll,
           .name = "linear",
           .cut = Cut::Pairs,
           .literature = &kDirect,
           .blocks = 1,
           .under_way = 0},
    MpiRow{.library = Gloo,
           .operation = Gather,
           .name = "linear",
           .write = gather<Linear>,
           .under_way = 0},
    MpiRow{.library = Gloo,
           .operation = Scatter,
           .name = "linear",
           .write = scatter<Linear>,
           .under_way = 0},
};

const MpiRow* find_row(const MpiCall& call, std::string_view name) {
  const auto* const found = std::ranges::find_if(kRows, [&](const MpiRow& row) {
    return row.library == call.library && row.operation == call.operation && row.name == name;
  });
  return found == kRows.end() ? nullptr : found;
}

// A case in which a library's code of an algorithm calls that of another one.
struct Instead {
  MpiLibrary library;
  Operation operation;
  std::string_view name;
  std::string_view other;
  bool (*holds)(std::int64_t ranks, std::int64_t elements);
};

bool always(std::int64_t /*ranks*/, std::int64_t /*elements*/) {
  return true;
}
bool is_short(std::int64_t ranks, std::int64_t elements) {
  return elements < ranks;
}
bool is_below_power(std::int64_t ranks, std::int64_t elements) {
  return ranks < 2 ||
         elements < static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(ranks)));
}
bool is_no_power(std::int64_t ranks, std::int64_t /*elements*/) {
  return !std::has_single_bit(static_cast<std::uint64_t>(ranks));
}
bool is_odd(std::int64_t ranks, std::int64_t /*elements*/) {
  return ranks % 2 != 0;
}
bool is_one(std::int64_t /*ranks*/, std::int64_t elements) {
  return elements < 2;
}

constexpr std::array kInstead{
    Instead{OpenMpi, AllReduce, "segmented_ring", "ring", always},
    Instead{OpenMpi, AllReduce, "ring", "recursive_doubling", is_short},
    Instead{OpenMpi, AllReduce, "rabenseifner", "basic_linear", is_below_power},
    Instead{OpenMpi, Broadcast, "split_binary_tree", "chain", is_one},
    Instead{OpenMpi, Broadcast, "scatter_allgather", "basic_linear", is_short},
    Instead{OpenMpi, Reduce, "rabenseifner", "linear", is_below_power},
    Instead{OpenMpi, AllGather, "recursive_doubling", "bruck", is_no_power},
    Instead{OpenMpi, AllGather, "neighbor", "ring", is_odd},
    Instead{Mpich, AllReduce, "reduce_scatter_allgather", "recursive_doubling", is_below_power},
    Instead{Mpich, Reduce, "reduce_scatter_gather", "binomial", is_below_power},
};

}  // namespace

std::optional<std::string> mpi_algorithm(std::string_view name, const MpiCall& call) {
  constexpr std::int64_t kElement = 4;  // A float, as in nccl-tests.
  for (const Instead& instead : kInstead) {
    if (instead.library == call.library && instead.operation == call.operation &&
        instead.name == name && instead.holds(call.ranks, call.size.count() / kElement)) {
      name = instead.other;
    }
  }
  const MpiRow* const row = find_row(call, name);
  const bool has_one =
      row != nullptr && (row->can == nullptr || row->can(static_cast<std::uint32_t>(call.ranks)));
  return has_one ? std::optional(std::string(name)) : std::nullopt;
}

MpiCopies mpi_copies(std::string_view name, const MpiCall& call) {
  const MpiRow* const row = find_row(call, name);
  CHECK(row != nullptr, "an algorithm with a schedule");
  using enum MpiCopies::Sent;
  return {.bytes = call.size * row->wholes + Bytes(call.size.count() / call.ranks * row->blocks),
          .sent = row->sends_block  ? Block
                  : row->wholes > 0 ? Whole
                                    : Nothing};
}

std::uint32_t mpi_under_way(std::string_view name, const MpiCall& call) {
  const MpiRow* const row = find_row(call, name);
  CHECK(row != nullptr, "an algorithm with a schedule");
  return row->under_way == 0 ? std::numeric_limits<std::uint32_t>::max() : row->under_way;
}

std::unique_ptr<Schedule> mpi_schedule(std::string_view name, const MpiCall& call,
                                       const MpiRules& rules) {
  const MpiRow* const row = find_row(call, name);
  CHECK(row != nullptr, "an algorithm with a schedule");
  MpiWriter writer(call);
  const std::uint32_t chunks = count_of(row->cut, call);
  if (row->write != nullptr) {
    row->write(writer);
  } else if (row->literature != nullptr) {
    writer.embed(*make_schedule(row->literature, call.operation,
                                {.layout = flat_layout(call.ranks, 1), .root = call.root}),
                 chunks);
  } else {
    for (const MpiRow::Part& part : row->parts) {
      const MpiCall inner{.library = call.library,
                          .operation = part.operation,
                          .ranks = call.ranks,
                          .size = call.size};
      const std::string& wanted = part.name.empty()
                                      ? rules.choose(inner.operation, inner.ranks, inner.size)
                                      : std::string(part.name);
      writer.embed(*mpi_schedule(mpi_algorithm(wanted, inner).value(), inner, rules), chunks);
    }
  }
  return writer.finish(name, chunks);
}

}  // namespace trainyard
