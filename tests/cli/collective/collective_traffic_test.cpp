// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/collective/collective_traffic.h"

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"

namespace trainyard {
namespace {

using Json = nlohmann::json;

// Bytes by tier and size.
std::map<std::string, std::map<std::int64_t, std::int64_t>> volumes_of(
    std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--cluster", "dgx-h100", "--format", "json"});
  std::ostringstream out;
  REQUIRE(run_command(collective_command(), arguments, out) == 0);
  std::map<std::string, std::map<std::int64_t, std::int64_t>> bytes;
  const Json report = Json::parse(out.str());
  for (const Json& row : report["volumes"]) {
    bytes[row["tier"]][row["size_bytes"]] = row["bytes"];
  }
  return bytes;
}

}  // namespace

TEST_CASE("a ring of NCCL puts on links what a ring of the plain runtime does", "[volumes]") {
  const std::vector<std::string> sizes{"-b", "64M", "-e", "64M", "--nodes", "2"};
  std::vector<std::string> nccl{"all_reduce", "--algo", "ring", "--proto", "simple"};
  std::vector<std::string> plain{"all_reduce", "--runtime", "plain", "--algo", "ring"};
  nccl.insert(nccl.end(), sizes.begin(), sizes.end());
  plain.insert(plain.end(), sizes.begin(), sizes.end());
  const auto by_nccl = volumes_of(nccl);
  const auto by_links = volumes_of(plain);
  const std::int64_t size = mib(64).count();
  // Two servers, each left once by a share of the size in every channel, on two links of NICs.
  REQUIRE(by_links.at("nic").at(size) == 2 * (2 * size * 15 / 16) * 2);
  REQUIRE_THAT(static_cast<double>(by_nccl.at("nic").at(size)),
               Catch::Matchers::WithinRel(static_cast<double>(by_links.at("nic").at(size)), 1e-6));
  REQUIRE_THAT(
      static_cast<double>(by_nccl.at("nvlink").at(size)),
      Catch::Matchers::WithinRel(static_cast<double>(by_links.at("nvlink").at(size)), 1e-6));
}

// Each GPU of n sends its part to the switches once for the sum and gets it once; a ring passes it
// on n - 1 times, twice.
TEST_CASE("NVLS puts less on NVLinks than a ring, in proportion to the size", "[volumes]") {
  const std::vector<std::string> sizes{"-b", "64M", "-e", "256M", "-f", "4", "--nodes", "1"};
  std::vector<std::string> nvls{"all_reduce", "--algo", "nvls"};
  std::vector<std::string> ring{"all_reduce", "--algo", "ring"};
  nvls.insert(nvls.end(), sizes.begin(), sizes.end());
  ring.insert(ring.end(), sizes.begin(), sizes.end());
  const auto of_nvls = volumes_of(nvls).at("nvlink");
  REQUIRE(of_nvls.at(mib(256).count()) == 4 * of_nvls.at(mib(64).count()));
  REQUIRE(of_nvls.at(mib(256).count()) < volumes_of(ring).at("nvlink").at(mib(256).count()));
}

}  // namespace trainyard
