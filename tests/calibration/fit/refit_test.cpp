// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/fit/refit.h"

#include <string>
#include <vector>

#include "support/synthetic_cases.h"

namespace trainyard {

TEST_CASE("systems that are shown are left out in turn; all are fitted to", "[fit][nccl][long]") {
  const nccl::Profile profile = nccl::Profile::load(kConfigsFolder / "nccl" / "profile.yaml");
  const SyntheticCases made(profile);
  const Refit result =
      refit({.fitted = made.cases(),
             .shown = [](const ValidationCase& item) { return item.system != "small"; },
             .leave_one_out = LeaveOneOut::Yes},
            shipped_constants(), shipped_catalogue(), one_by_one);
  REQUIRE(result.constants.size() == result.fit.parameters.size());
  REQUIRE(result.fitted.cases.size() == 2);
  REQUIRE(result.fitted.all.large.median < 0.02);
  REQUIRE(result.left_out.has_value());
  REQUIRE(result.left_out->cases.size() == 2);
  REQUIRE(result.systems.size() == 2);
  REQUIRE(result.systems[0].system == "large");
  REQUIRE(result.systems[0].unseen.empty());
  REQUIRE(result.systems[1].system == "old");
  REQUIRE_FALSE(result.systems[1].unseen.empty());
  // The other H100 shows what there is to know; the A100 is the only one.
  REQUIRE(result.left_out->cases[0].item.system == "large");
  REQUIRE(result.left_out->cases[0].errors.large.median < 0.05);
  REQUIRE(result.left_out->cases[1].errors.large.median >
          result.fitted.cases[1].errors.large.median);

  const Refit only_fitted =
      refit({.fitted = made.cases(), .shown = [](const ValidationCase&) { return true; }},
            shipped_constants(), shipped_catalogue(), one_by_one);
  REQUIRE_FALSE(only_fitted.left_out.has_value());
  REQUIRE(only_fitted.fitted.cases.size() == 3);
}

}  // namespace trainyard
