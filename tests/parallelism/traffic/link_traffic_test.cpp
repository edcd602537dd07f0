// SPDX-License-Identifier: Apache-2.0
// The bytes on the links against the volumes that step_traffic.h gives: what a rank sends in rings
// leaves it by its own links.
#include "support/catch.h"

#include "parallelism/traffic/link_traffic.h"

#include <map>
#include <string>
#include <string_view>

#include "parallelism/run/resources.h"
#include "parallelism/walk/step_traffic.h"
#include "parallelism/workload/workload.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

Workload workload_of(const std::vector<std::string>& settings) {
  return load_workload(kConfigsFolder / "workloads" / "llama-3-8b.yaml",
                       kConfigsFolder / "workloads" / "models", settings);
}

SoftwareProfile software_of(const Workload& workload) {
  return SoftwareProfile::load(kConfigsFolder / "software" / (workload.software + ".yaml"),
                               kConfigsFolder / "software");
}

// Bytes of a purpose that leave a node.
double bytes_from(const Topology& topology, const std::vector<LinkTraffic>& traffic, NodeId node,
                  std::string_view purpose) {
  double sum = 0.0;
  for (const LinkTraffic& link : traffic) {
    for (const PurposeBytes& part : link.parts) {
      if (topology.link(link.link).source == node && part.purpose == purpose) {
        sum += static_cast<double>(part.bytes.count());
      }
    }
  }
  return sum;
}

