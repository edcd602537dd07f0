// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

namespace trainyard {

std::vector<Command> all_commands() {
  return {collective_command(), step_command(),   search_command(),    explain_command(),
          compare_command(),    cost_command(),   jobs_command(),      plan_command(),
          doctor_command(),     sweep_command(),  traffic_command(),   transfer_command(),
          topology_command(),   import_command(), calibrate_command(), validate_command(),
          check_command(),      parts_command(),  serve_command()};
}

}  // namespace trainyard
