// SPDX-License-Identifier: Apache-2.0
// Reading, tracking and --set. The texts of the errors of files are in tests/golden/errors/.
#include "support/catch.h"

#include "sim/config.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace trainyard {
namespace {

using namespace literals;

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

ConfigDocument parsed(const std::string& text) {
  return ConfigDocument::parse(text, "f.yaml");
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

// What reading `text` as the value of "v" says after "f.yaml:1:4: v: ".
template <typename Read>
std::string value_error(const std::string& text, Read read) {
  const std::string error = error_of([&] {
    ConfigDocument document = parsed("v: " + text + "\n");
    static_cast<void>(read(document.root().required("v")));
  });
  const std::string place = "f.yaml:1:4: v: ";
  return error.starts_with(place) ? error.substr(place.size()) : error;
}

std::string integer_error(const std::string& text, std::int64_t min, std::int64_t max) {
  return value_error(text, [&](const ConfigNode& node) { return node.as_integer(min, max); });
}

std::string number_error(const std::string& text, double min, double max) {
  return value_error(text, [&](const ConfigNode& node) { return node.as_number(min, max); });
}

// A folder of this test, removed with it.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("trainyard_" + name)) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::filesystem::path write(const std::string& name, const std::string& text) {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path_ / name;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("scalars of every kind are read") {
  ConfigDocument document = parsed(
      "name: H100 SXM\nquoted: '8'\nflag: true\noff: false\ncount: -3\nratio: 2.5e-1\n"
      "latency: 130 ns\nsize: 25 MiB\nrate: 400 Gb/s\npeak: 989 TFLOP/s\nkind: tree\n");
  const ConfigNode root = document.root();
  constexpr std::array<std::string_view, 2> kKinds = {"ring", "tree"};
  REQUIRE(root.required("name").as_string() == "H100 SXM");
  REQUIRE(root.required("quoted").as_integer(1, 8) == 8);
  REQUIRE(root.required("flag").as_bool());
  REQUIRE_FALSE(root.required("off").as_bool());
  REQUIRE(root.required("count").as_integer(kMin, kMax) == -3);
  REQUIRE(root.required("ratio").as_number(0.0, 1.0) == 0.25);
  REQUIRE(root.required("latency").as_time() == 130_ns);
  REQUIRE(root.required("size").as_bytes() == 25_MiB);
  REQUIRE(root.required("rate").as_bandwidth() == gigabits_per_second(400));
  REQUIRE(root.required("peak").as_flop_rate() == FlopRate(989e12));
  REQUIRE(root.required("kind").as_choice(kKinds) == 1);
  REQUIRE_NOTHROW(document.finish());
}

TEST_CASE("sequences and mappings are read in order, with their paths") {
  ConfigDocument document = parsed("nics: [a, b]\nlabels: {z: 1, a: 2}\nnone:\n");
  const ConfigNode root = document.root();
  REQUIRE(root.is_map());
  REQUIRE(root.path().empty());
  const std::vector<ConfigNode> nics = root.required("nics").items();
  REQUIRE(nics.size() == 2);
  REQUIRE(nics[1].is_scalar());
  REQUIRE(nics[1].path() == "nics[1]");
  const auto labels = root.required("labels").entries();
  REQUIRE(labels.size() == 2);
  REQUIRE(labels[0].first == "z");
  REQUIRE(labels[1].second.path() == "labels.a");
  REQUIRE(root.required("none").is_null());
  REQUIRE(root.required("nics").is_sequence());
  REQUIRE_FALSE(root.optional("absent").has_value());
  REQUIRE_NOTHROW(document.finish());
}

TEST_CASE("whole numbers name their range") {
  REQUIRE(integer_error("0", 1, 64) == "expected a whole number from 1 to 64, found \"0\"");
  REQUIRE(integer_error("0", 1, kMax) == "expected a whole number of at least 1, found \"0\"");
  REQUIRE(integer_error("9", kMin, 8) == "expected a whole number of at most 8, found \"9\"");
  for (const char* text : {"1.0", "1e3", "0x10", "1_000", "+1", "--1", "1 2", "08", "-08", "one",
                           "9223372036854775808", "''"}) {
    INFO(text);
    REQUIRE(integer_error(text, kMin, kMax).starts_with("expected a whole number, found \""));
  }
}

TEST_CASE("numbers are finite and in their range") {
  REQUIRE(number_error("2", 0.0, 1.0) == "expected a number from 0 to 1, found \"2\"");
  REQUIRE(number_error("-1", 0.5, kInfinity) == "expected a number of at least 0.5, found \"-1\"");
  for (const char* text :
       {"nan", ".nan", "inf", "-inf", ".inf", "1e999", "1.0x", "1,5", "0x1p3", "''"}) {
    INFO(text);
    REQUIRE(number_error(text, -kInfinity, kInfinity).starts_with("expected a number, found \""));
  }
}

TEST_CASE("a value of another kind is named") {
  const auto rate = [](const ConfigNode& node) { return node.as_bandwidth(); };
  const auto text = [](const ConfigNode& node) { return node.as_string(); };
  const auto flag = [](const ConfigNode& node) { return node.as_bool(); };
  const auto items = [](const ConfigNode& node) { return node.items(); };
  const auto entries = [](const ConfigNode& node) { return node.entries(); };
  REQUIRE(value_error("{}", rate) == "expected a rate such as \"400 Gb/s\", found a mapping");
  REQUIRE(value_error("[]", text) == "expected text, found a sequence");
  REQUIRE(value_error("~", text) == "expected text, found nothing");
  REQUIRE(value_error("True", flag) == "expected true or false, found \"True\"");
  REQUIRE(value_error("{}", items) == "expected a sequence, found a mapping");
  REQUIRE(value_error("[]", entries) == "expected a mapping, found a sequence");
}

TEST_CASE("rates must be positive, times and sizes may be zero") {
  const auto rate = [](const ConfigNode& node) { return node.as_bandwidth(); };
  const auto peak = [](const ConfigNode& node) { return node.as_flop_rate(); };
  REQUIRE(value_error("0", rate) == R"(expected a positive rate such as "400 Gb/s", found "0")");
  REQUIRE(value_error("0 TFLOP/s", peak) ==
          R"(expected a positive rate such as "989 TFLOP/s", found "0 TFLOP/s")");
  ConfigDocument document = parsed("time: 0\nsize: 0 B\n");
  REQUIRE(document.root().required("time").as_time() == SimTime());
  REQUIRE(document.root().required("size").as_bytes() == Bytes());
}

TEST_CASE("found text stays on one line and is cut") {
  const auto rate = [](const ConfigNode& node) { return node.as_bandwidth(); };
  REQUIRE(value_error("\"a\\nb\\e\"", rate) ==
          R"(expected a rate such as "400 Gb/s", found "a\nb\x1b")");
  REQUIRE(value_error(std::string(100, 'x'), rate) ==
          R"(expected a rate such as "400 Gb/s", found ")" + std::string(60, 'x') + "...\"");
}

