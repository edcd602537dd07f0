// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/workload/software_profile.h"

#include <filesystem>
#include <string>

#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::filesystem::path kShipped = kConfigsFolder / "software";

}  // namespace

TEST_CASE("every shipped software profile is read", "[software]") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kConfigsFolder / "software")) {
    if (entry.is_directory()) {
      continue;  // Of recommendation models.
    }
    const SoftwareProfile profile = SoftwareProfile::load(entry.path(), kShipped);
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
    return SoftwareProfile::load(kShipped / (name + ".yaml"), kShipped);
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

TEST_CASE("a profile of one's own says what differs from a shipped one", "[software]") {
  const ScratchFolder folder;
  const std::filesystem::path file =
      folder.write("mine.yaml",
                   "base: megatron-core\ntitle: Mine\nsources: {own: a measurement}\n"
                   "host: {value: 1.5, evidence: measured, source: own}\n");
  const SoftwareProfile mine = SoftwareProfile::load(file, kShipped);
  const SoftwareProfile base = SoftwareProfile::load(kShipped / "megatron-core.yaml", kShipped);
  REQUIRE(mine.name == "mine");
  REQUIRE(mine.title == "Mine");
  REQUIRE(mine.host == 1.5);
  REQUIRE(mine.host != base.host);
  REQUIRE(mine.attention == base.attention);
  REQUIRE(mine.fixed == base.fixed);
  const auto error_of = [&](const std::string& text) {
    const std::filesystem::path wrong = folder.write("wrong.yaml", text);
    try {
      (void)SoftwareProfile::load(wrong, kShipped);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  REQUIRE_THAT(error_of("base: megatron-cor\n"), Catch::Matchers::Contains("megatron-core"));
  REQUIRE_THAT(error_of("base: megatron-core\nhost: {value: 2, evidence: measured, source: own}\n"),
               Catch::Matchers::Contains("source: expected"));
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
