// SPDX-License-Identifier: Apache-2.0
// Every shipped cluster with a few bytes changed at random is built and summarised, or refused in
// one line; it never crashes or runs away.
#include "support/catch.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/common/common.h"
#include "support/damage.h"
#include "support/effort.h"
#include "support/paths.h"
#include "support/program.h"
#include "topology/cluster/cluster.h"
#include "topology/lint/summary.h"

namespace trainyard {
namespace {

constexpr std::uint64_t kMutations = cases(12);  // Of each file.

std::vector<std::filesystem::path> shipped_files(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_dir() / "configs" / folder)) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

// A cluster of one server of this file.
std::string cluster_of(const std::string& server) {
  std::istringstream lines(server);
  std::string text = "name: one server\nsource: a test\nnodes: 1\nserver:\n";
  bool in_source = false;
  for (std::string line; std::getline(lines, line);) {
    in_source = line.starts_with("source:") || (in_source && line.starts_with(" "));
    text += in_source ? "" : "  " + line + "\n";
  }
  return text;
}

// The shipped clusters, and the shipped servers alone.
std::vector<std::pair<std::string, std::string>> shipped_texts() {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const std::filesystem::path& file : shipped_files("clusters")) {
    texts.emplace_back(file.string(), read_text_file(file));
  }
  for (const std::filesystem::path& file : shipped_files("servers")) {
    texts.emplace_back(file.string(), cluster_of(read_text_file(file)));
  }
  return texts;
}

// Digits often: they make sizes absurd.
constexpr std::string_view kLikely = "0123456789999:-[]{}&*#'\" \n";

// A digit put behind one of the digits: 8 GPUs become 80 or 8999.
std::string enlarged(std::string text, std::mt19937_64& engine) {
  std::vector<std::size_t> digits;
  for (std::size_t at = text.find("nodes:"); at < text.size(); ++at) {
    if (text[at] >= '0' && text[at] <= '9') {
      digits.push_back(at);
    }
  }
  const std::size_t at = digits[engine() % digits.size()];
  return text.insert(at + 1, 1 + engine() % 4, static_cast<char>('0' + engine() % 10));
}

// "built", or the message of the refusal.
std::string outcome(const std::string& text, const Catalogue& catalogue) {
  try {
    ConfigDocument document = ConfigDocument::parse(text, "damaged.yaml");
    const Cluster cluster = build_cluster(document, catalogue, {});
    REQUIRE(!summarise(cluster).empty());
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "built";
}

}  // namespace

TEST_CASE("a damaged cluster file is built or refused in one line") {
  const Catalogue& catalogue = load_default_catalogue();
  int refused = 0;
  int count = 0;
  for (const auto& [file, right] : shipped_texts()) {
    INFO(file);
    REQUIRE(outcome(right, catalogue) == "built");
    for (std::uint64_t seed = 1; seed <= kMutations; ++seed) {
      std::mt19937_64 engine(seed);
      const std::string text =
          seed % 3 == 0 ? enlarged(right, engine) : damaged(right, kLikely, engine);
      INFO(file << " seed=" << seed << "\n" << text);
      const std::string result = outcome(text, catalogue);
      REQUIRE(result.find('\n') == std::string::npos);
      refused += result == "built" ? 0 : 1;
      ++count;
    }
  }
  REQUIRE(refused > count / 4);
  REQUIRE(refused < count);
}

}  // namespace trainyard
