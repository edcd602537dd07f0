// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/workload/software_profile.h"

#include <filesystem>
#include <string>

#include "sim/config_error.h"
#include "support/built_clusters.h"

namespace trainyard {

TEST_CASE("every shipped software profile is read", "[software]") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigsFolder / "software")) {
    if (entry.is_directory()) {
      continue;  // Of recommendation models.
    }
    const SoftwareProfile profile = SoftwareProfile::load(entry.path());
    INFO(profile.name);
    REQUIRE(profile.name == entry.path().stem().string());
    REQUIRE_FALSE(profile.title.empty());
    REQUIRE(profile.optimizer_bytes > 0.0);
    ++count;
  }
  REQUIRE(count >= 5);
}

TEST_CASE("what a profile need not say is as Megatron-LM does it", "[software]") {
  const auto load = [](const std::string& name) {
    return SoftwareProfile::load(kConfigsFolder / "software" / (name + ".yaml"));
  };
  REQUIRE(load("megatron-core").full_recompute == FullRecompute::Layer);
  REQUIRE_FALSE(load("megatron-core").gathers_keys);
  REQUIRE(load("pytorch-compiled").gathers_keys);
  REQUIRE_FALSE(load("megatron-core").joins_experts);
  REQUIRE(load("pytorch-2.11").joins_experts);
  REQUIRE_FALSE(load("pytorch-native").has_norm_kernel);
  REQUIRE(load("pytorch-2.11").has_norm_kernel);
  REQUIRE(load("pytorch-native").stream_bytes == 2);
  REQUIRE(load("pytorch-2.11").stream_bytes == 4);
  REQUIRE(load("maxtext").full_recompute == FullRecompute::Unprojected);
  REQUIRE(load("nemo").buckets == BucketRule::Megatron);
  REQUIRE(load("pytorch-native").buckets == BucketRule::PyTorch);
  REQUIRE(load("megatron-deepspeed").buckets == BucketRule::DeepSpeed);
}

TEST_CASE("a software profile needs a source for each value", "[software]") {
  ConfigDocument document = ConfigDocument::parse(
      "title: T\nsources: {a: A}\nattention: {value: unfused, evidence: shipped}\n", "s.yaml");
  SoftwareProfile profile;
  REQUIRE_THROWS_MATCHES(
      read_fields(document.root(), profile, software_fields), ConfigError,
      Catch::Matchers::Message("s.yaml:3:12: attention: missing key \"source\""));
}

}  // namespace trainyard
