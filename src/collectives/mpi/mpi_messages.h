// SPDX-License-Identifier: Apache-2.0
// The messages of those algorithms of Open MPI and MPICH that are written out here (mpi_schedule.h
// says what each does). The chunks are those of the operation, or fewer: 1 for trees without blocks
// and M, the greatest power of two up to N, for Rabenseifner's.
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>

#include "collectives/hccl/written_schedule.h"
#include "collectives/mpi/mpi_call.h"
#include "collectives/mpi/mpi_tree.h"

namespace trainyard {

// A schedule being written: the call, and where its messages go.
class MpiWriter {
 public:
  using Rank = ScheduleWriter::Rank;
  using Chunks = ScheduleWriter::Chunks;

  explicit MpiWriter(const MpiCall& call)
      : call_(call),
        ranks_(static_cast<Rank>(call.ranks)),
        root_(call.root.value()),
        writer_(ranks_) {}

  // Chunks in a row.
  [[nodiscard]] static Chunks span(std::uint32_t first, std::uint32_t count) {
    Chunks chunks(count);
    std::iota(chunks.begin(), chunks.end(), first);
    return chunks;
  }
  [[nodiscard]] Rank ranks() const { return ranks_; }
  [[nodiscard]] Rank root() const { return root_; }
  [[nodiscard]] const MpiCall& call() const { return call_; }

  void send(Rank from, Rank to, const Chunks& chunks) { writer_.send(from, to, chunks); }
  void take(StepKind kind, Rank from, Rank to, const Chunks& chunks) {
    writer_.take(kind, from, to, chunks);
  }
  // Does what MPI_Sendrecv does at `self`.
  void swap(Rank self, Rank other, const Chunks& sent, StepKind kind, const Chunks& taken) {
    send(self, other, sent);
    take(kind, other, self, taken);
  }
  // All ranks run this, on chunks of which each stands for equally many of the `chunks` here.
  void embed(const Schedule& inner, std::uint32_t chunks);
  std::unique_ptr<Schedule> finish(std::string_view name, std::uint32_t chunks) {
    return writer_.finish(call_.operation, std::string(name), chunks, root_);
  }

 private:
  MpiCall call_;
  Rank ranks_;
  Rank root_;
  ScheduleWriter writer_;
};

// Along a tree, to all or from all; one chunk.
void write_down(MpiWriter& writer, MpiTreeKind kind);
void write_up(MpiWriter& writer, MpiTreeKind kind);
// Blocks of a tree; with `asks` the root asks for each.
void write_gather(MpiWriter& writer, MpiTreeKind kind, bool asks);
void write_scatter(MpiWriter& writer, MpiTreeKind kind);

void write_rabenseifner(MpiWriter& writer);              // M chunks.
void write_reduce_scatter_allgather(MpiWriter& writer);  // The same.
void write_reduce_scatter_gather(MpiWriter& writer);     // The same.
void write_butterfly(MpiWriter& writer);
void write_neighbors(MpiWriter& writer);  // An even number of ranks.
void write_split(MpiWriter& writer);      // Two chunks.
void write_scatter_allgather(MpiWriter& writer);
void write_scatter_ring(MpiWriter& writer);
void write_pairwise_sums(MpiWriter& writer);
void write_pairwise_exchange(MpiWriter& writer);  // A chunk for each pair of ranks.
void write_scattered(MpiWriter& writer);          // The same.

}  // namespace trainyard
