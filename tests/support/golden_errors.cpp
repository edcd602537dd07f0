// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "support/golden_errors.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <random>
#include <vector>

#include "support/damage.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

constexpr const char* kNoError = "no error";

}  // namespace

void require_golden_errors(const std::filesystem::path& folder, std::size_t min,
                           const ErrorOf& error_of) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(source_dir() / "tests/golden" / folder)) {
    if (entry.path().extension() == ".yaml") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  REQUIRE(files.size() >= min);
  for (const std::filesystem::path& file : files) {
    INFO(file.filename().string());
    const std::string error = error_of(read_text_file(file), file.filename().string());
    REQUIRE(error != kNoError);
    REQUIRE(error.find('\n') == std::string::npos);
    std::filesystem::path expected = file;
    expected.replace_extension(".expected");
    if (std::getenv("UPDATE_GOLDEN") != nullptr) {
      std::ofstream(expected, std::ios::binary) << error << '\n';
    }
    REQUIRE(error + '\n' == read_text_file(expected));
  }
}

int refused_damage(const std::string& right, std::string_view likely, std::uint64_t seeds,
                   const ErrorOf& error_of) {
  REQUIRE(error_of(right, "right.yaml") == kNoError);
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    std::mt19937_64 engine(seed);
    const std::string text = damaged(right, likely, engine);
    INFO("seed=" << seed << '\n' << text);
    const std::string error = error_of(text, "damaged.yaml");
    REQUIRE(error.find('\n') == std::string::npos);
    refused += error != kNoError ? 1 : 0;
  }
  return refused;
}

}  // namespace trainyard
