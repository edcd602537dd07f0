// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/serve/run_request.h"

#include <string>
#include <vector>

#include "sim/config_error.h"

namespace trainyard {
namespace {

std::string error_of(const std::string& body) {
  try {
    static_cast<void>(read_run_request(body));
    return "";
  } catch (const ConfigError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("the words of a request are those of the run, with its form and lines about progress",
          "[serve]") {
  const RunRequest step = read_run_request(
      R"({"words": ["step", "--cluster", "dgx-h100", "--set", "plan.tensor=4", "--costs"]})");
  REQUIRE(step.arguments("r.html") ==
          std::vector<std::string>{"step", "--cluster", "dgx-h100", "--set", "plan.tensor=4",
                                   "--costs", "--format", "json", "--log-level", "info"});
  const RunRequest csv = read_run_request(
      R"({"words": ["explain", "step", "--cluster", "x", "--log-level", "off"], "form": "csv"})");
  REQUIRE(csv.arguments("r.html") == std::vector<std::string>{"explain", "step", "--cluster", "x",
                                                              "--log-level", "off", "--format",
                                                              "csv"});
  const RunRequest report = read_run_request(
      R"({"words": ["collective", "all_reduce", "--cluster=x"], "form": "report"})");
  REQUIRE(report.arguments("r.html") == std::vector<std::string>{"collective", "all_reduce",
                                                                 "--cluster=x", "--report",
                                                                 "r.html", "--log-level", "info"});
}

TEST_CASE("requests that are no run get one line each", "[serve]") {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "expected an object of JSON, found something else"},
      {"[1]", "expected an object of JSON, found something else"},
      {"{\"words\": [\"step\"", "expected an object of JSON, found something else"},
      {"{}", "words: expected a list of at most 200 texts"},
      {R"({"words": "step"})", "words: expected a list of at most 200 texts"},
      {R"({"words": ["step", 1]})", "words: expected a list of at most 200 texts"},
      {R"({"words": ["step"], "more": 1})",
       "request: expected the keys words and form, found \"more\""},
      {R"({"words": ["step"], "form": "xml"})",
       "form: expected json, csv, report, cluster or workload, found \"xml\""},
      {R"({"words": ["step"], "form": 1})",
       "form: expected json, csv, report, cluster or workload, found \"\""},
      {R"({"words": []})",
       "words: expected step, collective, search, traffic, cost, explain step or explain "
       "collective, found \"\""},
      {R"({"words": ["explain", "x"]})",
       "words: expected step, collective, search, traffic, cost, explain step or explain "
       "collective, found \"explain\""},
      {R"({"words": ["step", "--clutser", "x"]})",
       "step: unknown option \"--clutser\"; did you mean \"--cluster\"?"},
      {R"({"words": ["step", "--help"]})", "--help: expected no option of results and their form"},
      {R"({"words": ["step", "--output", "x"]})",
       "--output: expected no option of results and their form"},
      {R"({"words": ["step", "-ox"]})", "--output: expected no option of results and their form"},
      {R"({"words": ["step", "--trace", "x", "--method", "graph"]})",
       "--trace: expected no option of results and their form"},
      {R"({"words": ["step", "--cluster", "../x.yaml"]})",
       "--cluster: expected no path out of the work folder, found \"../x.yaml\""},
      {R"({"words": ["step", "--set", "server=/etc/passwd"]})",
       "--set: expected no path that begins with a slash, found \"server=/etc/passwd\""},
      {R"({"words": ["traffic", "/etc/passwd"]})",
       "file: expected no path that begins with a slash, found \"/etc/passwd\""}};
  for (const auto& [body, error] : cases) {
    INFO(body);
    REQUIRE(error_of(body) == error);
  }
  std::string many = R"({"words": ["step")";
  for (int index = 0; index < 200; ++index) {
    many += R"(, "--costs")";
  }
  REQUIRE(error_of(many + "]}") == "words: expected a list of at most 200 texts");
}

TEST_CASE("no command that a page may run has an option that writes a file", "[serve]") {
  for (const Command& command : served_commands()) {
    for (const Option& option : command.options) {
      INFO(command.name << ": " << option.name);
      const bool writes = option.help.find("write") != std::string_view::npos;
      REQUIRE((!is_served(option) || !writes || option.traits.role == Role::Input));
    }
    REQUIRE(command.find("format") != nullptr);
  }
}

}  // namespace trainyard
