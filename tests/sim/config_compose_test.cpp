// SPDX-License-Identifier: Apache-2.0
// Values that stand in other files: what replaces what, and where errors point.
#include "support/catch.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/config.h"
#include "support/program.h"

namespace trainyard {
namespace {

// A folder `servers` with files, and documents beside it.
class Library {
 public:
  Library() { std::filesystem::create_directories(servers()); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(servers() / (name + ".yaml")) << text;
  }
  [[nodiscard]] std::filesystem::path servers() const { return folder_.path() / "servers"; }
  [[nodiscard]] std::filesystem::path folder() const { return folder_.path(); }

  // The document with `server` composed.
  [[nodiscard]] ConfigDocument compose(const std::string& text) const {
    ConfigDocument document = ConfigDocument::parse(text, (folder() / "cluster.yaml").string());
    document.compose(document.root().required("server"), servers());
    return document;
  }
  // What that says, without the folder.
  [[nodiscard]] std::string error(const std::string& text) const {
    try {
      (void)compose(text);
    } catch (const ConfigError& error) {
      return without_folder(error.what());
    }
    return "no error";
  }
  [[nodiscard]] std::string without_folder(std::string message) const {
    const std::string prefix = folder().string() + "/";
    for (std::size_t place = message.find(prefix); place != std::string::npos;
         place = message.find(prefix)) {
      message.erase(place, prefix.size());
    }
    return message;
  }

 private:
  ScratchFolder folder_;
};

std::vector<std::pair<std::string, std::string>> values(ConfigDocument& document) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const auto& [key, value] : document.root().required("server").entries()) {
    values.emplace_back(key, value.as_string());
  }
  return values;
}

using Values = std::vector<std::pair<std::string, std::string>>;

TEST_CASE("a name represents the mapping of its file, without the source") {
  const Library library;
  library.write("box", "source: A manual.\ngpu: H100\ngpus: 8\n");
  ConfigDocument document = library.compose("server: box\n");
  REQUIRE(values(document) == Values{{"gpu", "H100"}, {"gpus", "8"}});
  document.finish();
}

TEST_CASE("a name may have dots, as those of clouds do") {
  const Library library;
  library.write("p5.48xlarge", "source: A dump.\ngpu: H100\n");
  ConfigDocument document = library.compose("server: p5.48xlarge\n");
  REQUIRE(values(document) == Values{{"gpu", "H100"}});
}

TEST_CASE("keys replace those of the base whole, in its order, and new ones come last") {
  const Library library;
  library.write("box", "source: A manual.\ngpu: H100\ngpus: 8\nnic: CX7\n");
  ConfigDocument document = library.compose("server: {nic: EFA, base: box, pxn: true}\n");
  REQUIRE(values(document) ==
          Values{{"gpu", "H100"}, {"gpus", "8"}, {"nic", "EFA"}, {"pxn", "true"}});
  library.write("tree", "source: A manual.\ntree: {a: 1, b: 2}\n");
  ConfigDocument whole = library.compose("server: {base: tree, tree: {a: 3}}\n");
  const ConfigNode tree = whole.root().required("server").required("tree");
  REQUIRE(tree.required("a").as_string() == "3");
  REQUIRE(!tree.optional("b"));
  whole.finish();
}

TEST_CASE("a base may have a base") {
  const Library library;
  library.write("box", "source: A manual.\ngpu: H100\nnic: CX7\ncpu: Xeon\n");
  library.write("cloud", "source: A cloud.\nbase: box\nnic: EFA\n");
  ConfigDocument document = library.compose("server: {base: cloud, cpu: EPYC}\n");
  REQUIRE(values(document) == Values{{"gpu", "H100"}, {"nic", "EFA"}, {"cpu", "EPYC"}});
}

TEST_CASE("a file with a folder or .yaml is looked for beside the one that names it") {
  const Library library;
  library.write("box", "source: A manual.\nbase: ../mine.yaml\n");
  std::ofstream(library.folder() / "mine.yaml") << "source: Mine.\ngpu: V100\n";
  ConfigDocument beside = library.compose("server: mine.yaml\n");
  REQUIRE(values(beside) == Values{{"gpu", "V100"}});
  ConfigDocument through = library.compose("server: box\n");
  REQUIRE(values(through) == Values{{"gpu", "V100"}});
}

