// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/predict/profile_yaml.h"

#include <string>

#include "nccl/timing/profile.h"
#include "sim/config.h"
#include "support/synthetic_cases.h"

namespace trainyard {
namespace {

ProfileOrigin origin() {
  return {.cluster = "my \"box\"",
          .files = {"a b.log", "c\\d,e.log"},
          .basis = {.machine = {.gpu = "hopper", .scale_up = "nvswitch", .network = "none"},
                    .rows = {{.operation = Operation::AllReduce,
                              .ranks = 8,
                              .min = kib(1),
                              .max = mib(64),
                              .count = 17}}}};
}

nccl::Profile read_profile(const std::string& text) {
  ConfigDocument document = ConfigDocument::parse(text, "written.yaml");
  return nccl::Profile::read(document);
}

}  // namespace

TEST_CASE("a profile without fitted constants says what the shipped one does") {
  const nccl::Profile shipped = nccl::Profile::load(kConfigsFolder / "nccl" / "profile.yaml");
  const nccl::Profile written = read_profile(calibrated_profile(shipped_constants(), {}, origin()));
  REQUIRE(written.gpus.size() == shipped.gpus.size());
  REQUIRE(written.gpus.at("hopper").nvls->link == shipped.gpus.at("hopper").nvls->link);
  REQUIRE(written.ring_base.simple == shipped.ring_base.simple);
  REQUIRE(written.network_of_nic == shipped.network_of_nic);
  REQUIRE(!shipped.basis.has_value());
  REQUIRE(written.basis->rows.at(0).max == mib(64));
  REQUIRE(written.basis->machine.gpu == "hopper");
}

TEST_CASE("fitted constants are in the profile with where they are from") {
  const std::string text = calibrated_profile(shipped_constants(),
                                              {{.name = "gpus.hopper.ll_cost",
                                                .value = "412.5 ns",
                                                .low = "400 ns",
                                                .high = "425 ns",
                                                .rows = 9,
                                                .files = {"a b.log"}},
                                               {.name = "gpus.hopper.link_latency.Simple",
                                                .value = "777 ns",
                                                .low = "700 ns",
                                                .high = "860 ns",
                                                .rows = 4,
                                                .files = {"a b.log", "c\\d,e.log"}}},
                                              origin());
  const nccl::Profile written = read_profile(text);
  const nccl::Profile shipped = nccl::Profile::load(kConfigsFolder / "nccl" / "profile.yaml");
  REQUIRE(written.gpus.at("hopper").ll_cost == SimTime(412'500));
  REQUIRE(written.gpus.at("ampere").ll_cost == shipped.gpus.at("ampere").ll_cost);
  REQUIRE(written.gpus.at("hopper").link_latency.simple == SimTime(777'000));
  REQUIRE(written.gpus.at("hopper").link_latency.ll == shipped.gpus.at("hopper").link_latency.ll);
  REQUIRE(
      text.find("ll_cost: {value: 412.5 ns, evidence: measured, source: calibration, fit: {low: "
                "400 ns, high: 425 ns, rows: 9, files: [a b.log]}}\n") != std::string::npos);
  REQUIRE(text.find("note: \"others of the list: measured, nccl-tables\", fit: {Simple: {low: 700 "
                    "ns, high: 860 ns, rows: 4, files: [a b.log, \"c\\\\d,e.log\"]}}}") !=
          std::string::npos);
}

}  // namespace trainyard
