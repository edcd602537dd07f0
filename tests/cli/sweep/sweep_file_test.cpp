// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/sweep/sweep_file.h"

#include <string>
#include <vector>

#include "sim/config_error.h"

namespace trainyard {
namespace {

SweepSpec read(const std::string& text) {
  ConfigDocument document = ConfigDocument::parse(text, "my.yaml");
  const std::vector<Command> commands{{.name = "collective", .arguments = {{.name = "operation"}}},
                                      {.name = "step"}};
  return read_sweep(document, commands);
}

// Of a file with this below `vary`.
std::string refusal(const std::string& vary) {
  try {
    (void)read("title: t\ncommand: step\noptions: {nodes: 4}\nvary: " + vary + "\n");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> values_of(const std::string& axis) {
  return read("title: t\ncommand: step\nvary: {a: " + axis + "}\n").groups[0][0].values;
}

}  // namespace

TEST_CASE("axes are combined, the last one changing first", "[sweep]") {
  const SweepSpec spec = read(R"(title: t
command: step
options:
  cluster: dgx-h100
  both-ways: true
  set: [a.b=1, c=2]
vary:
  nodes: [1, 2]
  set.plan.tensor: [4, 8]
)");
  REQUIRE(spec.points() == 4);
  REQUIRE(spec.keys() == std::vector<std::string>{"nodes", "set.plan.tensor"});
  REQUIRE(spec.values_at(1) == std::vector<std::string>{"1", "8"});
  REQUIRE(spec.values_at(2) == std::vector<std::string>{"2", "4"});
  REQUIRE(spec.arguments_at(3) ==
          std::vector<std::string>{"--cluster", "dgx-h100", "--both-ways", "--set", "a.b=1",
                                   "--set", "c=2", "--nodes", "2", "--set", "plan.tensor=8"});
}

TEST_CASE("what a command takes without a name is given without it", "[sweep]") {
  const SweepSpec spec = read(R"(title: t
command: collective
options: {cluster: dgx-h100}
vary: {operation: [all_reduce, broadcast]}
)");
  REQUIRE(spec.arguments_at(1) == std::vector<std::string>{"--cluster", "dgx-h100", "broadcast"});
}

TEST_CASE("axes of a group go together", "[sweep]") {
  const SweepSpec spec = read(R"(title: t
command: step
vary:
  - {nodes: [1, 2], set.batch.global: [64, 128]}
  - seed: [0, 1, 2]
)");
  REQUIRE(spec.points() == 6);
  REQUIRE(spec.values_at(0) == std::vector<std::string>{"1", "64", "0"});
  REQUIRE(spec.values_at(5) == std::vector<std::string>{"2", "128", "2"});
}

TEST_CASE("ranges go from one value to another", "[sweep]") {
  using Values = std::vector<std::string>;
  REQUIRE(values_of("{from: 1, to: 4, step: 1}") == Values{"1", "2", "3", "4"});
  REQUIRE(values_of("{from: 0, to: 0.3, step: 0.1}") == Values{"0", "0.1", "0.2", "0.3"});
  REQUIRE(values_of("{from: 1, to: 64, factor: 4}") == Values{"1", "4", "16", "64"});
  REQUIRE(values_of("{from: 100, to: 400, factor: 2, unit: ' Gb/s'}") ==
          Values{"100 Gb/s", "200 Gb/s", "400 Gb/s"});
}

TEST_CASE("a sweep file with a mistake is one line with its place", "[sweep]") {
  REQUIRE(refusal("{}") == "my.yaml:4:7: vary: expected options that vary, found none");
  REQUIRE(refusal("{seed: []}") ==
          "my.yaml:4:14: vary.seed: expected at least one value, found none");
  REQUIRE(refusal("{seed: 3}") ==
          "my.yaml:4:14: vary.seed: expected a list of values or a range {from, to, step}, found "
          "\"3\"");
  REQUIRE(refusal("{nodes: [1]}") == "my.yaml:4:7: vary: \"nodes\" stands in options already");
  REQUIRE(refusal("[{a: [1, 2], b: [1]}]") ==
          "my.yaml:4:23: vary[0].b: expected as many values as a, 2, found 1");
  REQUIRE(refusal("[{a: [1]}, {a: [2]}]") ==
          "my.yaml:4:7: vary: expected every option once, found \"a\" twice");
  REQUIRE(refusal("{a: {from: 1, to: 2}}") ==
          "my.yaml:4:11: vary.a: expected either step or factor, found none of them");
  REQUIRE(refusal("{a: {from: 1, to: 2, step: 0}}") ==
          "my.yaml:4:11: vary.a: expected a range that rises, found one that never ends");
  REQUIRE(refusal("{a: {from: 1, to: 1e9, step: 1}}").find("at most 1000000") != std::string::npos);
}

}  // namespace trainyard
