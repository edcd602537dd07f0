// SPDX-License-Identifier: Apache-2.0
// Servers from a few lines of YAML, and questions about what they became.
#pragma once

#include <string>
#include <utility>

#include "support/shipped.h"
#include "topology/server/server.h"
#include "topology/server/server_keys.h"

namespace trainyard {

inline ServerSpec read_server(const ConfigNode& node, PartLog& parts) {
  ServerKeys keys{.catalogue = &open_catalogue()};
  read_fields(node, keys, server_fields);
  return read_server(keys, parts);
}

inline ServerSpec read_server_text(const std::string& text) {
  ConfigDocument document = ConfigDocument::parse(text, "server.yaml");
  PartLog parts;
  ServerSpec spec = read_server(document.root(), parts);
  document.finish();
  return spec;
}

// What reading says.
inline std::string server_error(const std::string& text) {
  try {
    (void)read_server_text(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

struct BuiltServer {
  Topology topology;
  ServerNodes nodes;
};

inline BuiltServer build_server(const std::string& text) {
  TopologyBuilder builder;
  ServerNodes nodes = add_server(builder, read_server_text(text));
  return {std::move(builder).build(), std::move(nodes)};
}

inline const Link* find_link(const Topology& topology, NodeId source, NodeId target) {
  for (const LinkId link : topology.links_from(source)) {
    if (topology.link(link).target == target) {
      return &topology.link(link);
    }
  }
  return nullptr;
}

// The name of what `node` hangs off by PCIe or C2C, without that of the server.
inline std::string host_of(const Topology& topology, NodeId node) {
  for (const LinkId link : topology.links_from(node)) {
    const LinkKind kind = topology.link(link).spec.kind;
    if (kind == LinkKind::Pcie || kind == LinkKind::C2c) {
      const std::string& name = topology.node(topology.link(link).target).name;
      return name.substr(name.find('/') + 1);
    }
  }
  return "";
}

inline std::string even_server(const std::string& layout, const std::string& gpu, int gpus,
                               int nics, int switches, int sockets) {
  std::string text = "template: " + layout + "\ngpu: " + gpu + "\ngpus: " + std::to_string(gpus) +
                     "\nnics: " + std::to_string(nics) +
                     "\npcie_switches: " + std::to_string(switches) +
                     "\nsockets: " + std::to_string(sockets) + "\n";
  text += nics > 0 ? "nic: ConnectX-7\n" : "";
  text += sockets > 1 ? "socket_link: UPI-Sapphire-Rapids\n" : "";
  return text;
}

}  // namespace trainyard
