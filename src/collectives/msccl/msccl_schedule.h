// SPDX-License-Identifier: Apache-2.0
// An MSCCL algorithm as a schedule: lanes are thread blocks, chunks are places in the buffers.
//
// A rank has places for its input, its output and its scratch chunks, of which `inplace` makes
// input and output share some as NCCL's collectives do: all of them for allreduce, broadcast and
// reduce, the own part for allgather and reduce_scatter. A connection is a pair of GPUs and a
// channel. Steps of the file become one to four steps of ours:
//   r, cpy, re         Receive, Copy, Add;              s        Send of the source
//   rrc (source is target)   Reduce;                    rcs, rrcs    the same as r, rrc; Send
//   rrs, rrc otherwise Receive into a place of the thread block's own, Add the source, then Send it
//                      or Copy it to the target
// each after a Wait if it depends on a step of another thread block. The whole message is one loop:
// the runtime would cut long ones into loops of a few megabytes each.
#pragma once

#include <memory>
#include <string>

#include "collectives/msccl/msccl_xml.h"
#include "collectives/schedule/schedule.h"

namespace trainyard {

// Checks and proves it. `name` represents the file in errors. Throws ConfigError "NAME:LINE:COLUMN:
// ELEMENT: ..." for a chunk or peer out of range, a thread block without the peer that it needs,
// two that send to or receive from one peer on one channel, a dependency on a step that does not
// exist or does not signal (hasdep), and whatever the prover finds (semantics.h).
[[nodiscard]] std::unique_ptr<Schedule> msccl_schedule(const MscclAlgorithm& algorithm,
                                                       const std::string& name);

}  // namespace trainyard
