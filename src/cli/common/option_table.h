// SPDX-License-Identifier: Apache-2.0
// Commands as rows of tables: what each is called, which options it has, which of them need or
// exclude others, and what runs it. One place parses them, explains them and refuses what does not
// go together. docs/guide/extending.md says how to add one.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

struct KeptResult;
class OptionReader;

enum class Role {
  Setting,
  Input,   // A file that the command reads, or a value that has such a file in it.
  Result,  // Where results go or in which form: a sweep decides these, its points do not.
};

// Conditions on other options are words: "against" holds where --against is given, "runtime=nccl"
// where --runtime has that value or has it as its default; "a|b" and "fidelity=flow|packet" are
// alternatives; a space separates conditions.
struct OptionTraits {
  char letter = '\0';  // The short form.
  bool repeats = false;
  Role role = Role::Setting;
  std::string_view choices = {};  // "flow|packet": all values, the default first.
  // Instead of `choices`, where the condition `other_if` holds.
  std::string_view other_if = {};
  std::string_view other_choices = {};
  // Shells offer these for the value (cli/shell/names.h), separated by spaces: names of files in
  // folders of configs, and lists: "clusters", "gpus", "cluster-keys".
  std::string_view names = {};
  std::string_view needs = {};     // Conditions that all hold beside the option.
  std::string_view excludes = {};  // Options that are not given beside it.
  // "nodes json=json": words that people say for the option, or for it with a value; errors about
  // such a word name the option.
  std::string_view synonyms = {};
};

inline constexpr OptionTraits kInput{.role = Role::Input};
inline constexpr OptionTraits kResult{.role = Role::Result};
inline constexpr OptionTraits kRepeated{.repeats = true};
inline constexpr OptionTraits kRepeatedInput{.repeats = true, .role = Role::Input};

// All texts outlive the row.
struct Option {
  std::string_view name;
  std::string_view value = {};  // The name of the value in the help; empty: the option has none.
  std::string_view help = {};
  OptionTraits traits = {};
};

using Options = std::vector<Option>;

// The groups one after the other, which is their order in the help.
[[nodiscard]] Options joined(const std::vector<Options>& groups);

// Rows without needs get these.
[[nodiscard]] Options with_needs(std::string_view needs, Options rows);
// Without those of these names, separated by spaces.
[[nodiscard]] Options without(std::string_view names, Options rows);

// The words of a trait: "flow|packet" at '|'. A separator at the end begins no word.
[[nodiscard]] std::vector<std::string> split_words(std::string_view text, char separator);

struct Command {
  std::string_view name = {};     // In errors, too.
  std::string_view form = {};     // Name and arguments in the list of commands: "collective OP".
  std::string_view summary = {};  // There, beside the form.
  std::string_view usage = {};    // First line of the help, without "trainyard".
  Options arguments = {};         // Given without a name, in order; the last one may repeat.
  Options options = {};           // Without --help, which every command has.
  std::string_view example = {};  // The help after the options.
  // Returns the exit status. Throws ConfigError.
  int (*run)(const OptionReader& reader, std::ostream& out) = nullptr;
  bool is_swept = false;  // `sweep` runs it: its CSV is the rows of a point.
  // Instead of `run`: the first argument is the last word of one of their forms.
  std::vector<Command> parts = {};

  // Nothing if there is none of that name among arguments and options.
  [[nodiscard]] const Option* find(std::string_view option) const;
  [[nodiscard]] bool is_argument(std::string_view option) const;
};

// The word that names a part, the last one of its form: "step" of "explain step".
[[nodiscard]] std::string part_name(const Command& part);

// Parses strictly: no abbreviations, nothing unknown, nothing twice unless it repeats. Without
// --help, refuses options whose needs are missing or that exclude each other. Throws ConfigError.
[[nodiscard]] OptionReader parse_options(const Command& command,
                                         std::span<const std::string> arguments);

// The values that the option of that name can have beside the others, the default first. It must
// have choices.
[[nodiscard]] std::vector<std::string> choices_of(const OptionReader& reader,
                                                  std::string_view name);

// Refuses options whose needs are missing or that exclude each other. Throws ConfigError.
void check_rules(const OptionReader& reader);
// Whether the needs of the row hold.
[[nodiscard]] bool has_needs(const OptionReader& reader, const Option& row);

[[nodiscard]] std::string help_of(const Command& command);

// Parses, and runs the command or prints its help. Returns the exit status. Throws ConfigError.
// With `kept`, the result stays there (options.h).
int run_command(const Command& command, std::span<const std::string> arguments, std::ostream& out,
                KeptResult* kept = nullptr);

// The lines of the commands in the help of the program, in the order of the rows.
[[nodiscard]] std::string list_commands(std::span<const Command> commands);

}  // namespace trainyard