TEST_CASE("finish names the first key that nobody asked for") {
  ConfigDocument document = parsed("a: {x: 1, y: 2}\nb: 3\n");
  const ConfigNode root = document.root();
  REQUIRE(error_of([&] { document.finish(); }) == "f.yaml:1:1: unknown key \"a\"");
  static_cast<void>(root.required("a").required("x"));
  REQUIRE(error_of([&] { document.finish(); }) ==
          "f.yaml:1:11: a: unknown key \"y\"; known keys: x");
  root.required("a").skip();
  REQUIRE(error_of([&] { document.finish(); }) == "f.yaml:2:1: unknown key \"b\"; known keys: a");
  static_cast<void>(root.optional("b"));
  REQUIRE_NOTHROW(document.finish());
}

TEST_CASE("an optional key that is absent counts as known") {
  ConfigDocument document = parsed("bandwith: 400 Gb/s\n");
  REQUIRE_FALSE(document.root().optional("bandwidth").has_value());
  REQUIRE_FALSE(document.root().optional("latency").has_value());
  REQUIRE(error_of([&] { document.finish(); }) ==
          "f.yaml:1:1: unknown key \"bandwith\"; did you mean \"bandwidth\"?");
}

TEST_CASE("reading one alias leaves the other unread") {
  ConfigDocument document = parsed("a: &nic {rate: 1 Gb/s}\nb: *nic\n");
  const ConfigNode root = document.root();
  static_cast<void>(root.required("a").required("rate"));
  static_cast<void>(root.required("b"));
  REQUIRE(error_of([&] { document.finish(); }) == "f.yaml:1:10: b: unknown key \"rate\"");
}

