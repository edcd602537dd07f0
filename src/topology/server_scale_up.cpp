// SPDX-License-Identifier: Apache-2.0
#include "topology/server_scale_up.h"

#include <spdlog/fmt/fmt.h>

#include <string>

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

[[noreturn]] void fail_number(const ConfigNode& node, const std::string& expected,
                              const ServerSpec& spec) {
  if (const auto gpus = node.optional("gpus")) {
    gpus->fail(expected, gpus->found());
  }
  node.required("tree").fail(expected, std::to_string(spec.gpus));
}

// GPUs of several parts must have the same links.
void check_parts(const ConfigNode& node, const Catalogue& catalogue, const PartLog& parts,
                 const ServerSpec& spec) {
  const ConfigNode gpu_node = node.required("gpu");
  const GpuModel& first = catalogue.gpu(gpu_node);
  for (const GpuSpec& gpu : spec.gpu_specs) {
    const GpuModel& model = catalogue.gpus().at(parts.names()[gpu.part]);
    if (model.scale_up_link != first.scale_up_link ||
        model.scale_up_links.value != first.scale_up_links.value) {
      gpu_node.fail(
          fmt::format("the template {} needs GPUs with the same links, and {} has other "
                      "links than {}",
                      name_of(spec.layout), model.name, first.name));
    }
  }
}

}  // namespace

void read_scale_up(const ConfigNode& node, const Catalogue& catalogue, PartLog& parts,
                   ServerSpec& spec) {
  const ConfigNode gpu_node = node.required("gpu");
  const GpuModel& gpu = catalogue.gpu(gpu_node);
  if (spec.layout == ServerTemplate::Pcie) {
    return;
  }
  if (gpu.scale_up_link.empty()) {
    gpu_node.fail(fmt::format(
        "{} has no link to other GPUs, which the template {} needs; use the template pcie",
        gpu.name, name_of(spec.layout)));
  }
  const LinkModel& link = catalogue.link(gpu.scale_up_link);
  spec.scale_up = gpu_link(link, parts);
  spec.scale_up_links = parts.use(gpu.name, "scale_up_links", gpu.scale_up_links);
  if (link.family != LinkFamily::NvLink && spec.layout != ServerTemplate::FullMesh) {
    gpu_node.fail(
        fmt::format("{} has no NVLink, which the template {} needs; use the template full-mesh",
                    gpu.name, name_of(spec.layout)));
  }
  if (spec.layout == ServerTemplate::NvSwitch && link.switch_latency) {
    spec.scale_up_switch_latency = parts.use(link.name, "switch_latency", *link.switch_latency);
  }
  if (spec.layout == ServerTemplate::NvSwitch && link.in_network_reduction) {
    spec.scale_up_reduces =
        parts.use(link.name, "in_network_reduction", *link.in_network_reduction);
  }
}

void check_scale_up(const ConfigNode& node, const Catalogue& catalogue, const PartLog& parts,
                    const ServerSpec& spec) {
  if (spec.layout == ServerTemplate::Pcie) {
    return;
  }
  check_parts(node, catalogue, parts, spec);
  const ConfigNode gpu_node = node.required("gpu");
  const std::string gpu = gpu_node.as_string();
  if (spec.layout == ServerTemplate::CubeMesh) {
    if (spec.gpus != static_cast<int>(kCubeMesh.size())) {
      fail_number(node, "8 GPUs for the template cube-mesh", spec);
    }
    if (spec.scale_up_links != kCubeMeshLinks) {
      gpu_node.fail(fmt::format("the template cube-mesh takes {} links of each GPU, and {} has {}",
                                kCubeMeshLinks, gpu, spec.scale_up_links));
    }
  }
  if (spec.layout == ServerTemplate::FullMesh && spec.gpus - 1 > spec.scale_up_links) {
    fail_number(node,
                fmt::format("at most {} GPUs for the template full-mesh, as {} has {} links",
                            spec.scale_up_links + 1, gpu, spec.scale_up_links),
                spec);
  }
}

void join_gpus(TopologyBuilder& builder, const ServerSpec& spec, const std::vector<NodeId>& gpus) {
  if (spec.layout == ServerTemplate::NvSwitch) {
    const ServerId server = *builder.node(gpus[0]).server;
    const NodeId nvswitch =
        builder.add_node({.kind = NodeKind::NvSwitch,
                          .name = fmt::format("server{}/nvswitch", server.value()),
                          .latency = spec.scale_up_switch_latency,
                          .server = server,
                          .part = spec.scale_up.part,
                          .in_network_reduction = spec.scale_up_reduces});
    for (const NodeId gpu : gpus) {
      builder.add_duplex_link(gpu, nvswitch, spec.scale_up.bundle(spec.scale_up_links));
    }
  }
  if (spec.layout != ServerTemplate::FullMesh && spec.layout != ServerTemplate::CubeMesh) {
    return;
  }
  for (std::size_t a = 0; a < gpus.size(); ++a) {
    for (std::size_t b = a + 1; b < gpus.size(); ++b) {
      const int links = spec.layout == ServerTemplate::CubeMesh
                            ? kCubeMesh[a][b]
                            : spec.scale_up_links / (spec.gpus - 1);
      if (links > 0) {
        builder.add_duplex_link(gpus[a], gpus[b], spec.scale_up.bundle(links));
      }
    }
  }
}

}  // namespace trainyard
