// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/case_files.h"
#include "support/paths.h"

namespace trainyard {
namespace {

struct Ran {
  int status = 0;
  std::string output;
};

Ran run(const CaseFolder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--cases", folder.cases().string(), "--log-level", "off"});
  std::ostringstream out;
  const int status = run_command(validate_command(), arguments, out);
  return {.status = status, .output = out.str()};
}

class TwoCases : public CaseFolder {
 public:
  TwoCases() {
    (void)add("first", "class: a\n");
    (void)add("second", "class: b\nexclude_rows: [{to: 1K, reason: r}]\n");
  }
};

TEST_CASE("validate scores the cases of a folder in the order of their names") {
  const TwoCases folder;
  const auto json = nlohmann::json::parse(run(folder, {"--format", "json"}).output);
  REQUIRE(json["summary"]["covered"] == 2);
  REQUIRE(json["cases"][0]["case"] == "first");
  REQUIRE(json["cases"][1]["case"] == "second");
  REQUIRE(json["cases"][1]["excluded_rows"] == 1);
  REQUIRE(run(folder, {}).output == run(folder, {"--threads", "1"}).output);
  const auto one = nlohmann::json::parse(run(folder, {"--format", "json", "--only", "sec"}).output);
  REQUIRE(one["cases"].size() == 1);
  const auto of_class =
      nlohmann::json::parse(run(folder, {"--format", "json", "--only", "a"}).output);
  REQUIRE(of_class["cases"].size() == 1);
  REQUIRE(of_class["cases"][0]["case"] == "first");
}

TEST_CASE("validate --leave-one-out fits to the other systems of the folder, whatever is shown",
          "[long]") {
  const TwoCases folder;
  const auto json =
      nlohmann::json::parse(run(folder, {"--format", "json", "--leave-one-out"}).output);
  REQUIRE(json["systems"].size() == 2);
  REQUIRE(json["summary"]["leave_one_out"]["covered"] == 2);
  // Both are the same table of the same machine, so that leaving one out leaves the other.
  const auto one = nlohmann::json::parse(
      run(folder, {"--format", "json", "--leave-one-out", "--only", "second"}).output);
  REQUIRE(one["cases"].size() == 1);
  REQUIRE(one["systems"].size() == 1);
  REQUIRE(one["systems"][0]["leave_one_out"] == json["systems"][1]["leave_one_out"]);
  const auto fitted = nlohmann::json::parse(run(folder, {"--format", "json", "--refit"}).output);
  REQUIRE(fitted["constants"] == json["constants"]);
  REQUIRE_FALSE(fitted["summary"].contains("leave_one_out"));
}

TEST_CASE("budgets beside the folder are recorded, held and only lowered") {
  const TwoCases folder;
  const std::filesystem::path file = folder.folder() / "cases-budgets.yaml";
  REQUIRE(run(folder, {"--record-budgets"}).status == 0);
  const std::string recorded = read_text_file(file);
  REQUIRE(run(folder, {}).status == 0);
  REQUIRE(run(folder, {"--record-budgets"}).status == 0);
  REQUIRE(read_text_file(file) == recorded);
  (void)folder.add("second", "class: b\nnot_covered: later\n");
  const Ran worse = run(folder, {"--record-budgets"});
  REQUIRE(worse.status == 1);
  REQUIRE(worse.output.find("# Note: budget exceeded: b: covered: expected at least 1, found 0") !=
          std::string::npos);
  REQUIRE(read_text_file(file) == recorded);
}

TEST_CASE("options of validate that cannot be met are refused") {
  const TwoCases folder;
  REQUIRE_THROWS_WITH(run(folder, {"--only", "third"}),
                      "--only: expected a class, or part of the name of a case in " +
                          folder.cases().string() + ", found \"third\"");
  REQUIRE_THROWS_WITH(run(folder, {"--only", "first", "--record-budgets"}),
                      "--record-budgets: expected without --only, found both");
  REQUIRE_THROWS_AS(run(folder, {"--budgets", "nowhere.yaml"}), ConfigError);
  // A folder in which nobody may make files: said before anything is predicted.
  REQUIRE_THROWS_WITH(
      run(folder, {"--record-budgets", "--budgets", "/proc/a.yaml"}),
      Catch::StartsWith("--record-budgets: expected a file that can be written, found "
                        "\"/proc/a.yaml\": "));
  const std::string ledger = (folder.folder() / "ledger.csv").string();
  REQUIRE_THROWS_WITH(run(folder, {"--ledger", ledger}),
                      "--ledger: expected with --leave-one-out, found alone");
  REQUIRE_THROWS_WITH(run(folder, {"--ledger", ledger, "--leave-one-out"}),
                      Catch::Matchers::Contains("--ledger: expected tables of two systems"));
  REQUIRE_FALSE(std::filesystem::exists(ledger));
}

}  // namespace
}  // namespace trainyard
