// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/types/types.h"

namespace trainyard::nccl {
namespace {

TEST_CASE("every name of NCCL is read back, in any case of letters", "[nccl]") {
  for (const Algorithm algorithm : kAlgorithms) {
    REQUIRE(parse_algorithm(to_string(algorithm)) == algorithm);
  }
  for (const Protocol protocol : kProtocols) {
    REQUIRE(parse_protocol(to_string(protocol)) == protocol);
  }
  for (const Function function : kFunctions) {
    REQUIRE(parse_function(to_string(function)) == function);
  }
  REQUIRE(parse_algorithm("nvlstree") == Algorithm::NvlsTree);
  REQUIRE(parse_protocol("ll128") == Protocol::LL128);
  REQUIRE(parse_path_type("PXN") == PathType::Pxn);
  REQUIRE_FALSE(parse_algorithm("Rings"));
  REQUIRE_FALSE(parse_protocol(""));
}

TEST_CASE("a release represents the newest known one that is not newer", "[nccl]") {
  REQUIRE(parse_version("2.30.7")->known == Version::V2_30);
  REQUIRE(parse_version("2.31")->known == Version::V2_30);
  REQUIRE_FALSE(parse_version("2.31")->exact);
  REQUIRE(parse_version("2.29.3")->known == Version::V2_29);
  REQUIRE(parse_version("2.29.7")->exact);
  REQUIRE(parse_version("2.28.9-1")->exact);
  REQUIRE(parse_version("2.27.3")->known == Version::V2_27);
  REQUIRE(parse_version("2.18.5")->known == Version::V2_18);
  REQUIRE(parse_version("2.18.5")->exact);
  REQUIRE(parse_version("2.22.3")->known == Version::V2_21);
  REQUIRE_FALSE(parse_version("2.22.3")->exact);
  REQUIRE(parse_version("2.11.4")->exact);  // Its rules are those of 2.10.
  REQUIRE(parse_version("2.3.5")->known == Version::V2_4);
  REQUIRE_FALSE(parse_version("2.3.5")->exact);
  for (const char* const text : {"", "2", "2.", "2.x", "two", "3.1", "2.27.x", "-2.3"}) {
    REQUIRE_FALSE(parse_version(text));
  }
}

TEST_CASE("path types keep NCCL's order, by which it compares them", "[nccl]") {
  REQUIRE(static_cast<int>(PathType::Nvl) == 1);
  REQUIRE(static_cast<int>(PathType::Pxb) == 5);
  REQUIRE(static_cast<int>(PathType::P2c) == 6);
  REQUIRE(static_cast<int>(PathType::Pxn) == 7);
  REQUIRE(static_cast<int>(PathType::Sys) == 9);
  REQUIRE(static_cast<int>(PathType::Dis) == 11);
}

}  // namespace
}  // namespace trainyard::nccl
