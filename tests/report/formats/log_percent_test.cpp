// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/formats/log_percent.h"

#include <cmath>

namespace trainyard {
namespace {

TEST_CASE("the logarithm of a ratio reads as by how much a time is longer") {
  REQUIRE(log_percent(0.0) == 0.0);
  REQUIRE(log_percent(std::log(2.0)) == Approx(100.0));
  REQUIRE(log_percent(std::log(0.5)) == Approx(-50.0));
  REQUIRE(percent_of_log(0.1) == "10.5 %");
  REQUIRE(percent_of_log(0.0) == "0.0 %");
  REQUIRE(signed_percent_of_log(0.1) == "+10.5 %");
  REQUIRE(signed_percent_of_log(std::log(0.5)) == "-50.0 %");
}

}  // namespace
}  // namespace trainyard
