// SPDX-License-Identifier: Apache-2.0
// Every shipped cluster with a few bytes changed at random is built and summarised, or refused in
// one line; it never crashes or runs away.
#include "support/catch.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common.h"
#include "support/damage.h"
#include "support/program.h"
#include "topology/cluster.h"
#include "topology/summary.h"

namespace trainyard {
namespace {

constexpr int kMutations = 60;

std::vector<std::filesystem::path> shipped_clusters() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(TRAINYARD_SOURCE_DIR) / "configs/clusters")) {
    files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
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
  const Catalogue catalogue = load_default_catalogue();
  for (const std::filesystem::path& file : shipped_clusters()) {
    const std::string right = read_text_file(file);
    REQUIRE(outcome(right, catalogue) == "built");
    int refused = 0;
    for (std::uint64_t seed = 1; seed <= kMutations; ++seed) {
      std::mt19937_64 engine(seed);
      const std::string text =
          seed % 3 == 0 ? enlarged(right, engine) : damaged(right, kLikely, engine);
      INFO(file.filename().string() << " seed=" << seed << "\n" << text);
      const std::string result = outcome(text, catalogue);
      REQUIRE(result.find('\n') == std::string::npos);
      refused += result == "built" ? 0 : 1;
    }
    REQUIRE(refused > kMutations / 4);
    REQUIRE(refused < kMutations);
  }
}

}  // namespace trainyard
