// SPDX-License-Identifier: Apache-2.0
// Every reader takes its seeds, or what broke it before, and refuses damaged ones in one line.
#include "support/catch.h"

#include "fuzz/readers.h"

#include <random>
#include <string>

#include "sim/config_error.h"
#include "support/damage.h"
#include "support/effort.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

constexpr std::uint64_t kDamaged = cases(20);  // Texts made of each seed.
constexpr std::string_view kLikely = "0123456789-9e.,:;{}[]<>/\"' \n\t\\";

// Empty where the text was taken.
std::string refusal(const FuzzedReader& reader, const std::string& text) {
  try {
    reader.read(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("each reader takes a seed of its own", "[fuzz]") {
  for (const FuzzedReader& reader : fuzzed_readers()) {
    INFO(reader.name);
    std::size_t taken = 0;
    std::string last;
    for (const std::filesystem::path& seed : seeds_of(reader, source_dir())) {
      const std::string text = refusal(reader, read_text_file(seed));
      taken += text.empty() ? 1 : 0;
      last += seed.filename().string() + ": " + text + "\n";
    }
    INFO(last);
    REQUIRE(taken > 0);
  }
}

TEST_CASE("damaged input of every reader is taken or refused in one line", "[fuzz]") {
  for (const FuzzedReader& reader : fuzzed_readers()) {
    for (const std::filesystem::path& seed : seeds_of(reader, source_dir())) {
      const std::string right = read_text_file(seed);
      // Clusters have a test of their own (tests/cli/damaged_clusters_test.cpp).
      const std::uint64_t count = reader.name == "cluster" ? 1 : kDamaged;
      for (std::uint64_t number = 1; number <= count; ++number) {
        std::mt19937_64 engine(number);
        const std::string text = damaged(right, kLikely, engine);
        INFO(reader.name << " " << seed << " seed=" << number << "\n" << text);
        const std::string answer = refusal(reader, text);
        REQUIRE(answer.find('\n') == std::string::npos);
      }
    }
  }
}

}  // namespace trainyard
