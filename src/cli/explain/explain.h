// SPDX-License-Identifier: Apache-2.0
// The parts of `trainyard explain`: why a step or a collective takes as long as it does.
#pragma once

#include "cli/common/option_table.h"

namespace trainyard {

[[nodiscard]] Command explain_step();
[[nodiscard]] Command explain_collective();

}  // namespace trainyard
