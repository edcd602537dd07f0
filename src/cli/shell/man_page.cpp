// SPDX-License-Identifier: Apache-2.0
#include "cli/shell/man_page.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <utility>

#include "cli/shell/completion.h"

namespace trainyard {
namespace {

// Text that prints as it is. What would begin a request or a macro, or be set as another character
// of a typesetter, has names of its own (groff_char(7)).
std::string escaped_roff(std::string_view text) {
  std::string escaped;
  for (const char character : text) {
    switch (character) {
      case '\\':
        escaped += "\\e";
        break;
      case '-':
        escaped += "\\-";
        break;
      case '\'':
        escaped += "\\(aq";
        break;
      case '`':
        escaped += "\\(ga";
        break;
      case '^':
        escaped += "\\(ha";
        break;
      case '~':
        escaped += "\\(ti";
        break;
      default:
        escaped += character;
    }
  }
  return escaped.starts_with(".") ? "\\&" + escaped : escaped;
}

std::string bold(std::string_view text) {
  return fmt::format("\\fB{}\\fR", escaped_roff(text));
}
std::string italic(std::string_view text) {
  return fmt::format("\\fI{}\\fR", escaped_roff(text));
}

// A word, which a page may break behind its commas if it is a long list.
std::string set_word(std::string_view word) {
  constexpr std::size_t kLong = 30;
  std::string text = escaped_roff(word);
  if (word.size() <= kLong) {
    return text;
  }
  std::string broken;
  for (const char character : text) {
    broken += character;
    broken += character == ',' ? "\\:" : "";
  }
  return broken;
}

// A paragraph in lines of at most this width, if its words allow it.
std::string filled(std::string_view text) {
  constexpr std::size_t kWidth = 78;
  std::istringstream words{std::string(text)};
  std::string lines;
  std::string line;
  for (std::string word; words >> word;) {
    word = set_word(word);
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      lines += std::exchange(line, "") + "\n";
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? lines : lines + line + "\n";
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

// Paragraphs, and blocks of indented lines as they are.
class Prose {
 public:
  void add(const std::string& line) {
    const bool is_block = line.starts_with("  ");
    if (is_block != in_block_) {
      end();
      in_block_ = is_block;
      text_ += is_block ? start() + ".EX\n" : "";
    }
    if (is_block) {
      text_ += escaped_roff(line) + "\n";
    } else if (line.empty()) {
      end();
    } else {
      paragraph_ += line + " ";
    }
  }
  std::string take() {
    end();
    return std::move(text_);
  }

 private:
  // The macro before a paragraph that is not the first of its section.
  [[nodiscard]] std::string start() const { return text_.empty() ? "" : ".PP\n"; }
  void end() {
    if (in_block_) {
      text_ += ".EE\n";
    } else if (!paragraph_.empty()) {
      text_ += start() + filled(std::exchange(paragraph_, ""));
    }
    in_block_ = false;
  }

  std::string text_;
  std::string paragraph_;
  bool in_block_ = false;
};

// The text behind the options of the help, and the examples at its end.
struct HelpText {
  std::string prose;
  std::string examples;
};

HelpText text_of(const Command& command) {
  Prose prose;
  Prose examples;
  bool in_examples = false;
  for (const std::string& line : lines_of(command.example)) {
    if (line == "Examples:" || line == "Example:") {
      in_examples = true;
    } else {
      (in_examples ? examples : prose).add(line);
    }
  }
  return {.prose = prose.take(), .examples = examples.take()};
}

// The values that an option may have, where its help does not name them all.
std::string choices_text(const Option& row) {
  std::vector<std::string> words;
  std::istringstream choices{std::string(row.traits.choices)};
  for (std::string word; std::getline(choices, word, '|');) {
    words.push_back(word);
  }
  const bool are_named = std::ranges::all_of(words, [&](const std::string& word) {
    return row.help.find(word) != std::string_view::npos;
  });
  return are_named ? "" : fmt::format(" ({})", fmt::join(words, ", "));
}

std::string option_text(const Option& row) {
  std::string text = ".TP\n";
  if (row.traits.letter != '\0') {
    text += bold(fmt::format("-{}", row.traits.letter)) + ", ";
  }
  text += bold(fmt::format("--{}", row.name));
  text += row.value.empty() ? "" : " " + italic(row.value);
  return text + "\n" + filled(std::string(row.help) + choices_text(row));
}

std::string options_text(const Options& options) {
  std::string text = option_text({"help", "", "this text"});
  for (const Option& row : options) {
    text += option_text(row);
  }
  return text;
}

// Pages have the day on which the version was begun: that of a build would make each build another.
constexpr std::string_view kDay = "2026-11-28";

// Words are neither broken nor set apart.
std::string heading(std::string_view name, std::string_view version) {
  std::string title(name);
  std::ranges::transform(title, title.begin(), [](unsigned char letter) {
    return static_cast<char>(std::toupper(letter));
  });
  return fmt::format(".TH {} 1 {} \"{}\" \"Trainyard\"\n.ad l\n.nh\n.SH NAME\n", title, kDay,
                     version);
}

constexpr std::string_view kStatus = R"(.SH EXIT STATUS
.TP
0
The run is complete.
.TP
1
The command says on this page what it counts as a failure.
.TP
2
The input cannot be used, or the machine lacks what the run needs; one line on
standard error says what and where.
)";

}  // namespace

std::vector<ManPage> man_pages(std::span<const Command> commands) {
  std::vector<ManPage> pages;
  for (const Command& command : commands) {
    pages.push_back({.name = std::string(command.name),
                     .summary = std::string(command.summary),
                     .command = command});
    for (const Command& part : command.parts) {
      pages.push_back({.name = fmt::format("{}-{}", command.name, part_name(part)),
                       .summary = std::string(command.summary),
                       .command = part});
    }
  }
  return pages;
}

std::string to_roff(const ManPage& page, std::string_view version) {
  const Command& command = page.command;
  const std::string title = "trainyard-" + page.name;
  std::string text = heading(title, version);
  text += fmt::format("{} \\- {}\n.SH SYNOPSIS\n", escaped_roff(title), escaped_roff(page.summary));
  std::string usage = fmt::format("trainyard {}", command.usage);
  for (bool is_first = true; const std::string& line : lines_of(usage)) {
    constexpr std::string_view kProgram = "trainyard ";
    text += std::exchange(is_first, false) ? "" : ".br\n";
    text += bold("trainyard") + " " + escaped_roff(line.substr(kProgram.size())) + "\n";
  }
  const HelpText help = text_of(command);
  if (!help.prose.empty()) {
    text += ".SH DESCRIPTION\n" + help.prose;
  }
  if (command.parts.empty()) {
    text += ".SH OPTIONS\n" + options_text(command.options);
  }
  text += kStatus;
  if (!help.examples.empty()) {
    text += ".SH EXAMPLES\n" + help.examples;
  }
  text += ".SH SEE ALSO\n.BR trainyard (1)";
  for (const Command& part : command.parts) {
    text += fmt::format(",\n.BR {} (1)", escaped_roff(title + "-" + part_name(part)));
  }
  return text + "\n";
}

std::string program_man_page(std::span<const ManPage> pages, std::string_view version) {
  std::string text =
      heading("trainyard", version) + R"(trainyard \- predicts what clusters of GPUs do
.SH SYNOPSIS
.B trainyard
.I COMMAND
.RI [ ARGUMENTS ]
.SH DESCRIPTION
Trainyard is a discrete\-event simulator. It reads a cluster from YAML (GPUs,
links, NICs and the network between them) and says how long collectives and
training steps take on it. Each command has a page of its own.
.SH COMMANDS
)";
  for (const ManPage& page : pages) {
    text += fmt::format(".TP\n.BR {} (1)\n{}", escaped_roff("trainyard-" + page.name),
                        filled(page.summary));
  }
  text += ".SH OPTIONS\n" + options_text(program_options().options);
  text += R"(.SH ENVIRONMENT
.TP
.B TRAINYARD_D3
The file of the charting library d3, version 3, for pages of
.BR \-\-report .
.SH FILES
.TP
.I ../share/trainyard/configs
From the folder of the program: clusters, servers, parts, workloads and
profiles, which options take by their names.
)";
  text += kStatus;
  return text;
}

}  // namespace trainyard
