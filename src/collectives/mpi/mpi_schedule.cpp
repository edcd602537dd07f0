// SPDX-License-Identifier: Apache-2.0
#include "collectives/mpi/mpi_schedule.h"

#include <algorithm>
#include <array>
#include <bit>

#include "collectives/algorithms/algorithms.h"
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
enum class Cut : std::uint8_t { Whole, Halves, Power, Ranks, Pairs };

std::uint32_t count_of(Cut cut, std::uint32_t ranks) {
  switch (cut) {
    case Cut::Whole:
      return 1;
    case Cut::Halves:
      return 2;
    case Cut::Power:
      return std::bit_floor(ranks);
    case Cut::Ranks:
      return ranks;
    case Cut::Pairs:
      return ranks * ranks;
  }
  CHECK(false, "a value of the enumeration");
}

// An algorithm is written, is one of the literature, or calls two operations one after the other.
struct MpiRow {
  Operation operation;
  std::string_view name;
  Cut cut = Cut::Ranks;
  void (*write)(MpiWriter& writer) = nullptr;
  Algorithm literature = nullptr;
  // Copies that a rank first makes in its memory: times the whole size, to where others read it,
  // and times a block, to where they do not.
  int wholes = 0;
  int blocks = 0;
  struct Part {
    Operation operation = Operation::Reduce;
    std::string_view name = {};  // Empty: the rules choose.
  };
  std::array<Part, 2> parts = {};
};

using enum Operation;
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
    MpiRow{
        .operation = AllGather, .name = "bruck", .literature = &kBruck, .wholes = 1, .blocks = 1},
    MpiRow{.operation = AllGather,
           .name = "recursive_doubling",
           .literature = &kRecursiveDoubling,
           .blocks = 1},
    MpiRow{.operation = AllGather, .name = "ring", .literature = &kRing, .blocks = 1},
    MpiRow{.operation = AllGather, .name = "neighbor", .write = write_neighbors, .blocks = 1},
    MpiRow{
        .operation = AllGather, .name = "two_proc", .literature = &kRecursiveDoubling, .blocks = 1},
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
           .blocks = 1},
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
           .blocks = 1},
    MpiRow{.operation = AllToAll,
           .name = "two_proc",
           .cut = Cut::Pairs,
           .literature = &kDirect,
           .blocks = 1},
    MpiRow{.operation = Gather, .name = "basic_linear", .write = gather<Linear>},
    MpiRow{.operation = Gather, .name = "binomial", .write = gather<InOrder>},
    MpiRow{.operation = Gather, .name = "linear_sync", .write = gather<Linear, true>},
    MpiRow{.operation = Scatter, .name = "basic_linear", .write = scatter<Linear>},
    MpiRow{.operation = Scatter, .name = "binomial", .write = scatter<InOrder>},
    MpiRow{.operation = Scatter, .name = "linear_nb", .write = scatter<Linear>},
};

const MpiRow* find_row(Operation operation, std::string_view name) {
  const auto* const found = std::ranges::find_if(
      kRows, [&](const MpiRow& row) { return row.operation == operation && row.name == name; });
  return found == kRows.end() ? nullptr : found;
}

// A case in which Open MPI's code of an algorithm calls that of another one.
struct Instead {
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
    Instead{AllReduce, "segmented_ring", "ring", always},
    Instead{AllReduce, "ring", "recursive_doubling", is_short},
    Instead{AllReduce, "rabenseifner", "basic_linear", is_below_power},
    Instead{Broadcast, "split_binary_tree", "chain", is_one},
    Instead{Broadcast, "scatter_allgather", "basic_linear", is_short},
    Instead{Reduce, "rabenseifner", "linear", is_below_power},
    Instead{AllGather, "recursive_doubling", "bruck", is_no_power},
    Instead{AllGather, "neighbor", "ring", is_odd},
};

}  // namespace

std::optional<std::string> mpi_algorithm(std::string_view name, const MpiCall& call) {
  constexpr std::int64_t kElement = 4;  // A float, as in nccl-tests.
  for (const Instead& instead : kInstead) {
    if (instead.operation == call.operation && instead.name == name &&
        instead.holds(call.ranks, call.size.count() / kElement)) {
      name = instead.other;
    }
  }
  const bool has_two = name == "two_proc";
  return find_row(call.operation, name) != nullptr && (!has_two || call.ranks <= 2)
             ? std::optional(std::string(name))
             : std::nullopt;
}

MpiCopies mpi_copies(std::string_view name, const MpiCall& call) {
  const MpiRow* const row = find_row(call.operation, name);
  CHECK(row != nullptr, "an algorithm with a schedule");
  return {.own = Bytes(call.size.count() / call.ranks * row->blocks),
          .shared = call.size * row->wholes};
}

std::unique_ptr<Schedule> mpi_schedule(std::string_view name, const MpiCall& call,
                                       const MpiRules& rules) {
  const MpiRow* const row = find_row(call.operation, name);
  CHECK(row != nullptr, "an algorithm with a schedule");
  MpiWriter writer(call);
  const std::uint32_t chunks = count_of(row->cut, writer.ranks());
  if (row->write != nullptr) {
    row->write(writer);
  } else if (row->literature != nullptr) {
    writer.embed(*make_schedule(row->literature, call.operation,
                                {.layout = flat_layout(call.ranks, 1), .root = call.root}),
                 chunks);
  } else {
    for (const MpiRow::Part& part : row->parts) {
      const MpiCall inner{.operation = part.operation, .ranks = call.ranks, .size = call.size};
      const std::string& wanted = part.name.empty()
                                      ? rules.choose(inner.operation, inner.ranks, inner.size)
                                      : std::string(part.name);
      writer.embed(*mpi_schedule(mpi_algorithm(wanted, inner).value(), inner, rules), chunks);
    }
  }
  return writer.finish(name, chunks);
}

}  // namespace trainyard
