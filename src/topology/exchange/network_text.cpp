// SPDX-License-Identifier: Apache-2.0
// Cluster files of networks that packet simulators describe. Switches and NICs are parts of the
// file's own, without delays but those that it states, and the length of a cable gives its delay.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "sim/config_error.h"
#include "sim/printable.h"
#include "topology/exchange/import_parts.h"
#include "topology/exchange/simulated_network.h"
#include "topology/fabric/fabric.h"
#include "topology/server/parts.h"

namespace trainyard {
namespace {

// GPUs by their names in SimAI: aliyun/SimAI, astra-sim-alibabacloud/astra-sim/network_frontend/
// ns3/common.h and docs/Tutorial.md.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kSimAiGpus{
    {{"A100", "A100-SXM-80GB"},
     {"A800", "A800-SXM-80GB"},
     {"H100", "H100-SXM"},
     {"H800", "H800-SXM"},
     {"H20", "H20"}}};

class NetworkText {
 public:
  NetworkText(const SimulatedNetwork& network, const Catalogue& catalogue, const ClusterText& text)
      : network_(network), catalogue_(catalogue), text_(text) {}

  std::string write(const std::string& gpu) {
    const std::optional<TierShape> shape = shape_of(network_);
    const std::string fabric = shape ? tiers(*shape) : graph();
    std::string result;
    for (const std::string& remark : text_.remarks) {
      result += fmt::format("# {}\n", escaped(remark));
    }
    const std::uint32_t gpus = network_.gpus_per_server;
    result += fmt::format("name: {}\nsource: {}\nnodes: {}\n", quoted_scalar(text_.name),
                          quoted_scalar(text_.source), network_.hosts / gpus);
    result += fmt::format("parts:\n  nics:\n{}", nic_);
    if (!switches_.empty()) {
      result += fmt::format("  switches:\n{}", switches_);
    }
    result += fmt::format(
        "server:\n  template: {}\n  gpu: {}\n  gpus: {}\n  nic: imported-nic\n  nics: {}\n"
        "  pcie_switches: {}\n",
        network_.nvlink == Bandwidth() ? "pcie" : "nvswitch", gpu, gpus, gpus, gpus);
    return result + fabric;
  }

 private:
  static std::string cable(SimTime delay) {
    const SimTime flight = std::max(delay, kFecLatency) - kFecLatency;
    return fmt::format("{} m",
                       static_cast<double>(flight.picoseconds()) / kCablePicosecondsPerMetre);
  }

  // A NIC whose slot holds nothing up.
  void describe_nic(Bandwidth speed, int ports) {
    constexpr std::array<std::pair<std::string_view, int>, 4> kSlots{
        {{"PCIe4", 16}, {"PCIe5", 16}, {"PCIe6", 16}, {"PCIe6", 32}}};
    const auto rate = static_cast<double>(speed.bits_per_second()) * ports;
    const auto is_wide = [&](const auto& slot) {
      const LinkModel& link = catalogue_.link(slot.first);
      return static_cast<double>(link.bandwidth.value.bits_per_second()) * slot.second *
                 link.efficiency.value >=
             rate;
    };
    const auto found = std::ranges::find_if(kSlots, is_wide);
    const auto& slot = found == kSlots.end() ? kSlots.back() : *found;
    nic_ = fmt::format(
        "    imported-nic: {{base: Ideal-100G, speed: {}, ports: {}, pcie: {}, pcie_lanes: {}, "
        "source: imported}}\n",
        to_string(speed), ports, slot.first, slot.second);
  }

  void describe_switch(std::string_view name, int ports, Bandwidth speed, SimTime delay) {
    switches_ += fmt::format(
        "    {}: {{base: Ideal-64x100G, ports: {}, speed: {}, latency: {}, source: imported}}\n",
        name, ports, to_string(speed), to_string(delay));
  }