TEST_CASE("a document may be moved while its nodes are in use") {
  ConfigDocument first = parsed("a: {b: 1}\n");
  const ConfigNode node = first.root().required("a");
  const ConfigDocument second = std::move(first);
  REQUIRE(node.required("b").as_integer(0, 9) == 1);
  REQUIRE_NOTHROW(second.finish());
}

TEST_CASE("set leaves out a key that is there") {
  ConfigDocument document = parsed("server: {nics: 8, gpus: 4}\ntiers: [{ratio: 1, name: x}]\n");
  document.set("server.nics", kAbsent);
  document.set("tiers.0.name", kAbsent);
  REQUIRE_FALSE(document.root().required("server").optional("nics"));
  REQUIRE(document.root().required("server").required("gpus").as_integer(0, 9) == 4);
  REQUIRE_FALSE(document.root().required("tiers").items()[0].optional("name"));
  REQUIRE(document.root().required("tiers").items()[0].required("ratio").as_integer(0, 9) == 1);
  REQUIRE_NOTHROW(document.finish());
  for (const char* path : {"server.nics", "server.gpus.base.x", "none", "tiers.name"}) {
    INFO(path);
    REQUIRE_THROWS_AS(document.set(path, kAbsent), ConfigError);
  }
}

TEST_CASE("set replaces, adds and indexes") {
  ConfigDocument document = parsed("server: {nics: 8}\ntiers: [{ratio: 1}, {ratio: 2}]\nempty:\n");
  document.set("server.nics", "4");
  document.set("tiers.1.ratio", "3");
  document.set("server.rates", "[1 Gb/s, 2 Gb/s]");
  document.set("empty.deep.value", "x");
  document.set("tiers.0", "{ratio: 9}");
  const ConfigNode root = document.root();
  REQUIRE(root.required("server").required("nics").as_integer(0, 9) == 4);
  REQUIRE(root.required("server").required("rates").items()[1].as_bandwidth() ==
          gigabits_per_second(2));
  REQUIRE(root.required("tiers").items()[0].required("ratio").as_integer(0, 9) == 9);
  REQUIRE(root.required("tiers").items()[1].required("ratio").as_integer(0, 9) == 3);
  REQUIRE(root.required("empty").required("deep").required("value").as_string() == "x");
  REQUIRE_NOTHROW(document.finish());
}

TEST_CASE("set changes one place of an alias only") {
  ConfigDocument document = parsed("a: &nic {rate: 1 Gb/s}\nb: *nic\n");
  document.set("b.rate", "2 Gb/s");
  const ConfigNode root = document.root();
  REQUIRE(root.required("a").required("rate").as_bandwidth() == gigabits_per_second(1));
  REQUIRE(root.required("b").required("rate").as_bandwidth() == gigabits_per_second(2));
}

TEST_CASE("errors of set values name the option") {
  ConfigDocument document = parsed("server: {nics: 8, gpu: H100}\ntiers: [1, 2]\n");
  document.set("server.nics", "zero");
  const ConfigNode server = document.root().required("server");
  REQUIRE(error_of([&] { static_cast<void>(server.required("nics").as_integer(1, 8)); }) ==
          "--set server.nics=zero: server.nics: expected a whole number from 1 to 8, found "
          "\"zero\"");
  document.set("server.nisc", "4");
  static_cast<void>(server.required("gpu"));
  static_cast<void>(document.root().required("tiers"));
  REQUIRE(error_of([&] { document.finish(); }) ==
          "--set server.nisc=4: server: unknown key \"nisc\"; did you mean \"nics\"?");
}

TEST_CASE("a setting below a name makes it the base of a mapping") {
  ConfigDocument document = parsed("server: {gpu: H100}\n");
  document.set("server.gpu.memory", "96 GB");
  const ConfigNode gpu = document.root().required("server").required("gpu");
  REQUIRE(gpu.required("base").as_string() == "H100");
  REQUIRE(gpu.required("memory").as_string() == "96 GB");
  REQUIRE(error_of([&] { static_cast<void>(gpu.as_string()); }) ==
          "--set server.gpu.memory=96 GB: server.gpu: expected text, found a mapping");
}

