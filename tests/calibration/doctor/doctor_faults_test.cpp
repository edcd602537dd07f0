// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/doctor/doctor_faults.h"

#include <filesystem>
#include <set>
#include <string>

#include "calibration/predict/nccl_prediction.h"
#include "support/paths.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

const std::filesystem::path kConfigs = source_dir() / "configs";

std::vector<MachineFault> faults_on(const std::string& name, int nodes,
                                    const ValidationCase& item = {}) {
  const Cluster cluster =
      load_cluster(kConfigs / "clusters" / (name + ".yaml"), shipped_catalogue(), {.nodes = nodes});
  const nccl::Profile profile = nccl::Profile::load(kConfigs / "nccl/profile.yaml");
  const Bytes size = mib(1);
  const NcclSession session(item, cluster, profile, Operation::AllReduce, std::span(&size, 1));
  return faults_of({.cluster = cluster,
                    .item = item,
                    .communicator = session.communicator(),
                    .machine = session.machine()});
}

const MachineFault& fault_named(const std::vector<MachineFault>& faults, const std::string& code) {
  for (const MachineFault& fault : faults) {
    if (fault.code == code) {
      return fault;
    }
  }
  FAIL("no fault " << code);
  return faults.front();
}

}  // namespace

TEST_CASE("every fault is tried, or left out for a reason") {
  for (const auto& [cluster, nodes] :
       {std::pair("dgx-h100", 2), std::pair("dgx-h100", 1), std::pair("rtx4090-pcie", 1),
        std::pair("h100-1gpu-400g", 2), std::pair("hgx-h100-clos", 16)}) {
    const std::vector<MachineFault> faults = faults_on(cluster, nodes);
    std::set<std::string> codes;
    for (const MachineFault& fault : faults) {
      INFO(cluster << " " << fault.code);
      REQUIRE(fault.variants.empty() != fault.left_out.empty());
      REQUIRE(codes.insert(fault.code).second);
      REQUIRE_FALSE(fault.title.empty());
      for (const FaultVariant& variant : fault.variants) {
        REQUIRE_FALSE(variant.change.empty());
      }
    }
    REQUIRE(faults.size() == 18);
    REQUIRE(faults.front().code == "healthy");
  }
}

TEST_CASE("one node has no faults of NICs, and cards no NVLink") {
  const std::vector<MachineFault> faults = faults_on("rtx4090-pcie", 1);
  for (const char* const code : {"nic-down", "rail-down", "nic-pcie-x8", "nic-numa",
                                 "gpudirect-off", "sockets", "ecmp", "oversubscription"}) {
    REQUIRE(fault_named(faults, code).left_out.starts_with("one node does not use"));
  }
  REQUIRE(fault_named(faults, "nvlink-lanes").left_out == "GPUs are not joined by NVLink");
  REQUIRE(fault_named(faults, "pcie-generation").left_out.empty());
}

TEST_CASE("what the user said of the run is no fault") {
  ValidationCase item;
  item.environment = {{"NCCL_MAX_NCHANNELS", "4"}, {"NCCL_PROTO", "Simple"}};
  const std::vector<MachineFault> faults = faults_on("dgx-h100", 1, item);
  REQUIRE(fault_named(faults, "few-channels").left_out ==
          "NCCL_MAX_NCHANNELS=4 is said of the run");
  REQUIRE(fault_named(faults, "protocol").left_out == "NCCL_PROTO=Simple is said of the run");
  REQUIRE(fault_named(faults, "algorithm").variants.size() == 2);
}

TEST_CASE("a slow GPU has slower blocks and longer waits, and the same links") {
  const nccl::Profile profile = nccl::Profile::load(kConfigs / "nccl/profile.yaml");
  const nccl::Profile slow = with_gpu_speed(profile, 0.5);
  const nccl::GpuProfile& before = profile.gpus.at("hopper");
  const nccl::GpuProfile& after = slow.gpus.at("hopper");
  REQUIRE(after.simple_rate == before.simple_rate.scaled(0.5));
  REQUIRE(after.simple_cost == before.simple_cost * 2);
  REQUIRE(after.nvls->head_cost == before.nvls->head_cost * 2);
  REQUIRE(after.ll128_link == before.ll128_link);
  REQUIRE(slow.launch.process_per_gpu == profile.launch.process_per_gpu);
}

}  // namespace trainyard
