// SPDX-License-Identifier: Apache-2.0
#include "nccl/types/gpu_generation.h"
#include "nccl/types/release.h"

#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/config_error.h"
#include "support/catch.h"

namespace trainyard::nccl {
namespace {

TEST_CASE("an NVLink has the rate of the generation of its GPU", "[nccl]") {
  constexpr std::array<std::pair<int, float>, 7> kRates{{{70, 20.0F},
                                                         {80, 20.0F},
                                                         {86, 12.0F},
                                                         {90, 20.6F},
                                                         {100, 40.1F},
                                                         {103, 40.1F},
                                                         {120, 40.1F}}};
  for (const auto& [capability, rate] : kRates) {
    REQUIRE(nvlink_bandwidth(kNewestVersion, gpu_generation(capability)) == rate);
  }
}

TEST_CASE("AMD's GPUs are known by the names of RCCL's files", "[nccl][rccl]") {
  for (const std::string_view name : {"gfx942", "gfx942:sramecc+:xnack-", "942"}) {
    const GpuGeneration* const row = amd_generation(name);
    REQUIRE(row != nullptr);
    REQUIRE(row->is_amd());
    REQUIRE(row->name == "cdna3");
    REQUIRE(gpu_generation(row->compute_capability).gcn == "gfx942");
  }
  REQUIRE(amd_generation("910")->own_link == 36.0F);
  REQUIRE(amd_generation("gfx1100") == nullptr);
  REQUIRE_FALSE(gpu_generation(90).is_amd());
}

TEST_CASE("rows of the tuning constants begin at 80, 90 and 100", "[nccl][tuning]") {
  constexpr std::array<std::tuple<int, std::size_t, std::string_view>, 10> kRows{
      {{70, 0, "volta"},
       {75, 0, "turing"},
       {80, 1, "ampere"},
       {86, 1, "ampere"},
       {89, 1, "ada"},
       {90, 2, "hopper"},
       {100, 3, "blackwell"},
       {103, 3, "blackwell"},
       {120, 3, "blackwell"},
       {121, 3, "blackwell"}}};
  for (const auto& [capability, row, name] : kRows) {
    REQUIRE(gpu_generation(capability).compute_capability == capability);
    REQUIRE(gpu_generation(capability).tuning_row == row);
    REQUIRE(gpu_generation(capability).name == name);
  }
}

TEST_CASE("a compute capability without a row is an error, not the nearest one", "[nccl]") {
  for (const int capability : {0, 60, 87, 99, 101, 130}) {
    try {
      static_cast<void>(gpu_generation(capability, "the server: line 7: "));
      FAIL("expected an error for " << capability);
    } catch (const ConfigError& error) {
      REQUIRE(error.what() ==
              "the server: line 7: expected a GPU of a compute capability whose rules in NCCL are "
              "known: 70 (volta), 75 (turing), 80 (ampere), 86 (ampere), 89 (ada), 90 (hopper), "
              "100 (blackwell), 103 (blackwell), 120 (blackwell), 121 (blackwell); found " +
                  std::to_string(capability));
    }
  }
}

}  // namespace
}  // namespace trainyard::nccl
