// SPDX-License-Identifier: Apache-2.0
// One table of fields reads strictly and describes itself; what it reads into, and its errors.
#include "support/catch.h"

#include "sim/fields.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace trainyard {
namespace {

using namespace literals;

constexpr std::array<std::string_view, 2> kColours{"red", "green"};
enum class Colour : std::uint8_t { Red, Green };

struct Wheel {
  int spokes = 0;
  double width = 1.5;
};

struct Cart {
  std::string title;
  Colour colour = Colour::Red;
  std::optional<int> horses = {};
  bool is_covered = false;
  SimTime start;
  Bytes load;
  Bandwidth speed;
  FlopRate power;
  std::vector<Wheel> wheels;
  std::map<std::string, double> prices;
  std::optional<Wheel> spare = {};
};

void wheel_fields(Fields& fields, Wheel& wheel) {
  fields.required("spokes", wheel.spokes, Whole{1, 99}, "Spokes.");
  fields.optional("width", wheel.width, Number{0.0, 9.0}, "Width: 1.5.");
}

void cart_fields(Fields& fields, Cart& cart) {
  fields.cite_sources();
  fields.required("source", std::ignore, Unread{}, "Where it is from.");
  fields.required("title", cart.title, Text{}, "Name.");
  fields.optional("colour", cart.colour, Choice{kColours}, "Paint.");
  fields.optional("horses", cart.horses, Whole{0, 8}, "Horses.");
  fields.where(cart.horses.has_value(),
               [&] { fields.required("covered", cart.is_covered, Flag{}, "With horses."); });
  fields.required("start", cart.start, Cited{Duration{}}, "Time to start.");
  fields.optional("load", cart.load, Amount{}, "Load.");
  fields.optional("speed", cart.speed, Rate{}, "Speed.");
  fields.optional("power", cart.power, Flops{}, "Power.");
  fields.required("wheels", cart.wheels, List{Group{wheel_fields}}, "Wheels.");
  fields.optional("prices", cart.prices, Named{Number{0.0, 100.0}}, "Prices by country.");
  fields.optional("spare", cart.spare, Composed{wheel_fields}, "Spare wheel.");
  fields.check([&](const ConfigNode& node) {
    if (cart.wheels.size() == 3) {
      node.required("wheels").fail("two or four wheels", "three");
    }
  });
}

const std::string kStart =
    "sources: {book: a book}\nsource: [x, {y: z}]\n"
    "start: {value: 3 ns, evidence: measured, source: book, note: by hand}\n";

Cart read(const std::string& text) {
  ConfigDocument document = ConfigDocument::parse(kStart + text, "f.yaml");
  Cart cart;
  read_fields(document.root(), cart, cart_fields);
  document.finish();
  return cart;
}

std::string error_of(const std::string& text) {
  try {
    (void)read(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("rows fill the members of a struct, and leave what is not there") {
  const Cart cart = read(
      "title: T\ncolour: green\nhorses: 2\ncovered: true\nload: 3 B\nspeed: 1 Gb/s\n"
      "power: 2 FLOP/s\nwheels: [{spokes: 5}, {spokes: 6, width: 2}]\nprices: {x: 1, y: 2.5}\n");
  REQUIRE(cart.title == "T");
  REQUIRE(cart.colour == Colour::Green);
  REQUIRE(cart.horses == 2);
  REQUIRE(cart.is_covered);
  REQUIRE(cart.start == 3_ns);
  REQUIRE(cart.load == Bytes(3));
  REQUIRE(cart.speed == Bandwidth(1'000'000'000));
  REQUIRE(cart.power == FlopRate(2.0));
  REQUIRE(cart.wheels.size() == 2);
  REQUIRE(cart.wheels[0].width == 1.5);
  REQUIRE(cart.wheels[1].spokes == 6);
  REQUIRE(cart.prices == std::map<std::string, double>{{"x", 1.0}, {"y", 2.5}});
  REQUIRE_FALSE(cart.spare);

  const Cart min = read("title: T\nwheels: []\nspare: {spokes: 7}\n");
  REQUIRE(min.colour == Colour::Red);
  REQUIRE_FALSE(min.horses);
  REQUIRE(min.spare.value().spokes == 7);
}

TEST_CASE("rows have the errors of plain readers") {
  const std::string wheels = "title: T\nwheels: []\n";
  REQUIRE(error_of("title: T\n") == "f.yaml:1:1: missing key \"wheels\"");
  REQUIRE(error_of("title: T\nwheels: [{spokes: 0}]\n") ==
          "f.yaml:5:19: wheels[0].spokes: expected a whole number from 1 to 99, found \"0\"");
  REQUIRE(error_of("title: T\nwheels: 3\n") ==
          "f.yaml:5:9: wheels: expected a sequence, found \"3\"");
  REQUIRE(error_of(wheels + "colour: rde\n") ==
          "f.yaml:6:9: colour: expected one of red, green, found \"rde\"; did you mean \"red\"?");
  REQUIRE(error_of(wheels + "spare: {spokes: 3, hub: 1}\n") ==
          "f.yaml:6:20: spare: unknown key \"hub\"; known keys: spokes, width");
  REQUIRE(error_of(wheels + "horses: 1\n") == "f.yaml:1:1: missing key \"covered\"");
  REQUIRE(
      error_of(wheels + "covered: true\n") ==
      "f.yaml:6:1: unknown key \"covered\"; known keys: sources, source, title, colour, horses, "
      "start, load, speed, power, wheels, prices, spare");
  REQUIRE(error_of("title: T\nwheels: [{spokes: 1}, {spokes: 1}, {spokes: 1}]\n") ==
          "f.yaml:5:9: wheels: expected two or four wheels, found three");
}

TEST_CASE("sourced values cite a source of their file") {
  const std::string rest = "title: T\nwheels: []\nsource: x\n";
  const auto error = [&](const std::string& start) {
    ConfigDocument document = ConfigDocument::parse(rest + start, "f.yaml");
    try {
      Cart cart;
      read_fields(document.root(), cart, cart_fields);
    } catch (const ConfigError& thrown) {
      return std::string(thrown.what());
    }
    return std::string("no error");
  };
  const std::string sources = "sources: {book: a book}\n";
  REQUIRE(error(sources + "start: {value: 1 ns, evidence: measured, source: bok}\n") ==
          "f.yaml:5:50: start.source: expected one of book, found \"bok\"; did you mean \"book\"?");
  REQUIRE(error(sources + "start: {value: 1 ns, source: book}\n") ==
          "f.yaml:5:8: start: missing key \"evidence\"");
  REQUIRE(error("start: {value: 1 ns, evidence: measured, source: book}\n") ==
          "f.yaml:3:1: missing key \"sources\"; is \"source\" a misspelling of it?");
}

TEST_CASE("the same rows describe themselves") {
  const Schema schema = schema_of<Cart>(cart_fields);
  REQUIRE(schema.is_map);
  REQUIRE(schema.keys.at(0).name == "sources");
  REQUIRE(schema.keys.at(2).name == "title");
  REQUIRE(schema.keys.at(2).is_required);
  REQUIRE_FALSE(schema.keys.at(3).is_required);
  REQUIRE(schema.keys.at(3).value.limits == "\"enum\": [\"red\", \"green\"]");
  REQUIRE(schema.keys.at(5).name == "covered");
  REQUIRE_FALSE(schema.keys.at(5).is_required);
}

TEST_CASE("a size or a time above zero is one, or off where a kind may be", "[config]") {
  ConfigDocument document = ConfigDocument::parse(
      "size: 1 B\ntime: 1 ps\nnothing: 0 B\nnever: 0 s\noff: off\n", "file.yaml");
  const ConfigNode root = document.root();
  REQUIRE(SomeAmount::value(root.required("size")) == Bytes(1));
  REQUIRE(SomeTime::value(root.required("time")) == picoseconds(1));
  REQUIRE_THROWS_WITH(SomeAmount::value(root.required("nothing")),
                      "file.yaml:3:10: nothing: expected a size above zero, found \"0 B\"");
  REQUIRE_THROWS_WITH(SomeTime::value(root.required("never")),
                      "file.yaml:4:8: never: expected a time above zero, found \"0 s\"");
  REQUIRE(OrOff{SomeTime{}}.value(root.required("off")) == SimTime());
  REQUIRE(OrOff{SomeTime{}}.value(root.required("time")) == picoseconds(1));
  REQUIRE_THROWS(OrOff{SomeTime{}}.value(root.required("never")));
}

}  // namespace trainyard
