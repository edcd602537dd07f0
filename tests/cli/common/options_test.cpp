// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/options.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

using namespace literals;

OptionReader parse(const std::vector<std::string>& arguments) {
  return parse_options(
      {.name = "test",
       .arguments = {{.name = "what"}},
       .options = joined({cluster_options(), output_options(),
                          Options{{"size", "SIZE", "", {.letter = 'b'}},
                                  {"kind", "KIND", "", {.choices = "ring|tree"}}}})},
      arguments);
}

// The message of what `use` does with a reader of `arguments`.
template <typename Use>
std::string error_options(const std::vector<std::string>& arguments, Use use) {
  try {
    use(parse(arguments));
  } catch (const ConfigError& caught) {
    return caught.what();
  }
  return "no error";
}

std::string size_error(const std::string& size) {
  return error_options({"-b", size},
                       [](const OptionReader& reader) { (void)reader.message_size("size"); });
}

std::string nodes_error(const std::string& nodes) {
  return error_options({"--nodes", nodes},
                       [](const OptionReader& reader) { (void)cluster_overrides(reader); });
}

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

TEST_CASE("options are read in any order, and absent ones are nothing") {
  const OptionReader reader = parse({"--set", "a=1", "here", "-b8K", "--set=b=2", "--nodes=3"});
  REQUIRE(reader.text("what") == "here");
  REQUIRE(reader.message_size("size") == 8_KiB);
  const ClusterOverrides overrides = cluster_overrides(reader);
  REQUIRE(overrides.nodes == 3);
  REQUIRE(!overrides.gpus_per_node);
  REQUIRE(overrides.settings == std::vector<std::string>{"a=1", "b=2"});
  REQUIRE(!reader.given("cluster"));
  REQUIRE(!reader.text("cluster"));
  REQUIRE(output_format(reader) == Format::Table);
  REQUIRE(!output_file(reader, "output"));
  REQUIRE(reader.choice("kind") == 0);
}

TEST_CASE("whole numbers are digits within their range") {
  for (const std::string wrong :
       {"0", "-1", "1000001", "4x", "1e3", " 4", "+4", "4.0", "", "99999999999"}) {
    INFO(wrong);
    const std::string message = nodes_error(wrong);
    REQUIRE(message ==
            "--nodes: expected a whole number from 1 to 1000000, found \"" + wrong + "\"");
  }
  REQUIRE(nodes_error("1000000") == "no error");
}

TEST_CASE("message sizes are positive and below the memory of any GPU") {
  for (const std::string wrong : {"0", "-8", "8X", "4097G", "1e6", "K"}) {
    INFO(wrong);
    REQUIRE(size_error(wrong) ==
            "--size: expected a size from 1 to 4096G, such as 8, 64K, 1G or 25MiB, found \"" +
                wrong + "\"");
  }
  for (const std::string right : {"1", "64K", "4096G", "25MiB"}) {
    REQUIRE(size_error(right) == "no error");
  }
}

TEST_CASE("a choice that is none names the choices and the nearest") {
  const auto choose = [](const OptionReader& reader) { (void)reader.word("kind"); };
  REQUIRE(error_options({"--kind", "rnig"}, choose) ==
          "--kind: expected ring or tree, found \"rnig\"; did you mean \"ring\"?");
  REQUIRE(parse({"--kind", "tree"}).word("kind") == "tree");
  REQUIRE(parse({"--kind", "tree"}).choice("kind") == 1);
  REQUIRE(parse({}).word("kind") == "ring");
}

TEST_CASE("an option that is required says so with its command") {
  REQUIRE(error_options({}, [](const OptionReader& reader) {
            (void)reader.required_text("cluster");
          }) == "test: expected --cluster, found none; see trainyard test --help");
}

TEST_CASE("an output file is refused before the run if it could not be written after it") {
  const ScratchFolder folder;
  const auto output_error = [&](const std::string& file) {
    return error_options({"--output", file},
                         [](const OptionReader& reader) { (void)output_file(reader, "output"); });
  };
  REQUIRE(output_error(folder.path() / "new") == "no error");
  REQUIRE(output_error("new") == "no error");
  REQUIRE(output_error("/dev/stdout") == "no error");
  for (const std::string& wrong : {std::string("."), folder.path().string() + "/no/file"}) {
    REQUIRE(output_error(wrong).rfind("--output: expected a file in a folder that exists, found ",
                                      0) == 0);
  }
}

