// SPDX-License-Identifier: Apache-2.0
#include "cli/explain/explain.h"

#include <array>
#include <ostream>
#include <string_view>
#include <vector>

#include "cli/common/options.h"
#include "cli/explain/explain_collective.h"
#include "cli/explain/explain_step.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::string_view kHelp = R"(trainyard explain step [options of trainyard step]
trainyard explain collective OP [options of trainyard collective]

Why it takes as long as it does: runs it again with each resource 10 % better and 10 % worse, and
says what the time follows and what does nothing, which links carry most and what of, which changes
would help most, and what the model leaves out. NCCL's choices are kept, so that the effect is that
of the resource alone. Sizes of a collective: the largest of those asked for in full, 1G if none is.
--threads N: runs at once (default: all cores); never changes a result.

Examples:
  trainyard explain step --cluster dgx-h100 --nodes 8 --workload mixtral-8x7b
  trainyard explain collective all_reduce --cluster dgx-h100 --nodes 4 --runtime nccl
  trainyard explain collective all_gather --cluster dgx-a100 --nodes 2 --algo ring -b 8K -e 8G -f 32
)";

}  // namespace

int run_explain(std::span<const std::string> arguments, std::ostream& out) {
  if (arguments.empty()) {
    throw ConfigError(
        "explain: expected step or collective, found none; see trainyard explain "
        "--help");
  }
  if (arguments[0] == "--help") {
    out << kHelp;
    return 0;
  }
  if (arguments[0] == "step") {
    return explain_step(arguments.subspan(1), out);
  }
  if (arguments[0] == "collective") {
    return explain_collective(arguments.subspan(1), out);
  }
  const std::array<std::string, 2> known{"step", "collective"};
  fail_value("explain", "step or collective", arguments[0], known);
}

}  // namespace trainyard
