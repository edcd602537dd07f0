// SPDX-License-Identifier: Apache-2.0
#include "cli/shell/completion.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "cli/common/options.h"
#include "cli/shell/man_page.h"
#include "cli/shell/names.h"

namespace trainyard {
namespace {

// Words with the pieces that bash made of them joined again.
struct Joined {
  std::vector<std::string> words = {};
  std::size_t kept = 0;  // The first characters of the last word, which are not asked for.
};

Joined join_pieces(std::span<const std::string> pieces) {
  Joined joined;
  bool follows_sign = false;
  for (const std::string& piece : pieces) {
    const bool is_sign = piece == "=";
    if (!joined.words.empty() && (is_sign || follows_sign)) {
      joined.kept = joined.words.back().size() + (is_sign ? 1 : 0);
      joined.words.back() += piece;
    } else {
      joined.words.push_back(piece);
      joined.kept = 0;
    }
    follows_sign = is_sign;
  }
  return joined;
}

// The words of a command, as far as they are typed.
struct Typed {
  OptionValues values = {};
  const Option* awaits_value = nullptr;  // The last word is an option that has one.
  std::size_t arguments = 0;             // How many were given.
};

const Option* option_of(const Command& command, std::string_view name) {
  const auto row = std::ranges::find(command.options, name, &Option::name);
  return row != command.options.end() ? &*row : nullptr;
}

const Option* option_of(const Command& command, char letter) {
  const auto row = std::ranges::find(command.options, letter,
                                     [](const Option& each) { return each.traits.letter; });
  return row != command.options.end() ? &*row : nullptr;
}

// The argument of that place; the last one may repeat.
const Option* argument_of(const Command& command, std::size_t place) {
  if (place < command.arguments.size()) {
    return &command.arguments[place];
  }
  const bool repeats = !command.arguments.empty() && command.arguments.back().traits.repeats;
  return repeats ? &command.arguments.back() : nullptr;
}

bool is_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-';
}

// `word` may have its value with it: "--nodes=4", "-b8".
void read_option(const Command& command, std::string_view word, Typed& typed) {
  const bool is_long = word.starts_with("--");
  const std::size_t end = is_long ? std::min(word.find('='), word.size()) : 2;
  const Option* const row =
      is_long ? option_of(command, word.substr(2, end - 2)) : option_of(command, word[1]);
  if (row == nullptr) {
    return;
  }
  if (!row->value.empty() && end == word.size()) {
    typed.awaits_value = row;
  } else {
    typed.values[std::string(row->name)].emplace_back(
        word.substr(std::min(end + (is_long ? 1 : 0), word.size())));
  }
}

Typed read_words(const Command& command, std::span<const std::string> words) {
  Typed typed;
  for (const std::string& word : words) {
    if (const Option* const row = std::exchange(typed.awaits_value, nullptr)) {
      typed.values[std::string(row->name)].push_back(word);
    } else if (is_option(word)) {
      read_option(command, word, typed);
    } else if (const Option* const argument = argument_of(command, typed.arguments++)) {
      typed.values[std::string(argument->name)].push_back(word);
    }
  }
  return typed;
}

std::vector<NextWord> values_for(const Command& command, const Typed& typed, const Option& row,
                                 std::string_view word) {
  std::vector<NextWord> found;
  if (!row.traits.choices.empty()) {
    for (std::string& choice : choices_of(OptionReader(command, typed.values), row.name)) {
      found.push_back({.text = std::move(choice)});
    }
  }
  // The last item of a list is completed, to those that are not in it yet.
  const std::size_t begun = row.value == "LIST" ? word.rfind(',') + 1 : 0;
  const std::vector<std::string> items = split_list(word.substr(0, begun));
  for (NextWord& each : named_values(command, row.traits.names, word.substr(begun))) {
    if (std::ranges::find(items, each.text) == items.end()) {
      each.text = fmt::format("{}{}{}", word.substr(0, begun), each.text,
                              row.value.find('@') != std::string_view::npos ? "@" : "");
      found.push_back(std::move(each));
    }
  }
  return found;
}

std::vector<NextWord> options_left(const Command& command, const Typed& typed) {
  std::vector<NextWord> found{{.text = "--help", .help = "this text"}};
  for (const Option& row : command.options) {
    if (row.traits.repeats || !typed.values.contains(row.name)) {
      found.push_back({.text = fmt::format("--{}", row.name), .help = std::string(row.help)});
    }
  }
  return found;
}

// `word` is the last, behind `words` of the command.
std::vector<NextWord> next_of(const Command& command, std::span<const std::string> words,
                              const std::string& word) {
  const Typed typed = read_words(command, words);
  if (typed.awaits_value != nullptr) {
    return values_for(command, typed, *typed.awaits_value, word);
  }
  if (const std::size_t sign = word.find('='); word.starts_with("--") && sign < word.size()) {
    const Option* const row = option_of(command, std::string_view(word).substr(2, sign - 2));
    std::vector<NextWord> found;
    if (row != nullptr) {
      found = values_for(command, typed, *row, word.substr(sign + 1));
    }
    for (NextWord& each : found) {
      each.text.insert(0, word.substr(0, sign + 1));
    }
    return found;
  }
  const Option* const argument = argument_of(command, typed.arguments);
  if (word.starts_with("-") || (word.empty() && argument == nullptr)) {
    return options_left(command, typed);
  }
  return argument != nullptr ? values_for(command, typed, *argument, word)
                             : std::vector<NextWord>{};
}

std::vector<NextWord> first_words(std::span<const Command> commands, std::string_view word) {
  if (is_option(word) || word == "-") {
    return options_left(program_options(), {});
  }
  std::vector<NextWord> found;
  for (const Command& command : commands) {
    found.push_back({.text = std::string(command.name), .help = std::string(command.summary)});
  }
  return found;
}

// The words that may follow an option of the program itself.
std::vector<NextWord> next_of_program(std::span<const Command> commands,
                                      std::span<const std::string> words, const std::string& word) {
  if (words.size() > 1) {
    return {};
  }
  if (words[0] != "--man") {
    return next_of(program_options(), words, word);
  }
  std::vector<NextWord> found;
  for (const ManPage& page : man_pages(commands)) {
    found.push_back({.text = page.name, .help = page.summary});
  }
  return found;
}

std::vector<NextWord> next_words(std::span<const Command> commands,
                                 std::span<const std::string> words, const std::string& word) {
  if (words.empty()) {
    return first_words(commands, word);
  }
  if (is_option(words[0])) {
    return next_of_program(commands, words, word);
  }
  const auto command = std::ranges::find(commands, words[0], &Command::name);
  if (command == commands.end() || command->parts.empty()) {
    return command == commands.end() ? std::vector<NextWord>{}
                                     : next_of(*command, words.subspan(1), word);
  }
  std::vector<NextWord> found;
  for (const Command& part : command->parts) {
    if (words.size() == 1) {
      found.push_back({.text = part_name(part)});
    } else if (words[1] == part_name(part)) {
      return next_of(part, words.subspan(2), word);
    }
  }
  return found;
}

}  // namespace

const Command& program_options() {
  static const Command kProgram{
      .name = "trainyard",
      .options = {{"version", "", "the version of the program"},
                  {"completion",
                   "SHELL",
                   "a script that teaches bash, zsh or fish to complete command lines",
                   {.choices = "bash|zsh|fish"}},
                  {"man", "[PAGE]", "the manual page of the program or of a command, for man"}}};
  return kProgram;
}

std::vector<NextWord> complete(std::span<const Command> commands,
                               std::span<const std::string> words) {
  Joined joined = join_pieces(words);
  const std::string word = joined.words.empty() ? "" : joined.words.back();
  if (!joined.words.empty()) {
    joined.words.pop_back();
  }
  std::vector<NextWord> found = next_words(commands, joined.words, word);
  std::erase_if(found, [&](const NextWord& each) { return !each.text.starts_with(word); });
  for (NextWord& each : found) {
    each.text.erase(0, joined.kept);
  }
  return found;
}

}  // namespace trainyard
