// SPDX-License-Identifier: Apache-2.0
// One mistake for each file in errors/traffic/: what read_traffic says of NAME.yaml on a cluster of
// ten hosts is the one line in NAME.expected. UPDATE_GOLDEN=1 rewrites the expectations. A seeded
// test then damages a right file at random.
#include "support/catch.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "network/traffic_run.h"
#include "network/traffic_spec.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/damage.h"
#include "support/program.h"

namespace trainyard {
namespace {

const Cluster& hosts() {
  static const Cluster cluster = shipped_cluster("h100-1gpu-400g");
  return cluster;
}

std::string error_of(const std::string& text, const std::string& name) {
  try {
    ConfigDocument document = ConfigDocument::parse(text, name);
    const TrafficSpec spec = read_traffic(
        document, hosts(), {.shipped_sizes = kConfigsFolder / "traffic/sizes", .seed = {}});
    document.finish();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

constexpr const char* kRightText = R"(name: right
source: a test
seed: 3
groups:
  - name: one
    kind: permutation
    endpoints: ["server[0-3]/nic0", server*/gpu0]
    size: {cdf: [[1 KB, 0], [9 KB, 50.5], [1 MB, 100]]}
    start: 5 us
    repeat: 3
    interval: 10 us
    priority: 3
  - {name: two, kind: incast, size: 64 KiB, senders: 4, targets: 2, seed: 9}
  - {name: three, kind: poisson, size: web-search, load: 0.3, duration: 1 ms, flows: 100}
  - name: four
    kind: flows
    size: 1 MB
    flows:
      - {source: server0/nic0, target: server1/gpu0, start: 1 us}
)";

constexpr std::string_view kLikely = "[]{}:,-*/0123456789 \n.%ab";

}  // namespace

TEST_CASE("each mistake in a traffic file gives its one line", "[golden][traffic]") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(TRAINYARD_SOURCE_DIR) / "tests/golden/errors/traffic")) {
    if (entry.path().extension() == ".yaml") {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  REQUIRE(files.size() >= 40);
  for (const std::filesystem::path& file : files) {
    INFO(file.filename().string());
    const std::string error = error_of(read_text_file(file), file.filename().string()) + '\n';
    REQUIRE(error != "no error\n");
    REQUIRE(std::ranges::count(error, '\n') == 1);
    std::filesystem::path expected = file;
    expected.replace_extension(".expected");
    if (std::getenv("UPDATE_GOLDEN") != nullptr) {
      std::ofstream(expected, std::ios::binary) << error;
    }
    REQUIRE(error == read_text_file(expected));
  }
}

TEST_CASE("a damaged traffic file is read or refused in one line", "[traffic]") {
  REQUIRE(error_of(kRightText, "right.yaml") == "no error");
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 engine(seed);
    const std::string text = damaged(kRightText, kLikely, engine);
    INFO("seed=" << seed << '\n' << text);
    const std::string error = error_of(text, "damaged.yaml");
    REQUIRE(error.find('\n') == std::string::npos);
    refused += error != "no error" ? 1 : 0;
  }
  REQUIRE(refused > 50);
}

}  // namespace trainyard