double sent(const std::vector<GroupCall>& calls, int ranks) {
  double sum = 0.0;
  for (const GroupCall& call : calls) {
    if (call.group == RankGroupKind::Tensor) {
      sum += sent_elements(call, ranks) * call.element_bytes;
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("a tensor rank puts on its links what its calls send", "[link-traffic]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  const Workload workload = workload_of(
      {"plan.tensor=8", "plan.pipeline=1", "plan.context=1", "batch.micro=1", "batch.global=4"});
  const ParallelPlan plan = plan_for(workload, 8);
  REQUIRE(plan.tensor == 8);
  const Model& model = workload.model;
  double wanted = 0.0;
  for (const ModelLayer& layer : model.layers) {
    const PassCalls calls = layer_calls(model, layer, plan, software_of(workload));
    wanted += sent(calls.forward, 8) + sent(calls.backward, 8);
  }
  for (const PassCalls& calls :
       {end_calls(model, plan, StepPlace::Embedding), end_calls(model, plan, StepPlace::Head)}) {
    wanted += sent(calls.forward, 8) + sent(calls.backward, 8);
  }
  wanted *= static_cast<double>(plan.micro_batches());
  const auto traffic =
      step_link_traffic(cluster, model, plan, software_of(workload), CallRuntime());
  for (const NodeId gpu : cluster.gpus) {
    REQUIRE(bytes_from(cluster.topology, traffic, gpu, "tensor") == Approx(wanted).epsilon(1e-6));
    REQUIRE(bytes_from(cluster.topology, traffic, gpu, "data") == 0.0);
  }
}

TEST_CASE("all groups of data ranks are counted, and pipelines send both ways", "[link-traffic]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 4});
  const Workload workload = workload_of(
      {"plan.tensor=4", "plan.pipeline=2", "plan.context=1", "batch.micro=1", "batch.global=16"});
  const ParallelPlan plan = plan_for(workload, 32);
  const SoftwareProfile software = software_of(workload);
  const auto traffic = step_link_traffic(cluster, workload.model, plan, software, CallRuntime());
  double min_data = 1e300;
  double pipeline = 0.0;
  for (const NodeId gpu : cluster.gpus) {
    min_data = std::min(min_data, bytes_from(cluster.topology, traffic, gpu, "data"));
    pipeline += bytes_from(cluster.topology, traffic, gpu, "pipeline");
  }
  REQUIRE(min_data > 0.0);
  // Each of 4 data and 4 tensor ranks forward and back, once: no chunks.
  const double message =
      2.0 * static_cast<double>(transfer_elements(workload.model, plan, software.scatter_gather));
  const double messages = static_cast<double>(plan.micro_batches()) * 16.0 * 2.0;
  REQUIRE(pipeline == Approx(message * messages).epsilon(1e-6));
  for (const LinkTraffic& link : traffic) {
    REQUIRE(link.total() > Bytes(0));
  }
}

TEST_CASE("a pipeline sends over each boundary of stages on two ranks", "[link-traffic]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 1});
  for (const PipelineSchedule* schedule : pipeline_schedules()) {
    const Workload workload =
        workload_of({"plan.tensor=2", "plan.pipeline=4", "plan.context=1", "batch.micro=1",
                     "batch.global=8", "plan.schedule=" + std::string(schedule->name),
                     "plan.chunks=" + std::to_string(schedule->chunks.value_or(2))});
    const ParallelPlan plan = plan_for(workload, 8);
    const SoftwareProfile software = software_of(workload);
    const PipelineShape shape = plan.pipeline_shape();
    int boundaries = 0;
    for (int stage = 0; stage + 1 < shape.stages(); ++stage) {
      boundaries += shape.rank_of(stage, {}) != shape.rank_of(stage + 1, {}) ? 1 : 0;
    }
    double pipeline = 0.0;
    const auto traffic = step_link_traffic(cluster, workload.model, plan, software, CallRuntime());
    for (const NodeId gpu : cluster.gpus) {
      pipeline += bytes_from(cluster.topology, traffic, gpu, "pipeline");
    }
    INFO(to_string(schedule));
    const double message =
        2.0 * static_cast<double>(transfer_elements(workload.model, plan, software.scatter_gather));
    // There and back, for each of two tensor ranks.
    REQUIRE(pipeline == Approx(message * 2.0 * 2.0 * boundaries * shape.micro_batches));
  }
}

TEST_CASE("replicas of ZeRO 3 are counted as those of ZeRO 1", "[link-traffic]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  const auto of_nics = [&](const std::string& stage) {
    const Workload workload =
        workload_of({"plan={shard_group: 8, zero_stage: " + stage + "}", "batch.global=16"});
    const auto traffic = step_link_traffic(cluster, workload.model, plan_for(workload, 16),
                                           software_of(workload), CallRuntime());
    double sum = 0.0;
    for (const LinkTraffic& link : traffic) {
      const Link& of = cluster.topology.link(link.link);
      const bool leaves_server = cluster.topology.node(of.source).server.has_value() &&
                                 !cluster.topology.node(of.target).server.has_value();
      for (const PurposeBytes& part : link.parts) {
        sum += leaves_server ? static_cast<double>(part.bytes.count()) : 0.0;
      }
    }
    return sum;
  };
  REQUIRE(of_nics("1") > 0.0);
  REQUIRE(of_nics("3") == of_nics("1"));
}

TEST_CASE("by rails, tokens do not pass the upper tier that they pass directly", "[link-traffic]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 4, .gpus_per_node = 4});
  const Workload workload = load_workload(
      kConfigsFolder / "workloads" / "mixtral-8x7b.yaml", kConfigsFolder / "workloads" / "models",
      {"plan.tensor=1", "plan.sequence_parallel=false", "plan.pipeline=1", "plan.chunks=1",
       "plan.context=1", "plan.expert=8"});
  const ParallelPlan plan = plan_for(workload, 16);
  const SoftwareProfile software = software_of(workload);
  const LinkResources resources(cluster.topology);
  const nccl::Profile profile = nccl::Profile::load(kConfigsFolder / "nccl" / "profile.yaml");
  const auto expert_bytes = [&](const CallRuntime& runtime) {
    double sum = 0.0;
    for (const LinkTraffic& link :
         step_link_traffic(cluster, workload.model, plan, software, runtime)) {
      for (const PurposeBytes& part : link.parts) {
        const bool counts = part.purpose == "expert" && resources.of(link.link).key == "tier_0";
        sum += counts ? static_cast<double>(part.bytes.count()) : 0.0;
      }
    }
    return sum;
  };
  REQUIRE(expert_bytes({.nccl = &profile}) == 0.0);
  REQUIRE(expert_bytes({}) > 0.0);
}

}  // namespace trainyard
