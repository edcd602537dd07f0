// SPDX-License-Identifier: Apache-2.0
// The library as others use it: installed, found by CMake, and seen from outside.
#include "support/catch.h"

#include <filesystem>
#include <sstream>
#include <string>

#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

#ifdef TRAINYARD_HAS_LIBRARY

std::filesystem::path build_dir() {
  return std::filesystem::path(program_path()).parent_path().parent_path();
}

std::string output_of(const std::string& command, const ScratchFolder& folder) {
  const ProgramResult result = run_shell(command, folder.path());
  INFO(command << "\n" << result.output << result.error);
  REQUIRE(result.status == 0);
  return result.output;
}

TEST_CASE("a program built against the installed library finds its files and says what is wrong",
          "[long]") {
  const ScratchFolder folder;
  static_cast<void>(output_of("cmake --install " + build_dir().string() + " --prefix prefix && " +
                                  "cmake -S " + (source_dir() / "examples/library").string() +
                                  " -B example -DCMAKE_PREFIX_PATH=$PWD/prefix && "
                                  "cmake --build example",
                              folder));
  const std::string text =
      output_of("cd / && " + (folder.path() / "example/rails").string(), folder);
  std::istringstream lines(text);
  for (const std::string nics : {"8", "4", "2"}) {
    std::string line;
    std::getline(lines, line);
    INFO(text);
    REQUIRE(line.starts_with(nics + " NICs: all_reduce "));
    std::string program = output_of(
        "prefix/bin/trainyard collective all_reduce --cluster dgx-h100 "
        "--nodes 8 --set server.nics=" +
            nics + " -b 64M -e 64M --format csv | tail -n 1 | cut -d, -f6",
        folder);
    const double time_us = std::stod(program);
    REQUIRE(std::stod(line.substr(line.find("all_reduce ") + 11)) == Approx(time_us).margin(0.05));
  }
  std::string line;
  std::getline(lines, line);
  REQUIRE(line ==
          "--nodes is wrong: --nodes: expected a whole number from 1 to 1000000, found \"-1\"");
  // The files beside the library are those that are read.
  static_cast<void>(
      output_of("echo 'not_a_key: 1' >> "
                "prefix/share/trainyard/configs/clusters/dgx-h100.yaml",
                folder));
  REQUIRE(output_of("example/rails", folder).find("not_a_key") != std::string::npos);
}

TEST_CASE("the shared library shows the names of the public header and no others") {
  const ScratchFolder folder;
  const std::string names = output_of(
      "nm -D --defined-only --demangle " + (build_dir() / "lib/libtrainyard.so").string(), folder);
  std::istringstream lines(names);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    INFO(line);
    const std::string name = line.substr(19);  // After address and kind.
    const bool is_ours = name.starts_with("trainyard::v0::") || name.starts_with("typeinfo ") ||
                         name.starts_with("vtable for trainyard::v0::");
    REQUIRE(is_ours);
  }
  REQUIRE(count > 30);
}

#endif

TEST_CASE("the program includes nothing but the public header") {
  const std::string text = read_text_file(source_dir() / "src/program/main.cpp");
  REQUIRE(text.find("#include \"") == std::string::npos);
  REQUIRE(text.find("#include <trainyard/trainyard.h>") != std::string::npos);
}

}  // namespace
}  // namespace trainyard
