// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "topology/server/parts.h"

#include <string>
#include <vector>

namespace trainyard {
namespace {

using namespace literals;

LinkModel model() {
  LinkModel link;
  link.name = "Link9";
  link.family = LinkFamily::NvLink;
  link.bandwidth = {gigabytes_per_second(25), Evidence::Datasheet, "a sheet"};
  link.efficiency = {0.8, Evidence::Estimate, "a rule"};
  link.latency = {350_ns, Evidence::Estimate, "a guess"};
  link.gpu_latency = Sourced<SimTime>{50_ns, Evidence::Measured, "a run"};
  return link;
}

TEST_CASE("a bundle of links has their rate together and one latency") {
  PartLog parts;
  const LinkSpec spec = gpu_link(model(), parts).bundle(4);
  REQUIRE(spec.kind == LinkKind::NvLink);
  REQUIRE(spec.bandwidth == gigabytes_per_second(80));
  REQUIRE(spec.latency == 400_ns);
  REQUIRE(spec.lanes == 4);
  REQUIRE(physical_link(model(), parts).latency == 350_ns);
}

TEST_CASE("estimates are remembered once, other evidence is not") {
  PartLog parts;
  (void)gpu_link(model(), parts);
  (void)gpu_link(model(), parts);
  REQUIRE(parts.lines() == std::vector<std::string>{"Link9: efficiency = 0.8: a rule",
                                                    "Link9: latency = 350ns: a guess"});
}

TEST_CASE("a cable takes 5 ns a metre and needs its unit") {
  const auto delay = [](const std::string& text) {
    ConfigDocument document = ConfigDocument::parse("cable: " + text + "\n", "cable.yaml");
    return cable_delay(document.root().required("cable"));
  };
  REQUIRE(delay("10 m") == 50_ns);
  REQUIRE(delay("0.5m") == 2500_ps);
  REQUIRE(delay("0 m") == SimTime());
  for (const char* wrong : {"10", "m", "10 km", "-1 m", "nan m", "1e9 m", "10 m m"}) {
    REQUIRE_THROWS_WITH(delay(wrong),
                        std::string("cable.yaml:1:8: cable: expected a length such as "
                                    "\"10 m\", at most 100 km, found \"") +
                            wrong + "\"");
  }
}

}  // namespace
}  // namespace trainyard