  std::string tiers(const TierShape& shape) {
    constexpr std::array<std::string_view, 3> kNames{"leaf", "spine", "core"};
    constexpr std::array<std::string_view, 3> kCables{"cable", "spine_cable", "core_cable"};
    std::string result =
        fmt::format("fabric:\n  template: {}\n", shape.rails ? "rail-optimised" : "clos");
    describe_nic(shape.tiers.front().rate, shape.ports_per_nic);
    for (std::size_t tier = 0; tier < shape.tiers.size(); ++tier) {
      const TierShape::Tier& here = shape.tiers[tier];
      const bool is_top = tier + 1 == shape.tiers.size();
      const bool is_between = tier == 1 && !is_top;
      // Half of the ports of a spine lead down, where the file has no say.
      const int ports = is_between ? 2 * std::max(here.ports_down, here.ports_up)
                                   : here.ports_down + here.ports_up;
      describe_switch(fmt::format("imported-{}", kNames.at(tier)), ports,
                      is_top ? here.rate : std::max(here.rate, shape.tiers[tier + 1].rate),
                      here.switch_delay);
      result += fmt::format("  {}: imported-{}\n  {}: {}\n", kNames.at(tier), kNames.at(tier),
                            kCables.at(tier), cable(here.cable_delay));
    }
    result += fmt::format("  nodes_per_leaf: {}\n", shape.nodes_per_leaf);
    if (shape.planes > 1) {
      result += fmt::format("  planes: {}\n", shape.planes);
    } else if (shape.ports_per_nic > 1) {
      result += "  dual_tor: true\n";
    }
    if (shape.tiers.size() > 1) {
      result += fmt::format("  tiers: {}\n  uplinks: {}\n  spines: {}\n", shape.tiers.size(),
                            shape.tiers[0].ports_up, shape.spines);
    }
    if (shape.tiers.size() > 2) {
      result += fmt::format("  leaves_per_pod: {}\n  spine_uplinks: {}\n  cores: {}\n",
                            shape.leaves_per_pod, shape.tiers[1].ports_up, shape.cores);
    }
    return result + "  routing: ecmp\n";
  }

  struct SwitchUse {
    int ports = 0;
    Bandwidth speed = {};
  };

  [[nodiscard]] std::string node_name(std::uint32_t node) const {
    return node < network_.hosts ? fmt::format("server{}/nic{}", node / network_.gpus_per_server,
                                               node % network_.gpus_per_server)
                                 : fmt::format("s{}", node - network_.hosts);
  }

  std::string graph() {
    std::vector<SwitchUse> uses(network_.hosts + network_.switch_delays.size());
    std::map<SimTime, std::size_t> delays;
    for (const SimulatedNetwork::Cable& cable : network_.cables) {
      for (const std::uint32_t end : {cable.from, cable.to}) {
        ++uses[end].ports;
        uses[end].speed = std::max(uses[end].speed, cable.rate);
      }
      ++delays[cable.delay];
    }
    SwitchUse nic{.ports = 1, .speed = Bandwidth(1)};
    for (std::uint32_t host = 0; host < network_.hosts; ++host) {
      nic.ports = std::max(nic.ports, uses[host].ports);
      nic.speed = std::max(nic.speed, uses[host].speed);
    }
    describe_nic(nic.speed, nic.ports);
    std::string result = "fabric:\n  template: graph\n";
    const auto most =
        std::ranges::max_element(delays, {}, [](const auto& entry) { return entry.second; });
    result += fmt::format("  cable: {}\n  routing: ecmp\n", cable(most->first));
    result += list_switches(uses);
    result += "  links:\n";
    for (std::size_t at = 0; at < network_.cables.size();) {
      const SimulatedNetwork::Cable& link = network_.cables[at];
      std::size_t end = at;
      while (end < network_.cables.size() && network_.cables[end] == link) {
        ++end;
      }
      result += fmt::format("    - {{from: {}, to: {}, rate: {}", node_name(link.from),
                            node_name(link.to), to_string(link.rate));
      result += end - at > 1 ? fmt::format(", count: {}", end - at) : "";
      result += link.delay != most->first ? fmt::format(", cable: {}", cable(link.delay)) : "";
      result += "}\n";
      at = end;
    }
    return result;
  }

