// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "sim/text_file.h"

#include <sys/stat.h>

#include <fstream>
#include <string>
#include <thread>

#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

constexpr std::uintmax_t kMiB = std::uintmax_t{1} << 20U;

std::string error_of_file(const std::filesystem::path& file, std::uintmax_t max_bytes) {
  try {
    (void)read_whole_file(file, "a\nb", max_bytes);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a file is read to its last byte, up to the limit") {
  const ScratchFolder folder;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{65'536},
                                 std::size_t{65'537}, std::size_t{kMiB}}) {
    std::string text(size, 'x');
    if (size > 0) {
      text.back() = '\0';
    }
    REQUIRE(read_whole_file(folder.write("a", text), "a", kMiB) == text);
  }
  REQUIRE(error_of_file(folder.write("a", std::string(kMiB + 1, 'x')), kMiB) ==
          "a\\nb: expected at most 1 MiB, found more");
}

TEST_CASE("a pipe is read to its end, and a device that never ends is refused") {
  const ScratchFolder folder;
  const std::filesystem::path pipe = folder.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const std::string text(300'000, 'y');
  std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << text; });
  const std::string read = read_whole_file(pipe, "pipe", kMiB);
  writer.join();
  REQUIRE(read == text);
  REQUIRE(error_of_file("/dev/zero", kMiB) == "a\\nb: expected at most 1 MiB, found more");
}

TEST_CASE("what is no file is refused in one line") {
  const ScratchFolder folder;
  REQUIRE(error_of_file(folder.path(), kMiB) == "a\\nb: expected a file, found a directory");
  REQUIRE(error_of_file(folder.path() / "none", kMiB) ==
          "a\\nb: cannot be read: No such file or directory");
}

}  // namespace trainyard
