// SPDX-License-Identifier: Apache-2.0
#include "topology/server/server.h"

#include <algorithm>

#include "topology/server/server_keys.h"

namespace trainyard {
namespace {

using namespace literals;

// The memory of a socket whose part is not given.
Sourced<Bandwidth> default_memory_bandwidth() {
  return {Bandwidth(1'638'400'000'000), Evidence::Estimate,
          "8 x DDR4-3200, as EPYC Rome and Milan and Xeon Ice Lake have; give server.cpu"};
}
Sourced<SimTime> default_memory_latency() {
  return {150_ns, Evidence::Estimate, "as the sockets of the catalogue; give server.cpu"};
}

// The memory behind each CPU.
void read_memory(const CpuModel* cpu, PartLog& parts, ServerSpec& spec) {
  spec.memory_link.kind = LinkKind::Memory;
  if (cpu == nullptr) {
    spec.memory_link.bandwidth = parts.use("host memory", "bandwidth", default_memory_bandwidth());
    spec.memory_link.latency = parts.use("host memory", "latency", default_memory_latency());
    return;
  }
  spec.cpu_part = parts.part(cpu->name);
  spec.memory_link.bandwidth = parts.use(cpu->name, "memory_bandwidth", cpu->memory_bandwidth);
  spec.memory_link.latency = parts.use(cpu->name, "memory_latency", cpu->memory_latency);
  spec.memory_link.part = spec.cpu_part;
}

// The link between sockets: the key, else what the CPU has.
void join_sockets(const ServerKeys& keys, PartLog& parts, ServerSpec& spec) {
  if (spec.sockets == 1) {
    return;
  }
  const LinkModel* link = keys.socket_link;
  if (link == nullptr && (keys.cpu == nullptr || keys.cpu->socket_link.empty())) {
    (void)keys.node->required("socket_link");
  }
  spec.socket_link =
      physical_link(link != nullptr ? *link : keys.catalogue->link(keys.cpu->socket_link), parts)
          .bundle(keys.socket_links);
}

}  // namespace

Bandwidth NicSpec::speed() const {
  return Bandwidth(port_speed.bits_per_second() * ports);
}

std::int64_t ServerSpec::devices() const {
  return static_cast<std::int64_t>(gpu_specs.size() + nic_specs.size() + switch_specs.size() +
                                   root_specs.size()) +
         2 * std::int64_t{sockets};
}

bool ServerSpec::has_equal_nics() const {
  return std::ranges::all_of(
      nic_specs, [&](const NicSpec& nic) { return nic.part == nic_specs.front().part; });
}

ServerSpec read_server(const ServerKeys& keys, PartLog& parts) {
  ServerSpec spec;
  spec.layout = keys.layout;
  read_scale_up_link(keys, parts, spec);
  read_server_tree(keys, parts, spec);
  read_gpu_links(keys, parts, spec);
  read_memory(keys.cpu, parts, spec);
  join_sockets(keys, parts, spec);
  spec.traits = keys.traits;
  spec.traits.grouped_nics =
      std::ranges::any_of(spec.nic_specs, [](const NicSpec& nic) { return nic.grouped; });
  return spec;
}

}  // namespace trainyard
