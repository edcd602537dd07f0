// SPDX-License-Identifier: Apache-2.0
#include "cli/compare/compare.h"

#include <spdlog/fmt/fmt.h>

#include <boost/program_options.hpp>
#include <filesystem>
#include <optional>
#include <ostream>
#include <string_view>
#include <utility>

#include "cli/common/common.h"
#include "cli/common/options.h"
#include "cli/compare/compare_files.h"
#include "cli/compare/compare_runs.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

namespace options = boost::program_options;

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

options::options_description compare_options() {
  options::options_description all("Options");
  auto add = all.add_options();
  add("help", "this text");
  add("against", text_value("FILE"), "a trace of PyTorch's profiler, instead of B");
  add("steps", text_value("N"), "steps that the trace is of (default 1)");
  add_output_options(all);
  return all;
}

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
  if (steps && !trace) {
    throw ConfigError("--steps: expected --against FILE beside it, found none");
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

}  // namespace

int run_compare(std::span<const std::string> arguments, std::ostream& out) {
  const options::variables_map values =
      parse_options("compare", arguments, compare_options(), {"a", "b"});
  const OptionReader reader("compare", values);
  if (reader.given("help")) {
    out << "trainyard compare A B [options]\ntrainyard compare A --against TRACE [options]\n\n"
        << compare_options() << kExample;
    return 0;
  }
  const Format format = output_format(reader);
  const std::optional<std::string> output = output_file(reader, "output");
  write_output(output, render(document_of(compared(reader)), format), out);
  return 0;
}

}  // namespace trainyard
