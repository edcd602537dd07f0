// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/step/step_collectives.h"

#include <string>
#include <vector>

#include "sim/config_error.h"

namespace trainyard {
namespace {

StepCollectives collectives(const std::vector<std::string>& arguments) {
  const Command command{.name = "step", .options = step_collectives_options()};
  return read_step_collectives(parse_options(command, arguments));
}

}  // namespace

TEST_CASE("steps are timed with NCCL 2.28 unless another release is named", "[cli][step]") {
  REQUIRE(collectives({}).is_nccl);
  REQUIRE(collectives({}).version == nccl::Version::V2_28);
  REQUIRE(collectives({"--nccl-version", "2.30.7"}).version == nccl::Version::V2_30);
  REQUIRE(collectives({"--nccl-version", "2.30.7"}).notes.empty());
  const StepCollectives near = collectives({"--nccl-version", "2.29.3", "--profile", "mine.yaml"});
  REQUIRE(near.profile == "mine.yaml");
  REQUIRE(near.notes.size() == 1);
  REQUIRE_FALSE(collectives({"--runtime", "plain"}).is_nccl);
}

TEST_CASE("what is NCCL's needs NCCL", "[cli][step]") {
  for (const char* const name : {"--nccl-version", "--profile"}) {
    REQUIRE_THROWS_AS(collectives({"--runtime", "plain", name, "2.28.9"}), ConfigError);
  }
  REQUIRE_THROWS_MATCHES(
      collectives({"--nccl-version", "new"}), ConfigError,
      Catch::Matchers::Message("--nccl-version: expected a release such as 2.30.7, 2.28.9 or "
                               "2.27.7, found \"new\""));
}

}  // namespace trainyard
