// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "collectives/mpi/mpi_profile.h"

#include "sim/config.h"
#include "sim/config_error.h"
#include "sim/fields.h"
#include "support/mpi.h"
#include "support/program.h"

namespace trainyard {

TEST_CASE("what messages of MPI cost is read from its file", "[collectives][mpi]") {
  const MpiProfile profile = shipped_mpi_profile();
  REQUIRE(profile.shared->eager == kib(4));
  REQUIRE(profile.tcp.eager == kib(64));
  REQUIRE(profile.shared->copy < profile.shared->read);
  REQUIRE(profile.shared->send < profile.tcp.send);
  REQUIRE_THROWS_AS(MpiProfile::load(source_dir() / "configs" / "hccl" / "profile.yaml"),
                    ConfigError);
}

TEST_CASE("messages of Gloo go by the loopback inside a host, and receivers post",
          "[collectives][mpi]") {
  const MpiProfile profile = shipped_gloo_profile();
  REQUIRE_FALSE(profile.shared.has_value());
  REQUIRE(profile.loopback.has_value());
  REQUIRE(profile.tcp.post.has_value());
}

TEST_CASE("a profile has one way inside a host and one between hosts", "[collectives][mpi]") {
  const auto refuses = [](const std::string& from, const std::string& to, const std::string& text) {
    std::string yaml = read_text_file(source_dir() / "configs" / "mpi" / "gloo-profile.yaml");
    yaml.replace(yaml.find(from), from.size(), to);
    ConfigDocument document = ConfigDocument::parse(yaml, "profile.yaml");
    MpiProfile profile;
    REQUIRE_THROWS_WITH(read_fields(document.root(), profile, mpi_fields),
                        Catch::Matchers::Contains(text));
  };
  refuses("loopback:", "# ", "expected one of shared and loopback, found none");
  refuses("  post:", "  eager: {value: 1 B, evidence: estimate, source: own}\n  post:",
          "expected one of eager and post, found both");
}

}  // namespace trainyard