  // Switches with equal delays and speeds are of one part, which has the ports of the largest.
  std::string list_switches(const std::vector<SwitchUse>& uses) {
    if (network_.switch_delays.empty()) {
      return "";
    }
    std::map<std::pair<SimTime, Bandwidth>, std::pair<std::size_t, int>> parts;
    std::string list = "  switches:\n";
    for (std::size_t index = 0; index < network_.switch_delays.size(); ++index) {
      const SwitchUse& use = uses[network_.hosts + index];
      const std::pair key{network_.switch_delays[index], std::max(use.speed, Bandwidth(1))};
      auto& [number, ports] = parts.emplace(key, std::pair(parts.size(), 1)).first->second;
      ports = std::max(ports, use.ports);
      list += fmt::format("    - {{name: s{}, part: imported-switch{}}}\n", index, number);
    }
    for (const auto& [key, part] : parts) {
      describe_switch(fmt::format("imported-switch{}", part.first), part.second, key.second,
                      key.first);
    }
    return list;
  }

  const SimulatedNetwork& network_;
  const Catalogue& catalogue_;
  const ClusterText& text_;
  std::string nic_;       // The description of the NICs' part.
  std::string switches_;  // Descriptions of the switches' parts.
};

}  // namespace

std::string complete_network(SimulatedNetwork& network, const Catalogue& catalogue,
                             const ImportOptions& options, const std::string& name) {
  check_names(options, catalogue);
  std::vector<bool> has_link(network.hosts + network.switch_delays.size());
  for (const SimulatedNetwork::Cable& cable : network.cables) {
    has_link[cable.from] = true;
    has_link[cable.to] = true;
  }
  const auto alone = std::find(has_link.begin(), has_link.begin() + network.hosts, false);
  if (const auto host = alone - has_link.begin(); host < network.hosts) {
    throw ConfigError(fmt::format("{}: host {}: expected a link, found none", name, host));
  }
  const auto known =
      std::ranges::find(kSimAiGpus, network.gpu_type, &decltype(kSimAiGpus)::value_type::first);
  if (!options.gpu && known == kSimAiGpus.end()) {
    OpenParts open;
    open.ask(name,
             network.gpu_type.empty() ? "it has hosts and no GPUs, and each host is one GPU here"
                                      : "the GPU " + in_quotes(network.gpu_type) + " is not known",
             "--gpu PART");
    open.check();
  }
  std::string gpu = options.gpu ? *options.gpu : std::string(known->second);
  const auto shorter = std::ranges::count_if(
      network.cables, [](const auto& cable) { return cable.delay < kFecLatency; });
  if (shorter > 0) {
    network.remarks.push_back(fmt::format(
        "{} of {} links have less delay in the file than the {} that error correction takes: they "
        "have that here.",
        shorter, network.cables.size(), to_string(kFecLatency)));
  }
  const GpuModel& part = catalogue.gpus().at(gpu);
  if (network.nvlink != Bandwidth() && !part.scale_up_link.empty()) {
    const LinkModel& link = catalogue.link(part.scale_up_link);
    const Bandwidth all(link.bandwidth.value.bits_per_second() * part.scale_up_links.value);
    network.remarks.push_back(
        fmt::format("NVLinks carry {} of a GPU in the file, those of {} {}: the part is believed.",
                    to_string(network.nvlink), gpu, to_string(all.scaled(link.efficiency.value))));
  }
  return gpu;
}

std::string to_cluster_yaml(const SimulatedNetwork& network, const Catalogue& catalogue,
                            const std::string& gpu, const ClusterText& text) {
  return NetworkText(network, catalogue, text).write(gpu);
}

}  // namespace trainyard
