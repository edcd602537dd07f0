// SPDX-License-Identifier: Apache-2.0
#include "cli/explain/explain.h"

#include "cli/common/commands.h"

namespace trainyard {
namespace {

constexpr std::string_view kExample =
    "Why it takes as long as it does: runs it again with each resource 10 % better and 10 % worse, "
    "and"
    R"(
says what the time follows and what does nothing, which links carry most and what of, which changes
would help most, and what the model leaves out. NCCL's choices are kept, so that the effect is that
of the resource alone. Sizes of a collective: the largest of those asked for in full, 1G if none is.
--threads N: runs at once (default: all cores); never changes a result.

Examples:
  trainyard explain step --cluster dgx-h100 --nodes 8 --workload mixtral-8x7b
  trainyard explain collective all_reduce --cluster dgx-h100 --nodes 4
  trainyard explain collective all_gather --cluster dgx-a100 --nodes 2 --runtime plain --algo bruck
)";

}  // namespace

Command explain_command() {
  return {.name = "explain",
          .form = "explain step|collective",
          .summary = "which resources the time follows, and what would help",
          .usage =
              "explain step [options of trainyard step]\n"
              "trainyard explain collective OP [options of trainyard collective]",
          .example = kExample,
          .parts = {explain_step(), explain_collective()}};
}

}  // namespace trainyard
