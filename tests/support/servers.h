// SPDX-License-Identifier: Apache-2.0
// Clusters of unequal servers on one switch, and grids of GPUs, built by hand.
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "support/fabrics.h"
#include "topology/cluster/cluster.h"
#include "topology/routing/grid_router.h"

namespace trainyard {

enum class TestScaleUp { NvSwitch, Chain, Pcie };

struct TestServer {
  int gpus = 1;
  int nics = 1;
  TestScaleUp scale_up = TestScaleUp::NvSwitch;
};

// Inside a server links are so fast and short that NICs alone matter.
inline constexpr Bandwidth kTestNic{100'000'000'000};
inline constexpr Bandwidth kTestInside{100'000'000'000'000};

// GPU g uses NIC g * nics / gpus, or with more NICs than GPUs those n with n * gpus / nics = g. The
// GPUs of a chain are joined by a link with their neighbours, in pairs of opposite directions.
inline std::vector<NodeId> add_test_server(TopologyBuilder& builder, const TestServer& server,
                                           NodeId fabric) {
  const ServerId id = builder.add_server();
  const std::string name = "server" + std::to_string(id.value()) + "/";
  const auto link = [](LinkKind kind) {
    return LinkSpec{.kind = kind, .bandwidth = kTestInside, .latency = SimTime()};
  };
  const auto add = [&](NodeKind kind, const std::string& what) {
    return builder.add_node({.kind = kind, .name = name + what, .server = id});
  };
  const NodeId cpu = add(NodeKind::Cpu, "cpu");
  const NodeId nvswitch = add(NodeKind::NvSwitch, "nvswitch");
  const int groups = std::min(server.gpus, server.nics);
  std::vector<NodeId> pcie;
  for (int group = 0; group < groups; ++group) {
    pcie.push_back(add(NodeKind::PcieSwitch, "pcie" + std::to_string(group)));
    builder.add_duplex_link(pcie.back(), cpu, link(LinkKind::Pcie));
  }
  const auto group_of = [&](int device, int devices) {
    return pcie[static_cast<std::size_t>(device * groups / devices)];
  };
  std::vector<NodeId> gpus;
  for (int gpu = 0; gpu < server.gpus; ++gpu) {
    gpus.push_back(add(NodeKind::Gpu, "gpu" + std::to_string(gpu)));
    builder.add_duplex_link(gpus.back(), group_of(gpu, server.gpus), link(LinkKind::Pcie));
    if (server.scale_up == TestScaleUp::NvSwitch) {
      builder.add_duplex_link(gpus.back(), nvswitch, link(LinkKind::NvLink));
    } else if (server.scale_up == TestScaleUp::Chain && gpu > 0) {
      builder.add_duplex_link(gpus[gpus.size() - 2], gpus.back(), link(LinkKind::NvLink));
    }
  }
  for (int nic = 0; nic < server.nics; ++nic) {
    const NodeId node = add(NodeKind::Nic, "nic" + std::to_string(nic));
    builder.add_duplex_link(node, group_of(nic, server.nics), link(LinkKind::Pcie));
    builder.add_duplex_link(node, fabric, fabric_link(kTestNic, nanoseconds(500)));
  }
  return gpus;
}

[[nodiscard]] inline Cluster cluster_of(const std::vector<TestServer>& servers) {
  TopologyBuilder builder;
  const NodeId fabric = add_switch(builder, "switch");
  std::vector<NodeId> gpus;
  std::vector<int> server_gpus;
  int max_gpus = 0;
  int max_nics = 0;
  for (const TestServer& server : servers) {
    const std::vector<NodeId> own = add_test_server(builder, server, fabric);
    gpus.insert(gpus.end(), own.begin(), own.end());
    server_gpus.push_back(server.gpus);
    max_gpus = std::max(max_gpus, server.gpus);
    max_nics = std::max(max_nics, server.nics);
  }
  return {.name = "unequal servers",
          .topology = std::move(builder).build(),
          .routing = {},
          .nodes = static_cast<int>(servers.size()),
          .gpus_per_node = max_gpus,
          .server_gpus = std::move(server_gpus),
          .gpus = std::move(gpus),
          .nics_per_node = max_nics,
          .estimates = {}};
}

// A grid of switches, `hosts` GPUs on each, every GPU a server. Links between switches run at
// kTestNic, those of GPUs much faster. A dimension of two has one link and does not wrap.
[[nodiscard]] inline Cluster grid_cluster(const std::vector<int>& dimensions,
                                          const std::vector<bool>& wraps, int hosts = 1) {
  TopologyBuilder builder;
  const int count = std::accumulate(dimensions.begin(), dimensions.end(), 1, std::multiplies<>());
  std::vector<NodeId> switches;
  for (int position = 0; position < count; ++position) {
    switches.push_back(add_switch(builder, "router" + std::to_string(position)));
  }
  const LinkSpec link = fabric_link(kTestNic, nanoseconds(500));
  int stride = 1;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    for (int position = 0; position < count; ++position) {
      const int place = position / stride % dimensions[i];
      const bool last = place + 1 == dimensions[i];
      if (!last || (wraps[i] && dimensions[i] > 2)) {
        const int next = last ? position - place * stride : position + stride;
        builder.add_duplex_link(switches[static_cast<std::size_t>(position)],
                                switches[static_cast<std::size_t>(next)], link);
      }
    }
    stride *= dimensions[i];
  }
  std::vector<NodeId> gpus;
  for (const NodeId router : switches) {
    for (int host = 0; host < hosts; ++host) {
      builder.add_duplex_link(add_host(builder, gpus), router, fabric_link(kTestInside, SimTime()));
    }
  }
  const auto servers = static_cast<int>(gpus.size());
  return {.name = "a grid",
          .topology = std::move(builder).build(),
          .routing = {.fabric = {.router = make_router<GridRouter>,
                                 .first_switch = switches.front(),
                                 .switches = static_cast<std::uint32_t>(count),
                                 .dimensions = dimensions,
                                 .wraps = wraps}},
          .nodes = servers,
          .gpus_per_node = 1,
          .server_gpus = std::vector<int>(gpus.size(), 1),
          .gpus = std::move(gpus),
          .nics_per_node = 0,
          .estimates = {}};
}

}  // namespace trainyard
