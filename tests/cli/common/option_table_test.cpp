// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/option_table.h"

#include <ostream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/common/options.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

int run_sample(const OptionReader& reader, std::ostream& out) {
  out << reader.text("color").value_or("none");
  return reader.given("fast") ? 1 : 0;
}

Command sample() {
  return {.name = "paint",
          .form = "paint THING",
          .summary = "paints a thing",
          .usage = "paint THING [options]",
          .arguments = {{.name = "thing"}},
          .options = {{"color",
                       "NAME",
                       "of the paint",
                       {.choices = "red|blue", .synonyms = "blue=blue layers"}},
                      {"shade", "N", "of blue", {.letter = 's', .needs = "color=blue"}},
                      {"fast", "", "in one coat", {.excludes = "coats"}},
                      {"coats", "N", "how many", {.repeats = true, .synonyms = "layers"}},
                      {"quiet", "", "say nothing", {.needs = "fast|coats"}},
                      {"loud", "", "say more", {.needs = "coats"}}},
          .example = "\nA thing is a wall.\n",
          .run = run_sample};
}

std::string error_of(const Command& command, const std::vector<std::string>& arguments) {
  std::ostringstream out;
  try {
    (void)run_command(command, arguments, out);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a command runs with what was given", "[option-table]") {
  std::ostringstream out;
  const std::vector<std::string> arguments{"wall", "--fast", "--color", "red"};
  REQUIRE(run_command(sample(), arguments, out) == 1);
  REQUIRE(out.str() == "red");
  const OptionReader reader =
      parse_options(sample(), std::vector<std::string>{"--coats=1", "wall", "--coats", "2"});
  REQUIRE(reader.text("thing") == "wall");
  REQUIRE(reader.texts("coats") == std::vector<std::string>{"1", "2"});
  REQUIRE_FALSE(reader.given("fast"));
  REQUIRE(sample().is_argument("thing"));
  REQUIRE(sample().find("thang") == nullptr);
}

TEST_CASE("the help of a command is made of its rows", "[option-table]") {
  std::ostringstream out;
  REQUIRE(run_command(sample(), std::vector<std::string>{"--help", "--quiet"}, out) == 0);
  const std::string help = out.str();
  REQUIRE(help.starts_with("trainyard paint THING [options]\n\nOptions:\n"));
  REQUIRE(help.find("-s [ --shade ] N") != std::string::npos);
  REQUIRE(help.find("--help") < help.find("--color NAME"));
  REQUIRE(
      help.ends_with("in one coat\n  --coats N             how many\n  --quiet               "
                     "say nothing\n  --loud                say more\n\nA thing is a wall.\n"));
  const std::vector<Command> commands{sample()};
  REQUIRE(list_commands(commands) == "  trainyard paint THING     paints a thing\n");
}

TEST_CASE("options that miss what they need, or exclude each other, are refused",
          "[option-table]") {
  REQUIRE(error_of(sample(), {"--shade", "3"}) ==
          "--shade: expected --color blue beside it, found red");
  REQUIRE(error_of(sample(), {"--shade", "3", "--color", "blue"}) == "no error");
  // What is none of the choices is left to the reader of the option.
  REQUIRE(error_of(sample(), {"--shade", "3", "--color", "green"}) == "no error");
  REQUIRE(error_of(sample(), {"--fast", "--coats", "2"}) ==
          "--fast: expected without --coats, found both");
  REQUIRE(error_of(sample(), {"--quiet"}) ==
          "--quiet: expected with --fast or --coats, found alone");
  REQUIRE(error_of(sample(), {"--quiet", "--coats", "2"}) == "no error");
  REQUIRE(error_of(sample(), {"--loud"}) == "--loud: expected --coats N beside it, found none");
}

TEST_CASE("what Boost would take but nobody means is refused", "[option-table]") {
  REQUIRE(error_of(sample(), {"--colour", "red"}) ==
          "paint: unknown option \"--colour\"; did you mean \"--color\"?");
  REQUIRE(error_of(sample(), {"--zzz"}) ==
          "paint: unknown option \"--zzz\"; see trainyard paint --help");
  REQUIRE(error_of(sample(), {"a", "b"}) == "paint: expected options and one thing, found \"b\"");
  REQUIRE(error_of(sample(), {"--color", "--fast"}) ==
          "--color: expected a value, found \"--fast\"");
  REQUIRE(error_of(sample(), {"--fast=1"}) == "--fast: expected no value, found one");
}

TEST_CASE("a word that means an option or a value of one is answered by it", "[option-table]") {
  REQUIRE(error_of(sample(), {"--blue"}) ==
          "paint: unknown option \"--blue\"; did you mean \"--color blue\"?");
  REQUIRE(error_of(sample(), {"--layers=2"}) ==
          "paint: unknown option \"--layers=2\"; did you mean \"--color\" or \"--coats\"?");
}

TEST_CASE("a command of parts is told which one by its first argument", "[option-table]") {
  Command part = sample();
  part.form = "house paint";
  const Command house{.name = "house", .usage = "house paint", .parts = {part}};
  std::ostringstream out;
  REQUIRE(run_command(house, std::vector<std::string>{"paint", "--color", "blue"}, out) == 0);
  REQUIRE(out.str() == "blue");
  REQUIRE(error_of(house, {}) == "house: expected paint, found none; see trainyard house --help");
  REQUIRE(error_of(house, {"paimt"}) ==
          "house: expected paint, found \"paimt\"; did you mean \"paint\"?");
}

TEST_CASE("rows can be left out, and choices depend on other options", "[option-table]") {
  const Options rows = without("color fast", sample().options);
  REQUIRE(rows.front().name == "shade");
  REQUIRE(rows.size() == sample().options.size() - 2);
  Command command = sample();
  command.options[0].traits.other_if = "fast";
  command.options[0].traits.other_choices = "white";
  const auto choices = [&](const std::vector<std::string>& arguments) {
    return choices_of(parse_options(command, arguments), "color");
  };
  REQUIRE(choices({}) == std::vector<std::string>{"red", "blue"});
  REQUIRE(choices({"--fast"}) == std::vector<std::string>{"white"});
}

TEST_CASE("rows without needs get those of their group", "[option-table]") {
  const Options rows = with_needs("a", {{"one", "", ""}, {"two", "", "", {.needs = "b"}}});
  REQUIRE(rows[0].traits.needs == "a");
  REQUIRE(rows[1].traits.needs == "b");
}

}  // namespace trainyard
