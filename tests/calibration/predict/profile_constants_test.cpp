// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/predict/profile_constants.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/program.h"

namespace trainyard {
namespace {

using Catch::Matchers::Contains;

const std::filesystem::path kProfile = kConfigsFolder / "nccl" / "profile.yaml";
const std::filesystem::path kPriors = kConfigsFolder / "nccl" / "profile-priors.yaml";

const ProfileConstant* find(const ProfileConstants& constants, const std::string& name) {
  const auto found = std::find_if(constants.all().begin(), constants.all().end(),
                                  [&](const ProfileConstant& one) { return one.name == name; });
  return found == constants.all().end() ? nullptr : &*found;
}

std::vector<double> values_in_file(const ProfileConstants& constants) {
  std::vector<double> values;
  for (const ProfileConstant& one : constants.all()) {
    values.push_back(one.in_file);
  }
  return values;
}

}  // namespace

TEST_CASE("the constants of the profile are those that NCCL does not ship", "[fit]") {
  const ProfileConstants constants(kProfile, kPriors);
  const ProfileConstant* const rate = find(constants, "gpus.hopper.simple_rate");
  REQUIRE(rate != nullptr);
  REQUIRE(rate->kind == ConstantKind::Rate);
  REQUIRE(find(constants, "networks.rdma.latency.LL128")->kind == ConstantKind::Time);
  REQUIRE(find(constants, "transports.pcie.rate")->kind == ConstantKind::Share);
  REQUIRE(find(constants, "kernel.ring_base.LL") == nullptr);
  REQUIRE(find(constants, "transports.nvlink.units_in_step") == nullptr);  // A count.
  for (const ProfileConstant& one : constants.all()) {
    INFO(one.name);
    REQUIRE(one.min < one.max);
    REQUIRE(one.spread > 1.0);
    // The limits hold what is shipped; zero represents less than any.
    REQUIRE(one.in_file <= one.max);
    REQUIRE((one.in_file >= one.min || one.in_file == 0.0));
  }
}

TEST_CASE("a generation is tied to the one before it, of those that have the constant", "[fit]") {
  const ProfileConstants constants(kProfile, kPriors);
  const auto neighbour = [&](const std::string& name) {
    const ProfileConstant* const one = find(constants, name);
    REQUIRE(one != nullptr);
    return one->neighbour ? constants.all()[*one->neighbour].name : "";
  };
  REQUIRE(neighbour("gpus.hopper.ll_cost") == "gpus.ada.ll_cost");
  REQUIRE(neighbour("gpus.volta.ll_cost").empty());
  REQUIRE(neighbour("gpus.hopper.nvls.head_cost").empty());
  REQUIRE(neighbour("gpus.blackwell.nvls.head_cost") == "gpus.hopper.nvls.head_cost");
  REQUIRE(neighbour("networks.efa.rate").empty());
}

TEST_CASE("values make a profile", "[fit]") {
  const ProfileConstants constants(kProfile, kPriors);
  const nccl::Profile shipped = nccl::Profile::load(kProfile);
  std::vector<double> values = values_in_file(constants);
  const nccl::Profile same = constants.profile(values);
  REQUIRE(same.gpus.at("ampere").ll_cost == shipped.gpus.at("ampere").ll_cost);
  REQUIRE(same.networks.at("efa").latency.simple == shipped.networks.at("efa").latency.simple);
  REQUIRE(same.pcie_ll_rate == shipped.pcie_ll_rate);
  REQUIRE(same.ring_base.ll == shipped.ring_base.ll);
  const auto index = static_cast<std::size_t>(find(constants, "networks.efa.latency.Simple") -
                                              constants.all().data());
  values[index] = 12.3456e-6;
  const nccl::Profile other = constants.profile(values);
  REQUIRE(other.networks.at("efa").latency.simple == picoseconds(12'345'600));
  REQUIRE(other.networks.at("efa").latency.ll == shipped.networks.at("efa").latency.ll);
}

TEST_CASE("a fitted value without an assumption is an error", "[fit]") {
  const ScratchFolder folder;
  const std::string text = read_text_file(kPriors);
  const std::string entry = "  - {match: launch.graph,";
  const std::size_t begin = text.find(entry);
  REQUIRE(begin != std::string::npos);
  const std::filesystem::path file = folder.write("priors.yaml", text.substr(0, begin));
  REQUIRE_THROWS_AS(ProfileConstants(kProfile, file), ConfigError);
  REQUIRE_THROWS_WITH(ProfileConstants(kProfile, file), Contains("launch.graph"));
}

TEST_CASE("constants are printed to three digits with their unit", "[fit]") {
  REQUIRE(constant_text(ConstantKind::Time, 7.846e-6) == "7.85 us");
  REQUIRE(constant_text(ConstantKind::Time, 84e-9) == "84 ns");
  REQUIRE(constant_text(ConstantKind::Rate, 13.94 * 8e9) == "13.9 GB/s");
  REQUIRE(constant_text(ConstantKind::Share, 0.8642) == "0.864");
}

}  // namespace trainyard
