// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/run/gpu_kinds.h"

#include <algorithm>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

// 16 GPUs of HGX H100 servers before 4 of a server of A100.
Cluster h100_and_a100() {
  return shipped_cluster("mixed-a100", {.settings = {"servers.0.server=hgx-h100"}});
}

}  // namespace

TEST_CASE("the kinds of GPUs of a cluster are numbered by their first ranks", "[gpu-kinds]") {
  const Cluster cluster = h100_and_a100();
  const GpuKinds kinds = gpu_kinds(cluster);
  REQUIRE(kinds.models.size() == 2);
  REQUIRE(kinds.models[0]->name == "H100-SXM");
  REQUIRE(kinds.models[1]->name == "A100-PCIe-80GB");
  REQUIRE(std::ranges::count(kinds.of_rank, 0) == 16);
  REQUIRE(kinds.of_rank.back() == 1);
  const Cluster alike = shipped_cluster("dgx-a100");
  REQUIRE(gpu_kinds(alike).of_rank.empty());
  REQUIRE(gpu_of(alike, "test").name == "A100-SXM-80GB");
  REQUIRE_THROWS_MATCHES(gpu_of(cluster, "test"), ConfigError,
                         Catch::Matchers::Message("test: expected GPUs of one kind, found H100-SXM "
                                                  "and A100-PCIe-80GB"));
}

TEST_CASE("the peak of several kinds is the mean over their ranks", "[gpu-kinds]") {
  const Cluster cluster = h100_and_a100();
  const GpuKinds kinds = gpu_kinds(cluster);
  const SoftwareProfile software = shipped_software("megatron-flash");
  const std::vector<ComputeRates> rates = kinds.rates(shipped_rates(), software, Precision::Bf16);
  REQUIRE(kinds.mean_peak(rates) == Approx((16 * rates[0].peak + 4 * rates[1].peak) / 20.0));
  REQUIRE(rates[0].overlapped_data == rates[1].overlapped_data);
  REQUIRE(rates[0].overlapped_data ==
          std::max(shipped_compute("H100-SXM", "megatron-flash").overlapped_data,
                   shipped_compute("A100-PCIe-80GB", "megatron-flash").overlapped_data));
}

TEST_CASE("a stage has the memory of its smallest GPU", "[gpu-kinds]") {
  const Catalogue& catalogue = shipped_catalogue();
  const GpuModel& large = catalogue.gpus().at("A100-SXM-80GB");
  const GpuModel& small = catalogue.gpus().at("A100-SXM-40GB");
  const GpuKinds kinds{.models = {&large, &small}, .of_rank = {0, 0, 0, 1}};
  REQUIRE(&kinds.smallest() == &small);
  // Ranks 0 and 1 are the first stage, with tensor ranks as neighbours.
  const ParallelPlan plan{.tensor = 2, .pipeline = 2};
  REQUIRE(kinds.smallest_by_place(plan) == std::vector{&large, &small});
}

}  // namespace trainyard
