// SPDX-License-Identifier: Apache-2.0
// A server from the matrix of `nvidia-smi topo -m`.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "sim/config_error.h"
#include "topology/exchange/import_parts.h"

namespace trainyard {
namespace {

using Group = std::vector<std::size_t>;  // Devices, in order.

// The groups into which `joined` parts `devices`, by their first device.
std::vector<Group> groups_of(const Group& devices,
                             const std::function<bool(std::size_t, std::size_t)>& joined) {
  std::vector<Group> groups;
  std::vector<bool> done(devices.size(), false);
  for (std::size_t first = 0; first < devices.size(); ++first) {
    if (done[first]) {
      continue;
    }
    Group members{first};
    done[first] = true;
    for (std::size_t next = 0; next < members.size(); ++next) {
      for (std::size_t other = 0; other < devices.size(); ++other) {
        if (!done[other] && joined(devices[members[next]], devices[other])) {
          done[other] = true;
          members.push_back(other);
        }
      }
    }
    std::sort(members.begin(), members.end());
    Group group;
    for (const std::size_t member : members) {
      group.push_back(devices[member]);
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

class SmiImporter {
 public:
  SmiImporter(const SmiMatrix& matrix, const std::string& name) : matrix_(matrix), name_(name) {}

  ImportedServer import(const Catalogue& catalogue, const ImportOptions& options) {
    number_devices();
    if (server_.tree.nics > 0 && !options.nic) {
      open_.ask(name_, "the matrix does not name the part of the NICs", "--nic PART");
    }
    server_.tree.nic = server_.tree.nics > 0 ? options.nic.value_or("") : "";
    find_sockets();
    check_distances();
    find_links(catalogue, options);
    ServerOutline& tree = server_.tree;
    tree.cpu = choose_cpu({}, tree.sockets.size(), options, catalogue, name_, open_);
    open_.check();
    finish_import(server_);
    return std::move(server_);
  }

 private:
  [[nodiscard]] SmiDistance distance(std::size_t a, std::size_t b) const {
    return matrix_.cells[a][b].distance;
  }

  // Returns whether two devices are at a PCIe distance from `nearest` to `farthest`; false where
  // NVLinks hide it.
  [[nodiscard]] bool within(std::size_t a, std::size_t b, SmiDistance nearest,
                            SmiDistance farthest) const {
    return distance(a, b) >= nearest && distance(a, b) <= farthest;
  }

  void number_devices() {
    int gpus = 0;
    int nics = 0;
    for (const SmiDevice& device : matrix_.devices) {
      index_.push_back(device.is_gpu ? gpus++ : nics++);
    }
    server_.tree = empty_server(gpus, nics);
  }

  // Two GPUs with NVLinks between them of which the driver names the same cores or node.
  [[nodiscard]] bool same_affinity(std::size_t a, std::size_t b) const {
    const auto same = [](const std::string& here, const std::string& there) {
      return !here.empty() && here != "N/A" && here == there;
    };
    const SmiDevice& here = matrix_.devices[a];
    const SmiDevice& there = matrix_.devices[b];
    return distance(a, b) == SmiDistance::NvLink &&
           (same(here.numa_affinity, there.numa_affinity) ||
            same(here.cpu_affinity, there.cpu_affinity));
  }

  void find_sockets() {
    Group all(matrix_.devices.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::vector<Group> sockets = groups_of(all, [&](std::size_t a, std::size_t b) {
      return within(a, b, SmiDistance::Pix, SmiDistance::Node);
    });
    const auto any_pair = [](const Group& here, const Group& there, const auto& holds) {
      return std::any_of(here.begin(), here.end(), [&](std::size_t a) {
        return std::any_of(there.begin(), there.end(), [&](std::size_t b) { return holds(a, b); });
      });
    };
    // Distances come first: a virtual machine names the same cores for GPUs of both sockets.
    merge(sockets, [&](const Group& here, const Group& there) {
      const auto is_sys = [&](std::size_t a, std::size_t b) {
        return distance(a, b) == SmiDistance::Sys;
      };
      const auto same = [&](std::size_t a, std::size_t b) { return same_affinity(a, b); };
      return !any_pair(here, there, is_sys) && any_pair(here, there, same);
    });
    // Groups between which nothing is SYS, and whose GPUs have no affinities that differ, may as
    // well be one.
    merge(sockets, [&](const Group& here, const Group& there) {
      const bool parted = any_pair(here, there, [&](std::size_t a, std::size_t b) {
        const std::string& one = matrix_.devices[a].cpu_affinity;
        const std::string& other = matrix_.devices[b].cpu_affinity;
        return distance(a, b) == SmiDistance::Sys ||
               (!one.empty() && !other.empty() && one != other);
      });
      if (!parted) {
        server_.remarks.push_back(
            fmt::format("The matrix does not say whether {} and {} share a socket: they do here.",
                        matrix_.devices[here[0]].name, matrix_.devices[there[0]].name));
      }
      return !parted;
    });
    for (const Group& socket : sockets) {
      server_.tree.sockets.push_back(branches_of(socket));
    }
  }

  // Joins groups in order as long as `joined` holds of two.
  static void merge(std::vector<Group>& groups,
                    const std::function<bool(const Group&, const Group&)>& joined) {
    for (std::size_t first = 0; first < groups.size(); ++first) {
      for (std::size_t other = first + 1; other < groups.size();) {
        if (!joined(groups[first], groups[other])) {
          ++other;
          continue;
        }
        groups[first].insert(groups[first].end(), groups[other].begin(), groups[other].end());
        std::sort(groups[first].begin(), groups[first].end());
        groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(other));
        other = first + 1;
      }
    }
  }

  [[nodiscard]] std::vector<OutlineBranch> branches_of(const Group& socket) const {
    std::vector<OutlineBranch> branches;
    const auto below_switches = groups_of(socket, [&](std::size_t a, std::size_t b) {
      return within(a, b, SmiDistance::Pix, SmiDistance::Pxb);
    });
    for (const Group& group : below_switches) {
      const auto below_one = groups_of(group, [&](std::size_t a, std::size_t b) {
        return within(a, b, SmiDistance::Pix, SmiDistance::Pix);
      });
      if (group.size() == 1) {
        branches.push_back(device(group[0]));
      } else if (below_one.size() == 1) {
        branches.push_back(switch_of(group));
      } else {
        OutlineBranch above{.kind = NodeKind::PcieSwitch};
        for (const Group& inner : below_one) {
          above.children.push_back(switch_of(inner));
        }
        branches.push_back(std::move(above));
      }
    }
    return branches;
  }

  [[nodiscard]] OutlineBranch device(std::size_t index) const {
    const bool is_gpu = matrix_.devices[index].is_gpu;
    return {.kind = is_gpu ? NodeKind::Gpu : NodeKind::Nic,
            .index = index_[index],
            .part = is_gpu ? "" : server_.tree.nic};
  }

  [[nodiscard]] OutlineBranch switch_of(const Group& group) const {
    OutlineBranch branch{.kind = NodeKind::PcieSwitch};
    for (const std::size_t index : group) {
      branch.children.push_back(device(index));
    }
    return branch;
  }

  // Each cell must be what the tree that the cells together gave says.
  void check_distances() const {
    const auto cells = distances(server_.tree);
    const auto row_of = [&](std::size_t device) {
      const auto gpus = static_cast<std::size_t>(server_.tree.gpus);
      return static_cast<std::size_t>(index_[device]) + (matrix_.devices[device].is_gpu ? 0 : gpus);
    };
    for (std::size_t a = 0; a < index_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const SmiDistance here = distance(a, b);
        const SmiCell& cell = cells[row_of(a)][row_of(b)];
        const bool same_host = here == SmiDistance::Node && cell.distance == SmiDistance::Phb;
        if (here != SmiDistance::NvLink && here != cell.distance && !same_host) {
          throw ConfigError(
              fmt::format("{}: {}.{}: expected {}, as follows from the other cells, "
                          "found {}",
                          name_, matrix_.devices[b].name, matrix_.devices[a].name, to_string(cell),
                          to_string(matrix_.cells[a][b])));
        }
      }
    }
  }

  // NVLinks lead to NVSwitches where every pair has all that a GPU has: a GPU with as many to each
  // of two others would need twice as many.
  void find_links(const Catalogue& catalogue, const ImportOptions& options) {
    ServerOutline& tree = server_.tree;
    int max = 0;
    int max_together = 0;
    for (std::size_t a = 0; a < index_.size(); ++a) {
      int together = 0;
      for (std::size_t b = 0; b < index_.size(); ++b) {
        const int links = matrix_.cells[a][b].nvlinks;
        together += links;
        max = std::max(max, links);
      }
      max_together = std::max(max_together, together);
    }
    const bool switched = matrix_.counts_links && tree.gpus > 2 && all_pairs_have(max);
    const int stated = switched ? max : max_together;
    const GpuEvidence evidence{.maker = matrix_.maker, .links = matrix_.counts_links ? stated : 0};
    const GpuModel* gpu = choose_gpu(evidence, options, catalogue, name_, open_);
    if (gpu == nullptr) {
      return;
    }
    tree.gpu = gpu->name;
    if (switched && max * (tree.gpus - 1) > gpu->scale_up_links.value) {
      tree.switch_links.assign(tree.switch_links.size(), gpu->scale_up_links.value);
      if (max != gpu->scale_up_links.value) {
        server_.remarks.push_back(
            fmt::format("The matrix states {} NVLinks, and {} has {}: the part is believed.", max,
                        gpu->name, gpu->scale_up_links.value));
      }
      return;
    }
    int each = 1;
    if (!matrix_.counts_links && max_together > 0) {
      each = std::max(gpu->scale_up_links.value / max_together, 1);
      server_.remarks.push_back(
          fmt::format("How many links join two GPUs is not in the file: {} stand{} for each pair, "
                      "of the {} that {} has.",
                      each, each == 1 ? "s" : "", gpu->scale_up_links.value, gpu->name));
    }
    for (std::size_t a = 0; a < index_.size(); ++a) {
      for (std::size_t b = 0; b < index_.size(); ++b) {
        if (const int links = matrix_.cells[a][b].nvlinks; links > 0) {
          tree.gpu_links[static_cast<std::size_t>(index_[a])][static_cast<std::size_t>(index_[b])] =
              links * each;
        }
      }
    }
  }

  [[nodiscard]] bool all_pairs_have(int links) const {
    for (std::size_t a = 0; a < index_.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const bool is_pair = matrix_.devices[a].is_gpu && matrix_.devices[b].is_gpu;
        if (is_pair && matrix_.cells[a][b].nvlinks != links) {
          return false;
        }
      }
    }
    return links > 0;
  }

  const SmiMatrix& matrix_;
  const std::string& name_;
  std::vector<int> index_;  // Index of each device among those of its kind.
  ImportedServer server_;
  OpenParts open_;
};

}  // namespace

ImportedServer import_smi_matrix(const SmiMatrix& matrix, const Catalogue& catalogue,
                                 const ImportOptions& options, const std::string& name) {
  check_names(options, catalogue);
  return SmiImporter(matrix, name).import(catalogue, options);
}

}  // namespace trainyard
