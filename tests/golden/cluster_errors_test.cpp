// SPDX-License-Identifier: Apache-2.0
// One mistake for each file in errors/clusters/, at each key of docs/clusters.md: what load_cluster
// says of NAME.yaml is the one line in NAME.expected. UPDATE_GOLDEN=1 rewrites the expectations.
#include "support/catch.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "topology/cluster.h"

namespace trainyard {
namespace {

const std::filesystem::path kSource = TRAINYARD_SOURCE_DIR;

std::string error_of(const std::filesystem::path& file, const Catalogue& catalogue) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  try {
    ConfigDocument document = ConfigDocument::parse(text, file.filename().string());
    (void)build_cluster(document, catalogue, {});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("each mistake in a cluster file gives its one line", "[golden]") {
  const Catalogue catalogue = Catalogue::load(kSource / "configs/hardware");
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(kSource / "tests/golden/errors/clusters")) {
    if (entry.path().extension() == ".yaml") {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  REQUIRE(files.size() >= 30);
  for (const std::filesystem::path& file : files) {
    INFO(file.filename().string());
    const std::string error = error_of(file, catalogue) + '\n';
    REQUIRE(error != "no error\n");
    REQUIRE(std::ranges::count(error, '\n') == 1);
    std::filesystem::path expected = file;
    expected.replace_extension(".expected");
    if (std::getenv("UPDATE_GOLDEN") != nullptr) {
      std::ofstream(expected, std::ios::binary) << error;
    }
    std::ifstream stream(expected, std::ios::binary);
    REQUIRE(error == std::string(std::istreambuf_iterator<char>(stream), {}));
  }
}

}  // namespace trainyard
