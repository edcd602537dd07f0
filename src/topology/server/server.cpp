// SPDX-License-Identifier: Apache-2.0
#include "topology/server/server.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "topology/server/server_scale_up.h"
#include "topology/server/server_tree.h"

namespace trainyard {
namespace {

using namespace literals;

// The names are in the order of Distance.
constexpr std::array<std::string_view, 5> kDistances = {"none", "pix", "pxb", "phb", "sys"};

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
const LinkModel& socket_link(const ConfigNode& node, const Catalogue& catalogue,
                             const CpuModel* cpu) {
  const auto name = node.optional("socket_link");
  if (!name && cpu != nullptr && !cpu->socket_link.empty()) {
    return catalogue.link(cpu->socket_link);
  }
  const ConfigNode link = node.required("socket_link");
  const LinkModel& model = catalogue.link(link);
  if (model.family != LinkFamily::Socket) {
    link.fail("a link between CPU sockets", link.found());
  }
  return model;
}

void read_socket_link(const ConfigNode& node, const Catalogue& catalogue, const CpuModel* cpu,
                      PartLog& parts, ServerSpec& spec) {
  const auto count = node.optional("socket_links");
  const int links = count ? static_cast<int>(count->as_integer(1, 16)) : 1;
  if (spec.sockets == 1) {
    if (const auto unused = node.optional("socket_link")) {
      (void)catalogue.link(*unused);
    }
    return;
  }
  spec.socket_link = physical_link(socket_link(node, catalogue, cpu), parts).bundle(links);
}

// Keys `peer_access`, `gpudirect`, `pxn` and `host_memory`.
ServerTraits read_traits(const ConfigNode& node) {
  ServerTraits traits;
  if (const auto distance = node.optional("peer_access")) {
    traits.peer_access = static_cast<Distance>(distance->as_choice(kDistances));
  }
  if (const auto distance = node.optional("gpudirect")) {
    traits.gpudirect = static_cast<Distance>(distance->as_choice(kDistances));
  }
  if (const auto pxn = node.optional("pxn")) {
    traits.pxn = pxn->as_bool();
  }
  if (const auto memory = node.optional("host_memory")) {
    traits.host_memory = memory->as_bytes();
  }
  return traits;
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

ServerSpec read_server(const ConfigNode& node, const Catalogue& catalogue, PartLog& parts) {
  ServerSpec spec;
  spec.layout = static_cast<ServerTemplate>(node.required("template").as_choice(kServerTemplates));
  read_scale_up_link(node, catalogue, parts, spec);
  const auto cpu_node = node.optional("cpu");
  const CpuModel* cpu = cpu_node ? &catalogue.cpu(*cpu_node) : nullptr;
  read_server_tree(node, catalogue, cpu, parts, spec);
  read_gpu_links(node, catalogue, parts, spec);
  read_memory(cpu, parts, spec);
  read_socket_link(node, catalogue, cpu, parts, spec);
  spec.traits = read_traits(node);
  spec.traits.grouped_nics =
      std::ranges::any_of(spec.nic_specs, [](const NicSpec& nic) { return nic.grouped; });
  return spec;
}

}  // namespace trainyard
