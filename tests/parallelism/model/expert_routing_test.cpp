// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/model/expert_routing.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "sim/random.h"
#include "support/effort.h"

namespace trainyard {
namespace {

Experts routed(std::int64_t count, std::int64_t active, std::int64_t groups = 1,
               std::int64_t active_groups = 1) {
  return {.count = count,
          .active = active,
          .groups = groups,
          .active_groups = active_groups,
          .expert = {.size = 64, .is_gated = true}};
}

// `taken` of the numbers below `all`, each set as likely.
std::vector<std::int64_t> choose(std::int64_t all, std::int64_t taken, RandomStream& random) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t number = 0; number < all; ++number) {
    numbers.push_back(number);
  }
  for (std::int64_t index = 0; index < taken; ++index) {
    const auto left = static_cast<std::uint64_t>(all - index);
    const auto other = index + static_cast<std::int64_t>(random.below(left));
    std::swap(numbers[static_cast<std::size_t>(index)], numbers[static_cast<std::size_t>(other)]);
  }
  numbers.resize(static_cast<std::size_t>(taken));
  return numbers;
}

double drawn_places(const Experts& experts, std::int64_t places, std::uint64_t draws) {
  RandomStream random(7, "routing");
  const std::int64_t of_group = experts.count / experts.groups;
  std::uint64_t sum = 0;
  for (std::uint64_t draw = 0; draw < draws; ++draw) {
    const std::vector<std::int64_t> groups = choose(experts.groups, experts.active_groups, random);
    const std::vector<std::int64_t> found =
        choose(of_group * experts.active_groups, experts.active, random);
    std::vector<bool> hit(static_cast<std::size_t>(places), false);
    for (const std::int64_t one : found) {
      const std::int64_t group = groups[static_cast<std::size_t>(one / of_group)];
      const std::int64_t expert = group * of_group + one % of_group;
      hit[static_cast<std::size_t>(expert * places / experts.count)] = true;
    }
    sum += static_cast<std::uint64_t>(std::count(hit.begin(), hit.end(), true));
  }
  return static_cast<double>(sum) / static_cast<double>(draws);
}

ExpertLoads read_loads(const std::string& text, const Model& model) {
  ConfigDocument document = ConfigDocument::parse(text, "w.yaml");
  ExpertLoads loads;
  Fields fields(document.root());
  expert_load_fields(fields, loads, model);
  document.finish();
  return loads;
}

}  // namespace

TEST_CASE("the expected number of places is what random routing gives", "[experts]") {
  struct Case {
    Experts experts;
    std::int64_t places;
  };
  const std::vector<Case> all{
      {routed(8, 2), 8},          {routed(128, 8), 4},        {routed(128, 8), 16},
      {routed(256, 8, 8, 4), 8},  {routed(256, 8, 8, 4), 64}, {routed(256, 8, 8, 4), 4},
      {routed(160, 6, 8, 3), 20}, {routed(96, 3, 8, 3), 6},   {routed(384, 8), 8}};
  for (const Case& one : all) {
    INFO(one.experts.count << " experts in " << one.places << " places");
    // The number of places has a deviation below 1.5: this is six of their mean.
    const std::uint64_t draws = cases(20'000);
    const double deviation = 1.5 / std::sqrt(static_cast<double>(draws));
    REQUIRE(expected_places(one.experts, one.places) ==
            Approx(drawn_places(one.experts, one.places, draws)).margin(6.0 * deviation));
  }
}

TEST_CASE("copies go to no more places than there are, or experts, or groups", "[experts]") {
  REQUIRE(expected_places(routed(64, 6), 1) == Approx(1.0));
  REQUIRE(expected_places(routed(64, 64), 16) == Approx(16.0));
  REQUIRE(expected_places(routed(64, 1), 16) == Approx(1.0));
  // Each expert in a place of its own.
  REQUIRE(expected_places(routed(64, 6), 64) == Approx(6.0));
  // DeepSeek-V3 over eight nodes, at most four of which a token visits.
  REQUIRE(expected_places(routed(256, 8), 8) > 5.0);
  REQUIRE(expected_places(routed(256, 8, 8, 4), 8) < 4.0);
  REQUIRE(expected_places(routed(256, 8, 8, 4), 8) > 3.5);
}

TEST_CASE("an expert group is cut by its domains", "[experts]") {
  const std::vector<int> domains{0, 0, 1, 1, 2, 2, 3, 3};
  const ExpertDomains even = expert_domains({2, 3, 4, 5}, domains);
  REQUIRE(even.domain == std::vector<int>{2, 3});
  REQUIRE(even.rail == std::vector<int>{2, 4});
  const ExpertDomains uneven = expert_domains({1, 2, 3}, domains);
  REQUIRE(uneven.domain == std::vector<int>{1});
  REQUIRE(uneven.rail == std::vector<int>{1, 2, 3});
}

TEST_CASE("the fullest rank has the loads of its experts, up to their capacity", "[experts]") {
  const Experts experts = routed(4, 1);
  REQUIRE(fullest_rank({}, 0, experts, 2) == Approx(1.0));
  REQUIRE(fullest_rank({.imbalance = 1.5}, 0, experts, 2) == Approx(1.5));
  REQUIRE(fullest_rank({.imbalance = 1.5}, 0, experts, 1) == Approx(1.0));
  REQUIRE(fullest_rank({.imbalance = 1.5, .capacity = 1.25}, 0, experts, 2) == Approx(1.25));
  ExpertLoads loads{.layers = {{.first = 1, .last = 2, .loads = {4.0, 1.0, 2.0, 1.0}}}};
  REQUIRE(fullest_rank(loads, 0, experts, 2) == Approx(1.0));
  REQUIRE(fullest_rank(loads, 1, experts, 2) == Approx(5.0 / 4.0));
  REQUIRE(fullest_rank(loads, 2, experts, 4) == Approx(2.0));
  REQUIRE(fullest_rank(loads, 2, experts, 1) == Approx(1.0));
  loads.capacity = 1.5;  // Of the mean of 2: the first expert takes 3.
  REQUIRE(fullest_rank(loads, 1, experts, 2) == Approx(1.0));
  REQUIRE(fullest_rank(loads, 1, experts, 4) == Approx(1.5));
}

TEST_CASE("loads are read for layers that have as many experts", "[experts]") {
  Model model;
  ModelLayer layer;
  layer.feed_forward = FeedForward{.size = 64};
  model.layers.push_back(layer);
  layer.feed_forward.reset();
  layer.experts = routed(2, 1);
  model.layers.push_back(layer);
  const ExpertLoads loads = read_loads(
      "imbalance: 1.2\ncapacity: 2\nlayers: [{first: 1, last: 1, loads: [3, 1]}]\n", model);
  REQUIRE(loads.imbalance == Approx(1.2));
  REQUIRE(loads.capacity.value() == Approx(2.0));
  REQUIRE(loads.layers.size() == 1);
  REQUIRE_THROWS_MATCHES(
      read_loads("layers: [{first: 0, last: 1, loads: [3, 1]}]\n", model), ConfigError,
      Catch::Matchers::Message(
          "w.yaml:1:37: layers[0].loads: expected as many loads as layer 0 has experts, 0, found "
          "2"));
  REQUIRE_THROWS_AS(read_loads("layers: [{first: 1, last: 1, loads: [0, 0]}]\n", model),
                    ConfigError);
  REQUIRE_THROWS_AS(read_loads("imbalance: 0.5\n", model), ConfigError);
}

}  // namespace trainyard
