// SPDX-License-Identifier: Apache-2.0
// The rows of all commands. Each is made in the file of its name; all_commands() lists them.
#pragma once

#include <vector>

#include "cli/common/option_table.h"

namespace trainyard {

[[nodiscard]] Command calibrate_command();
[[nodiscard]] Command check_command();
[[nodiscard]] Command parts_command();
[[nodiscard]] Command collective_command();
[[nodiscard]] Command compare_command();
[[nodiscard]] Command cost_command();
[[nodiscard]] Command doctor_command();
[[nodiscard]] Command explain_command();
[[nodiscard]] Command import_command();
[[nodiscard]] Command jobs_command();
[[nodiscard]] Command plan_command();
[[nodiscard]] Command search_command();
[[nodiscard]] Command serve_command();
[[nodiscard]] Command step_command();
[[nodiscard]] Command sweep_command();
[[nodiscard]] Command topology_command();
[[nodiscard]] Command traffic_command();
[[nodiscard]] Command transfer_command();
[[nodiscard]] Command validate_command();

// The parts of explain_command().
[[nodiscard]] Command explain_collective();
[[nodiscard]] Command explain_step();

// In the order of the help of the program.
[[nodiscard]] std::vector<Command> all_commands();

}  // namespace trainyard
