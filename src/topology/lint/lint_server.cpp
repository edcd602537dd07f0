// SPDX-License-Identifier: Apache-2.0
// Checks what is inside servers: one server of each kind represents all that are alike.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <vector>

#include "topology/lint/lint.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxKinds = 64;
// Limit for ends of which all pairs are routed: about a second.
constexpr std::size_t kMaxEnds = 512;
constexpr std::uint32_t kMaxLabels = 8;

double gigabytes(std::int64_t bits_per_second) {
  return static_cast<double>(bits_per_second) / 8e9;
}

std::string_view to_string(Distance distance) {
  static constexpr std::array<std::string_view, 5> names = {
      "next to it", "one PCIe switch away", "several PCIe switches away", "beyond a CPU",
      "beyond another socket"};
  return names[static_cast<std::size_t>(distance)];
}

class ServerLint {
 public:
  ServerLint(const LintContext& context, const AlikeServers& kind)
      : context_(context),
        topology_(context.cluster.topology),
        kind_(kind),
        nodes_(context.kinds.nodes_of(kind.first)),
        gpus_(context.kinds.gpus_of(kind.first)) {
    for (const NodeId node : nodes_) {
      if (topology_.node(node).kind == NodeKind::Nic && network_rate(node) > 0) {
        nics_.push_back(node);
      }
    }
  }

  void run() {
    check_ports();
    check_nics();
    check_gpus();
    check_pcie_switches();
    check_unused();
  }

 private:
  [[nodiscard]] std::string alike() const {
    return kind_.count > 1 ? fmt::format(" ({} servers alike)", kind_.count) : "";
  }

  // "server0/nic1" or "server0/nic1 and 3 more".
  [[nodiscard]] std::string names(const std::vector<NodeId>& nodes) const {
    return context_.name(nodes.front()) +
           (nodes.size() > 1 ? fmt::format(" and {} more", nodes.size() - 1) : "");
  }

  // Returns the rate of all links of `node` that `wanted` takes.
  template <typename Wanted>
  [[nodiscard]] std::int64_t rate(NodeId node, const Wanted& wanted) const {
    std::int64_t sum = 0;
    for (const LinkId id : topology_.links_from(node)) {
      const Link& link = topology_.link(id);
      sum += wanted(link) ? link.spec.bandwidth.bits_per_second() : 0;
    }
    return sum;
  }
  [[nodiscard]] std::int64_t network_rate(NodeId node) const {
    return rate(node, [](const Link& link) { return link.spec.kind == LinkKind::Network; });
  }
  [[nodiscard]] std::int64_t host_rate(NodeId node) const {
    return rate(node, [](const Link& link) {
      return link.spec.kind == LinkKind::Pcie || link.spec.kind == LinkKind::C2c;
    });
  }

  void check_ports() const {
    for (const NodeId id : nodes_) {
      const Node& node = topology_.node(id);
      int used = 0;
      for (const LinkId link_id : topology_.links_from(id)) {
        const LinkSpec& link = topology_.link(link_id).spec;
        const bool scale_up = link.kind == LinkKind::NvLink || link.kind == LinkKind::Xgmi;
        const bool counts =
            (node.kind == NodeKind::Nic && link.kind == LinkKind::Network) ||
            ((node.kind == NodeKind::NvSwitch || node.kind == NodeKind::Gpu) && scale_up);
        used += counts ? link.lanes : 0;
      }
      if (node.ports > 0 && used > node.ports) {
        context_.add(Severity::Error, "ports",
                     fmt::format("{} uses {} ports, and {} has {}{}", node.name, used,
                                 topology_.parts()[node.part], node.ports, alike()));
      }
    }
  }