TEST_CASE("every option for a file refuses one that cannot be written, before anything is read") {
  const ScratchFolder folder;
  const std::vector<std::pair<std::string, std::string>> commands{
      {"sweep x", "output"},
      {"search --cluster x --workload x", "output"},
      {"search --cluster x --workload x", "best-plan"},
      {"compare x y", "output"},
      {"explain step --cluster x --workload x", "output"},
      {"explain collective all_reduce --cluster x", "output"},
      {"cost --cluster x", "output"},
      {"step --cluster x --workload x", "output"},
      {"step --cluster x --workload x --method graph", "trace"},
      {"step --cluster x --workload x", "report"},
      {"collective all_reduce --cluster x --runtime plain", "trace"},
      {"collective all_reduce --cluster x", "report"},
      {"traffic x.yaml --cluster x", "report"},
      {"traffic x.yaml --cluster x", "flows-out"},
      {"sweep x", "report"},
      {"validate --leave-one-out", "ledger"}};
  for (const auto& [command, option] : commands) {
    INFO(command << " --" << option);
    // A folder in which nobody may make files, root included.
    const ProgramResult nowhere =
        run_shell("trainyard " + command + " --" + option + " /proc/a.x", folder.path());
    REQUIRE(nowhere.status == 2);
    REQUIRE(nowhere.output.empty());
    REQUIRE(nowhere.error.find("trainyard: --" + option +
                               ": expected a file that can be written, found \"/proc/a.x\": ") ==
            0);
    // As on a full disk: a file may have no byte.
    const ProgramResult full = run_shell("(trap '' XFSZ; ulimit -f 0; trainyard " + command +
                                             " --" + option + " a.x || echo status $?) 2>&1 | cat",
                                         folder.path());
    REQUIRE(full.output.find("trainyard: --" + option + ": expected a file that can be written") ==
            0);
    REQUIRE(full.output.find("status 2") != std::string::npos);
    REQUIRE(std::filesystem::is_empty(folder.path()));
  }
}

TEST_CASE("the ending of --output is the format unless --format has another", "[cli]") {
  const auto format = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--cluster", "dgx-h100"});
    return output_format(parse_options(cost_command(), arguments));
  };
  REQUIRE(format({"--output", "a.csv"}) == Format::Csv);
  REQUIRE(format({"--output", "b.csv/a.json"}) == Format::Json);
  REQUIRE(format({"--output", "a.csv", "--format", "json"}) == Format::Json);
  REQUIRE(format({"--output", "a.txt"}) == Format::Table);
  REQUIRE(format({"--output", "csv"}) == Format::Table);
}

TEST_CASE("a disk that is full at the end of a run leaves no half of a file") {
  const ScratchFolder folder;
  const ProgramResult full = run_shell(
      "(trap '' XFSZ; ulimit -f 16; trainyard topology --cluster dgx-h100 --nodes 2 --format json "
      "--output a.json || echo status $?) 2>&1 | cat",
      folder.path());
  REQUIRE(full.output.find("a.json: cannot be written: ") != std::string::npos);
  REQUIRE(full.output.find("status 2") != std::string::npos);
  REQUIRE(std::filesystem::is_empty(folder.path()));
  REQUIRE(run_shell("trainyard cost --cluster dgx-h100 --output /dev/full", folder.path()).status ==
          2);
}

TEST_CASE("a seed is a whole number, the same for all commands") {
  const Command command{.name = "test", .options = {seed_option("of chance")}};
  const auto seed = [&](const std::vector<std::string>& arguments) {
    return read_seed(parse_options(command, arguments));
  };
  REQUIRE_FALSE(seed({}).has_value());
  REQUIRE(seed({"--seed", "7"}) == 7U);
  REQUIRE_THROWS_AS(seed({"--seed", "-1"}), ConfigError);
}

TEST_CASE("lists are split at every comma") {
  REQUIRE(split_list("a") == std::vector<std::string>{"a"});
  REQUIRE(index_list("0-3,8,16-31:8") == std::vector<int>{0, 1, 2, 3, 8, 16, 24});
  for (const char* const text :
       {"", "-1", "3-1", "a", "1,", "1-2:0", "1-2:x", "4:2", "1-", "1000000"}) {
    INFO(text);
    REQUIRE(index_list(text).empty());
  }
  REQUIRE(split_list(",a,,b") == std::vector<std::string>{"", "a", "", "b"});
  REQUIRE(alternatives(std::vector<std::string>{"a"}) == "a");
  REQUIRE(alternatives(std::vector<std::string>{"a", "b"}) == "a or b");
  REQUIRE(alternatives(std::vector<std::string>{"a", "b", "c"}) == "a, b or c");
}

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
