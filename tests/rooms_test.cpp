// SPDX-License-Identifier: Apache-2.0
// The rooms of the source tree are those of the map in docs/architecture.md, in its order: a room
// includes only itself and the rooms above it. As in tests/tidy_test.cpp, each rule is shown to
// find what it should before it is run over the tree.
#include "support/catch.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/complaints.h"
#include "support/source_text.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxFiles = 40;

// The folder of a path: "network/flow" for "network/flow/flow.h".
std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(path.substr(0, slash == std::string_view::npos ? 0 : slash));
}

bool is_below(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.substr(0, folder.size()) == folder &&
         path[folder.size()] == '/';
}

bool is_code(std::string_view path) {
  return path.size() > 4 &&
         (path.substr(path.size() - 4) == ".cpp" || path.substr(path.size() - 2) == ".h");
}

// The first words of the lines of the block "```rooms" of a page.
std::vector<std::string> rooms_of(const SourceFile& page) {
  std::vector<std::string> rooms;
  bool is_inside = false;
  for (const std::string& line : page.text) {
    if (line.rfind("```", 0) == 0) {
      is_inside = line == "```rooms";
    } else if (is_inside) {
      std::string room;
      std::istringstream(line) >> room;
      rooms.push_back(room);
    }
  }
  return rooms;
}

std::size_t position_of(const std::vector<std::string>& rooms, const std::string& room) {
  return static_cast<std::size_t>(std::find(rooms.begin(), rooms.end(), room) - rooms.begin());
}

// The file that `#include "..."` names on this line, or nothing.
std::string included_file(const SourceFile& file, std::size_t line) {
  if (file.code[line].rfind("#include \"", 0) != 0) {
    return "";
  }
  const std::string& text = file.text[line];
  const std::size_t first = text.find('"') + 1;
  return text.substr(first, text.find('"', first) - first);
}

Complaints check_arrows(const SourceFile& file, const std::vector<std::string>& rooms) {
  if (!is_below(file.path, "src") || !is_code(file.path)) {
    return {};
  }
  const std::string room = folder_of(file.path.substr(4));
  if (position_of(rooms, room) == rooms.size()) {
    return {file.path + ": " + room + " is no room of docs/architecture.md"};
  }
  Complaints complaints;
  for (std::size_t line = 0; line < file.text.size(); ++line) {
    const std::string target = included_file(file, line);
    const std::size_t position = position_of(rooms, folder_of(target));
    const std::string place = file.path + ":" + std::to_string(line + 1) + ": ";
    if (!target.empty() && position == rooms.size()) {
      complaints.push_back(place + "\"" + target + "\" is in no room");
    } else if (!target.empty() && position > position_of(rooms, room)) {
      complaints.push_back(place + room + " is above " + folder_of(target) + " and includes it");
    }
  }
  return complaints;
}

// Rooms without a file, and tests in a folder that is no room.
Complaints check_map(const std::vector<std::string>& paths, const std::vector<std::string>& rooms) {
  constexpr std::array<std::string_view, 6> kOtherTests{"boxing", "calibrate", "fuzz",
                                                        "golden", "property",  "support"};
  Complaints complaints;
  for (const std::string& room : rooms) {
    const auto is_here = [&](const std::string& path) {
      return is_code(path) && folder_of(path) == "src/" + room;
    };
    if (std::none_of(paths.begin(), paths.end(), is_here)) {
      complaints.push_back("docs/architecture.md: src/" + room + " has no file");
    }
  }
  for (const std::string& path : paths) {
    const std::string folder = folder_of(path);
    if (!is_below(folder, "tests") || !is_code(path)) {
      continue;
    }
    const std::string room = folder.substr(6);
    if (position_of(rooms, room) == rooms.size() &&
        std::find(kOtherTests.begin(), kOtherTests.end(), room.substr(0, room.find('/'))) ==
            kOtherTests.end()) {
      complaints.push_back(path + ": " + room + " is no room of docs/architecture.md");
    }
  }
  return complaints;
}

Complaints check_room_sizes(const std::vector<std::string>& paths) {
  std::map<std::string, std::size_t> counts;
  for (const std::string& path : paths) {
    if (is_below(path, "src") || is_below(path, "docs")) {
      ++counts[folder_of(path)];
    }
  }
  Complaints complaints;
  for (const auto& [folder, count] : counts) {
    if (count > kMaxFiles) {
      complaints.push_back(folder + ": " + std::to_string(count) + " files");
    }
  }
  return complaints;
}

std::vector<std::string> tree_paths() {
  std::vector<std::string> paths;
  for (const SourceFile& file : source_tree()) {
    paths.push_back(file.path);
  }
  return paths;
}

std::vector<std::string> tree_rooms() {
  const auto page =
      std::find_if(source_tree().begin(), source_tree().end(),
                   [](const SourceFile& file) { return file.path == "docs/architecture.md"; });
  REQUIRE(page != source_tree().end());
  return rooms_of(*page);
}

}  // namespace

TEST_CASE("the map of rooms is a block of the page about the architecture", "[text]") {
  const SourceFile page = parse_source("docs/architecture.md",
                                       "```\nsim  no\n```\n"
                                       "```rooms\nsim      time\nhw/parts  the catalogue\n```\n");
  REQUIRE(rooms_of(page) == std::vector<std::string>{"sim", "hw/parts"});
  REQUIRE(tree_rooms().size() > 50);
}

TEST_CASE("a room of src includes only itself and the rooms above it in the map", "[text]") {
  const std::vector<std::string> rooms{"sim", "hw/parts", "hw/control"};
  const SourceFile sample = parse_source("src/hw/parts/a.cpp",
                                         "#include \"hw/parts/a.h\"\n"
                                         "#include \"sim/units.h\"\n"
                                         "// #include \"hw/control/x.h\"\n"
                                         "#include \"hw/control/b.h\"\n"
                                         "#include \"b.h\"\n");
  REQUIRE(check_arrows(sample, rooms) ==
          Complaints{"src/hw/parts/a.cpp:4: hw/parts is above hw/control and includes it",
                     "src/hw/parts/a.cpp:5: \"b.h\" is in no room"});
  REQUIRE(check_arrows(parse_source("src/hw/x.h", ""), rooms).size() == 1);
  Complaints all;
  for (const SourceFile& file : source_tree()) {
    const Complaints more = check_arrows(file, tree_rooms());
    all.insert(all.end(), more.begin(), more.end());
  }
  require_none(all);
}

TEST_CASE("the map has each room that there is, for tests as well", "[text]") {
  REQUIRE(check_map({"src/sim/a.h", "tests/sim/a_test.cpp", "tests/golden/b_test.cpp",
                     "tests/tidy_test.cpp", "tests/hw/b_test.cpp"},
                    {"sim", "topology/graph"}) ==
          Complaints{"docs/architecture.md: src/topology/graph has no file",
                     "tests/hw/b_test.cpp: hw is no room of docs/architecture.md"});
  require_none(check_map(tree_paths(), tree_rooms()));
}

TEST_CASE("no folder of src or docs has more files than one can keep in mind", "[text]") {
  std::vector<std::string> sample;
  for (std::size_t file = 0; file <= kMaxFiles; ++file) {
    sample.push_back("src/sim/" + std::to_string(file) + ".h");
  }
  sample.emplace_back("src/hw/parts/a.h");
  REQUIRE(check_room_sizes(sample) == Complaints{"src/sim: 41 files"});
  require_none(check_room_sizes(tree_paths()));
}

}  // namespace trainyard
