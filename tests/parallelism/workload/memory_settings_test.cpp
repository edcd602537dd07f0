// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/memory_settings.h"

#include "sim/config_error.h"
#include "support/catch.h"

namespace trainyard {
namespace {

std::int64_t bytes_per_parameter(std::string_view name) {
  const StateFormat format = state_format(name);
  return format.weight + format.gradient + format.optimizer_bytes(1'000'000).count() / 1'000'000;
}

}  // namespace

TEST_CASE("formats of states have the bytes that their papers count", "[memory]") {
  REQUIRE(bytes_per_parameter("adam-fp32-gradients") == 18);
  REQUIRE(bytes_per_parameter("adam-16bit-gradients") == 16);  // arXiv 1910.02054.
  REQUIRE(bytes_per_parameter("adam-16bit-moments") == 14);
  REQUIRE(bytes_per_parameter("adam-8bit") == 12);
  REQUIRE(bytes_per_parameter("adam-fp32") == 16);
  REQUIRE(bytes_per_parameter("adam-bf16") == 8);
  // Two moments with a scale for each 256 of them.
  REQUIRE(state_format("adam-8bit").optimizer_bytes(512) == Bytes(512 * 6 + 2 * 2 * 4));
}

TEST_CASE("named settings are found, and others refused with the list", "[memory]") {
  for (const std::string_view name : memory_settings_names()) {
    INFO(name);
    REQUIRE_NOTHROW(memory_settings(name));
  }
  REQUIRE(memory_settings("megatron-2022").activations.has_dropout);
  REQUIRE_THROWS_MATCHES(
      state_format("adam"), ConfigError,
      Catch::Matchers::Message("memory: expected a format of states among adam-fp32-gradients, "
                               "adam-16bit-gradients, adam-16bit-moments, adam-8bit, adam-fp32, "
                               "adam-bf16, found adam"));
  REQUIRE_THROWS_AS(memory_settings("megatron"), ConfigError);
}

}  // namespace trainyard
