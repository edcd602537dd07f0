// SPDX-License-Identifier: Apache-2.0
#include "topology/exchange/server_outline.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "sim/check.h"
#include "sim/printable.h"

namespace trainyard {
namespace {

// --- Order -------------------------------------------------------------------------------------

using Key = std::pair<int, int>;  // The lowest GPU and the lowest NIC below.
constexpr Key kNothing{std::numeric_limits<int>::max(), std::numeric_limits<int>::max()};

Key key_of(const std::vector<OutlineBranch>& branches);

Key key_of(const OutlineBranch& branch) {
  return branch.kind == NodeKind::Gpu   ? Key{branch.index, kNothing.second}
         : branch.kind == NodeKind::Nic ? Key{kNothing.first, branch.index}
                                        : key_of(branch.children);
}

Key key_of(const std::vector<OutlineBranch>& branches) {
  Key lowest = kNothing;
  for (const OutlineBranch& branch : branches) {
    const Key key = key_of(branch);
    lowest = {std::min(lowest.first, key.first), std::min(lowest.second, key.second)};
  }
  return lowest;
}

void sort_branches(std::vector<OutlineBranch>& branches) {
  for (OutlineBranch& branch : branches) {
    sort_branches(branch.children);
  }
  std::stable_sort(branches.begin(), branches.end(),
                   [](const auto& a, const auto& b) { return key_of(a) < key_of(b); });
}

void number(std::vector<OutlineBranch>& branches, FormerIndices& former) {
  for (OutlineBranch& branch : branches) {
    if (branch.kind != NodeKind::Gpu && branch.kind != NodeKind::Nic) {
      number(branch.children, former);
      continue;
    }
    auto& indices = branch.kind == NodeKind::Gpu ? former.gpus : former.nics;
    indices.push_back(std::exchange(branch.index, static_cast<int>(indices.size())));
  }
}

// --- Distances ---------------------------------------------------------------------------------

// A CPU, root complex or switch on the way down to a device.
struct Step {
  int node = 0;
  bool is_switch = false;
  [[nodiscard]] bool operator==(const Step&) const = default;
};
using Way = std::vector<Step>;

struct Ways {
  std::size_t gpus;
  std::vector<Way> all;  // Those of GPUs come before those of NICs.
  int nodes = 0;
};

void find_ways(const std::vector<OutlineBranch>& branches, Way& way, Ways& ways) {
  for (const OutlineBranch& branch : branches) {
    if (branch.kind == NodeKind::Gpu || branch.kind == NodeKind::Nic) {
      const std::size_t before = branch.kind == NodeKind::Gpu ? 0 : ways.gpus;
      ways.all.at(before + static_cast<std::size_t>(branch.index)) = way;
      continue;
    }
    way.push_back({.node = ways.nodes++, .is_switch = branch.kind == NodeKind::PcieSwitch});
    find_ways(branch.children, way, ways);
    way.pop_back();
  }
}

SmiCell distance(const Way& a, const Way& b) {
  const auto [split_a, split_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (split_a == a.begin()) {
    return {.distance = SmiDistance::Sys};
  }
  const Step& meeting = *std::prev(split_a);
  if (meeting.is_switch) {
    const bool only_one = split_a == a.end() && split_b == b.end();
    return {.distance = only_one ? SmiDistance::Pix : SmiDistance::Pxb};
  }
  const auto enters_root = [](auto step, auto end) { return step != end && !step->is_switch; };
  const bool other_bridge = enters_root(split_a, a.end()) || enters_root(split_b, b.end());
  return {.distance = other_bridge ? SmiDistance::Node : SmiDistance::Phb};
}

// --- Text --------------------------------------------------------------------------------------

// Writes the branches of one server.
class TreeText {
 public:
  TreeText(const ServerOutline& tree, const Catalogue& catalogue) : tree_(tree) {
    const GpuModel& gpu = catalogue.gpus().at(tree.gpu);
    if (!gpu.pcie.empty()) {
      uplink_ = gpu.pcie;
      lanes_ = gpu.pcie_lanes.value;
    } else if (!tree.nic.empty()) {
      const NicModel& nic = catalogue.nics().at(tree.nic);
      uplink_ = nic.pcie;
      lanes_ = nic.pcie_lanes.value;
    }
  }

  [[nodiscard]] std::string text() const {
    std::string text = "  tree:\n";
    for (const std::vector<OutlineBranch>& socket : tree_.sockets) {
      if (socket.empty()) {
        text += "    - []\n";
        continue;
      }
      std::string_view start = "    - - ";
      for (const std::string& branch : branch_texts(socket)) {
        text += fmt::format("{}{}\n", start, branch);
        start = "      - ";
      }
    }
    return text;
  }

 private:
  // The link of a switch where it is not the one that it has by itself.
  [[nodiscard]] std::string uplink_text(const OutlineBranch& branch) const {
    const bool usual = branch.link.empty() || (branch.link == uplink_ && branch.lanes == lanes_);
    return usual ? "" : fmt::format(", uplink: {}, lanes: {}", branch.link, branch.lanes);
  }

  // Equal but for the numbers of its devices.
  [[nodiscard]] bool same_form(const OutlineBranch& a, const OutlineBranch& b) const {
    return a.kind == b.kind && a.part == b.part && uplink_text(a) == uplink_text(b) &&
           std::equal(a.children.begin(), a.children.end(), b.children.begin(), b.children.end(),
                      [&](const auto& c, const auto& d) { return same_form(c, d); });
  }

  // Switches in a row that look alike are one so many times.
  [[nodiscard]] std::vector<std::string> branch_texts(
      const std::vector<OutlineBranch>& branches) const {
    std::vector<std::string> texts;
    for (std::size_t first = 0; first < branches.size();) {
      std::size_t last = first + 1;
      while (branches[first].kind == NodeKind::PcieSwitch && last < branches.size() &&
             same_form(branches[first], branches[last])) {
        ++last;
      }
      texts.push_back(branch_text(branches[first], last - first));
      first = last;
    }
    return texts;
  }

  [[nodiscard]] std::string branch_text(const OutlineBranch& branch, std::size_t times) const {
    if (branch.kind == NodeKind::Gpu) {
      return "gpu";
    }
    if (branch.kind == NodeKind::Nic) {
      return branch.part == tree_.nic ? "nic" : fmt::format("{{nic: {}}}", branch.part);
    }
    if (branch.kind == NodeKind::RootComplex) {
      return fmt::format("{{root: [{}]}}", fmt::join(branch_texts(branch.children), ", "));
    }
    const std::string count = times > 1 ? fmt::format(", times: {}", times) : "";
    return fmt::format("{{switch: [{}]{}{}}}", fmt::join(branch_texts(branch.children), ", "),
                       uplink_text(branch), count);
  }

  const ServerOutline& tree_;
  // Speed of a switch for which the file names none: that of a GPU, else of a NIC.
  std::string uplink_;
  int lanes_ = 0;
};

// "[0, 1, 12]" for each pair that is joined.
std::vector<std::string> pair_texts(const ServerOutline& tree) {
  std::vector<std::string> pairs;
  for (std::size_t a = 0; a < tree.gpu_links.size(); ++a) {
    for (std::size_t b = a + 1; b < tree.gpu_links.size(); ++b) {
      if (tree.gpu_links[a][b] > 0) {
        pairs.push_back(fmt::format("[{}, {}, {}]", a, b, tree.gpu_links[a][b]));
      }
    }
  }
  return pairs;
}

bool is_full_mesh(const ServerOutline& tree, const GpuModel& gpu) {
  const int links = tree.gpus > 1 ? gpu.scale_up_links.value / (tree.gpus - 1) : 0;
  for (std::size_t a = 0; a < tree.gpu_links.size(); ++a) {
    for (std::size_t b = 0; b < tree.gpu_links.size(); ++b) {
      if (a != b && tree.gpu_links[a][b] != links) {
        return false;
      }
    }
  }
  return links > 0;
}

// The part of the GPUs; one with more links than the catalogue gives it is described as such.
std::string gpu_text(const ServerOutline& tree, const GpuModel& gpu) {
  int links = 0;
  for (const std::vector<int>& row : tree.gpu_links) {
    links = std::max(links, std::accumulate(row.begin(), row.end(), 0));
  }
  return links <= gpu.scale_up_links.value
             ? tree.gpu
             : fmt::format("{{base: {}, scale_up_links: {}, source: as imported}}", tree.gpu,
                           links);
}

std::string_view layout_of(const ServerOutline& tree, const GpuModel& gpu) {
  if (std::any_of(tree.switch_links.begin(), tree.switch_links.end(),
                  [](int links) { return links > 0; })) {
    return "nvswitch";
  }
  if (pair_texts(tree).empty()) {
    return "pcie";
  }
  return is_full_mesh(tree, gpu) ? "full-mesh" : "links";
}

}  // namespace

std::string quoted_scalar(const std::string& text) {
  return nlohmann::json(escaped(text))
      .dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

ServerOutline empty_server(int gpus, int nics) {
  const auto count = static_cast<std::size_t>(gpus);
  ServerOutline tree;
  tree.gpus = gpus;
  tree.nics = nics;
  tree.switch_links.assign(count, 0);
  tree.gpu_links.assign(count, std::vector<int>(count, 0));
  return tree;
}

FormerIndices put_in_order(ServerOutline& tree) {
  for (std::vector<OutlineBranch>& socket : tree.sockets) {
    sort_branches(socket);
  }
  std::stable_sort(tree.sockets.begin(), tree.sockets.end(),
                   [](const auto& a, const auto& b) { return key_of(a) < key_of(b); });
  FormerIndices former;
  for (std::vector<OutlineBranch>& socket : tree.sockets) {
    number(socket, former);
  }
  CHECK(static_cast<int>(former.gpus.size()) == tree.gpus, "a GPU is not in the tree once");
  CHECK(static_cast<int>(former.nics.size()) == tree.nics, "a NIC is not in the tree once");
  const ServerOutline before = tree;
  for (std::size_t a = 0; a < former.gpus.size(); ++a) {
    const auto old_a = static_cast<std::size_t>(former.gpus[a]);
    tree.switch_links[a] = before.switch_links[old_a];
    for (std::size_t b = 0; b < former.gpus.size(); ++b) {
      tree.gpu_links[a][b] = before.gpu_links[old_a][static_cast<std::size_t>(former.gpus[b])];
    }
  }
  return former;
}

std::vector<std::vector<SmiCell>> distances(const ServerOutline& tree) {
  Ways ways{.gpus = static_cast<std::size_t>(tree.gpus),
            .all = std::vector<Way>(static_cast<std::size_t>(tree.gpus + tree.nics))};
  for (const std::vector<OutlineBranch>& socket : tree.sockets) {
    Way way{{.node = ways.nodes++}};
    find_ways(socket, way, ways);
  }
  const std::vector<Way>& all = ways.all;
  std::vector<std::vector<SmiCell>> cells(all.size(), std::vector<SmiCell>(all.size()));
  for (std::size_t a = 0; a < all.size(); ++a) {
    for (std::size_t b = 0; b < all.size(); ++b) {
      if (a == b) {
        continue;
      }
      cells[a][b] = distance(all[a], all[b]);
      if (a < ways.gpus && b < ways.gpus) {
        const int through_switch = std::min(tree.switch_links[a], tree.switch_links[b]);
        const int links = std::max(tree.gpu_links[a][b], through_switch);
        cells[a][b] = links > 0 ? SmiCell{SmiDistance::NvLink, links} : cells[a][b];
      }
    }
  }
  return cells;
}

std::string to_cluster_yaml(const ServerOutline& tree, const Catalogue& catalogue,
                            const ClusterText& text) {
  std::string result;
  for (const std::string& remark : text.remarks) {
    result += fmt::format("# {}\n", escaped(remark));
  }
  const GpuModel& gpu = catalogue.gpus().at(tree.gpu);
  const std::string_view layout = layout_of(tree, gpu);
  result += fmt::format("name: {}\nsource: {}\nnodes: 1\nserver:\n  template: {}\n  gpu: {}\n",
                        quoted_scalar(text.name), quoted_scalar(text.source), layout,
                        gpu_text(tree, gpu));
  if (!tree.nic.empty()) {
    result += fmt::format("  nic: {}\n", tree.nic);
  }
  if (!tree.cpu.empty()) {
    result += fmt::format("  cpu: {}\n", tree.cpu);
  }
  result += TreeText(tree, catalogue).text();
  if (layout == "links") {
    result += fmt::format("  gpu_links: [{}]\n", fmt::join(pair_texts(tree), ", "));
  }
  return result;
}

}  // namespace trainyard
