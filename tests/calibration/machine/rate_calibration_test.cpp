// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/machine/rate_calibration.h"

#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "sim/random.h"
#include "support/effort.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

const std::filesystem::path kShippedRates = source_dir() / "configs/hardware/gpu-rates.yaml";

void one_after_another(std::size_t count, const std::function<void(std::size_t)>& task) {
  for (std::size_t i = 0; i < count; ++i) {
    task(i);
  }
}

const GpuModel& gpu_named(const std::string& name) {
  return shipped_catalogue().gpus().at(name);
}

// Of mean 0 and variance 1, near enough.
double bell(RandomStream& stream) {
  double sum = 0.0;
  for (int i = 0; i < 12; ++i) {
    sum += static_cast<double>(stream.next() >> 11) * 0x1p-53;
  }
  return sum - 6.0;
}

std::vector<RateRow> rows_to_measure() {
  std::vector<RateRow> rows;
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {512, 512, 512},     {1024, 1024, 1024},   {2048, 2048, 2048},  {4096, 4096, 4096},
           {8192, 8192, 8192},  {16384, 16384, 8192}, {4096, 6144, 4096},  {4096, 28672, 4096},
           {8192, 10240, 8192}, {8192, 57344, 8192},  {8192, 8192, 28672}, {8192, 1280, 8192},
           {8192, 8192, 1024},  {64, 8192, 8192},     {256, 8192, 8192},   {1024, 8192, 8192},
           {4096, 4096, 256},   {2176, 2176, 4096},   {4224, 4224, 4096},  {4096, 4104, 4090},
           {4096, 4098, 4097},  {8192, 8190, 8190},   {2048, 2050, 4098}}) {
    rows.push_back(
        {.text = "product", .product = {.m = m, .n = n, .k = k}, .attention = {}, .measured = {}});
  }
  return rows;
}

std::vector<RateRow> attention_to_measure() {
  std::vector<RateRow> rows;
  for (const std::int64_t tokens : {512, 2048, 4096, 8192, 16384}) {
    for (const auto kind : {RateRow::Kind::AttentionForward, RateRow::Kind::AttentionBackward}) {
      rows.push_back({.kind = kind,
                      .text = "attention",
                      .attention = {.sequences = 2,
                                    .heads = 32,
                                    .queries = tokens,
                                    .keys = tokens,
                                    .query_size = 128,
                                    .value_size = 128,
                                    .is_causal = false},
                      .measured = {}});
    }
  }
  return rows;
}

std::vector<RateRow> memory_to_measure() {
  std::vector<RateRow> rows;
  for (int i = 1; i <= 6; ++i) {
    rows.push_back({.kind = RateRow::Kind::Memory,
                    .text = "memory",
                    .attention = {},
                    .bytes = 1e9 * i,
                    .measured = {}});
  }
  return rows;
}

GpuRates planted_rates() {
  GpuRates rates = GpuRates::load(kShippedRates);
  GenerationRates& hopper = rates.generations.at("hopper");
  hopper.gemm = 0.78;
  hopper.gemm_fp8 = 0.55;
  hopper.gemm_start = SimTime(6'000'000);
  hopper.tile_prologue = 320;
  hopper.misaligned = 0.2;
  hopper.attention["cudnn"] = {.forward = 0.68, .backward = 0.41};
  hopper.memory = 0.91;
  return rates;
}

// What a GPU with those rates would measure, with noise.
std::vector<RateTable> measured_with(const GpuRates& rates, const GpuModel& gpu, double noise,
                                     std::uint64_t seed) {
  SoftwareProfile software;
  software.attention = "cudnn";
  software.fusion = "fused";
  std::vector<RateTable> tables{
      {.id = "gpu.attention", .rows = attention_to_measure()},
      {.id = "gpu.gemm.bf16", .rows = rows_to_measure()},
      {.id = "gpu.gemm.fp8", .precision = Precision::Fp8, .rows = rows_to_measure()},
      {.id = "gpu.memory", .rows = memory_to_measure()}};
  if (gpu.peak.count("fp8") == 0) {
    tables.erase(tables.begin() + 2);
  }
  RandomStream stream(seed, "rates");
  for (RateTable& table : tables) {
    const ComputeRates compute = compute_rates(gpu, rates, software, table.precision);
    for (RateRow& row : table.rows) {
      const double exact = predicted_time(row, compute).seconds();
      row.measured = SimTime(std::llround(exact * std::exp(noise * bell(stream)) * 1e12));
    }
  }
  return tables;
}

RateCalibration calibrated_to(std::vector<RateTable> tables, const GpuModel& gpu) {
  return calibrate_rates(std::move(tables), gpu, kShippedRates, "a.json, \"GPU: one\"", {},
                         one_after_another);
}