  void check_nics() const {
    std::vector<NodeId> slow;
    for (const NodeId nic : nics_) {
      const std::int64_t host = host_rate(nic);
      if (host > 0 && network_rate(nic) > host) {
        slow.push_back(nic);
      }
    }
    if (!slow.empty()) {
      context_.add(Severity::Warning, "nic-pcie",
                   fmt::format("{}: {:.4g} GB/s into the fabric, but {:.4g} GB/s of PCIe{}",
                               names(slow), gigabytes(network_rate(slow.front())),
                               gigabytes(host_rate(slow.front())), alike()));
    }
  }

  void check_gpus() {
    std::vector<NodeId> without;
    std::vector<NodeId> narrow;
    std::vector<NodeId> staged;
    std::vector<NodeId> senders;
    std::map<NodeId, int> users;  // GPUs that send by a NIC.
    for (const NodeId gpu : gpus_) {
      for (const NodeId nic : context_.routing.nics(gpu)) {
        ++users[nic];
      }
    }
    Distance farthest = Distance::None;
    std::int64_t nic_rate = 0;
    const Distance allowed = topology_.server(kind_.first).gpudirect;
    for (const NodeId gpu : gpus_) {
      const std::vector<NodeId> nics = context_.routing.nics(gpu);
      if (nics.empty()) {
        without.push_back(gpu);
        continue;
      }
      std::int64_t rate_of_nics = 0;
      Distance distance = Distance::None;
      for (const NodeId nic : nics) {
        rate_of_nics += network_rate(nic) / users.at(nic);
        if (nic != gpu) {
          distance =
              std::max(distance, context_.routing.distance(gpu, nic).value_or(Distance::None));
        }
        senders.push_back(nic);
      }
      if (distance > allowed) {
        staged.push_back(gpu);
        farthest = std::max(farthest, distance);
      }
      if (nics.front() != gpu && host_rate(gpu) > 0 && rate_of_nics > host_rate(gpu)) {
        narrow.push_back(gpu);
        nic_rate = rate_of_nics;
      }
    }
    report_gpus(without, narrow, nic_rate);
    if (!staged.empty()) {
      context_.add(Severity::Warning, "gpudirect",
                   fmt::format("{}: the NIC is {}, too far for GPUDirect: data is copied through "
                               "host memory{}",
                               names(staged), to_string(farthest), alike()));
    }
    report_idle_nics(senders);
  }

  void report_gpus(const std::vector<NodeId>& without, const std::vector<NodeId>& narrow,
                   std::int64_t nic_rate) const {
    if (!without.empty() && without.size() < gpus_.size()) {
      context_.add(Severity::Warning, "gpu-without-nic",
                   fmt::format("{}: no way to a NIC, which other GPUs of the server have{}",
                               names(without), alike()));
    }
    if (!narrow.empty()) {
      context_.add(
          Severity::Warning, "gpu-pcie",
          fmt::format("{}: {:.4g} GB/s to the host, but its share of the NICs is {:.4g} GB/s{}",
                      names(narrow), gigabytes(host_rate(narrow.front())), gigabytes(nic_rate),
                      alike()));
    }
  }

  void report_idle_nics(const std::vector<NodeId>& senders) const {
    std::vector<NodeId> idle;
    for (const NodeId nic : nics_) {
      if (std::ranges::find(senders, nic) == senders.end()) {
        idle.push_back(nic);
      }
    }
    if (!idle.empty() && !senders.empty()) {
      context_.add(Severity::Note, "idle-nic",
                   fmt::format("{}: no GPU in use sends by it{}", names(idle), alike()));
    }
  }

