// SPDX-License-Identifier: Apache-2.0
// Hosts spend these times on messages, whatever the transport is; docs/models/tcp.md has their
// sources.
#pragma once

#include "sim/units.h"

namespace trainyard {

// Interrupt, scheduler and an idle core lie between data in memory and the thread that runs:
// 53,509 transactions a second of TCP_RR (Linux, commit 7ae92ae588c9, 2015), less all the rest.
inline constexpr SimTime kWake = nanoseconds(4333);

}  // namespace trainyard