TEST_CASE("values can be set above what was composed") {
  const Library library;
  library.write("box", "source: A manual.\ngpu: H100\ngpus: 8\n");
  ConfigDocument document = library.compose("server: box\n");
  document.set("server.gpus", "4");
  document.compose(document.root().required("server"), library.servers());
  REQUIRE(values(document) == Values{{"gpu", "H100"}, {"gpus", "4"}});
}

TEST_CASE("errors point at the file and line of the value") {
  const Library library;
  library.write("box", "source: A manual.\ngpu: H100\ngpus: eight\ncolour: red\n");
  ConfigDocument document = library.compose("name: x\nserver: {base: box, nics: many}\n");
  const ConfigNode server = document.root().required("server");
  const auto error = [&](auto action) {
    try {
      action();
    } catch (const ConfigError& mistake) {
      return library.without_folder(mistake.what());
    }
    return std::string("no error");
  };
  REQUIRE(
      error([&] { (void)server.required("gpus").as_integer(1, 8); }) ==
      "servers/box.yaml:3:7: server.gpus: expected a whole number from 1 to 8, found \"eight\"");
  REQUIRE(error([&] { (void)server.required("nics").as_integer(0, 8); }) ==
          "cluster.yaml:2:27: server.nics: expected a whole number from 0 to 8, found \"many\"");
  (void)server.required("gpu");
  (void)document.root().required("name");
  REQUIRE(error([&] { document.finish(); }) ==
          "servers/box.yaml:4:1: server: unknown key \"colour\"; known keys: gpus, nics, gpu");
}

TEST_CASE("what cannot be composed is one line that says why") {
  const Library library;
  library.write("dgx-h100", "source: A manual.\ngpu: H100\n");
  library.write("plain", "gpu: H100\n");
  library.write("list", "[1, 2]\n");
  library.write("broken", "source: [\n");
  library.write("loop", "source: A circle.\nbase: back\n");
  library.write("back", "source: A circle.\nbase: loop\n");
  REQUIRE(library.error("server: dgx-h10\n") ==
          "cluster.yaml:1:9: server: expected the name of a file in " +
              library.folder().filename().string() +
              "/servers, found \"dgx-h10\"; did you mean \"dgx-h100\"?");
  REQUIRE_THAT(library.error("server: nothing-like-it\n"),
               Catch::EndsWith("known are back, broken, dgx-h100, list, loop, plain"));
  REQUIRE(library.error("server: {base: [box]}\n") ==
          "cluster.yaml:1:16: server.base: expected the name of a file in " +
              library.folder().filename().string() + "/servers");
  REQUIRE(library.error("server: plain\n") == "servers/plain.yaml:1:1: missing key \"source\"");
  REQUIRE(library.error("server: list\n") == "servers/list.yaml: expected a mapping");
  REQUIRE_THAT(library.error("server: broken\n"),
               Catch::StartsWith("servers/broken.yaml:2:1: not valid YAML"));
  REQUIRE(library.error("server: loop\n") ==
          "servers/back.yaml:2:7: server.base: \"loop\" is a base of itself");
  REQUIRE(library.error("server: missing.yaml\n") ==
          "missing.yaml: cannot be read: No such file or directory");
  for (int level = 0; level < 9; ++level) {
    library.write("level" + std::to_string(level),
                  "source: A tower.\nbase: level" + std::to_string(level + 1) + "\n");
  }
  REQUIRE(library.error("server: level0\n") ==
          "servers/level7.yaml:2:7: server.base: expected at most 8 files on one another");
  REQUIRE(library.error("server: [a, b]\n") == "no error");  // Its reader says what it wants.
  ConfigDocument twice = library.compose("server: dgx-h100\n");
  twice.set("server.base", "plain");
  REQUIRE_THROWS_WITH(twice.compose(twice.root().required("server"), library.servers()),
                      Catch::EndsWith("server: the base is in place already; give another name for "
                                      "the whole instead"));
}

}  // namespace
}  // namespace trainyard
