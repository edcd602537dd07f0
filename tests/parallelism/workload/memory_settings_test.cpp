// SPDX-License-Identifier: Apache-2.0
#include "parallelism/workload/memory_settings.h"

#include "sim/config_error.h"
#include "support/catch.h"

namespace trainyard {
namespace {

std::int64_t bytes_per_parameter(std::string_view name) {
  const StateFormat format = memory_settings(name).states;
  return format.weight + format.gradient + format.optimizer;
}

}  // namespace

TEST_CASE("formats of states have the bytes that their sources count", "[memory]") {
  REQUIRE(bytes_per_parameter("megatron-core") == 18);
  REQUIRE(bytes_per_parameter("pytorch-fsdp") == 16);
  REQUIRE(bytes_per_parameter("kempnerforge") == 8);
  REQUIRE(bytes_per_parameter("megatron-deepspeed-fp16") == 20);
  REQUIRE(bytes_per_parameter("megatron-deepspeed-bf16") == 20);
  REQUIRE(bytes_per_parameter("sailor") == 16);
}

TEST_CASE("named settings are found, and others refused with the list", "[memory]") {
  REQUIRE(memory_settings("megatron-2022").activations.has_dropout);
  REQUIRE_THROWS_MATCHES(
      memory_settings("megatron"), ConfigError,
      Catch::Matchers::Message(
          "memory: expected settings among megatron-core, megatron-core-fused-loss, "
          "megatron-2022, megatron-deepspeed-fp16, megatron-deepspeed-bf16, pytorch-fsdp, "
          "kempnerforge, sailor, found megatron"));
}

}  // namespace trainyard
