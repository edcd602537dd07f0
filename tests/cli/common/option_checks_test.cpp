// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/option_checks.h"

#include <filesystem>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

// The message of what `use` does with a reader of `arguments`.
template <typename Use>
std::string error(const std::vector<std::string>& arguments, Use use) {
  try {
    use(parse_options({.name = "test",
                       .arguments = {{.name = "file", .traits = {.role = Role::Input}}},
                       .options = joined({cluster_options(), output_options()})},
                      arguments));
  } catch (const ConfigError& caught) {
    return caught.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("an output file is none that another option reads, by whatever path") {
  const ScratchFolder folder;
  const std::string mine = folder.write("mine.yaml", "a: 1\n").string();
  const std::string same = (folder.path() / "." / "mine.yaml").string();
  const auto output_error = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--output", same};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return error(arguments,
                 [](const OptionReader& reader) { (void)output_file(reader, "output"); });
  };
  const std::string expected = "--output: expected another file than that of --";
  REQUIRE(output_error({"--cluster", mine}).starts_with(expected + "cluster, found "));
  REQUIRE(output_error({"--set", "server=" + mine}).starts_with(expected + "set, found "));
  REQUIRE(output_error({"--cluster", mine + "2"}) == "no error");
  std::filesystem::create_hard_link(mine, folder.path() / "other.yaml");
  REQUIRE(output_error({"--cluster", (folder.path() / "other.yaml").string()})
              .starts_with(expected + "cluster, found "));
  // Of commands whose inputs have no name, and of two outputs.
  const std::vector<std::string> commands{"topology --cluster mine.yaml --output mine.yaml",
                                          "doctor mine.yaml --cluster dgx-a100 --output mine.yaml",
                                          "compare x mine.yaml --output mine.yaml",
                                          "import mine.yaml --output mine.yaml",
                                          "jobs --job mine.yaml@0-1 --cluster x --output mine.yaml",
                                          "plan --cluster x --output a --graph-out ./a"};
  for (const std::string& command : commands) {
    const ProgramResult refused = run_shell("trainyard " + command, folder.path());
    INFO(command << ": " << refused.error);
    REQUIRE(refused.status == 2);
    REQUIRE(refused.error.find("expected another file than") != std::string::npos);
    REQUIRE(read_text_file(mine) == "a: 1\n");
  }
}

TEST_CASE("no key is set twice") {
  const auto set_error = [](const std::vector<std::string>& arguments) {
    return error(arguments, [](const OptionReader& reader) { (void)cluster_overrides(reader); });
  };
  REQUIRE(set_error({"--set", "nodes=4", "--set", "nodes=5"}) ==
          "--set nodes: expected once, found again");
  REQUIRE(set_error({"--set", "a.b=4", "--set", "a.c=4"}) == "no error");
}

}  // namespace trainyard
