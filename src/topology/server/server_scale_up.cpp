// SPDX-License-Identifier: Apache-2.0
// The links between the GPUs of a server.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "topology/server/server_keys.h"

namespace trainyard {
namespace {

// NVLinks between the GPUs of a DGX-1 with V100, as nvidia-smi prints them (gist
// ashwin/e139748bdba15f5af63f0146d01ee4c3; the same graph as dgx1() of microsoft/msccl-tools up to
// the numbering). Each GPU uses its six links.
constexpr std::array<std::array<int, 8>, 8> kCubeMesh = {{
    {0, 1, 1, 2, 2, 0, 0, 0},
    {1, 0, 2, 1, 0, 2, 0, 0},
    {1, 2, 0, 2, 0, 0, 1, 0},
    {2, 1, 2, 0, 0, 0, 0, 1},
    {2, 0, 0, 0, 0, 1, 1, 2},
    {0, 2, 0, 0, 1, 0, 2, 1},
    {0, 0, 1, 0, 1, 2, 0, 2},
    {0, 0, 0, 1, 2, 1, 2, 0},
}};
constexpr int kCubeMeshLinks = 6;

std::string_view name_of(ServerTemplate layout) {
  return kServerTemplates[static_cast<std::size_t>(layout)];
}

[[noreturn]] void fail_number(const ServerKeys& keys, const std::string& expected,
                              const ServerSpec& spec) {
  if (const auto gpus = keys.node->optional("gpus")) {
    gpus->fail(expected, gpus->found());
  }
  keys.node->required("tree").fail(expected, std::to_string(spec.gpus));
}

// GPUs of several parts must have the same links.
void check_parts(const ServerKeys& keys, const PartLog& parts, const ServerSpec& spec) {
  const GpuModel& first = *keys.gpu;
  for (const GpuSpec& gpu : spec.gpu_specs) {
    const GpuModel& model = keys.catalogue->gpus().at(parts.names()[gpu.part]);
    if (model.scale_up_link != first.scale_up_link ||
        model.scale_up_links.value != first.scale_up_links.value) {
      keys.node->required("gpu").fail(
          fmt::format("the template {} needs GPUs with the same links, and {} has other "
                      "links than {}",
                      name_of(spec.layout), model.name, first.name));
    }
  }
}

// Every pair of GPUs by an equal share of their links.
void join_all(const ServerKeys& keys, ServerSpec& spec) {
  if (spec.gpus - 1 > spec.scale_up_links) {
    fail_number(keys,
                fmt::format("at most {} GPUs for the template full-mesh, as {} has {} links",
                            spec.scale_up_links + 1, keys.gpu->name, spec.scale_up_links),
                spec);
  }
  for (int a = 0; a < spec.gpus; ++a) {
    for (int b = a + 1; b < spec.gpus; ++b) {
      spec.gpu_links.push_back({a, b, spec.scale_up_links / (spec.gpus - 1)});
    }
  }
}

void join_cube_mesh(const ServerKeys& keys, ServerSpec& spec) {
  if (spec.gpus != static_cast<int>(kCubeMesh.size())) {
    fail_number(keys, "8 GPUs for the template cube-mesh", spec);
  }
  if (spec.scale_up_links != kCubeMeshLinks) {
    keys.node->required("gpu").fail(
        fmt::format("the template cube-mesh takes {} links of each GPU, and {} has {}",
                    kCubeMeshLinks, keys.gpu->name, spec.scale_up_links));
  }
  for (std::size_t a = 0; a < kCubeMesh.size(); ++a) {
    for (std::size_t b = a + 1; b < kCubeMesh.size(); ++b) {
      if (kCubeMesh[a][b] > 0) {
        spec.gpu_links.push_back({static_cast<int>(a), static_cast<int>(b), kCubeMesh[a][b]});
      }
    }
  }
}

// One entry of `gpu_links`.
GpuPair read_pair(const ConfigNode& entry, const ServerSpec& spec) {
  const std::vector<ConfigNode> numbers = entry.items();
  if (numbers.size() != 3) {
    entry.fail("[GPU, GPU, number of links]", fmt::format("{} values", numbers.size()));
  }
  const auto gpu = [&](std::size_t index) {
    return static_cast<int>(numbers[index].as_integer(0, spec.gpus - 1));
  };
  const GpuPair pair{gpu(0), gpu(1),
                     static_cast<int>(numbers[2].as_integer(1, spec.scale_up_links))};
  if (pair.first == pair.second) {
    entry.fail(fmt::format("expected two different GPUs, found {} twice", pair.first));
  }
  return {std::min(pair.first, pair.second), std::max(pair.first, pair.second), pair.links};
}

void read_pairs(const ServerKeys& keys, ServerSpec& spec) {
  std::vector<int> used(static_cast<std::size_t>(spec.gpus), 0);
  std::set<std::pair<int, int>> joined;
  for (const ConfigNode& entry : keys.gpu_links) {
    const GpuPair pair = read_pair(entry, spec);
    if (!joined.emplace(pair.first, pair.second).second) {
      entry.fail(fmt::format("expected each pair of GPUs once, found {} and {} again", pair.first,
                             pair.second));
    }
    for (const int gpu : {pair.first, pair.second}) {
      int& links = used[static_cast<std::size_t>(gpu)];
      links += pair.links;
      if (links > spec.scale_up_links) {
        entry.fail(fmt::format("GPU {} would have {} links, and {} has {}", gpu, links,
                               keys.gpu->name, spec.scale_up_links));
      }
    }
    spec.gpu_links.push_back(pair);
  }
}

// The part of the chips and their number: whether they have the ports.
void read_chips(const ServerKeys& keys, PartLog& parts, ServerSpec& spec) {
  if (keys.nvswitch == nullptr) {
    return;
  }
  NvSwitchSpec& nvswitch = spec.nvswitch;
  const NvSwitchModel& model = *keys.nvswitch;
  if (model.link != keys.gpu->scale_up_link) {
    keys.node->required("nvswitch")
        .fail(fmt::format("{} has ports of {}, and {} has {}", model.name, model.link,
                          keys.gpu->name, keys.gpu->scale_up_link));
  }
  nvswitch.part = parts.part(model.name);
  nvswitch.ports = *keys.nvswitch_chips * parts.use(model.name, "ports", model.ports);
  nvswitch.in_network_reduction =
      parts.use(model.name, "in_network_reduction", model.in_network_reduction);
  const int links = spec.gpus / nvswitch.boards * nvswitch.servers * spec.scale_up_links;
  const int trunk = nvswitch.boards > 1 ? nvswitch.trunk.lanes : 0;
  if (links + trunk > nvswitch.ports) {
    keys.node->required("nvswitch_chips")
        .fail(fmt::format("{} {} have {} ports, and the links of GPUs{} take {}",
                          *keys.nvswitch_chips, model.name, nvswitch.ports,
                          trunk > 0 ? " and trunk" : "", links + trunk));
  }
}

void read_nvswitch(const ServerKeys& keys, PartLog& parts, ServerSpec& spec) {
  NvSwitchSpec& nvswitch = spec.nvswitch;
  nvswitch.servers = keys.nvlink_domain;
  nvswitch.boards = keys.nvswitch_boards;
  if (nvswitch.boards > 1) {
    const ConfigNode boards = keys.node->required("nvswitch_boards");
    if (nvswitch.servers > 1) {
      boards.fail("the switches of an nvlink_domain have no boards");
    }
    if (spec.gpus % nvswitch.boards != 0) {
      boards.fail(
          fmt::format("{} GPUs cannot be dealt evenly to {} boards", spec.gpus, nvswitch.boards));
    }
    const int links = spec.gpus / nvswitch.boards * spec.scale_up_links;
    nvswitch.trunk = physical_link(keys.catalogue->link(keys.gpu->scale_up_link), parts)
                         .bundle(keys.nvswitch_trunk_links.value_or(links));
    // The latency of a link to a GPU holds the way through the GPU. From chip to chip there are
    // only the ports: estimated as one more passage of a switch.
    nvswitch.trunk.latency = nvswitch.latency;
  }
  read_chips(keys, parts, spec);
}

NodeId add_nvswitch(TopologyBuilder& builder, const ServerSpec& spec, std::string name,
                    std::optional<ServerId> server) {
  return builder.add_node({.kind = NodeKind::NvSwitch,
                           .name = std::move(name),
                           .latency = spec.nvswitch.latency,
                           .server = server,
                           .part = spec.nvswitch.part,
                           .ports = static_cast<std::uint16_t>(spec.nvswitch.ports),
                           .in_network_reduction = spec.nvswitch.in_network_reduction});
}

}  // namespace

void read_scale_up_link(const ServerKeys& keys, PartLog& parts, ServerSpec& spec) {
  const GpuModel& gpu = *keys.gpu;
  if (spec.layout == ServerTemplate::Pcie) {
    return;
  }
  if (gpu.scale_up_link.empty()) {
    keys.node->required("gpu").fail(fmt::format(
        "{} has no link to other GPUs, which the template {} needs; use the template pcie",
        gpu.name, name_of(spec.layout)));
  }
  const LinkModel& link = keys.catalogue->link(gpu.scale_up_link);
  spec.scale_up = gpu_link(link, parts);
  spec.scale_up_links = parts.use(gpu.name, "scale_up_links", gpu.scale_up_links);
  const bool any_family =
      spec.layout == ServerTemplate::FullMesh || spec.layout == ServerTemplate::Links;
  if (link.family != LinkFamily::NvLink && !any_family) {
    keys.node->required("gpu").fail(
        fmt::format("{} has no NVLink, which the template {} needs; use the template full-mesh",
                    gpu.name, name_of(spec.layout)));
  }
  if (spec.layout != ServerTemplate::NvSwitch) {
    return;
  }
  spec.nvswitch.part = spec.scale_up.part;  // Unless the file names the chips.
  if (link.switch_latency) {
    spec.nvswitch.latency = parts.use(link.name, "switch_latency", *link.switch_latency);
  }
  if (link.in_network_reduction) {
    spec.nvswitch.in_network_reduction =
        parts.use(link.name, "in_network_reduction", *link.in_network_reduction);
  }
}

void read_gpu_links(const ServerKeys& keys, PartLog& parts, ServerSpec& spec) {
  if (spec.layout == ServerTemplate::Pcie) {
    return;
  }
  check_parts(keys, parts, spec);
  switch (spec.layout) {
    case ServerTemplate::NvSwitch:
      read_nvswitch(keys, parts, spec);
      break;
    case ServerTemplate::FullMesh:
      join_all(keys, spec);
      break;
    case ServerTemplate::CubeMesh:
      join_cube_mesh(keys, spec);
      break;
    case ServerTemplate::Links:
      read_pairs(keys, spec);
      break;
    case ServerTemplate::Pcie:
      break;
  }
}

void join_gpus(TopologyBuilder& builder, const ServerSpec& spec, const std::vector<NodeId>& gpus) {
  for (const GpuPair& pair : spec.gpu_links) {
    builder.add_duplex_link(gpus[static_cast<std::size_t>(pair.first)],
                            gpus[static_cast<std::size_t>(pair.second)],
                            spec.scale_up.bundle(pair.links));
  }
  if (spec.layout != ServerTemplate::NvSwitch || spec.nvswitch.servers > 1) {
    return;
  }
  const auto boards = static_cast<std::size_t>(spec.nvswitch.boards);
  const ServerId server = *builder.node(gpus[0]).server;
  std::vector<NodeId> switches;
  for (std::size_t board = 0; board < boards; ++board) {
    const std::string name = boards == 1 ? "nvswitch" : fmt::format("nvswitch{}", board);
    switches.push_back(
        add_nvswitch(builder, spec, fmt::format("server{}/{}", server.value(), name), server));
  }
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    builder.add_duplex_link(gpus[gpu], switches[gpu * boards / gpus.size()],
                            spec.scale_up.bundle(spec.scale_up_links));
  }
  if (boards == 2) {
    builder.add_duplex_link(switches[0], switches[1], spec.nvswitch.trunk);
  }
}

void add_nvlink_domain(TopologyBuilder& builder, const ServerSpec& spec, int domain,
                       std::span<const ServerNodes> servers) {
  const NodeId nvswitch =
      add_nvswitch(builder, spec, fmt::format("domain{}/nvswitch", domain), std::nullopt);
  for (const ServerNodes& server : servers) {
    for (const NodeId gpu : server.gpus) {
      builder.add_duplex_link(gpu, nvswitch, spec.scale_up.bundle(spec.scale_up_links));
    }
  }
}

}  // namespace trainyard
