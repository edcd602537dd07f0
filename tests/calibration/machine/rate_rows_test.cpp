// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/machine/rate_rows.h"

#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace trainyard {
namespace {

using Parameters = std::map<std::string, std::variant<double, std::string>>;

HarnessSample sample_of(std::string id, std::string quantity, std::string unit, double median,
                        Parameters parameters) {
  return {.id = std::move(id),
          .quantity = std::move(quantity),
          .unit = std::move(unit),
          .parameters = std::move(parameters),
          .median = median,
          .p10 = median,
          .p90 = median};
}

Parameters product_of(double m, double n, double k) {
  return {{"m", m}, {"n", n}, {"k", k}, {"type", std::string("bf16")}};
}

HarnessSample product_time(double microseconds, double m, double n, double k) {
  return sample_of("gpu.gemm.bf16", "matrix product time", "us", microseconds, product_of(m, n, k));
}

HarnessSet set_of(std::vector<HarnessSample> samples) {
  HarnessSet set;
  set.samples = std::move(samples);
  return set;
}

ComputeRates simple_rates() {
  ComputeRates rates;
  rates.gemm_rate = 1e15;
  rates.linear_rate = 1e15;
  rates.multiprocessors = 1;
  rates.attention_forward = 1e15;
  rates.attention_backward = 1e15;
  rates.memory_rate = 2e12;
  return rates;
}

}  // namespace

TEST_CASE("rows of products rise in time and leave out what is none") {
  const HarnessSet set =
      set_of({product_time(1200.0, 8192, 8192, 8192), product_time(20.0, 1024, 1024, 1024),
              product_time(0.0, 512, 512, 512), product_time(5.0, 0, 512, 512),
              sample_of("gpu.gemm.tf32", "matrix product time", "us", 30.0,
                        product_of(1024, 1024, 1024))});
  const std::vector<RateTable> tables = rate_tables(set);
  REQUIRE(tables.size() == 1);
  REQUIRE(tables[0].id == "gpu.gemm.bf16");
  REQUIRE(tables[0].precision == Precision::Bf16);
  REQUIRE(tables[0].rows.size() == 2);
  REQUIRE(tables[0].rows[0].product.m == 1024);
  REQUIRE(tables[0].rows[0].measured == SimTime(20'000'000));
  REQUIRE(tables[0].rows[1].text == "m 8192, n 8192, k 8192");
}

TEST_CASE("a product that was warm slows all rows of its table") {
  Parameters warm = product_of(8192, 8192, 8192);
  warm["seconds_before"] = 3.0;
  const HarnessSet set =
      set_of({product_time(1000.0, 8192, 8192, 8192),
              sample_of("gpu.gemm.bf16", "matrix product rate", "TFLOP/s", 800.0,
                        product_of(8192, 8192, 8192)),
              sample_of("gpu.gemm.bf16", "matrix product rate", "TFLOP/s", 640.0, warm)});
  const std::vector<RateTable> tables = rate_tables(set);
  REQUIRE(tables.size() == 1);
  REQUIRE(tables[0].warm == 0.8);
  REQUIRE(tables[0].rows.at(0).measured == SimTime(1'250'000'000));
}

TEST_CASE("a product that was repeated for long was warm itself") {
  Parameters warm = product_of(8192, 8192, 8192);
  warm["seconds_before"] = 3.0;
  HarnessSet set =
      set_of({product_time(500.0, 8192, 8192, 4096), product_time(9000.0, 8192, 8192, 57344),
              sample_of("gpu.gemm.bf16", "matrix product rate", "TFLOP/s", 800.0,
                        product_of(8192, 8192, 8192)),
              sample_of("gpu.gemm.bf16", "matrix product rate", "TFLOP/s", 640.0, warm)});
  set.repetitions = 90;
  set.warmup = 10;
  const std::vector<RateTable> tables = rate_tables(set);
  // 100 repetitions of 500 us are half of the burst of 0.1 s.
  REQUIRE(tables.at(0).rows.at(0).measured.seconds() == Approx(500e-6 / std::sqrt(0.8)));
  REQUIRE(tables.at(0).rows.at(1).measured == SimTime(9'000'000'000));
}

TEST_CASE("bandwidths count each pass of the memory, of the fastest number of CTAs") {
  const auto copy = [](double ctas, double rate) {
    return sample_of("gpu.memory", "copy bandwidth", "GB/s", rate, {{"ctas", ctas}});
  };
  const HarnessSet set = set_of(
      {copy(1, 20.0), copy(132, 1000.0), copy(264, 900.0),
       sample_of("gpu.memory", "reduction bandwidth", "GB/s", 800.0, {{"ctas", 132.0}}),
       sample_of("gpu.elementwise", "memory-bound bandwidth", "GB/s", 2500.0,
                 {{"kernel", std::string("swiglu")}, {"tokens", 4096.0}, {"hidden", 8192.0}})});
  const std::vector<RateTable> tables = rate_tables(set);
  REQUIRE(tables.size() == 2);
  REQUIRE(tables[0].id == "gpu.elementwise");
  REQUIRE(tables[0].rows.at(0).text == "swiglu, 4096 x 8192");
  REQUIRE(tables[0].rows.at(0).measured == SimTime(400'000'000));
  REQUIRE(tables[1].id == "gpu.memory");
  REQUIRE(tables[1].rows.size() == 2);
  REQUIRE(tables[1].rows[0].text == "reduction bandwidth");
  REQUIRE(tables[1].rows[1].measured == SimTime(500'000'000));
}

TEST_CASE("rows of attention have all pairs of tokens without a mask") {
  const auto attention = [](const std::string& direction, const std::string& mask) {
    return sample_of("gpu.attention", "attention time", "us", 100.0,
                     {{"direction", direction},
                      {"mask", mask},
                      {"batch", 1.0},
                      {"heads", 32.0},
                      {"kv_heads", 8.0},
                      {"sequence", 8192.0},
                      {"head", 128.0}});
  };
  const HarnessSet set = set_of({attention("forward", "none"), attention("backward", "none"),
                                 attention("forward", "causal"), attention("sideways", "none")});
  const std::vector<RateTable> tables = rate_tables(set);
  REQUIRE(tables.size() == 1);
  REQUIRE(tables[0].rows.size() == 3);
  // 4 and 10 B H S D operations for each key at 1e15 a second: a block starts and ends as long as
  // 128 keys take forward, 256 backward, and meets half of the others with a mask.
  const double of_key = 4.0 * 32 * 8192.0 * 128 / 1e15;
  const ComputeRates rates = simple_rates();
  const auto time = [&](std::size_t row) {
    return predicted_time(tables[0].rows[row], rates).seconds();
  };
  REQUIRE(time(0) == Approx(of_key * (8192.0 + 128.0)).epsilon(0.001));
  REQUIRE(time(1) == Approx(2.5 * of_key * (8192.0 + 256.0)).epsilon(0.001));
  REQUIRE(time(2) == Approx(of_key * (8192.0 / 2 + 192.0)).epsilon(0.001));
}

TEST_CASE("a set without kernels of a GPU has no tables of rates") {
  REQUIRE(rate_tables({}).empty());
}

}  // namespace trainyard
