// SPDX-License-Identifier: Apache-2.0
// Leads from the description of a server to nodes and links.
#include <spdlog/fmt/fmt.h>

#include <string_view>
#include <utility>

#include "topology/server/server.h"

namespace trainyard {
namespace {

// The nodes of one server while it grows.
class ServerBuilder {
 public:
  ServerBuilder(TopologyBuilder& builder, const ServerSpec& spec)
      : builder_(builder), spec_(spec), server_(builder.add_server(spec.traits)) {}

  ServerNodes build() {
    for (const GpuSpec& gpu : spec_.gpu_specs) {
      add(gpus_, {.kind = NodeKind::Gpu, .part = gpu.part}, "gpu");
    }
    for (const NicSpec& nic : spec_.nic_specs) {
      add(nics_,
          {.kind = NodeKind::Nic,
           .latency = nic.latency,
           .part = nic.part,
           .ports = static_cast<std::uint16_t>(nic.ports)},
          "nic");
    }
    for (const PcieSwitchSpec& spec : spec_.switch_specs) {
      add(switches_, {.kind = NodeKind::PcieSwitch, .latency = spec.latency}, "pcie");
    }
    for (int socket = 0; socket < spec_.sockets; ++socket) {
      add(cpus_, {.kind = NodeKind::Cpu, .part = spec_.cpu_part}, "cpu");
    }
    for (std::size_t root = 0; root < spec_.root_specs.size(); ++root) {
      add(roots_, {.kind = NodeKind::RootComplex}, "root");
    }
    join_gpus(builder_, spec_, gpus_);
    attach_all(gpus_, spec_.gpu_specs);
    attach_all(nics_, spec_.nic_specs);
    attach_all(switches_, spec_.switch_specs);
    for (std::size_t root = 0; root < roots_.size(); ++root) {
      attach(roots_[root], spec_.root_specs[root]);
    }
    for (std::size_t a = 0; a < cpus_.size(); ++a) {
      for (std::size_t b = a + 1; b < cpus_.size(); ++b) {
        builder_.add_duplex_link(cpus_[a], cpus_[b], spec_.socket_link);
      }
    }
    return {.gpus = gpus_, .nics = nics_, .cpus = cpus_, .memories = {}};
  }

 private:
  // Named gpu0, gpu1, ...
  void add(std::vector<NodeId>& nodes, Node node, std::string_view name) {
    node.name = fmt::format("server{}/{}{}", server_.value(), name, nodes.size());
    node.server = server_;
    nodes.push_back(builder_.add_node(std::move(node)));
  }

  [[nodiscard]] NodeId host(const Attachment& device) const {
    const auto& hosts = device.above == NodeKind::Cpu          ? cpus_
                        : device.above == NodeKind::PcieSwitch ? switches_
                                                               : roots_;
    return hosts[as_index(device.index)];
  }

  void attach(NodeId node, const Attachment& device) {
    builder_.add_duplex_link(node, host(device), device.link);
  }

  template <typename Specs>
  void attach_all(const std::vector<NodeId>& nodes, const Specs& specs) {
    for (std::size_t index = 0; index < nodes.size(); ++index) {
      attach(nodes[index], specs[index].host);
    }
  }

  TopologyBuilder& builder_;
  const ServerSpec& spec_;
  ServerId server_;
  std::vector<NodeId> gpus_;
  std::vector<NodeId> nics_;
  std::vector<NodeId> switches_;
  std::vector<NodeId> cpus_;
  std::vector<NodeId> roots_;
};

}  // namespace

ServerNodes add_server(TopologyBuilder& builder, const ServerSpec& spec) {
  return ServerBuilder(builder, spec).build();
}

void add_memory(TopologyBuilder& builder, const ServerSpec& spec, ServerNodes& server) {
  for (std::size_t socket = 0; socket < server.cpus.size(); ++socket) {
    const ServerId id = *builder.node(server.cpus[socket]).server;
    const NodeId memory =
        builder.add_node({.kind = NodeKind::Memory,
                          .name = fmt::format("server{}/memory{}", id.value(), socket),
                          .server = id});
    builder.add_duplex_link(server.cpus[socket], memory, spec.memory_link);
    server.memories.push_back(memory);
  }
}

}  // namespace trainyard
