// SPDX-License-Identifier: Apache-2.0
// Files are replaced whole, and a failure leaves the folder as it was.
#include "support/catch.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "report/formats/output.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

namespace fs = std::filesystem;

// An empty folder for one test.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("trainyard-output-" + std::to_string(::getpid()))) {
    fs::remove_all(path_);
    fs::create_directory(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path operator/(const char* name) const { return path_ / name; }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

std::string content(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

TEST_CASE("a file is written and then replaced, and nothing else is left in the folder") {
  const Folder folder;
  write_file(folder / "a.json", "first");
  REQUIRE(content(folder / "a.json") == "first");
  write_file(folder / "a.json", std::string(3'000'000, 'x'));
  REQUIRE(content(folder / "a.json") == std::string(3'000'000, 'x'));
  write_file(folder / "a.json", "");
  REQUIRE(content(folder / "a.json").empty());
  REQUIRE(folder.entries() == 1);
}

TEST_CASE("a replaced file keeps its permissions") {
  const Folder folder;
  write_file(folder / "a", "1");
  fs::permissions(folder / "a", fs::perms::owner_read | fs::perms::owner_write);
  write_file(folder / "a", "2");
  REQUIRE(fs::status(folder / "a").permissions() ==
          (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("a symbolic link is followed") {
  const Folder folder;
  write_file(folder / "target", "old");
  fs::create_symlink(folder / "target", folder / "link");
  write_file(folder / "link", "new");
  REQUIRE(fs::is_symlink(folder / "link"));
  REQUIRE(content(folder / "target") == "new");
}

TEST_CASE("a device is written to, not replaced") {
  write_file("/dev/null", "text");
  REQUIRE(fs::is_character_file("/dev/null"));
}

TEST_CASE("what cannot be written is an error that names the file") {
  const Folder folder;
  fs::create_directory(folder / "sub");
  REQUIRE_THROWS_WITH(write_file(folder / "none/a.csv", "x"),
                      (folder / "none/a.csv").string() + ": cannot be written: the folder " +
                          (folder / "none").string() + " does not exist");
  REQUIRE_THROWS_WITH(write_file(folder / "sub", "x"),
                      (folder / "sub").string() + ": cannot be written: it is a directory");
  REQUIRE_THROWS_AS(write_file(folder / std::string(300, 'n').c_str(), "x"), ConfigError);
  REQUIRE_THROWS_AS(write_file("", "x"), ConfigError);
  REQUIRE(folder.entries() == 1);
}

TEST_CASE("whether a file can be written is found out without leaving anything") {
  const Folder folder;
  REQUIRE_FALSE(unwritable_reason(folder / "a").has_value());
  REQUIRE(folder.entries() == 0);
  write_file(folder / "a", "old");
  REQUIRE_FALSE(unwritable_reason(folder / "a").has_value());
  REQUIRE(content(folder / "a") == "old");
  REQUIRE(folder.entries() == 1);
  REQUIRE_FALSE(unwritable_reason("/dev/null").has_value());
  // A folder in which nobody may make files, root included.
  REQUIRE(unwritable_reason("/proc/a.csv").has_value());
  REQUIRE(unwritable_reason(folder / "none/a") == "No such file or directory");
}

}  // namespace
}  // namespace trainyard
