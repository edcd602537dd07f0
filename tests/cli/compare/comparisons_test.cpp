// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/compare/comparisons.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "sim/printable.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

class ResultFolder {
 public:
  std::string step(const std::string& name, std::vector<std::string> more) {
    std::vector<std::string> arguments{"--cluster",  "dgx-h100",     "--nodes",  "8",
                                       "--workload", "mixtral-8x7b", "--format", "json",
                                       "--output",   file(name)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::ostringstream out;
    REQUIRE(run_command(step_command(), arguments, out) == 0);
    return file(name);
  }
  std::string collective(const std::string& name, const std::string& min) {
    std::ostringstream out;
    REQUIRE(run_command(collective_command(),
                        std::vector<std::string>{"all_reduce", "--cluster", "dgx-h100", "--runtime",
                                                 "plain", "--nodes", "2", "--algo", "ring,tree",
                                                 "-b", min, "-e", "8M", "-f", "4", "--format",
                                                 "json", "--output", file(name)},
                        out) == 0);
    return file(name);
  }
  std::string text(const std::string& name, const std::string& content) {
    return folder_.write(name, content).string();
  }

 private:
  [[nodiscard]] std::string file(const std::string& name) const {
    return (folder_.path() / name).string();
  }
  ScratchFolder folder_;
};

std::string problem_of(const std::string& before, const std::string& after) {
  try {
    (void)compare_results(before, after);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

bool has_key(const std::vector<ComparedValue>& values, const std::string& key) {
  return std::any_of(values.begin(), values.end(),
                     [&](const ComparedValue& value) { return value.key == key; });
}

}  // namespace

TEST_CASE("differences of the parts of two steps add up to that of the step", "[compare-runs]") {
  ResultFolder folder;
  const std::string before = folder.step("a.json", {});
  const std::string after =
      folder.step("b.json", {"--set", "overlap.data=false", "--set", "fabric.cable=40 m"});
  const RunComparison made = compare_results(before, after);
  REQUIRE(made.times.size() == 1);
  SimTime sum;
  for (const ComparedPart& part : made.times[0].parts) {
    sum += part.after - part.before;
  }
  REQUIRE(sum == made.times[0].after - made.times[0].before);
  REQUIRE(sum != SimTime());
  REQUIRE(made.inputs.size() == 3);
  REQUIRE(made.inputs[0].key == "overlap.data");
  REQUIRE(made.inputs[1].key == "--set fabric.cable");
  REQUIRE(made.resources.empty());
  REQUIRE(!made.figures.empty());
  const RunComparison same = compare_results(before, before);
  REQUIRE(same.inputs.empty());
  REQUIRE(same.figures.empty());
}

TEST_CASE("what decides a step and is in no setting is compared too", "[compare-runs][long]") {
  ResultFolder folder;
  const std::string before = folder.step("a.json", {});
  const auto changed = [&](const std::vector<std::string>& more) {
    std::vector<std::string> keys;
    for (const ComparedValue& each : compare_results(before, folder.step("b.json", more)).inputs) {
      keys.push_back(each.key);
    }
    return keys;
  };
  REQUIRE(changed({"--method", "graph"}) == std::vector<std::string>{"method", "traffic"});
  REQUIRE(changed({"--set", "plan.recompute=full"}) ==
          std::vector<std::string>{"plan.recompute", "--set plan.recompute"});
  REQUIRE(changed({"--set", "routing.imbalance=1.5"}) ==
          std::vector<std::string>{"routing.imbalance", "--set routing.imbalance"});
  REQUIRE(changed({"--nccl-version", "2.27.7"}) ==
          std::vector<std::string>{"options.nccl_version"});
  REQUIRE(changed({"--pull", "server0/nic0"}) == std::vector<std::string>{"options.pull"});
}

TEST_CASE("as many GPUs on more servers are another machine", "[compare-runs]") {
  ResultFolder folder;
  const RunComparison comparison =
      compare_results(folder.step("a.json", {"--gpus-per-node", "8"}),
                      folder.step("b.json", {"--gpus-per-node", "4", "--set", "plan.tensor=4"}));
  const auto has = [&](const std::string& key, const std::string& after) {
    return std::any_of(
        comparison.inputs.begin(), comparison.inputs.end(),
        [&](const ComparedValue& each) { return each.key == key && each.after == after; });
  };
  REQUIRE(has("gpus", "32"));
  REQUIRE(has("options.gpus_per_node", "4"));
}

TEST_CASE("collectives are compared size by size, the fastest of each", "[compare-runs]") {
  ResultFolder folder;
  const std::string before = folder.collective("a.json", "2M");
  const std::string after = folder.collective("b.json", "8M");
  const RunComparison made = compare_results(before, after);
  REQUIRE(made.times.size() == 1);
  REQUIRE(made.times[0].label == "8MiB");
  REQUIRE(made.times[0].before == made.times[0].after);
  REQUIRE(made.notes.size() == 1);
  REQUIRE(problem_of(before, folder.step("c.json", {})) ==
          "compare: expected two results of one command, found a step and a collective");
}

TEST_CASE("a step is compared with a trace in three parts that add up", "[compare-runs]") {
  ResultFolder folder;
  const RunComparison made = compare_with_trace(
      folder.step("a.json", {}),
      source_dir().string() + "/configs/workloads/imported/kineto-2/trace.0.json", 1);
  const ComparedTime& step = made.times.front();
  REQUIRE(step.parts.size() == 3);
  SimTime before;
  SimTime after;
  for (const ComparedPart& part : step.parts) {
    before += part.before;
    after += part.after;
  }
  REQUIRE(before == step.before);
  REQUIRE(after == step.after);
  REQUIRE(step.parts[0].after > SimTime());
}

TEST_CASE("results that are none, or do not add up, are refused", "[compare-runs]") {
  ResultFolder folder;
  const std::string text = folder.text("a.json", "no JSON");
  REQUIRE(problem_of(text, text).find("expected JSON") != std::string::npos);
  const std::string other = folder.text("b.json", R"({"a": 1})");
  REQUIRE(problem_of(other, other) ==
          other +
              ": breakdown_ps: expected a result of trainyard step or collective with "
              "--format json, found none");
  const std::string wrong =
      folder.text("c.json", R"({"step_time_ps": 5, "breakdown_ps": {"linear": 4}})");
  REQUIRE(problem_of(wrong, wrong) ==
          wrong + ": breakdown_ps: expected parts that add up to 5 ps, found 4 ps");
  const std::string half =
      folder.text("d.json", R"({"step_time_ps": 5.5, "breakdown_ps": {"linear": 4}})");
  REQUIRE(problem_of(half, half) ==
          half +
              ": step_time_ps: expected a whole number of picoseconds from 1 to "
              "4000000000000000000, found 5.5");
}

TEST_CASE("figures that are no numbers are refused with their place", "[compare-runs]") {
  ResultFolder folder;
  for (const std::string figure : {"nan", "-nan GB/s", "inf", "-Inf GB/s"}) {
    const std::string file =
        folder.text("a.json", R"({"breakdown_ps": {}, "resources": {"nics": ")" + figure + "\"}}");
    REQUIRE(problem_of(file, file) ==
            file + ": resources.nics: expected a number, found \"" + lower_case(figure) + "\"");
  }
  const std::string bare = folder.text("b.json", R"({"step_time_ps": NaN})");
  REQUIRE(problem_of(bare, bare).starts_with(bare + ":1:18: expected JSON, found "));
}

TEST_CASE("times that no run has are refused, not added up", "[compare-runs]") {
  ResultFolder folder;
  const auto collective = [&](const std::string& time) {
    const std::string file = folder.text(
        "a.json",
        R"({"operation": "all_reduce", "rows": [{"size_bytes": 8, "time_us": )" + time + "}]}");
    const std::string problem = problem_of(file, file);
    return problem == "no error" ? problem : problem.substr(problem.find(": ") + 2);
  };
  REQUIRE(collective("0.25") == "no error");
  REQUIRE(collective("4e12") == "no error");
  for (const std::string time : {"1e300", "1e+13", "-5", "0", "1e-07"}) {
    INFO(time);
    REQUIRE(collective(time).starts_with("time_us: expected a time from 1e-06 to 4e+12, found "));
  }
  const auto step = [&](const std::string& time, const std::string& parts) {
    const std::string file = folder.text(
        "b.json", R"({"step_time_ps": )" + time + R"(, "breakdown_ps": )" + parts + "}");
    const std::string problem = problem_of(file, file);
    return problem == "no error" ? problem : problem.substr(problem.find(": ") + 2);
  };
  REQUIRE(step("5", R"({"linear": 4, "head": 1})") == "no error");
  REQUIRE(step("9223372036854775807", R"({"linear": 9223372036854775807})") ==
          "step_time_ps: expected a whole number of picoseconds from 1 to 4000000000000000000, "
          "found 9223372036854775807");
  REQUIRE(step("5", R"({"linear": 4, "head": 9223372036854775807})") ==
          "breakdown_ps.head: expected a whole number of picoseconds from 0 to 5, found "
          "9223372036854775807");
  REQUIRE(step("5", R"({"linear": 4, "head": 4, "host": 4})") ==
          "breakdown_ps: expected parts that add up to 5 ps, found more");
  REQUIRE(step("0", R"({"linear": 0})").starts_with("step_time_ps: expected a whole number"));
}

TEST_CASE("two clusters differ in keys and in what their links come to", "[compare-files]") {
  const RunComparison made = compare_files("dgx-a100", "dgx-h100");
  REQUIRE(has_key(made.inputs, "server"));
  REQUIRE(has_key(made.resources, "nvlink"));
  REQUIRE(!has_key(made.inputs, "fabric.template"));
  REQUIRE(made.times.empty());
}

TEST_CASE("a file does not differ from itself, nor is a cluster a workload", "[compare-files]") {
  const RunComparison same = compare_files("llama-3-8b", "llama-3-8b");
  REQUIRE(same.inputs.empty());
  REQUIRE(same.what == "workloads");
  REQUIRE(has_key(compare_files("llama-3-8b", "llama-3-405b").inputs, "plan.tensor"));
  REQUIRE_THROWS_AS(compare_files("llama-3-8b", "dgx-a100"), ConfigError);
  REQUIRE_THROWS_AS(compare_files("nobody", "dgx-a100"), ConfigError);
}

}  // namespace trainyard