  // Checks the devices below a PCIe switch against its way to the CPU.
  void check_pcie_switches() const {
    std::vector<NodeId> shared;
    std::int64_t max_down = 0;
    std::int64_t its_up = 0;
    for (const NodeId node : nodes_) {
      if (topology_.node(node).kind != NodeKind::PcieSwitch) {
        continue;
      }
      const auto leads_to = [&](std::initializer_list<NodeKind> kinds) {
        return rate(node, [&](const Link& link) {
          return std::ranges::find(kinds, topology_.node(link.target).kind) != kinds.end();
        });
      };
      const std::int64_t down = leads_to({NodeKind::Gpu, NodeKind::Nic});
      const std::int64_t up = leads_to({NodeKind::Cpu, NodeKind::RootComplex});
      if (up == 0 || down <= up) {
        continue;
      }
      shared.push_back(node);
      // The larger of down / up.
      if (its_up == 0 || static_cast<double>(down) * static_cast<double>(its_up) >
                             static_cast<double>(max_down) * static_cast<double>(up)) {
        max_down = down;
        its_up = up;
      }
    }
    if (!shared.empty()) {
      context_.add(Severity::Note, "pcie-uplink",
                   fmt::format("{}: devices of {:.4g} GB/s share {:.4g} GB/s to the CPU{}",
                               names(shared), gigabytes(max_down), gigabytes(its_up), alike()));
    }
  }

  // Routes between all devices that send or receive, and marks what they use.
  void check_unused() {
    std::vector<NodeId> ends;
    for (const NodeId node : nodes_) {
      const NodeKind kind = topology_.node(node).kind;
      if (kind == NodeKind::Gpu || kind == NodeKind::Nic || kind == NodeKind::Cpu ||
          kind == NodeKind::Memory) {
        ends.push_back(node);
      }
    }
    if (ends.size() > kMaxEnds) {
      context_.add(Severity::Note, "not-checked",
                   fmt::format("unused links inside server{}: {} devices are more than {}",
                               kind_.first.value(), ends.size(), kMaxEnds));
      return;
    }
    std::vector<LinkId> used;
    for (const NodeId source : ends) {
      for (const NodeId target : ends) {
        for (std::uint32_t label = 0; label < kMaxLabels; ++label) {
          if (context_.routing.route(source, target, label, path_)) {
            used.insert(used.end(), path_.begin(), path_.end());
          }
        }
      }
      std::ranges::sort(used);
      used.erase(std::unique(used.begin(), used.end()), used.end());
    }
    report_unused(used);
  }

  void report_unused(const std::vector<LinkId>& used) const {
    struct Count {
      int all = 0;
      std::vector<LinkId> unused;
    };
    std::map<LinkKind, Count> counts;
    for (const NodeId node : nodes_) {
      for (const LinkId id : topology_.links_from(node)) {
        const LinkKind kind = topology_.link(id).spec.kind;
        if (kind == LinkKind::Network) {
          continue;
        }
        Count& count = counts[kind];
        ++count.all;
        if (!std::ranges::binary_search(used, id)) {
          count.unused.push_back(id);
        }
      }
    }
    for (const auto& [kind, count] : counts) {
      if (!count.unused.empty()) {
        const Link& link = topology_.link(count.unused.front());
        context_.add(Severity::Note, "unused-links",
                     fmt::format("{} of {} {} links of server{} are on no route, {} -> {} the "
                                 "first{}",
                                 count.unused.size(), count.all, trainyard::to_string(kind),
                                 kind_.first.value(), context_.name(link.source),
                                 context_.name(link.target), alike()));
      }
    }
  }

  const LintContext& context_;
  const Topology& topology_;
  const AlikeServers& kind_;
  std::span<const NodeId> nodes_;
  std::vector<NodeId> gpus_;  // In use.
  std::vector<NodeId> nics_;  // With a cable.
  std::vector<LinkId> path_;
};

}  // namespace

void lint_servers(const LintContext& context) {
  const std::vector<AlikeServers>& kinds = context.kinds.kinds();
  for (std::size_t index = 0; index < std::min(kinds.size(), kMaxKinds); ++index) {
    ServerLint(context, kinds[index]).run();
  }
  if (kinds.size() > kMaxKinds) {
    context.add(Severity::Note, "not-checked",
                fmt::format("the inside of servers: {} of the {} kinds of server were looked at",
                            kMaxKinds, kinds.size()));
  }
}

}  // namespace trainyard
