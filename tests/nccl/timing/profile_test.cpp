// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/timing/profile.h"

#include <string>

#include "nccl/types/types.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/program.h"

namespace trainyard::nccl {
namespace {

using Catch::Matchers::Contains;

const std::filesystem::path kProfile = kConfigsFolder / "nccl" / "profile.yaml";

std::string with(std::string text, const std::string& old, const std::string& changed) {
  const std::size_t at = text.find(old);
  REQUIRE(at != std::string::npos);
  return text.replace(at, old.size(), changed);
}

// From `begin` to the end of its line.
std::string line_from(const std::string& text, const std::string& begin) {
  const std::size_t at = text.find(begin);
  REQUIRE(at != std::string::npos);
  return text.substr(at, text.find('\n', at) - at);
}

// The shipped file with one change is refused in one line that says where and what.
void require_refused(const std::string& old, const std::string& changed,
                     const std::string& message) {
  const ScratchFolder folder;
  const auto file = folder.write("profile.yaml", with(read_text_file(kProfile), old, changed));
  std::string error;
  try {
    static_cast<void>(Profile::load(file));
  } catch (const ConfigError& thrown) {
    error = thrown.what();
  }
  REQUIRE_THAT(error, Contains("profile.yaml:"));
  REQUIRE_THAT(error, Contains(message));
  REQUIRE(error.find('\n') == std::string::npos);
}

}  // namespace

TEST_CASE("the shipped profile has positive times and every GPU generation", "[nccl][timing]") {
  const Profile profile = Profile::load(kProfile);
  for (const char* const name : {"volta", "turing", "ampere", "ada", "hopper", "blackwell"}) {
    INFO(name);
    REQUIRE(profile.gpus.count(name) == 1);
    const GpuProfile& gpu = profile.gpus.at(name);
    REQUIRE(gpu.simple_rate > gpu.ll128_rate);
    REQUIRE(gpu.ll128_rate > Bandwidth(0));
    REQUIRE(gpu.ll_pass > SimTime(0));
    REQUIRE(gpu.ll_cost <= gpu.simple_cost);
  }
  for (const Protocol protocol : kProtocols) {
    REQUIRE(profile.ring_base[protocol] > SimTime(0));
    REQUIRE(profile.tree_base[protocol] > SimTime(0));
    REQUIRE(profile.networks.at("rdma").latency[protocol] > profile.nvlink.latency[protocol]);
  }
  REQUIRE(profile.launch.per_gpu > SimTime(0));
}

TEST_CASE("the NICs of the profile are parts of the catalogue", "[nccl][timing]") {
  const Profile profile = Profile::load(kProfile);
  REQUIRE(!profile.network_of_nic.empty());
  for (const auto& [nic, network] : profile.network_of_nic) {
    INFO(nic);
    REQUIRE(profile.networks.count(network) == 1);
    REQUIRE(shipped_catalogue().nics().count(nic) == 1);
  }
}

TEST_CASE("a time of each protocol", "[nccl][timing]") {
  const ProtocolTimes times{
      .ll = nanoseconds(1), .ll128 = nanoseconds(2), .simple = nanoseconds(3)};
  REQUIRE(times[Protocol::LL] == nanoseconds(1));
  REQUIRE(times[Protocol::LL128] == nanoseconds(2));
  REQUIRE(times[Protocol::Simple] == nanoseconds(3));
}

TEST_CASE("mistakes in a profile are one line with their place", "[nccl][timing]") {
  const std::string text = read_text_file(kProfile);
  const std::string rate = line_from(text, "simple_rate:");
  require_refused(rate, with(rate, "evidence", "evidenec"),
                  "gpus.volta.simple_rate: missing key \"evidence\"");
  require_refused(rate, with(rate, "measured", "guessed"), "expected one of");
  require_refused(rate, with(rate, "source: nccl-tables", "source: hearsay"), "hearsay");
  require_refused(rate, "simple_speed: 3", "simple_rate");
  require_refused("kernel:\n", "kernel:\n  warp_speed: 9\n", "kernel: unknown key \"warp_speed\"");
  const std::string base = line_from(text, "ring_base:");
  require_refused(base, "ring_base: {value: [1 us, 2 us], evidence: measured, source: nccl-tables}",
                  "kernel.ring_base.value: expected three times, of LL, LL128 and Simple");
  require_refused("Cassini: ", "Cassini: token-", "nics.Cassini: expected one of");
}

}  // namespace trainyard::nccl
