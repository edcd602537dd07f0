// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine/network_software.h"

#include "nccl/machine/gpu_ranks.h"
#include "nccl/tuning/choice.h"
#include "nccl/tuning/init.h"
#include "support/built_clusters.h"
#include "support/catch.h"

namespace trainyard::nccl {
namespace {

TEST_CASE("the plugin of AWS states latencies and takes LL away on p4d", "[nccl]") {
  const NetworkSoftware* const p4d = network_software("EFA-100G-v1");
  REQUIRE(p4d != nullptr);
  REQUIRE(p4d->latency_us == 75.0);
  REQUIRE(p4d->protocols == "Simple");
  REQUIRE(network_software("EFA-200G")->protocols.empty());
  REQUIRE(network_software("EFA-200G")->latency_us == 35.0);
  REQUIRE(network_software("ConnectX-7") == nullptr);
}

Protocol protocol_of(const JobNodes& nodes, const Environment& environment) {
  const Communicator communicator =
      make_communicator(nodes, {.environment = environment}).communicator;
  return plan_call(communicator, environment, Function::AllReduce, Bytes(1024)).protocol;
}

TEST_CASE("what the user sets comes before what a plugin sets", "[nccl]") {
  const NetworkSoftware& plugin = *network_software("gVNIC-200G");
  Environment environment;
  plugin.apply(environment);
  REQUIRE_FALSE(environment.selection.allows(Function::AllReduce, Algorithm::NvlsTree));
  REQUIRE_FALSE(environment.selection.allows(Function::AllReduce, Protocol::LL));
  REQUIRE(environment.nvls_enable == 0);
  REQUIRE(environment.simple_buffer == mib(8));
  const std::vector<std::string> set{"NCCL_PROTO=LL128", "NCCL_BUFFSIZE=2097152",
                                     "NCCL_MIN_NCHANNELS=2"};
  Environment user = Environment::parse(set);
  plugin.apply(user);
  REQUIRE(user.selection.allows(Function::AllReduce, Protocol::LL128));
  REQUIRE(user.simple_buffer == mib(2));
  REQUIRE(user.min_channels == 2);
  Environment other;
  other.network = "GPUDirectTCPX";
  plugin.apply(other);
  REQUIRE(other.simple_buffer == Environment().simple_buffer);
}

TEST_CASE("two p4d send Simple alone unless the user says more", "[nccl]") {
  const Cluster cluster = shipped_cluster("aws-p4d", {.nodes = 2});
  const JobNodes nodes = job_nodes(cluster, Domains::Joined);
  REQUIRE(nodes.software == network_software("EFA-100G-v1"));
  bool has_latency = false;
  visit_devices(nodes.kinds.front().front(), [&](const NcclPci& device) {
    for (const NcclNic& nic : device.nics) {
      has_latency = nic.nets.front().latency == 75.0;
    }
  });
  REQUIRE(has_latency);
  REQUIRE(protocol_of(nodes, {}) == Protocol::Simple);
  Environment user;
  user.selection.set_protocols("LL");
  REQUIRE(protocol_of(nodes, user) == Protocol::LL);
  Environment sockets;
  sockets.network = "Socket";
  REQUIRE(protocol_of(nodes, sockets) != Protocol::Simple);
}

TEST_CASE("variables of the plugin for InfiniBand and RoCE reach the NICs that it drives",
          "[nccl]") {
  REQUIRE(is_driven_by_verbs("ConnectX-7", {}));
  REQUIRE(!is_driven_by_verbs("EFA-200G", {}));
  REQUIRE(!is_driven_by_verbs("Cassini", {}));
  Environment environment;
  environment.network = "IB";
  REQUIRE(is_driven_by_verbs("ConnectX-7", environment));
  environment.network = "Socket";
  REQUIRE(!is_driven_by_verbs("ConnectX-7", environment));
  environment.network = "";
  environment.ib_disable = true;
  REQUIRE(!is_driven_by_verbs("ConnectX-7", environment));
}

}  // namespace
}  // namespace trainyard::nccl
