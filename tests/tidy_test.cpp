// SPDX-License-Identifier: Apache-2.0
// The rules of the source tree that no compiler checks: missing tests, sizes, banned words. Those
// about its folders are in tests/rooms_test.cpp.
//
// A rule is a function from source files to complaints, "file:line: what is wrong", so that each is
// shown to find what it should in a text written here before it is run over the tree. Rules about
// code look at the text without comments and strings; rules about comments see nothing else.
#include "support/catch.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "support/complaints.h"
#include "support/source_text.h"

namespace trainyard {
namespace {

// Sources without a test of their own, each with the reason.
struct Untested {
  std::string_view source;
  std::string_view reason;
};
constexpr std::array<Untested, 2> kUntested = {{
    {"src/cli/mpi_main.cpp", "tests/cli/mpi_start_test.cpp runs it as a program."},
    {"src/program/main.cpp", "One call; tests/golden runs it as a program."},
}};

constexpr std::size_t kMaxLines = 500;
constexpr std::size_t kMaxColumns = 100;
constexpr std::size_t kMaxFunctionLines = 70;

std::string complaint(const SourceFile& file, std::size_t line_index, std::string_view text) {
  return file.path + ":" + std::to_string(line_index + 1) + ": " + std::string(text);
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool ends_with(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() && text.substr(text.size() - suffix.size()) == suffix;
}

bool is_header(const SourceFile& file) {
  return ends_with(file.path, ".h");
}

// "network" for "src/network/flow.cpp"; empty outside src/.
std::string folder_in_src(const SourceFile& file) {
  const std::filesystem::path path(file.path);
  auto part = path.begin();
  if (part == path.end() || *part != "src" || ++part == path.end()) {
    return "";
  }
  return part->string();
}

Complaints check_frame(const SourceFile& file) {
  Complaints complaints;
  if (file.text.empty() || file.text[0] != "// SPDX-License-Identifier: Apache-2.0") {
    complaints.push_back(complaint(file, 0, "the first line is not the SPDX line"));
  }
  const auto is_once = [](const std::string& line) { return line == "#pragma once"; };
  if (is_header(file) && std::none_of(file.code.begin(), file.code.end(), is_once)) {
    complaints.push_back(complaint(file, 0, "a header without #pragma once"));
  }
  return complaints;
}

Complaints check_sizes(const SourceFile& file) {
  Complaints complaints;
  if (!folder_in_src(file).empty() && file.text.size() > kMaxLines) {
    complaints.push_back(complaint(file, kMaxLines, "more than 500 lines"));
  }
  for (std::size_t i = 0; i < file.text.size(); ++i) {
    if (count_columns(file.text[i]) > kMaxColumns) {
      complaints.push_back(complaint(file, i, "more than 100 columns"));
    }
  }
  return complaints;
}

// Whether braces that open after `head` hold members of a namespace or a class.
bool opens_scope(const std::string& head) {
  static const std::regex scope(
      R"re(^\s*(template\b.*)?(namespace|class|struct|union|extern)\b)re");
  static const std::regex alignment(R"re(\balignas\(\d+\))re");
  return std::regex_search(head, scope) &&
         std::regex_replace(head, alignment, "").find(')') == std::string::npos;
}

// A function is what stands in braces after a text with parentheses, in a namespace or a class. Its
// lines are counted from the first of that text to the closing brace.
Complaints check_function_sizes(const SourceFile& file) {
  struct Brace {
    bool is_scope;
    bool is_function;
    std::size_t first_line;
  };
  Complaints complaints;
  std::vector<Brace> open;
  std::string head;
  std::size_t head_line = 0;
  for (std::size_t line = 0; line < file.code.size(); ++line) {
    if (!file.code[line].empty() && file.code[line][0] == '#') {
      continue;
    }
    for (const char letter : file.code[line]) {
      if (letter == '{') {
        const bool is_outside = open.empty() || open.back().is_scope;
        const bool is_scope = is_outside && opens_scope(head);
        const bool is_function = is_outside && !is_scope && head.find(')') != std::string::npos;
        open.push_back({is_scope, is_function, head_line});
      } else if (letter == '}' && !open.empty()) {
        if (open.back().is_function && line - open.back().first_line >= kMaxFunctionLines) {
          complaints.push_back(
              complaint(file, open.back().first_line, "a function of more than 70 lines"));
        }
        open.pop_back();
      }
      if (letter == '{' || letter == '}' || letter == ';') {
        head.clear();
      } else if (!head.empty() || letter != ' ') {
        head_line = head.empty() ? line : head_line;
        head += letter;
      }
    }
    head += head.empty() ? "" : " ";
  }
  return complaints;
}

// A pattern that no line of code may contain. std::regex is slow: it is asked only of lines with a
// text without which the pattern cannot be there.
struct Ban {
  const char* needle;
  const char* pattern;
  const char* text;
};

Complaints find_in(const SourceFile& file, const std::vector<std::string>& lines, const Ban& ban) {
  Complaints complaints;
  const std::regex pattern(ban.pattern);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find(ban.needle) != std::string::npos && std::regex_search(lines[i], pattern)) {
      complaints.push_back(complaint(file, i, ban.text));
    }
  }
  return complaints;
}

void append(Complaints& all, Complaints more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

Complaints check_bans(const SourceFile& file) {
  // Literals are only reachable through their namespace; a header must not open even that one.
  const Ban namespaces = {"using",
                          is_header(file) ? R"(\busing\s+namespace\b)"
                                          : R"(\busing\s+namespace\s+(?!(\w+::)*literals;))",
                          "using namespace"};
  Complaints complaints = find_in(file, file.code, namespaces);
  for (const Ban& ban : {
           Ban{"shared_ptr", R"(\bshared_ptr\b)", "std::shared_ptr: ownership is unique"},
           Ban{"unordered_", R"(\bunordered_\w+)",
               "an unordered container: its order differs between libraries"},
           Ban{"_distribution", R"(\bstd::\w+_distribution\b)",
               "a distribution of std: use sim/random.h"},
       }) {
    append(complaints, find_in(file, file.code, ban));
  }
  for (const char* const word : {"TODO", "FIXME", "XXX"}) {
    const std::string pattern = R"(\b)" + std::string(word) + R"(\b(?!\(#\d+\)))";
    append(complaints, find_in(file, file.comments,
                               {word, pattern.c_str(), "a to-do without an issue: (#123)"}));
  }
  return complaints;
}

// A `default:` beside cases of an enum of ours hides an enumerator that a switch does not know yet;
// without it the compiler names the switch.
Complaints check_defaults(const SourceFile& file) {
  static const std::regex enumerator(R"(^\s*case (\w+::)+[A-Z][a-z0-9]\w*:)");
  Complaints complaints;
  for (std::size_t i = 0; i < file.code.size(); ++i) {
    const std::size_t column = file.code[i].find_first_not_of(' ');
    if (column == std::string::npos || !file.code[i].substr(column).starts_with("default:")) {
      continue;
    }
    for (std::size_t above = i; above > 0;) {
      const std::string& line = file.code[--above];
      if (line.find_first_not_of(' ') < column) {
        break;
      }
      if (line.find_first_not_of(' ') == column && std::regex_search(line, enumerator)) {
        complaints.push_back(complaint(file, i, "default: in a switch over an enum"));
        break;
      }
    }
  }
  return complaints;
}

// ctest takes such a name for an option of its own.
Complaints check_test_names(const SourceFile& file) {
  return find_in(
      file, file.text,
      {"TEST_CASE(\"-", R"re(^TEST_CASE\("-)re", "a name of a test that begins like an option"});
}

Complaints check_integer_core(const SourceFile& file) {
  static const std::regex core("^src/sim/(event|simulator)[^/]*$");
  if (!std::regex_search(file.path, core)) {
    return {};
  }
  return find_in(file, file.code,
                 {"", R"(\b(double|float)\b)", "floating point in the event core"});
}

// An absolute path below a home or working folder, or a drive: somebody's machine.
Complaints check_machine_paths(const SourceFile& file) {
  constexpr const char* kComplaint = "a path of a particular machine";
  Complaints complaints =
      find_in(file, file.text, {"/", "(^|[^\\w.}/~-])/(home|Users|root|work|mnt)/\\w", kComplaint});
  append(complaints, find_in(file, file.text, {":\\", "(^|[^\\w.}/~-])[A-Z]:\\\\\\w", kComplaint}));
  return complaints;
}

// A comment is a sentence or a noun phrase. One that begins with these words nearly always lacks
// its subject and its verb, as in "Of all ranks." or "What a port sent.". Lines of a comment begin
// in one column; the licence and an empty line end one.
Complaints check_comment_starts(const SourceFile& file) {
  static const std::regex fragment(R"re(^// (Of|That|By|What|Who) )re");
  Complaints complaints;
  std::size_t column_before = std::string::npos;
  for (std::size_t i = 0; i < file.comments.size(); ++i) {
    const std::size_t column = file.comments[i].find("//");
    if (column != std::string::npos && column != column_before &&
        std::regex_search(file.comments[i].substr(column), fragment)) {
      complaints.push_back(complaint(file, i, "a comment that begins like a fragment"));
    }
    static const std::regex end(R"re(//$|SPDX-License)re");
    column_before = std::regex_search(file.comments[i], end) ? std::string::npos : column;
  }
  return complaints;
}

Complaints check_each_source_has_a_test(const std::vector<std::string>& paths,
                                        const std::vector<Untested>& untested) {
  Complaints complaints;
  const auto exists = [&](const std::string& path) {
    return std::find(paths.begin(), paths.end(), path) != paths.end();
  };
  const auto test_of = [](std::string_view source) {
    const std::string_view stem = source.substr(4, source.size() - 4 - 4);  // "src/", ".cpp"
    return "tests/" + std::string(stem) + "_test.cpp";
  };
  for (const std::string& path : paths) {
    const auto is_this = [&](const Untested& entry) { return entry.source == path; };
    const bool excused = std::any_of(untested.begin(), untested.end(), is_this);
    const bool is_source = starts_with(path, "src/") && ends_with(path, ".cpp");
    if (is_source && !excused && !exists(test_of(path))) {
      complaints.push_back(path + ":1: no test " + test_of(path));
    }
  }
  for (const Untested& entry : untested) {
    const std::string source(entry.source);
    if (!exists(source)) {
      complaints.push_back(source + ":1: excused from a test, but it does not exist");
    } else if (exists(test_of(source))) {
      complaints.push_back(source + ":1: excused from a test, but it has one");
    }
  }
  return complaints;
}

// The header of each type, by "namespace::Name"; types inside others are left out. Two of one name
// are one to the linker, which takes either (the one-definition rule).
using TypePlaces = std::map<std::string, std::string>;

Complaints check_unique_types(const SourceFile& file, TypePlaces& known) {
  static const std::regex space(R"re(^(inline )?namespace ([\w:]+) \{)re");
  static const std::regex type(
      R"re(^(?:struct|class) (?:alignas\(\d+\) )?(\w+)(?: final)?(?: : [^;]*)?(?: \{.*)?$)re");
  Complaints complaints;
  std::string inside;
  for (std::size_t i = 0; is_header(file) && i < file.code.size(); ++i) {
    std::smatch match;
    // The patterns are tried at the beginning alone.
    constexpr auto kThere = std::regex_constants::match_continuous;
    if (std::regex_search(file.code[i], match, space, kThere)) {
      inside = match[1].matched ? inside + "::" + match[2].str() : match[2].str();
    } else if (std::regex_search(file.code[i], match, type, kThere)) {
      const std::string name = inside + "::" + match[1].str();
      const auto [place, is_new] = known.try_emplace(name, file.path);
      if (!is_new) {
        complaints.push_back(complaint(file, i, name + " is also in " + place->second));
      }
    }
  }
  return complaints;
}

bool is_cpp(const SourceFile& file) {
  return ends_with(file.path, ".cpp") || ends_with(file.path, ".h") || ends_with(file.path, ".cu");
}

template <typename Check>
Complaints check_cpp_files(Check check) {
  Complaints all;
  for (const SourceFile& file : source_tree()) {
    if (is_cpp(file)) {
      append(all, check(file));
    }
  }
  return all;
}

TEST_CASE("the tree that is checked is there", "[text]") {
  const auto count = std::count_if(source_tree().begin(), source_tree().end(), is_cpp);
  REQUIRE(count > 10);
}

TEST_CASE("each source has a test at the same path, and no excuse is stale", "[text]") {
  const std::vector<std::string> sample = {"src/sim/a.cpp",        "src/sim/b.cpp",
                                           "src/sim/c.cpp",        "src/sim/d.h",
                                           "tests/sim/a_test.cpp", "tests/sim/c_test.cpp"};
  REQUIRE(check_each_source_has_a_test(sample, {{"src/sim/c.cpp", ""}, {"src/sim/x.cpp", ""}}) ==
          Complaints{"src/sim/b.cpp:1: no test tests/sim/b_test.cpp",
                     "src/sim/c.cpp:1: excused from a test, but it has one",
                     "src/sim/x.cpp:1: excused from a test, but it does not exist"});

  std::vector<std::string> paths;
  for (const SourceFile& file : source_tree()) {
    paths.push_back(file.path);
  }
  require_none(check_each_source_has_a_test(paths, {kUntested.begin(), kUntested.end()}));
}

TEST_CASE("each file starts with the SPDX line and each header is guarded", "[text]") {
  REQUIRE(check_frame(parse_source("src/sim/a.h", "// A header.\n")).size() == 2);
  REQUIRE(check_frame(parse_source("src/sim/a.cpp", "")).size() == 1);
  require_none(check_cpp_files(check_frame));
}

TEST_CASE("files and lines are of a readable size", "[text]") {
  std::string long_file = std::string(101, 'x') + "\n";
  for (std::size_t i = 0; i < kMaxLines; ++i) {
    long_file += "\xC3\xA9\n";  // One column, two bytes.
  }
  REQUIRE(
      check_sizes(parse_source("src/sim/a.h", long_file)) ==
      Complaints{"src/sim/a.h:501: more than 500 lines", "src/sim/a.h:1: more than 100 columns"});
  require_none(check_cpp_files(check_sizes));
}

TEST_CASE("functions are of a readable size", "[text]") {
  const std::string body(kMaxFunctionLines - 1, '\n');
  const std::string text = "namespace a {\nstruct B {\n  int c() {" + body +
                           "}\n  int d()\n      const {" + body + "}\n};\nint e[]{" + body +
                           "\n\n};\n}\n";
  REQUIRE(check_function_sizes(parse_source("src/sim/a.cpp", text)) ==
          Complaints{"src/sim/a.cpp:73: a function of more than 70 lines"});
  require_none(check_cpp_files([](const SourceFile& file) {
    return folder_in_src(file).empty() ? Complaints{} : check_function_sizes(file);
  }));
}

TEST_CASE("no file uses what would make results differ between machines or hide ownership",
          "[text]") {
  const SourceFile sample = parse_source("src/sim/a.cpp",
                                         "using namespace std;\n"
                                         "using namespace trainyard::literals;\n"
                                         "using namespace literals;\n"
                                         "std::shared_ptr<int> p;  // TODO: later\n"
                                         "std::unordered_map<int, int> m;  // TODO(#12): later\n"
                                         "std::uniform_int_distribution<int> d;\n"
                                         "const char* text = \"shared_ptr, TODO\";\n");
  REQUIRE(check_bans(sample).size() == 5);
  REQUIRE(check_bans(parse_source("src/sim/a.h", "using namespace literals;\n")).size() == 1);
  require_none(check_cpp_files(check_bans));
}

TEST_CASE("comments do not begin like fragments", "[text]") {
  const SourceFile sample = parse_source("src/sim/a.cpp",
                                         "// Of all ranks.\n"
                                         "// SPDX-License-Identifier: none\n"
                                         "// What it is.\n"
                                         "//\n"
                                         "// By whom.\n"
                                         "\n"
                                         "// The bytes\n"
                                         "// That one rank sends.\n"
                                         "int a;  // What it is.\n"
                                         "const char* b = \"// By me\";  // Bytes.\n");
  REQUIRE(check_comment_starts(sample) ==
          Complaints{"src/sim/a.cpp:1: a comment that begins like a fragment",
                     "src/sim/a.cpp:3: a comment that begins like a fragment",
                     "src/sim/a.cpp:5: a comment that begins like a fragment",
                     "src/sim/a.cpp:9: a comment that begins like a fragment"});
  require_none(check_cpp_files([](const SourceFile& file) {
    return folder_in_src(file).empty() ? Complaints{} : check_comment_starts(file);
  }));
}

TEST_CASE("no switch over an enum has a default", "[text]") {
  const SourceFile sample = parse_source("src/sim/a.cpp",
                                         "switch (a) {\n"
                                         "  case A::One:\n"
                                         "    switch (c) {\n"
                                         "      case 'x':\n"
                                         "        break;\n"
                                         "      default:\n"
                                         "        break;\n"
                                         "    }\n"
                                         "  default:\n"
                                         "    break;\n"
                                         "}\n"
                                         "switch (wire) {\n"
                                         "  case Library::WIRETYPE:\n"
                                         "  default:\n"
                                         "}\n");
  REQUIRE(check_defaults(sample) ==
          Complaints{"src/sim/a.cpp:9: default: in a switch over an enum"});
  require_none(check_cpp_files([](const SourceFile& file) {
    return folder_in_src(file).empty() ? Complaints{} : check_defaults(file);
  }));
}

TEST_CASE("no two headers define a type of one name", "[text]") {
  TypePlaces sample;
  REQUIRE(check_unique_types(parse_source("src/sim/a.h",
                                          "namespace trainyard {\n"
                                          "struct Wheel {\n};\n"
                                          "struct Axle;\n"
                                          "inline namespace v0 {\n"
                                          "struct Wheel {\n};\n"),
                             sample)
              .empty());
  REQUIRE(check_unique_types(parse_source("src/hw/b.h",
                                          "namespace trainyard {\n"
                                          "struct Axle {};\n"
                                          "class alignas(64) Wheel {\n"),
                             sample) ==
          Complaints{"src/hw/b.h:3: trainyard::Wheel is also in src/sim/a.h"});
  TypePlaces known;
  require_none(
      check_cpp_files([&](const SourceFile& file) { return check_unique_types(file, known); }));
}

TEST_CASE("no test is named like an option", "[text]") {
  const SourceFile sample = parse_source("tests/sim/a_test.cpp",
                                         "TEST_CASE"
                                         "(\"--help prints\") {}\n"
                                         "TEST_CASE(\"help - or not\") {}\n");
  REQUIRE(check_test_names(sample).size() == 1);
  require_none(check_cpp_files(check_test_names));
}

TEST_CASE("the event core has no floating point", "[text]") {
  REQUIRE(check_integer_core(parse_source("src/sim/event_queue.h", "// No double.\nfloat x;\n")) ==
          Complaints{"src/sim/event_queue.h:2: floating point in the event core"});
  REQUIRE(check_integer_core(parse_source("src/sim/statistics.h", "double x;\n")).empty());
  require_none(check_cpp_files(check_integer_core));
}

TEST_CASE("no file names a path of a particular machine", "[text]") {
  // In two parts each, so that this file does not name one.
  const SourceFile sample = parse_source("docs/a.md",
                                         "see /"
                                         "home/someone/x\n"
                                         "\"/"
                                         "work/main\"\n"
                                         "https://example.org/home/page\n"
                                         "${prefix}/"
                                         "root/bin\n"
                                         "C:"
                                         "\\build\n");
  REQUIRE(check_machine_paths(sample).size() == 3);
  Complaints all;
  for (const SourceFile& file : source_tree()) {
    append(all, check_machine_paths(file));
  }
  require_none(all);
}

}  // namespace
}  // namespace trainyard
