// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/shell/key_paths.h"

#include <string>
#include <vector>

#include "sim/fields.h"

namespace trainyard {
namespace {

struct Wagon {
  double load = 0.0;
};

struct Train {
  std::string name;
  bool is_fast = false;
  int gauge = 0;
  std::vector<Wagon> wagons;
};

constexpr std::array<std::string_view, 2> kGauges{"narrow", "wide"};

void train_fields(Fields& fields, Train& train) {
  fields.required("name", train.name, Text{}, "What it is called.");
  fields.optional("fast", train.is_fast, Flag{}, "It does not stop.");
  fields.optional("gauge", train.gauge, OrOff{Choice{kGauges}}, "Between the rails.");
  const auto wagon = [](Fields& inner, Wagon& one) {
    inner.required("load", one.load, Number{0.0, 1.0}, "How full it is.");
  };
  fields.optional("wagons", train.wagons, List{Group{wagon}}, "From the front.");
}

}  // namespace

TEST_CASE("the paths of keys have the words that values may be, and items of sequences as 0") {
  const std::vector<KeyPath> paths = key_paths(schema_of<Train>(train_fields));
  std::vector<std::string> names;
  for (const KeyPath& each : paths) {
    names.push_back(each.path);
  }
  REQUIRE(names == std::vector<std::string>{"name", "fast", "gauge", "wagons", "wagons.0.load"});
  REQUIRE(paths[0].text == "What it is called.");
  REQUIRE(paths[0].words.empty());
  REQUIRE(paths[1].words == std::vector<std::string>{"true", "false"});
  REQUIRE(paths[2].words == std::vector<std::string>{"off", "narrow", "wide"});
}

}  // namespace trainyard
