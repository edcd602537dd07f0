// SPDX-License-Identifier: Apache-2.0
#include "cli/shell/shell.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <vector>

#include "cli/common/options.h"
#include "cli/shell/completion.h"
#include "cli/shell/man_page.h"

namespace trainyard {
namespace {

// Where the program has nothing to offer, bash offers files (-o default).
constexpr std::string_view kBash = R"(# Completion of trainyard for bash, 4.4 or later.
_trainyard() {
    mapfile -t COMPREPLY < <("$1" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f 1)
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[.=@,] ]]; then
        compopt -o nospace
    fi
}
complete -o default -o nosort -F _trainyard trainyard
)";

constexpr std::string_view kZsh = R"zsh(#compdef trainyard
# Completion of trainyard for zsh.
_trainyard() {
    local line
    local -a found ended ended_lines open open_lines
    found=(${(f)"$("${words[1]}" --complete "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)"})
    for line in "${found[@]}"; do
        if [[ ${line%%$'\t'*} == *[.=@,] ]]; then
            open+=("${line%%$'\t'*}")
            open_lines+=("${line/$'\t'/  }")
        else
            ended+=("${line%%$'\t'*}")
            ended_lines+=("${line/$'\t'/  }")
        fi
    done
    if (( ${#found} == 0 )); then
        _files
        return
    fi
    compadd -Q -l -d ended_lines -a ended
    compadd -Q -S '' -l -d open_lines -a open
}
if [[ ${funcstack[1]} == _trainyard ]]; then
    _trainyard "$@"
else
    compdef _trainyard trainyard
fi
)zsh";

constexpr std::string_view kFish = R"(# Completion of trainyard for fish.
function __trainyard_complete
    set -l typed (commandline -opc)
    set -l found ($typed[1] --complete $typed[2..] (commandline -ct) 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c trainyard -f -a '(__trainyard_complete)'
)";

struct Script {
  std::string_view shell;
  std::string_view text;
};
constexpr std::array<Script, 3> kScripts{{{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}}};

void print_next_words(std::span<const Command> commands, std::span<const std::string> words,
                      std::ostream& out) {
  for (const NextWord& each : complete(commands, words)) {
    out << each.text << (each.help.empty() ? "" : "\t") << each.help << '\n';
  }
}

void print_script(std::span<const std::string> words, std::ostream& out) {
  const std::vector<std::string> names{"bash", "zsh", "fish"};
  const auto* const script = std::ranges::find(
      kScripts, words.size() == 1 ? std::string_view(words[0]) : "", &Script::shell);
  if (script == kScripts.end()) {
    fail_value("--completion", alternatives(names), words.empty() ? "" : words[0], names);
  }
  out << script->text;
}

void print_page(std::span<const Command> commands, std::string_view version,
                std::span<const std::string> words, std::ostream& out) {
  const std::vector<ManPage> pages = man_pages(commands);
  if (words.empty()) {
    out << program_man_page(pages, version);
    return;
  }
  std::vector<std::string> names;
  for (const ManPage& page : pages) {
    if (words.size() == 1 && words[0] == page.name) {
      out << to_roff(page, version);
      return;
    }
    names.push_back(page.name);
  }
  fail_value("--man", "a command", fmt::format("{}", fmt::join(words, " ")), names);
}

}  // namespace

bool answer_shell(std::span<const Command> commands, std::string_view version,
                  std::span<const std::string> arguments, std::ostream& out) {
  const std::string_view asked = arguments.empty() ? "" : std::string_view(arguments[0]);
  if (asked == "--complete") {
    print_next_words(commands, arguments.subspan(1), out);
  } else if (asked == "--completion") {
    print_script(arguments.subspan(1), out);
  } else if (asked == "--man") {
    print_page(commands, version, arguments.subspan(1), out);
  } else {
    return false;
  }
  return true;
}

}  // namespace trainyard
