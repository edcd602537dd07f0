// SPDX-License-Identifier: Apache-2.0
// Writes what NCCL's kernels do in one channel as lanes for replay.h (NVIDIA/nccl, src/device:
// all_reduce.h, all_gather.h, reduce_scatter.h, broadcast.h, reduce.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "nccl/timing/replay.h"
#include "nccl/types/types.h"
#include "sim/units.h"

namespace trainyard::nccl {

// The rule by which a chunk is cut into units.
struct UnitRule {
  Protocol protocol = Protocol::Simple;
  // LL, LL128: bytes that the threads hold at once. Simple: the least size of a slice.
  Bytes quantum;
  int slices = 1;      // Simple: units of each chunk, the later ones perhaps empty.
  SimTime unit_cost;   // Cost of each unit beside its bytes, of Simple if it has any.
  SimTime empty_cost;  // Simple: cost of a unit without bytes.
  SimTime chunk_cost;  // Cost of each chunk, with its first unit.

  [[nodiscard]] std::uint64_t units(Bytes chunk) const;
  [[nodiscard]] Bytes bytes(Bytes chunk, std::uint64_t unit) const;
};

// The part of the data that one channel works on: chunks of equal size, then a smaller one.
struct ChunkLoops {
  std::uint64_t full = 0;  // Chunks of `chunk` bytes.
  Bytes chunk;
  Bytes rest;  // Bytes of the last; zero if there is none.
};

// A ring of `ranks` lets `bytes` (of all ranks together) go round in loops of ranks * chunk. The
// last loop has the least multiple of 16 bytes that is enough.
[[nodiscard]] ChunkLoops ring_loops(Bytes bytes, int ranks, Bytes chunk);
// A pipeline cuts its bytes into chunks.
[[nodiscard]] ChunkLoops pipeline_loops(Bytes bytes, Bytes chunk);

// A rank that goes through the loops with `primitives` for each. A rank of a ring has several, of
// which the first only sends and the last only receives: 2 ranks - 1 of them for AllReduce, as
// many as ranks for AllGather and ReduceScatter. One that passes on chunk after chunk, as part of
// a chain or of one direction of a tree, has one.
[[nodiscard]] std::unique_ptr<LaneProgram> loop_program(int primitives, const ChunkLoops& loops,
                                                        const UnitRule& rule, const Ends& receives,
                                                        const Ends& sends);

// One send or receive: `bytes` in messages, these in units, over a connection of its own.
struct TransferJob {
  std::uint32_t connection = 0;
  Bytes bytes = {};
  Bytes message = {};
  Bytes unit;                      // Divides the message.
  SimTime cost = {};               // Cost of each unit beside its bytes.
  Bandwidth rate = kMaxBandwidth;  // Rate of its copies.
  [[nodiscard]] std::uint64_t units() const;
};

// Returns the program of a group of warps that runs the sends or receives of its block, one after
// the other.
[[nodiscard]] std::unique_ptr<LaneProgram> transfer_program(std::vector<TransferJob> jobs,
                                                            bool sends);

}  // namespace trainyard::nccl
