// SPDX-License-Identifier: Apache-2.0
// Divides what a time depends on into resources, each of which can be made faster by a factor while
// all else stays: links by kind, NICs, tiers of switches, latencies, what NCCL's kernels and hosts
// take, and what a GPU computes and reads.
//
// NCCL's choices are not part of this: it chooses by tables of its own for the parts of the cluster
// (nccl/machine/job_nodes.h), which stay. So a time with a faster resource is that of the same
// algorithm on the same channels.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nccl/timing/profile.h"
#include "parallelism/workload/gpu_rates.h"
#include "parallelism/workload/software_profile.h"
#include "topology/cluster/cluster.h"
#include "topology/graph/fabric_shape.h"

namespace trainyard {

// All of a prediction that resources can change.
struct MachineModel {
  Cluster cluster;
  nccl::Profile nccl;
  GpuRates rates = {};
  SoftwareProfile software = {};
};

enum class ResourceKind : std::uint8_t {
  Links,           // Rates of links of one kind, within servers or NVLink domains.
  Nic,             // Links between an endpoint and the fabric, or from endpoint to endpoint: rates.
  Tier,            // Links between switches of one tier and the next: rates.
  ServerLatency,   // Latency of links and devices within servers and NVLink domains.
  NetworkLatency,  // Latency of links, switches and NICs of the fabric.
  KernelRate,      // NCCL: what a thread block, or a host that copies, moves.
  KernelLatency,   // NCCL: what each unit, hop and message costs beside its bytes.
  Launch,          // Launch of kernels and layers, and what a step costs whatever its size.
  Flops,           // Products and attention.
  GpuMemory,       // Bandwidth of the memory of GPUs.
  All,             // Everything above at once.
};

struct Resource {
  ResourceKind kind = ResourceKind::All;
  std::string key = {};    // "nvlink", "nic", "tier_0": for JSON and CSV.
  std::string title = {};  // "NVLink", "links of NICs": for people.
  std::string value = {};  // Rate of its links: "180 GB/s", "22.5 to 45 GB/s"; or empty.
};

// The runs that are to be explained: resources of others are left out.
struct ResourceScope {
  bool nccl = true;      // The event model has a say.
  bool compute = false;  // A step, not a collective.
};

// Returns the resources that the cluster has, links first; without All.
[[nodiscard]] std::vector<Resource> resources_of(const Cluster& cluster, ResourceScope scope);
[[nodiscard]] Resource all_resources();

// The link's resource: a key of resources_of().
class LinkResources {
 public:
  // `topology` must outlive the object. With the shape of the fabric, links between switches of a
  // grid are divided by the dimension along which they lead ("dimension_0"), those of a fabric in
  // groups into links in groups and between them ("local", "global"); otherwise all by tiers.
  explicit LinkResources(const Topology& topology, const FabricShape& fabric = {});
  [[nodiscard]] const Resource& of(LinkId link) const { return list_[of_link_[link.value()]]; }
  [[nodiscard]] const std::vector<Resource>& list() const { return list_; }

 private:
  std::vector<Resource> list_;
  std::vector<std::size_t> of_link_;
};

// Rates times `factor`, latencies and costs divided by it. `factor` is positive.
[[nodiscard]] MachineModel scaled(const MachineModel& machine, const Resource& resource,
                                  double factor);

// Returns by how many per cent the time falls for each per cent that the resource gains, in the
// limit: -ln(changed / base) / ln(factor). 1 where the time is inverse to the resource, 0 where it
// does not depend on it, whatever the factor is. Both times are positive.
[[nodiscard]] double elasticity(SimTime base, SimTime changed, double factor);

}  // namespace trainyard
