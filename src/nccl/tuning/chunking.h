// SPDX-License-Identifier: Apache-2.0
// Decides how the bytes of one call are cut into channels and chunks (NVIDIA/nccl, src/enqueue.cc,
// scheduleCollTasksToPlan and calcCollChunking; src/include/collectives.h, device.h).
#pragma once

#include <cstdint>
#include <vector>

#include "nccl/tuning/call_plan.h"
#include "nccl/tuning/communicator.h"
#include "nccl/types/environment.h"
#include "nccl/types/types.h"
#include "sim/units.h"

namespace trainyard::nccl {

inline constexpr int kFifoSteps = 8;  // NCCL_STEPS

// DIVUP
[[nodiscard]] constexpr std::int64_t divide_up(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}
[[nodiscard]] constexpr int divide_up(int value, int divisor) {
  return (value + divisor - 1) / divisor;
}

// Multiple of which a chunk is, in bytes of data.
[[nodiscard]] Bytes grain(Protocol protocol);

// Data that one step of a connection's FIFO holds.
[[nodiscard]] Bytes step_bytes(Algorithm algorithm, Protocol protocol,
                               const Communicator& communicator, const Environment& environment);

// Steps that a chunk takes, and slices into which it is cut.
struct ChunkShape {
  int steps = 1;
  int slices = 1;
};
[[nodiscard]] ChunkShape chunk_shape(Function function, Algorithm algorithm, Protocol protocol);

// The channels of a part where each has its own range of bytes; `channels` at most. The sum of all
// parts is `bytes`.
[[nodiscard]] std::vector<ChannelPart> split_over_channels(Function function, Protocol protocol,
                                                           Bytes bytes, int channels,
                                                           const Communicator& communicator);

// The chunk for a range of `bytes` (as in ChannelPart) over which `channels` work together.
[[nodiscard]] Bytes chunk_bytes(Function function, Algorithm algorithm, Protocol protocol,
                                Bytes bytes, int channels, const Communicator& communicator,
                                const Environment& environment);

}  // namespace trainyard::nccl
