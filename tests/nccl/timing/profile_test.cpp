// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/timing/profile.h"

#include <string>

#include "calibration/predict/nccl_prediction.h"
#include "nccl/types/types.h"
#include "sim/config.h"
#include "sim/config_error.h"
#include "sim/fields.h"
#include "support/built_clusters.h"
#include "support/clusters.h"
#include "support/program.h"
#include "support/shipped.h"

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
    REQUIRE(gpu.ll_cost + gpu.ll_busy <= gpu.simple_cost);
    for (const Protocol protocol : kProtocols) {
      REQUIRE(profile.networks.at("rdma").latency[protocol] > gpu.link_latency[protocol]);
    }
  }
  for (const Protocol protocol : kProtocols) {
    REQUIRE(profile.ring_base[protocol] > SimTime(0));
    REQUIRE(profile.tree_base[protocol] > SimTime(0));
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

namespace {

ProfileBasis basis_of(const std::string& rows) {
  ConfigDocument document = ConfigDocument::parse(
      "cluster: a\nfiles: [a.log]\nmachine: {gpu: hopper, scale_up: nvswitch, network: none}\n"
      "rows: " +
          rows,
      "profile.yaml");
  ProfileBasis basis;
  read_fields(document.root(), basis, basis_fields);
  document.finish();
  return basis;
}

const MachineKind kMachine{.gpu = "hopper", .scale_up = "nvswitch", .network = "none"};

std::string basis_error(const std::string& rows) {
  try {
    (void)basis_of(rows);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

MachineKind kind_of(const std::string& name, int nodes, int gpus_per_node,
                    const std::vector<std::pair<std::string, std::string>>& environment = {}) {
  ValidationCase item;
  item.cluster = kConfigsFolder / "clusters" / (name + ".yaml");
  item.nodes = nodes;
  item.gpus_per_node = gpus_per_node;
  item.ranks = nodes * gpus_per_node;
  item.environment = environment;
  const Cluster cluster = cluster_of(item, shipped_catalogue());
  const Profile profile = Profile::load(kConfigsFolder / "nccl" / "profile.yaml");
  return NcclSession(item, cluster, profile, Operation::AllReduce, {}).machine();
}

}  // namespace

TEST_CASE("predictions beyond what a profile rests on are told apart") {
  const ProfileBasis basis = basis_of(
      "[{operation: all_reduce, ranks: 8, from: 1 KiB, to: 1 MiB, count: 11},"
      " {operation: all_reduce, ranks: 4, from: 1 KiB, to: 1 MiB, count: 11}]");
  const auto beyond = [&](Operation operation, int ranks, Bytes size) {
    return basis.beyond(kMachine, operation, ranks, size).value_or("");
  };
  REQUIRE(beyond(Operation::AllReduce, 8, kib(1)).empty());
  REQUIRE(beyond(Operation::AllReduce, 8, mib(1)).empty());
  REQUIRE(beyond(Operation::AllReduce, 8, mib(2)) == "rows of all_reduce from 1KiB to 1MiB");
  REQUIRE(beyond(Operation::AllReduce, 2, mib(1)) == "rows of all_reduce with 4, 8 ranks, not 2");
  REQUIRE(beyond(Operation::AllToAll, 8, mib(1)) == "no row of alltoall");
  const MachineKind other{.gpu = "hopper", .scale_up = "nvswitch", .network = "rdma"};
  REQUIRE(basis.beyond(other, Operation::AllReduce, 8, mib(1)).value() ==
          "measured was hopper, nvswitch, none, not hopper, nvswitch, rdma");
}

TEST_CASE("a basis is read strictly") {
  REQUIRE(basis_error("[]").find("expected at least one entry, found none") != std::string::npos);
  REQUIRE(basis_error("[{operation: allreduce, ranks: 8, from: 1 B, to: 2 B, count: 1}]")
              .find("operation: expected all_reduce, ") != std::string::npos);
  REQUIRE(basis_error("[{operation: alltoall, ranks: 8, from: 4 B, to: 2 B, count: 1}]")
              .find("to: expected at least the size of `from`") != std::string::npos);
  REQUIRE(basis_error("[{operation: alltoall, ranks: 0, from: 1 B, to: 2 B, count: 1}]")
              .find("ranks: expected ") != std::string::npos);
}

TEST_CASE("a machine is of the constants that its times rest on") {
  REQUIRE(to_string(kind_of("dgx-h100", 1, 8)) == "hopper, nvswitch, none");
  REQUIRE(to_string(kind_of("dgx-a100", 4, 8)) == "ampere, nvswitch, rdma");
  REQUIRE(to_string(kind_of("dgx-1", 1, 8)) == "volta, nvlink, none");
  REQUIRE(to_string(kind_of("dgx-h100", 2, 1)) == "hopper, none, rdma");
  REQUIRE(to_string(kind_of("dgx-h100", 2, 8, {{"NCCL_IB_DISABLE", "1"}})) ==
          "hopper, nvswitch, socket");
}

}  // namespace trainyard::nccl