TEST_CASE("set refuses paths that lead nowhere and values that are no YAML") {
  ConfigDocument document = parsed("server: {gpu: H100}\ntiers: [1, 2]\n");
  const auto set_error = [&](const std::string& path, const std::string& value) {
    return error_of([&] { document.set(path, value); });
  };
  REQUIRE(set_error("tiers.2", "x") == "--set tiers.2=x: expected an index below 2, found \"2\"");
  REQUIRE(set_error("tiers.-1", "x") ==
          "--set tiers.-1=x: expected an index below 2, found \"-1\"");
  for (const char* path : {"", ".", "a.", ".a", "a..b"}) {
    REQUIRE(set_error(path, "1") == "--set " + std::string(path) +
                                        "=1: expected a path such as \"server.nics\", found \"" +
                                        path + '"');
  }
  REQUIRE(set_error("a", "[1") == "--set a=[1: not valid YAML: end of sequence flow not found");
  REQUIRE(set_error("a", "{b: 1, b: 2}") ==
          "--set a={b: 1, b: 2}: expected each key once, found \"b\" again");
  std::string deep = "a";
  for (int i = 0; i < 70; ++i) {
    deep += ".a";
  }
  REQUIRE(set_error(deep, "1").ends_with("expected at most 64 levels of nesting, found more"));
}

TEST_CASE("files are loaded and refused by name") {
  TemporaryFolder folder("config_test");
  const auto load_error = [](const std::filesystem::path& file) {
    const std::string error = error_of([&] { static_cast<void>(ConfigDocument::load(file)); });
    REQUIRE(error.starts_with(file.string()));
    return error.substr(file.string().size());
  };
  ConfigDocument document = ConfigDocument::load(folder.write("right.yaml", "a: 1\n"));
  REQUIRE(document.root().required("a").as_integer(0, 9) == 1);
  REQUIRE(load_error(folder.path() / "absent.yaml") ==
          ": cannot be read: No such file or directory");
  REQUIRE(load_error(folder.path() / "right.yaml" / "x") == ": cannot be read: Not a directory");
  REQUIRE(load_error(folder.path()) == ": expected a file, found a directory");
  REQUIRE(load_error(folder.write("empty.yaml", "")) == ": expected a mapping, found nothing");
  REQUIRE(load_error(folder.write("wrong.yaml", "a: 1\na: 2\n")) ==
          ":2:1: expected each key once, found \"a\" again, first on line 1");
  REQUIRE(load_error(folder.write("large.yaml", std::string(17U << 20, '\n'))) ==
          ": expected at most 16 MiB, found more");
}

TEST_CASE("the nearest word is a likely typo or nothing") {
  const std::vector<std::string> words = {"bandwidth", "latency", "gpu", "nics", "ring"};
  REQUIRE(nearest_word("bandwith", words) == "bandwidth");
  REQUIRE(nearest_word("Bandwidth", words) == "bandwidth");
  REQUIRE(nearest_word("latnecy", words) == "latency");
  REQUIRE(nearest_word("gup", words) == "gpu");
  REQUIRE(nearest_word("GPU", words) == "gpu");
  REQUIRE(nearest_word("nic", words) == "nics");
  REQUIRE_FALSE(nearest_word("cpu2", {}).has_value());
  REQUIRE_FALSE(nearest_word("tree", words).has_value());
  REQUIRE_FALSE(nearest_word("xyz", words).has_value());
  REQUIRE_FALSE(nearest_word("tp", std::vector<std::string>{"pp", "dp"}).has_value());
  REQUIRE(nearest_word("TP", std::vector<std::string>{"pp", "tp"}) == "tp");
  REQUIRE_FALSE(nearest_word(std::string(1'000'000, 'x'), words).has_value());
}

TEST_CASE("a word of another tool for a key is answered with the key") {
  const auto error = [](const std::string& key) {
    return error_of([&] {
      ConfigDocument document = parsed(key + ": 2\n");
      (void)document.root().optional("tensor");
      document.finish();
    });
  };
  REQUIRE(error("tp") == "f.yaml:1:1: unknown key \"tp\"; did you mean \"tensor\"?");
  REQUIRE(error("TP") == "f.yaml:1:1: unknown key \"TP\"; did you mean \"tensor\"?");
  REQUIRE(error("pp") == "f.yaml:1:1: unknown key \"pp\"; known keys: tensor");
}

}  // namespace trainyard