const FittedConstant& rate_of(const RateCalibration& made, const std::string& name) {
  for (const FittedConstant& rate : made.rates) {
    if (rate.name == name) {
      return rate;
    }
  }
  FAIL("no rate " << name);
  return made.rates.front();
}

// Without noise the fit finds these to a thousandth.
const std::vector<std::pair<std::string, double>> kPlanted{
    {"hopper.gemm", 0.78},          {"hopper.gemm_fp8", 0.55},
    {"hopper.misaligned", 0.2},     {"hopper.attention.cudnn.forward", 0.68},
    {"hopper.memory", 0.91},        {"hopper.attention.cudnn.backward", 0.41},
    {"hopper.tile_prologue", 320.0}};

}  // namespace

TEST_CASE("planted rates of kernels are within their intervals in most trials") {
  const GpuModel& gpu = gpu_named("H100-SXM");
  const GpuRates planted = planted_rates();
  std::uint64_t within = 0;
  std::uint64_t all = 0;
  for (std::uint64_t trial = 0; trial < cases(20); ++trial) {
    const RateCalibration made = calibrated_to(measured_with(planted, gpu, 0.03, trial + 1), gpu);
    for (const auto& [name, value] : kPlanted) {
      const FittedConstant& rate = rate_of(made, name);
      if (rate.is_fitted) {
        ++all;
        within += rate.low <= value && value <= rate.high ? 1 : 0;
      }
    }
    REQUIRE(made.error(RowUse::KeptOut).median_fitted < 0.04);
    REQUIRE(made.error(RowUse::KeptOut).median_fitted < made.error(RowUse::KeptOut).median_shipped);
  }
  REQUIRE(all >= cases(20) * 6);
  REQUIRE((kIsSanitized || within * 100 >= all * 85));  // Few trials say little.
}

TEST_CASE("the written rates are read again with the fitted values and all others as shipped") {
  const GpuModel& gpu = gpu_named("H100-SXM");
  const RateCalibration made = calibrated_to(measured_with(planted_rates(), gpu, 0.005, 7), gpu);
  const ScratchFolder folder;
  const GpuRates read = GpuRates::load(folder.write("rates.yaml", made.document));
  const GpuRates shipped = GpuRates::load(kShippedRates);
  const GenerationRates& hopper = read.generations.at("hopper");
  REQUIRE(hopper.gemm == Approx(0.78).epsilon(0.02));
  REQUIRE(hopper.attention.at("cudnn").backward == Approx(0.41).epsilon(0.02));
  REQUIRE(hopper.attention.at("flash-2").forward ==
          shipped.generations.at("hopper").attention.at("flash-2").forward);
  REQUIRE(hopper.host_layer == shipped.generations.at("hopper").host_layer);
  REQUIRE(read.generations.at("ampere").gemm == shipped.generations.at("ampere").gemm);
  REQUIRE(read.devices == shipped.devices);
  REQUIRE(made.document.find("trainyard calibrate: a.json") != std::string::npos);
}

TEST_CASE("a kernel of attention that the generation did not have is added") {
  const GpuModel& gpu = gpu_named("A100-SXM-80GB");
  GpuRates planted = GpuRates::load(kShippedRates);
  planted.generations.at("ampere").attention["cudnn"] = {.forward = 0.6, .backward = 0.45};
  const RateCalibration made = calibrated_to(measured_with(planted, gpu, 0.002, 3), gpu);
  const ScratchFolder folder;
  const GpuRates read = GpuRates::load(folder.write("rates.yaml", made.document));
  REQUIRE(read.generations.at("ampere").attention.at("cudnn").forward == Approx(0.6).epsilon(0.02));
  REQUIRE(read.generations.at("ampere").attention.count("flash-2") == 1);
}

TEST_CASE("what no row shows stays as shipped and says so") {
  const GpuModel& gpu = gpu_named("H100-SXM");
  std::vector<RateTable> tables = measured_with(planted_rates(), gpu, 0.005, 5);
  tables.erase(tables.begin(), tables.begin() + 3);  // Memory alone.
  const RateCalibration made = calibrated_to(std::move(tables), gpu);
  REQUIRE(rate_of(made, "hopper.memory").is_fitted);
  const FittedConstant& gemm = rate_of(made, "hopper.gemm");
  REQUIRE(!gemm.is_fitted);
  REQUIRE(gemm.value == gemm.shipped);
  REQUIRE(!gemm.reason.empty());
}

TEST_CASE("a GPU of a generation without rates is refused") {
  REQUIRE_THROWS_AS(calibrated_to({{.id = "gpu.memory", .rows = memory_to_measure()}},
                                  gpu_named("V100-SXM2-32GB")),
                    ConfigError);
}

}  // namespace trainyard
