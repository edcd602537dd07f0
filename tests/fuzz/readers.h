// SPDX-License-Identifier: Apache-2.0
// Every reader of files that strangers write, as a function of the text. Each takes any text or
// throws a ConfigError; anything else that leaves it, or ends it, is a mistake.
//
// libFuzzer runs them with clang (fuzz_main.cpp, tools/ci/fuzz.sh), and readers_test.cpp tries each
// of their seeds, and what was found before, whole and damaged, in every build.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

struct FuzzedReader {
  std::string_view name;
  // Files and folders of the checkout with good input, relative to its root, parted by blanks;
  // beside them tests/fuzz/seeds/NAME.
  std::string_view seeds;
  // So many inputs take about two seconds of a core with sanitizers.
  int runs;
  void (*read)(const std::string& text);
};

[[nodiscard]] std::span<const FuzzedReader> fuzzed_readers();

// The files that a reader's seeds are, in order, with those that were found to break it once.
[[nodiscard]] std::vector<std::filesystem::path> seeds_of(const FuzzedReader& reader,
                                                          const std::filesystem::path& root);

}  // namespace trainyard
