// SPDX-License-Identifier: Apache-2.0
// trainyard-calibrate, whatever the backend.
#pragma once

#include "calibrate/backend.h"

namespace trainyard::calibrate {

// What main returns: 0, 1 if something failed or timed out, 2 and one line on standard error for
// wrong use, 3 for our own mistakes.
[[nodiscard]] int run_program(int argc, char** argv, Backend& backend);

}  // namespace trainyard::calibrate
