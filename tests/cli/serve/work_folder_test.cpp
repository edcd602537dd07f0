// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/serve/work_folder.h"

#include <filesystem>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

bool stays_inside(const std::string& value) {
  try {
    check_stays_inside("--set", value);
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

}  // namespace

TEST_CASE("values that cannot name a file outside of the work folder are taken", "[serve]") {
  for (const char* const value :
       {"dgx-h100", "mine.yaml", "clusters/mine.yaml", "nic.speed=25 Gb/s", "1..8", "0-63:8",
        "server={base: hgx-h100, nics: 4}", "fabric={cable: 10 m, leaf: Tomahawk5-256x200G}",
        "gpu0..3", "", "a..b", "qwen2.5-7b", "10 GB/s (each)/s", "-5"}) {
    INFO(value);
    REQUIRE(stays_inside(value));
  }
}

TEST_CASE("values that could name a file outside of the work folder are refused", "[serve]") {
  for (const char* const value :
       {"/etc/passwd", "server=/etc/passwd", "server={base: /etc/passwd}", "a/../../b", "..",
        "../x.yaml", "x/..", "parts=[../a]", "\"/x\"", "server=\"\\x2fetc/passwd\"", "a\n/etc",
        "a:/etc/passwd", "x=../y", "{a: ..}", "a,..,b", "//x", "\t"}) {
    INFO(value);
    REQUIRE_FALSE(stays_inside(value));
  }
}

TEST_CASE("a work folder lists its files, and is refused with a link that leads out of it",
          "[serve]") {
  const ScratchFolder outside;
  outside.write("secret.yaml", "a: 1\n");
  const ScratchFolder folder;
  folder.write("b.yaml", "a: 1\n");
  std::filesystem::create_directory(folder.path() / "a");
  folder.write("a/c.yaml", "a: 1\n");
  std::filesystem::create_symlink(folder.path() / "b.yaml", folder.path() / "inner.yaml");
  REQUIRE(work_files(folder.path()) ==
          std::vector<std::string>{"a/c.yaml", "b.yaml", "inner.yaml"});
  std::filesystem::create_symlink(outside.path(), folder.path() / "a" / "out");
  REQUIRE_THROWS_WITH(work_files(folder.path()),
                      "--folder: expected no symbolic link out of it, found \"a/out\"");
  REQUIRE_THROWS_AS(work_files(folder.path() / "b.yaml"), ConfigError);
  REQUIRE_THROWS_AS(work_files(folder.path() / "none"), ConfigError);
}

}  // namespace trainyard
