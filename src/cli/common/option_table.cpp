// SPDX-License-Identifier: Apache-2.0
#include "cli/common/option_table.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "cli/common/options.h"
#include "cli/common/runtime.h"
#include "sim/check.h"
#include "sim/config_error.h"
#include "sim/printable.h"

namespace trainyard {

std::vector<std::string> split_words(std::string_view text, char separator) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

namespace {

namespace options = boost::program_options;

constexpr Option kHelp{"help", "", "this text"};

void add_row(const Option& row, options::options_description& described) {
  std::string name(row.name);
  if (row.traits.letter != '\0') {
    name += fmt::format(",{}", row.traits.letter);
  }
  const std::string help(row.help);
  const std::string value(row.value);
  auto add = described.add_options();
  if (row.traits.repeats) {
    add(name.c_str(), options::value<std::vector<std::string>>()->composing()->value_name(value),
        help.c_str());
  } else if (!value.empty()) {
    add(name.c_str(), options::value<std::string>()->value_name(value), help.c_str());
  } else {
    add(name.c_str(), help.c_str());
  }
}

options::options_description described_options(const Command& command) {
  options::options_description described("Options");
  add_row(kHelp, described);
  for (const Option& row : command.options) {
    add_row(row, described);
  }
  return described;
}

// Returns the options that people mean by a word, as they are written: "--format json".
std::vector<std::string> meant_by(const Command& command, std::string_view word) {
  std::vector<std::string> meant;
  for (const Option& row : command.options) {
    for (const std::string& synonym : split_words(row.traits.synonyms, ' ')) {
      const std::size_t sign = std::min(synonym.find('='), synonym.size());
      if (word == std::string_view(synonym).substr(0, sign)) {
        const std::string value = synonym.substr(std::min(sign + 1, synonym.size()));
        meant.push_back(fmt::format("--{}{}{}", row.name, value.empty() ? "" : " ", value));
      }
    }
  }
  return meant;
}

[[noreturn]] void fail_unknown(const Command& command, const std::string& option) {
  std::vector<std::string> known{"--help"};
  for (const Option& row : command.options) {
    known.push_back(fmt::format("--{}", row.name));
  }
  const std::string word = option.substr(option.find_first_not_of('-'));
  std::vector<std::string> meant = meant_by(command, word.substr(0, word.find('=')));
  if (const auto nearest = nearest_word(option, known); meant.empty() && nearest) {
    meant.push_back(*nearest);
  }
  std::ranges::for_each(meant, [](std::string& name) { name = in_quotes(name); });
  throw ConfigError(fmt::format("{0}: unknown option {1}{2}", command.name, in_quotes(option),
                                meant.empty()
                                    ? fmt::format("; see trainyard {} --help", command.name)
                                    : fmt::format("; did you mean {}?", alternatives(meant))));
}

[[noreturn]] void fail_parse(std::string_view command, const options::error& error) {
  throw ConfigError(
      fmt::format("{0}: {1}; see trainyard {0} --help", command, escaped(error.what())));
}

[[noreturn]] void fail_syntax(std::string_view command,
                              const options::invalid_command_line_syntax& error) {
  const std::string option = error.get_option_name();
  switch (error.kind()) {
    case options::invalid_syntax::missing_parameter:
    case options::invalid_syntax::empty_adjacent_parameter:
      throw ConfigError(fmt::format("{}: expected a value, found none", escaped(option)));
    case options::invalid_syntax::extra_parameter:
      throw ConfigError(fmt::format("{}: expected no value, found one", escaped(option)));
    default:
      fail_parse(command, error);
  }
}

// Refuses what Boost takes but nobody means: an option as the value of another, and arguments left
// over.
void check_form(const Command& command, const options::parsed_options& parsed) {
  const Options& arguments = command.arguments;
  std::vector<std::string> unnamed;
  for (const options::option& option : parsed.options) {
    if (option.string_key.empty()) {
      unnamed.insert(unnamed.end(), option.value.begin(), option.value.end());
    } else if (!option.value.empty() && option.value[0].starts_with("--")) {
      fail_option(option.string_key, "a value", option.value[0]);
    }
  }
  const bool any_number = !arguments.empty() && arguments.back().traits.repeats;
  if (unnamed.size() > arguments.size() && !any_number) {
    std::vector<std::string_view> names;
    for (const Option& argument : arguments) {
      names.push_back(argument.name);
    }
    fail_value(command.name,
               names.empty() ? "options alone"
                             : fmt::format("options and one {}", fmt::join(names, ", one ")),
               unnamed[names.size()]);
  }
}

OptionValues values_of(const options::variables_map& parsed) {
  OptionValues values;
  for (const auto& [name, value] : parsed) {
    const auto* const one = boost::any_cast<std::string>(&value.value());
    values[name] = one != nullptr ? std::vector{*one} : value.as<std::vector<std::string>>();
  }
  return values;
}

OptionValues parse_values(const Command& command, std::span<const std::string> arguments) {
  options::options_description all = described_options(command);
  options::positional_options_description places;
  for (Option argument : command.arguments) {
    argument.value = argument.name;
    add_row(argument, all);
    places.add(std::string(argument.name).c_str(), argument.traits.repeats ? -1 : 1);
  }
  const auto parser = [&] {  // Running one uses it up.
    options::command_line_parser fresh({arguments.begin(), arguments.end()});
    fresh.options(all).style(options::command_line_style::unix_style &
                             ~options::command_line_style::allow_guessing);
    return fresh;
  };
  options::variables_map values;
  try {
    check_form(command, parser().run());
    options::store(parser().positional(places).run(), values);
  } catch (const options::unknown_option& error) {
    fail_unknown(command, error.get_option_name());
  } catch (const options::invalid_command_line_syntax& error) {
    fail_syntax(command.name, error);
  } catch (const options::multiple_occurrences& error) {
    throw ConfigError(
        fmt::format("{}: expected once, found again", escaped(error.get_option_name())));
  } catch (const options::error& error) {
    fail_parse(command.name, error);
  }
  return values_of(values);
}

bool holds(const OptionReader& reader, std::string_view condition);

// Returns the value of an option, given or default; nothing if that is none of its choices, which
// its reader will refuse.
std::optional<std::string> standing(const OptionReader& reader, std::string_view name) {
  const std::vector<std::string> words = choices_of(reader, name);
  const std::string value = reader.chosen(name);
  return std::ranges::find(words, value) != words.end() ? std::optional(value) : std::nullopt;
}

// A condition of the form NAME=VALUE|VALUE.
struct ValueCondition {
  std::string name;
  std::vector<std::string> values;
};

std::optional<ValueCondition> value_condition(std::string_view condition) {
  const std::size_t sign = condition.find('=');
  if (sign == std::string_view::npos) {
    return std::nullopt;
  }
  return ValueCondition{.name = std::string(condition.substr(0, sign)),
                        .values = split_words(condition.substr(sign + 1), '|')};
}

bool holds(const OptionReader& reader, std::string_view condition) {
  if (const auto wanted = value_condition(condition)) {
    const std::optional<std::string> value = standing(reader, wanted->name);
    return !value || std::ranges::find(wanted->values, *value) != wanted->values.end();
  }
  return std::ranges::any_of(split_words(condition, '|'),
                             [&](const std::string& name) { return reader.given(name); });
}

[[noreturn]] void fail_need(const OptionReader& reader, std::string_view option,
                            std::string_view condition) {
  if (const auto wanted = value_condition(condition)) {
    throw ConfigError(fmt::format("--{}: expected {}{} {} beside it, found {}", option,
                                  reader.command().is_argument(wanted->name) ? "" : "--",
                                  wanted->name, alternatives(wanted->values),
                                  standing(reader, wanted->name).value_or("")));
  }
  std::vector<std::string> names = split_words(condition, '|');
  const Option* const first = reader.command().find(names.front());
  CHECK(first != nullptr, "conditions name options of the command");
  if (!first->value.empty()) {
    throw ConfigError(fmt::format("--{}: expected --{} {} beside it, found none", option,
                                  first->name, first->value));
  }
  for (std::string& name : names) {
    name.insert(0, "--");
  }
  throw ConfigError(
      fmt::format("--{}: expected with {}, found alone", option, alternatives(names)));
}

int run_part(const Command& command, std::span<const std::string> arguments, std::ostream& out,
             KeptResult* kept) {
  std::vector<std::string> names;
  for (const Command& part : command.parts) {
    names.push_back(part_name(part));
  }
  if (arguments.empty()) {
    throw ConfigError(fmt::format("{0}: expected {1}, found none; see trainyard {0} --help",
                                  command.name, alternatives(names)));
  }
  if (arguments[0] == "--help") {
    out << help_of(command);
    return 0;
  }
  for (const Command& part : command.parts) {
    if (arguments[0] == part_name(part)) {
      return run_command(part, arguments.subspan(1), out, kept);
    }
  }
  fail_value(command.name, alternatives(names), arguments[0], names);
}

}  // namespace

Options joined(const std::vector<Options>& groups) {
  Options all;
  for (const Options& group : groups) {
    all.insert(all.end(), group.begin(), group.end());
  }
  return all;
}

Options with_needs(std::string_view needs, Options rows) {
  for (Option& row : rows) {
    if (row.traits.needs.empty()) {
      row.traits.needs = needs;
    }
  }
  return rows;
}

Options without(std::string_view names, Options rows) {
  for (const std::string& name : split_words(names, ' ')) {
    std::erase_if(rows, [&](const Option& row) { return row.name == name; });
  }
  return rows;
}

void check_rules(const OptionReader& reader) {
  for (const Option& row : reader.command().options) {
    if (!reader.given(row.name)) {
      continue;
    }
    for (const std::string& condition : split_words(row.traits.needs, ' ')) {
      if (!holds(reader, condition)) {
        fail_need(reader, row.name, condition);
      }
    }
    for (const std::string& other : split_words(row.traits.excludes, ' ')) {
      if (reader.given(other)) {
        throw ConfigError(fmt::format("--{}: expected without {}{}, found both", row.name,
                                      reader.command().is_argument(other) ? "" : "--", other));
      }
    }
  }
}

bool has_needs(const OptionReader& reader, const Option& row) {
  return std::ranges::all_of(split_words(row.traits.needs, ' '), [&](const std::string& condition) {
    return holds(reader, condition);
  });
}

std::vector<std::string> choices_of(const OptionReader& reader, std::string_view name) {
  const Option* const row = reader.command().find(name);
  CHECK(row != nullptr, "conditions and readers name options of the command");
  const bool is_other = !row->traits.other_if.empty() && holds(reader, row->traits.other_if);
  std::vector<std::string> words =
      split_words(is_other ? row->traits.other_choices : row->traits.choices, '|');
  CHECK(!words.empty(), "options of conditions and words have choices");
  return words;
}

const Option* Command::find(std::string_view option) const {
  for (const Options* const rows : {&arguments, &options}) {
    const auto row = std::ranges::find(*rows, option, &Option::name);
    if (row != rows->end()) {
      return &*row;
    }
  }
  return nullptr;
}

std::string part_name(const Command& part) {
  return std::string(part.form.substr(part.form.rfind(' ') + 1));
}

bool Command::is_argument(std::string_view option) const {
  return std::ranges::find(arguments, option, &Option::name) != arguments.end();
}

OptionReader parse_options(const Command& command, std::span<const std::string> arguments) {
  OptionReader reader(command, parse_values(command, arguments));
  if (!reader.given(kHelp.name)) {
    check_rules(reader);
  }
  return reader;
}

std::string help_of(const Command& command) {
  std::ostringstream text;
  text << "trainyard " << command.usage << "\n\n";
  if (command.parts.empty()) {
    text << described_options(command);
  }
  text << command.example;
  return std::move(text).str();
}

int run_command(const Command& command, std::span<const std::string> arguments, std::ostream& out,
                KeptResult* kept) {
  if (!command.parts.empty()) {
    return run_part(command, arguments, out, kept);
  }
  OptionReader reader = parse_options(command, arguments);
  if (reader.given(kHelp.name)) {
    out << help_of(command);
    return 0;
  }
  if (kept != nullptr) {
    reader.keep_in(*kept);
  }
  assume_runtime(reader);
  reader.forget_reads();
  return command.run(reader, out);
}

std::string list_commands(std::span<const Command> commands) {
  std::string text;
  for (const Command& command : commands) {
    text += fmt::format("  trainyard {:<14}  {}\n", command.form, command.summary);
  }
  return text;
}

}  // namespace trainyard
