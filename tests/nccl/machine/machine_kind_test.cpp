// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "nccl/machine/machine_kind.h"

#include "calibration/predict/nccl_prediction.h"
#include "support/clusters.h"
#include "support/nccl_timing.h"
#include "support/shipped.h"

namespace trainyard::nccl {
namespace {

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
  return NcclSession(item, cluster, shipped_catalogue(), profile, Operation::AllReduce, {})
      .machine();
}

TEST_CASE("a machine is of the constants that its times rest on") {
  REQUIRE(to_string(kind_of("dgx-h100", 1, 8)) == "hopper, nvswitch, none");
  REQUIRE(to_string(kind_of("dgx-a100", 4, 8)) == "ampere, nvswitch, rdma");
  REQUIRE(to_string(kind_of("dgx-1", 1, 8)) == "volta, nvlink, none");
  REQUIRE(to_string(kind_of("dgx-h100", 2, 1)) == "hopper, none, rdma");
  REQUIRE(to_string(kind_of("dgx-h100", 2, 8, {{"NCCL_IB_DISABLE", "1"}})) ==
          "hopper, nvswitch, socket");
}

}  // namespace
}  // namespace trainyard::nccl
