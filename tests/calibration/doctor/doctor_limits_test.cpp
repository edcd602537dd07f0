// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/doctor/doctor_limits.h"

#include <array>
#include <filesystem>
#include <string>

#include "support/paths.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

const std::filesystem::path kLimitsConfigs = source_dir() / "configs";

struct Limited {
  LimitShare small;
  LimitShare large;
};

Limited limits_of(const std::string& name, int nodes, Operation operation,
                  const std::string& algorithm = "Ring") {
  const Cluster cluster = load_cluster(kLimitsConfigs / "clusters" / (name + ".yaml"),
                                       shipped_catalogue(), {.nodes = nodes});
  const nccl::Profile profile = nccl::Profile::load(kLimitsConfigs / "nccl/profile.yaml");
  const std::array sizes{kib(1), gib(1)};
  ValidationCase item;
  item.environment = {{"NCCL_ALGO", algorithm}};
  NcclSession session(item, cluster, profile, operation, sizes);
  const std::vector<LimitShare> limits = largest_limits(session, profile);
  REQUIRE(limits.size() == 2);
  return {.small = limits[0], .large = limits[1]};
}

}  // namespace

TEST_CASE("small calls wait, large ones are bound by what is slowest") {
  const Limited nodes = limits_of("h100-1gpu-400g", 2, Operation::AllReduce);
  REQUIRE(nodes.small.limit == TimeLimit::Latency);
  REQUIRE(nodes.large.limit == TimeLimit::Network);
  REQUIRE(nodes.large.share > 0.6);
  const Limited cards = limits_of("rtx4090-4-pcie", 1, Operation::AllReduce);
  REQUIRE(cards.large.limit == TimeLimit::Pcie);
  const Limited server = limits_of("dgx-a100", 1, Operation::AllReduce);
  REQUIRE(server.large.limit == TimeLimit::Links);
}

TEST_CASE("slower by a group is slower in it alone") {
  const nccl::Profile profile = nccl::Profile::load(kLimitsConfigs / "nccl/profile.yaml");
  const nccl::Profile waiting = slowed(profile, TimeLimit::Latency, 2.0);
  REQUIRE(waiting.ring_base.simple == profile.ring_base.simple * 2);
  REQUIRE(waiting.launch.graph == profile.launch.graph);
  REQUIRE(waiting.gpus.at("ampere").simple_rate == profile.gpus.at("ampere").simple_rate);
  const nccl::Profile network = slowed(profile, TimeLimit::Network, 2.0);
  REQUIRE(network.networks.at("rdma").rate == Approx(profile.networks.at("rdma").rate / 2.0));
  REQUIRE(network.networks.at("rdma").latency.ll == profile.networks.at("rdma").latency.ll);
  for (const TimeLimit limit : kTimeLimits) {
    REQUIRE_FALSE(to_string(limit).empty());
  }
}

}  // namespace trainyard
