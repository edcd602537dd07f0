// SPDX-License-Identifier: Apache-2.0
// Describes what NCCL decides for one call: algorithm, protocol, channels, threads, and how the
// bytes are cut.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nccl/types/types.h"
#include "sim/units.h"

namespace trainyard::nccl {

// One consecutive part of the payload and how a channel walks through it. `chunk` counts bytes of
// user data of one step of the algorithm: of a ring the part of one rank in one loop.
struct ChannelPart {
  int channels = 0;  // Channels that have a part of this size, one behind the other.
  // Bytes of one channel, in terms of `CallPlan::bytes` (AllGather and ReduceScatter: per rank).
  Bytes bytes;
  Bytes chunk;
};

// A row of the tuner's table for this call.
struct CostRow {
  Algorithm algorithm = Algorithm::Ring;
  Protocol protocol = Protocol::Simple;
  std::optional<double> time_us = {};  // Nothing: not available.
};

struct CallPlan {
  Function function = Function::AllReduce;
  Algorithm algorithm = Algorithm::Ring;
  Protocol protocol = Protocol::Simple;
  double time_us = 0.0;  // NCCL's own estimate: for choosing, never a prediction.
  Bytes bytes;           // count * size of an element; AllGather and ReduceScatter: of one rank.
  int channels = 0;      // Channels that carry data.
  int threads = 0;       // Threads of one channel's block.
  int slices = 1;        // Parts of a chunk that are signalled one by one.
  Bytes step;            // Data bytes of one of the eight steps of a connection's FIFO.
  int chunk_steps = 1;   // Steps that a chunk takes.
  // First channel, middle ones, last one; those that exist. Where all channels share one loop
  // (CollNet), a single part with the bytes of the whole.
  std::vector<ChannelPart> parts = {};
  std::vector<CostRow> costs = {};  // All that were compared, in NCCL's order.
  std::string reason = {};          // Why this one: the runner-up and its time, or what forced it.
};

}  // namespace trainyard::nccl
