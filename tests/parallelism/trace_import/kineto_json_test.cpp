// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/trace_import/kineto_json.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config_error.h"
#include "sim/random.h"
#include "support/effort.h"

namespace trainyard {
namespace {

// Takes events whose name begins with "w", and after all others those with "l".
struct KeptEvents final : KinetoEventSink {
  [[nodiscard]] KinetoWanted wanted(const KinetoHead& head) override {
    const std::string_view name = head.name.value_or("w");
    return name.starts_with('w')   ? KinetoWanted::Now
           : name.starts_with('l') ? KinetoWanted::Later
                                   : KinetoWanted::No;
  }
  void take(const nlohmann::json& event, std::size_t index) override {
    events.emplace_back(index, event);
  }
  [[nodiscard]] bool wants_later() const override { return takes_later; }

  bool takes_later = true;
  std::vector<std::pair<std::size_t, nlohmann::json>> events;
};

struct KeptFile {
  nlohmann::json root;
  std::vector<std::pair<std::size_t, nlohmann::json>> events;
};

KeptFile read_profile(const std::string& text, bool takes_later = true) {
  KeptEvents kept;
  kept.takes_later = takes_later;
  const ImportedFile file{.name = "a.json", .rank = {}, .text = text};
  nlohmann::json root = read_kineto_json(file, kept);
  return {.root = std::move(root), .events = std::move(kept.events)};
}

std::string profile_error(const std::string& text) {
  try {
    (void)read_profile(text);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("of a profile its events and its ranks are read, the rest is passed over", "[kineto]") {
  const std::string text =
      R"({"schemaVersion": 1, "deviceProperties": [{"id": 0, "traceEvents": [{}]}],
          "traceEvents": [
            {"name": "late", "ts": -1.5e3, "args": {"a\"}": [[1], {"b": null}], "c": "]"},
             "dur": 2},
            {"name": "other \"{", "args": {"name": "w"}, "tid": "x"} , {},
            {"args": {"name": "o"}, "name": "wanted"}],
          "distributedInfo": {"rank": 3, "pg_config": [{"ranks": [0, 3]}]}})";
  const KeptFile file = read_profile(text);
  // Everything that is kept is what a parser that keeps all has.
  const nlohmann::json all = nlohmann::json::parse(text);
  REQUIRE(file.events.size() == 3);
  for (const auto& [index, event] : file.events) {
    REQUIRE(event == all["traceEvents"][index]);
  }
  REQUIRE(file.events[0].first == 2);
  REQUIRE(file.events[1].first == 3);
  REQUIRE(file.events[2].first == 0);
  const std::string root =
      R"({"schemaVersion": 1, "deviceProperties": [], "traceEvents": [],
          "distributedInfo": {"rank": 3, "pg_config": [{"ranks": [0, 3]}]}})";
  REQUIRE(file.root == nlohmann::json::parse(root));
  REQUIRE(read_profile(text, false).events.size() == 2);
}

TEST_CASE("drawn profiles are read as the parser of JSON has them", "[kineto]") {
  for (std::uint64_t seed = 1; seed <= cases(300); ++seed) {
    RandomStream random(seed, "profiles");
    const auto below = [&](std::uint64_t count) { return random.below(count); };
    const std::function<nlohmann::json(int)> drawn = [&](int levels) -> nlohmann::json {
      switch (levels == 0 ? below(3) : below(5)) {
        case 0:
          return static_cast<std::int64_t>(below(1000)) - 500;
        case 1:
          return std::string(below(4), "\"\\{]x,:"[below(8)]);
        case 2:
          return below(2) == 0 ? nlohmann::json(nullptr) : nlohmann::json(0.25);
        case 3: {
          nlohmann::json list = nlohmann::json::array();
          for (std::uint64_t count = below(4); count > 0; --count) {
            list.push_back(drawn(levels - 1));
          }
          return list;
        }
        default: {
          nlohmann::json object = nlohmann::json::object();
          for (std::uint64_t count = below(4); count > 0; --count) {
            const std::vector<std::string> keys{"name", "cat", "ph", "a\"b", "traceEvents"};
            object[keys[below(keys.size())]] = drawn(levels - 1);
          }
          return object;
        }
      }
    };
    nlohmann::json file = nlohmann::json::object();
    file["traceEvents"] = nlohmann::json::array();
    for (std::uint64_t count = below(6); count > 0; --count) {
      file["traceEvents"].push_back(drawn(4));
    }
    file["a\\"] = drawn(3);
    const std::string text = file.dump(below(2) == 0 ? -1 : 1);
    INFO(text);
    const KeptFile found = read_profile(text);
    std::vector<nlohmann::json> objects;
    for (const nlohmann::json& each : file["traceEvents"]) {
      if (each.is_object()) {
        objects.push_back(each);
      }
    }
    for (const auto& [index, event] : found.events) {
      REQUIRE(event == objects.at(index));
    }
    // No name that is drawn begins with w or l; what is no text counts as one with w.
    const auto wanted = std::count_if(objects.begin(), objects.end(), [](const auto& event) {
      return !event.contains("name") || !event["name"].is_string();
    });
    REQUIRE(static_cast<std::ptrdiff_t>(found.events.size()) == wanted);
  }
}

TEST_CASE("what is no event stays in the list of events", "[kineto]") {
  const KeptFile file = read_profile(R"({"traceEvents": [1, [{}], {"name": "a"}]})");
  REQUIRE(file.events.empty());
  REQUIRE(file.root["traceEvents"] == nlohmann::json::parse("[1, [{}]]"));
  REQUIRE(read_profile("[{}, {}]").root.is_array());
  REQUIRE(read_profile("17").root == 17);
}

TEST_CASE("a profile that is no JSON is refused with its place", "[kineto]") {
  REQUIRE(profile_error("{\"traceEvents\": [\n{\"name\": x}]}")
              .find("a.json:2:10: expected JSON, found") == 0);
  REQUIRE(profile_error("{\"a\": 1e999}").find("a.json: expected JSON, found number overflow") ==
          0);
  REQUIRE(profile_error("{\"a\": " + std::string(64, '[')) ==
          "a.json:1:70: expected at most 64 levels of lists and objects, found more");
}

TEST_CASE("a field that is missing or of another kind is named with its place", "[kineto]") {
  const auto error_of = [](const nlohmann::json& object, const auto& look_up) {
    try {
      look_up(KinetoFields(object, "a.json", 17, "gemm"));
    } catch (const ConfigError& problem) {
      return std::string(problem.what());
    }
    return std::string("no error");
  };
  const auto object = nlohmann::json::parse(R"({"number": 5, "text": "12", "part": -0.5})");
  const KinetoFields fields(object, "a.json", "distributedInfo");
  REQUIRE(fields.place() == "a.json: distributedInfo");
  REQUIRE(fields.integer("number", 5) == 5);
  REQUIRE(fields.integer("text", 12) == 12);
  REQUIRE(fields.text_or_none("none").empty());
  REQUIRE(error_of(object, [](const KinetoFields& of) { (void)of.integer("number", 4); }) ==
          "a.json: event 17 (gemm): number: expected a whole number from 0 to 4, found 5");
  REQUIRE(error_of(object, [](const KinetoFields& of) { (void)of.text("number"); }) ==
          "a.json: event 17 (gemm): number: expected a text, found 5");
  REQUIRE(error_of(object, [](const KinetoFields& of) { (void)of.nanoseconds_of("part", 9); }) ==
          "a.json: event 17 (gemm): part: expected microseconds from 0 to 9, found -0.5");
}

}  // namespace trainyard
