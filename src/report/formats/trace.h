// SPDX-License-Identifier: Apache-2.0
// Writes recorded spans in the Chrome trace event format, which Perfetto and chrome://tracing open.
#pragma once

#include <string>

#include "sim/trace.h"
#include "sim/units.h"

namespace trainyard {

// Groups become processes, tracks their threads, in the order of add_track. Times are microseconds
// with all their picoseconds, as decimal text: no rounding through a double. Spans of bytes have
// their rate as an argument, and each category of them a counter of what all together carry.
[[nodiscard]] std::string chrome_trace(const TraceRecorder& recorder);

// "1.5" for 1500 ns, exact.
[[nodiscard]] std::string microseconds_text(SimTime time);

}  // namespace trainyard
