// SPDX-License-Identifier: Apache-2.0
// A plan of MSCCL++ as a schedule: lanes are thread blocks, and behind these the memory of the GPUs
// that they reach, chunks are places in the buffers as with MSCCL (msccl_schedule.h).
//
// A thread block writes to the memory of another GPU over a connection of its own. At its end a
// lane of that GPU takes the messages in their order and stores them: what waits there waits for
// that lane. A signal is a message without bytes on the same connection, so that it follows what
// was put; behind a barrier it follows also what the other thread blocks had put. A read is a
// message without bytes to a lane that answers with the data. Who reads packets waits for the
// message that writes them. The whole message is one pass, and the flags of packets have no bytes.
#pragma once

#include <memory>
#include <string>

#include "collectives/msccl/mscclpp_plan.h"
#include "collectives/schedule/schedule.h"

namespace trainyard {

// Checks and proves it. `name` represents the file in errors. Throws ConfigError "NAME: PLACE: ..."
// for a wait without its signal, an acquire without its release, a channel or semaphore that
// several thread blocks use one end of, packets that nothing writes or that are written twice, and
// whatever the prover finds (semantics.h).
[[nodiscard]] std::unique_ptr<Schedule> mscclpp_schedule(const MscclppPlan& plan,
                                                         const std::string& name);

}  // namespace trainyard
