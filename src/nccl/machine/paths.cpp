// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine/paths.h"

#include <algorithm>
#include <array>

#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

// Types of one edge, indexed by EdgeKind. Of that to a NIC only the way inside the machine counts.
constexpr std::array kEdgeTypes{PathType::Loc, PathType::Nvl, PathType::C2c,
                                PathType::Pix, PathType::Sys, PathType::Loc};

// Returns whether a way may go on over `edge` from a device that it has reached by `path`.
bool may_cross(const System& system, const Path& path, const Edge& edge, bool nvb) {
  const VertexKind from = system.vertices[as_index(edge.from)].kind;
  const VertexKind to = system.vertices[as_index(edge.to)].kind;
  if (from != VertexKind::Device || path.type == PathType::Loc || to == VertexKind::Gpu) {
    return true;
  }
  // To this device: from the GPU to its own device and over one NVLink.
  constexpr std::size_t kOneNvLink = 2;
  return nvb && edge.kind == EdgeKind::Nvl && to == VertexKind::Device &&
         path.type == PathType::Nvl && path.edges.size() <= kOneNvLink;
}

PathType step_type(const System& system, const Path& path, const Edge& edge) {
  const VertexKind from = system.vertices[as_index(edge.from)].kind;
  const VertexKind to = system.vertices[as_index(edge.to)].kind;
  PathType type = kEdgeTypes[static_cast<std::size_t>(edge.kind)];
  if (from == VertexKind::Pci && to == VertexKind::Pci) {
    type = PathType::Pxb;
  }
  if (edge.kind == EdgeKind::Pci && (from == VertexKind::Cpu || to == VertexKind::Cpu)) {
    type = PathType::Phb;
  }
  if (from == VertexKind::Device && path.type == PathType::Nvl && type == PathType::Nvl) {
    type = PathType::Nvb;
  }
  return std::max(path.type, type);
}

bool is_better(PathType type, float bandwidth, std::size_t links, const Path& than) {
  if (type != than.type) {
    return type < than.type;
  }
  if (bandwidth != than.bandwidth) {
    return bandwidth > than.bandwidth;
  }
  return links < than.edges.size();
}

// Returns the path from every vertex to `target`, by vertex.
std::vector<Path> paths_to(const System& system, int target, bool nvb) {
  std::vector<Path> paths(system.vertices.size());
  paths[as_index(target)] = {.type = PathType::Loc, .bandwidth = kLocalBandwidth};
  std::vector<int> level{target};
  while (!level.empty()) {
    std::vector<int> next;
    for (const int vertex : level) {
      for (const int index : system.vertices[as_index(vertex)].edges) {
        const Path& path = paths[as_index(vertex)];
        const Edge& edge = system.edges[as_index(index)];
        if (!may_cross(system, path, edge, nvb)) {
          continue;
        }
        Path& beyond = paths[as_index(edge.to)];
        const PathType type = step_type(system, path, edge);
        const float bandwidth = std::min(path.bandwidth, edge.bandwidth);
        if (!is_better(type, bandwidth, path.edges.size() + 1, beyond)) {
          continue;
        }
        std::vector<int> edges{edge.reverse};
        edges.insert(edges.end(), path.edges.begin(), path.edges.end());
        beyond = {.type = type, .bandwidth = bandwidth, .edges = std::move(edges)};
        if (std::find(next.begin(), next.end(), edge.to) == next.end()) {
          next.push_back(edge.to);
        }
      }
    }
    level = std::move(next);
  }
  return paths;
}

template <typename Sources>
void fill(PathTable& table, const Sources& sources, const std::vector<Path>& paths, int target) {
  for (std::size_t source = 0; source < sources.size(); ++source) {
    table.at(static_cast<int>(source), target) = paths[as_index(sources[source].vertex)];
  }
}

}  // namespace

Paths find_paths(const System& system, bool nvb) {
  const std::size_t gpus = system.gpus.size();
  const std::size_t nets = system.nets.size();
  const std::size_t cpus = system.cpus.size();
  Paths paths{.gpu_gpu = PathTable(gpus, gpus),
              .gpu_net = PathTable(gpus, nets),
              .gpu_cpu = PathTable(gpus, cpus),
              .gpu_nvs = PathTable(gpus, 1),
              .net_gpu = PathTable(nets, gpus),
              .net_cpu = PathTable(nets, cpus),
              .cpu_gpu = PathTable(cpus, gpus),
              .cpu_net = PathTable(cpus, nets),
              .nvs_gpu = PathTable(1, gpus)};
  for (std::size_t index = 0; index < gpus; ++index) {
    const std::vector<Path> found = paths_to(system, system.gpus[index].vertex, nvb);
    const int target = static_cast<int>(index);
    fill(paths.gpu_gpu, system.gpus, found, target);
    fill(paths.net_gpu, system.nets, found, target);
    fill(paths.cpu_gpu, system.cpus, found, target);
    if (system.nvswitch) {
      paths.nvs_gpu.at(0, target) = found[as_index(*system.nvswitch)];
    }
  }
  for (std::size_t index = 0; index < nets; ++index) {
    const std::vector<Path> found = paths_to(system, system.nets[index].vertex, nvb);
    fill(paths.gpu_net, system.gpus, found, static_cast<int>(index));
    fill(paths.cpu_net, system.cpus, found, static_cast<int>(index));
  }
  for (std::size_t index = 0; index < cpus; ++index) {
    const std::vector<Path> found = paths_to(system, system.cpus[index].vertex, nvb);
    fill(paths.gpu_cpu, system.gpus, found, static_cast<int>(index));
    fill(paths.net_cpu, system.nets, found, static_cast<int>(index));
  }
  if (system.nvswitch) {
    fill(paths.gpu_nvs, system.gpus, paths_to(system, *system.nvswitch, nvb), 0);
  }
  return paths;
}

}  // namespace trainyard::nccl
