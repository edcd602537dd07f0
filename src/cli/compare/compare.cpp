// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <optional>
#include <ostream>
#include <string_view>

#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/html_output.h"
#include "cli/common/options.h"
#include "cli/compare/comparisons.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr std::string_view kExample = R"(
A and B are both results of trainyard step or of trainyard collective with --format json, or both
files or names of clusters, or of workloads. With --against A is the result of a step, and what it
is compared with is a trace of PyTorch's profiler of one rank.

Examples:
  trainyard step --cluster superpod-a100 --nodes 128 --workload gpt-3-175b \
      --format json --output a.json
  trainyard compare a.json b.json
  trainyard compare dgx-a100 dgx-h100
  trainyard compare a.json --against rank0.pt.trace.json --steps 3
)";

bool is_result(const std::string& name) {
  return std::filesystem::path(name).extension() == ".json";
}

RunComparison compared(const OptionReader& reader) {
  const std::string before = reader.text("a").value_or("");
  const std::optional<std::string> after = reader.text("b");
  const std::optional<std::string> trace = reader.text("against");
  const std::optional<int> steps = reader.integer("steps", 1, 1'000'000);
  if (before.empty() || after.has_value() == trace.has_value()) {
    throw ConfigError(
        fmt::format("compare: expected A and B, or A and --against FILE, found {}; see trainyard "
                    "compare --help",
                    before.empty() ? "neither"
                    : after        ? "all three"
                                   : "A alone"));
  }
  if (trace) {
    return compare_with_trace(before, *trace, steps.value_or(1));
  }
  if (is_result(before) != is_result(*after)) {
    throw ConfigError("compare: expected two results (.json) or two files, found " + before +
                      " and " + *after);
  }
  return is_result(before) ? compare_results(before, *after) : compare_files(before, *after);
}

int run_compare(const OptionReader& reader, std::ostream& out) {
  const ResultTarget target = result_target(reader);
  write_result(target, with_effects(reader, document_of(compared(reader)), RunCounts()), out);
  return 0;
}

}  // namespace

Command compare_command() {
  return {
      .name = "compare",
      .form = "compare A B",
      .summary = "what differs between two results, two files, a step and its trace",
      .usage = "compare A B [options]\ntrainyard compare A --against TRACE [options]",
      .arguments = {{.name = "a", .traits = {.role = Role::Input, .names = "clusters workloads"}},
                    {.name = "b", .traits = {.role = Role::Input, .names = "clusters workloads"}}},
      .options = joined(
          {Options{{"against", "FILE", "a trace of PyTorch's profiler, instead of B", kInput},
                   {"steps", "N", "steps that the trace is of (default 1)", {.needs = "against"}}},
           output_options()}),
      .example = kExample,
      .run = run_compare};
}

}  // namespace trainyard
