// SPDX-License-Identifier: Apache-2.0
// Three passes: find the devices in the tree of PCI elements, choose their parts, then make the
// branches with what the parts leave to the file.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "sim/config_error.h"
#include "sim/printable.h"
#include "topology/exchange/gpu_links.h"
#include "topology/exchange/import_parts.h"
#include "topology/exchange/pci_devices.h"

namespace trainyard {
namespace {

// Positions ordered by the number that the file gives each, as far as all have one.
std::vector<int> ranks(const std::vector<std::optional<int>>& numbers) {
  std::vector<int> order(numbers.size());
  std::iota(order.begin(), order.end(), 0);
  if (std::all_of(numbers.begin(), numbers.end(), [](const auto& each) { return each; })) {
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return *numbers[static_cast<std::size_t>(a)] < *numbers[static_cast<std::size_t>(b)];
    });
  }
  std::vector<int> rank(numbers.size());
  for (std::size_t index = 0; index < order.size(); ++index) {
    rank[static_cast<std::size_t>(order[index])] = static_cast<int>(index);
  }
  return rank;
}

class NcclImporter {
 public:
  NcclImporter(const NcclSystem& system, const Catalogue& catalogue, const ImportOptions& options,
               const std::string& name)
      : system_(system), catalogue_(catalogue), options_(options), name_(name) {}

  ImportedServer import() {
    for (const NcclCpu& cpu : system_.cpus) {
      if (!cpu.nics.empty()) {
        remark("Virtual adapters directly below a CPU are left out.");
      }
      find_devices(cpu.pcis);
    }
    sort_classless();
    if (gpus_.empty()) {
      throw ConfigError(fmt::format("{}: expected a GPU, found none{}", name_,
                                    nics_.empty()
                                        ? ""
                                        : "; a file that NCCL writes on the machine has them "
                                          "(NCCL_TOPO_DUMP_FILE)"));
    }
    choose_gpus();
    choose_nics();
    const std::size_t sockets = system_.cpus.size();
    const std::string cpu = choose_cpu(system_.cpus[0], sockets, options_, catalogue_,
                                       place(system_.cpus[0].place), open_);
    open_.check();
    check_devices();
    number_devices();
    server_.tree.gpu = gpu_->name;
    server_.tree.nic = nic_;
    server_.tree.cpu = cpu;
    for (const NcclCpu& numa : system_.cpus) {
      server_.tree.sockets.push_back(branches_of(numa.pcis));
    }
    if (sockets > 2) {
      remark(
          fmt::format("The {} NUMA nodes of the file stand as sockets; those of one socket are "
                      "nearer to each other than that.",
                      sockets));
    }
    add_gpu_links();
    finish_import(server_);
    if (lacks_links_) {
      complete_gpu_links(server_, catalogue_);
    }
    return std::move(server_);
  }

 private:
  // One adapter: a PCI device, or several functions of one card.
  struct Adapter {
    std::vector<const NcclPci*> functions;
    const NicModel* model = nullptr;
    std::optional<int> dev = {};
    int ports = 0;
    std::int64_t speed = 0;  // Mb/s, all ports.
  };

  [[nodiscard]] std::string place(FilePlace at) const {
    return fmt::format("{}:{}:{}", name_, at.line, at.column);
  }

  void remark(std::string text) {
    auto& remarks = server_.remarks;
    if (std::find(remarks.begin(), remarks.end(), text) == remarks.end()) {
      remarks.push_back(std::move(text));
    }
  }

  // --- Devices ---------------------------------------------------------------------------------

  void find_devices(const std::vector<NcclPci>& pcis) {
    for (const NcclPci& pci : pcis) {
      if (is_gpu(pci)) {
        gpus_.push_back(&pci);
      } else if (is_nic(pci)) {
        add_adapter(pci);
      } else if (!pci.device_class && pci.pcis.empty()) {
        classless_.push_back(&pci);
      } else if (!has_class(pci, "0x0604") && pci.pcis.empty()) {
        remark(fmt::format("The device {} is neither GPU, adapter nor bridge and is left out.",
                           pci.busid));
      }
      if (!pci.pcilinks.empty()) {
        remark("Links between PCIe switches other than through their bridges are left out.");
      }
      find_devices(pci.pcis);
    }
  }

  // NCCL reads the class of such a device from the machine; here the user says it.
  void sort_classless() {
    if (classless_.empty()) {
      return;
    }
    const std::string first = place(classless_[0]->place);
    if (!options_.nics_at) {
      open_.ask(first,
                fmt::format("{} devices have no class, which NCCL reads from the machine",
                            classless_.size()),
                options_.nic ? "--nic-at BUS-ID,...|none of those that are NICs"
                             : "--nic-at BUS-ID,...|none of those that are NICs, --nic PART");
    }
    std::vector<std::string> nics = options_.nics_at.value_or(std::vector<std::string>{});
    for (const NcclPci* pci : classless_) {
      if (std::erase(nics, lower_case(pci->busid)) > 0) {
        add_adapter(*pci);
      } else {
        gpus_.push_back(pci);
      }
    }
    if (!nics.empty()) {
      throw ConfigError(
          fmt::format("--nic-at: expected the bus id of a device without a class, "
                      "such as {}, found {}",
                      classless_[0]->busid, in_quotes(nics[0])));
    }
  }

  void add_adapter(const NcclPci& pci) {
    auto card = std::find_if(nics_.begin(), nics_.end(), [&](const Adapter& adapter) {
      return card_of(adapter.functions[0]->busid) == card_of(pci.busid);
    });
    if (card == nics_.end()) {
      card = nics_.insert(nics_.end(), Adapter{});
    }
    card->functions.push_back(&pci);
    for (const NcclNic& nic : pci.nics) {
      for (const NcclNet& net : nic.nets) {
        ++card->ports;
        card->speed += std::max(net.speed.value_or(0), 0);
        card->dev = card->dev ? card->dev : net.dev;
      }
    }
  }

  // --- Parts -----------------------------------------------------------------------------------

  static int links_of(const NcclPci& pci) {
    int links = 0;
    for (const NcclGpu& gpu : pci.gpus) {
      for (const auto* list : {&gpu.nvlinks, &gpu.xgmis}) {
        for (const NcclGpuLink& link : *list) {
          links += link.count;
        }
      }
    }
    return links;
  }

  static std::optional<int> sm_of(const NcclPci& pci) {
    return pci.gpus.empty() ? std::nullopt : pci.gpus[0].sm;
  }

  void choose_gpus() {
    const NcclPci& first = *gpus_[0];
    int links = 0;
    for (const NcclPci* pci : gpus_) {
      links = std::max(links, links_of(*pci));
      if (pci_id(*pci) != pci_id(first) || sm_of(*pci) != sm_of(first)) {
        throw ConfigError(fmt::format("{}: expected GPUs of one kind, found another than at {}:{}",
                                      place(pci->place), first.place.line, first.place.column));
      }
      if (pci->gpus.size() > 1) {
        remark("A GPU with several ranks or partitions stands once.");
      }
    }
    // A file that NCCL wrote on the machine has elements of GPUs and their ids, and all links.
    const bool is_template = first.gpus.empty() || (!first.vendor && has_class(first, "0x0302"));
    lacks_links_ = links == 0 && is_template;
    const GpuEvidence evidence{.pci_id = pci_id(first),
                               .sm = sm_of(first),
                               .maker = std::string(maker_of(first)),
                               .gcn = first.gpus.empty() ? std::nullopt : first.gpus[0].gcn,
                               .links = links};
    gpu_ = choose_gpu(evidence, options_, catalogue_, place(first.place), open_);
  }

  void check_devices() {
    for (const NcclPci* pci : gpus_) {
      check_device(*pci, *gpu_, "GPU");
    }
    for (const Adapter& adapter : nics_) {
      check_adapter(adapter);
    }
  }

  // Remarks where the file says otherwise than the part. A wrong generation costs it its credit.
  template <typename Model>
  void check_device(const NcclPci& pci, const Model& model, std::string_view kind) {
    if (model.pcie.empty()) {
      return;  // Reached over C2C; the PCIe link only carries its configuration.
    }
    if (says_speed(pci)) {
      const LinkModel* stated = stated_link(pci, catalogue_);
      if (stated == nullptr || stated->name != model.pcie) {
        remark(fmt::format("The file states \"{}\" for a {}, and {} has {}: the part is believed.",
                           *pci.link_speed, kind, model.name, model.pcie));
        is_credible_ = false;
      }
    }
    if (pci.link_width.value_or(0) > 0 && *pci.link_width != model.pcie_lanes.value) {
      remark(fmt::format("The file states {} lanes for a {}, and {} has {}: the part is believed.",
                         *pci.link_width, kind, model.name, model.pcie_lanes.value));
    }
  }

  static NicEvidence evidence_of(const Adapter& adapter) {
    return {.pci_id = pci_id(*adapter.functions[0]),
            .ports = std::max(adapter.ports, 1),
            .speed = adapter.speed};
  }

  // Adapters of no known part are what the user says, or are left out where others are known or
  // where they are ports for management.
  void choose_nics() {
    constexpr std::int64_t kManagement = 1'000;  // Mb/s; no network of a cluster is that slow.
    std::map<std::string, int> counts;
    const Adapter* unknown = nullptr;
    for (Adapter& adapter : nics_) {
      adapter.model = recognise_nic(evidence_of(adapter), catalogue_);
      const bool manages = adapter.speed > 0 && adapter.speed <= kManagement;
      if (adapter.model == nullptr && options_.nic && !manages) {
        adapter.model = &catalogue_.nics().at(*options_.nic);
      }
      if (adapter.model != nullptr) {
        ++counts[adapter.model->name];
      } else if (unknown == nullptr && !manages) {
        unknown = &adapter;
      }
    }
    if (counts.empty() && unknown != nullptr) {
      const NicEvidence evidence = evidence_of(*unknown);
      open_.ask(place(unknown->functions[0]->place),
                fmt::format("an adapter {}{}", evidence.pci_id.value_or("without PCI id"),
                            evidence.speed > 0 ? " of " + speed_text(evidence.speed) : ""),
                "--nic PART", possible_nics(evidence, catalogue_));
      return;
    }
    for (const Adapter& adapter : nics_) {
      if (adapter.model == nullptr) {
        const bool manages = adapter.speed > 0 && adapter.speed <= kManagement;
        remark(manages
                   ? fmt::format("The adapter {} of {} is left out, as a port for management.",
                                 adapter.functions[0]->busid, speed_text(adapter.speed))
                   : fmt::format("The adapter {} is of no part of the catalogue, or of several, "
                                 "and left out; --nic PART takes it in.",
                                 adapter.functions[0]->busid));
      }
    }
    std::erase_if(nics_, [](const Adapter& adapter) { return adapter.model == nullptr; });
    int max = 0;
    for (const auto& [part, count] : counts) {
      nic_ = count > max ? part : nic_;
      max = std::max(max, count);
    }
  }

  void check_adapter(const Adapter& adapter) {
    const NicModel& model = *adapter.model;
    check_device(*adapter.functions[0], model, "NIC");
    const std::int64_t speed = model.speed.value.bits_per_second() * model.ports.value / 1'000'000;
    if (adapter.speed > 0 && adapter.speed != speed) {
      remark(fmt::format("The file states {} for a NIC, and {} has {}: the part is believed.",
                         speed_text(adapter.speed), model.name, speed_text(speed)));
    }
  }

  // --- Branches --------------------------------------------------------------------------------

  void number_devices() {
    server_.tree = empty_server(static_cast<int>(gpus_.size()), static_cast<int>(nics_.size()));
    std::vector<std::optional<int>> devs;
    for (const NcclPci* pci : gpus_) {
      devs.push_back(pci->gpus.empty() ? std::nullopt : pci->gpus[0].dev);
    }
    const std::vector<int> gpu_ranks = ranks(devs);
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
      devices_[gpus_[gpu]] = {.kind = NodeKind::Gpu, .index = gpu_ranks[gpu]};
      gpu_of_bus_id_[lower_case(gpus_[gpu]->busid)] = gpu_ranks[gpu];
    }
    devs.clear();
    for (const Adapter& adapter : nics_) {
      devs.push_back(adapter.dev);
    }
    const std::vector<int> nic_ranks = ranks(devs);
    for (std::size_t nic = 0; nic < nics_.size(); ++nic) {
      devices_[nics_[nic].functions[0]] = {
          .kind = NodeKind::Nic, .index = nic_ranks[nic], .part = nics_[nic].model->name};
    }
  }

  // Returns the branches without those that lead to no device.
  std::vector<OutlineBranch> branches_of(const std::vector<NcclPci>& pcis) {
    std::vector<OutlineBranch> branches;
    for (const NcclPci& pci : pcis) {
      std::vector<OutlineBranch> below = branches_of(pci.pcis);
      if (const auto device = devices_.find(&pci); device != devices_.end()) {
        // A device with others behind it, such as an adapter with a switch of its own.
        if (below.empty()) {
          branches.push_back(device->second);
          continue;
        }
        below.push_back(device->second);
      }
      if (!below.empty()) {
        OutlineBranch branch = uplink_of(pci);
        branch.kind = NodeKind::PcieSwitch;
        branch.children = std::move(below);
        branches.push_back(std::move(branch));
      }
    }
    return branches;
  }

  // The link of a bridge, where the file may be believed. Idle links state generation 1 or 2, which
  // no server of GPUs has; the catalogue begins with 3.
  OutlineBranch uplink_of(const NcclPci& pci) {
    OutlineBranch branch;
    if (!says_speed(pci)) {
      return branch;
    }
    if (!is_credible_) {
      remark("As the file is wrong about its devices, it is not believed about its PCIe switches.");
      return branch;
    }
    const LinkModel* stated = stated_link(pci, catalogue_);
    if (stated == nullptr) {
      remark(
          fmt::format("The file states \"{}\" for a PCIe switch, of which there is no part: it "
                      "gets the link of a GPU.",
                      *pci.link_speed));
      return branch;
    }
    const int width = pci.link_width.value_or(0);
    const bool is_width = width <= 32 && std::has_single_bit(static_cast<unsigned>(width));
    branch.link = stated->name;
    branch.lanes = is_width ? width : 16;  // NCCL takes this for an unknown width.
    return branch;
  }

  // --- Links between GPUs ----------------------------------------------------------------------

  void add_gpu_links() {
    for (const NcclPci* pci : gpus_) {
      const std::size_t index = as_index(devices_.at(pci).index);
      for (const NcclGpu& gpu : pci->gpus) {
        for (const auto* list : {&gpu.nvlinks, &gpu.xgmis}) {
          for (const NcclGpuLink& link : *list) {
            add_gpu_link(index, link);
          }
        }
        if (gpu_->c2c.empty() && !gpu.c2cs.empty()) {
          remark(fmt::format("The file states C2C, which {} does not have: the part is believed.",
                             gpu_->name));
        }
      }
    }
    check_gpu_links();
  }

  void add_gpu_link(std::size_t index, const NcclGpuLink& link) {
    ServerOutline& tree = server_.tree;
    const auto peer = gpu_of_bus_id_.find(lower_case(link.target));
    if (link.tclass.starts_with("0x068000")) {
      tree.switch_links[index] += link.count;
    } else if (peer == gpu_of_bus_id_.end()) {
      remark(fmt::format("NVLinks of GPU {} to {}, which is no GPU of the file, are left out.",
                         index, link.target));
    } else if (static_cast<std::size_t>(peer->second) == index) {
      remark(fmt::format("NVLinks of GPU {} to itself are left out.", index));
    } else {
      tree.gpu_links[index][static_cast<std::size_t>(peer->second)] += link.count;
    }
  }

  void check_gpu_links() {
    ServerOutline& tree = server_.tree;
    for (std::size_t a = 0; a < tree.gpu_links.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        int& there = tree.gpu_links[a][b];
        int& back = tree.gpu_links[b][a];
        if (there != back) {
          remark(fmt::format("GPUs {} and {} state {} and {} links: the larger is taken.", b, a,
                             back, there));
          there = back = std::max(there, back);
        }
      }
    }
    for (const std::vector<int>& row : tree.gpu_links) {
      const int direct = std::accumulate(row.begin(), row.end(), 0);
      if (direct > gpu_->scale_up_links.value) {
        remark(
            fmt::format("The file states {} links for a GPU, and {} has {}: the file is believed.",
                        direct, gpu_->name, gpu_->scale_up_links.value));
      }
    }
    const auto [min, max] = std::minmax_element(tree.switch_links.begin(), tree.switch_links.end());
    const int links = gpu_->scale_up_links.value;
    if (*max > 0 && (*min != links || *max != links)) {
      remark(fmt::format(
          "The GPUs state {} to {} links to NVSwitches, and {} has {}: the part is believed.", *min,
          *max, gpu_->name, links));
      tree.switch_links.assign(tree.switch_links.size(), links);
    }
  }

  const NcclSystem& system_;
  const Catalogue& catalogue_;
  const ImportOptions& options_;
  const std::string& name_;
  ImportedServer server_;
  std::vector<const NcclPci*> gpus_;
  std::vector<const NcclPci*> classless_;
  std::vector<Adapter> nics_;
  const GpuModel* gpu_ = nullptr;
  std::string nic_;  // The part of most adapters.
  bool is_credible_ = true;
  bool lacks_links_ = false;
  OpenParts open_;
  // Branches by address, which are only ever looked up.
  std::map<const NcclPci*, OutlineBranch> devices_;
  std::map<std::string, int> gpu_of_bus_id_;
};

}  // namespace

ImportedServer import_nccl_xml(const NcclSystem& system, const Catalogue& catalogue,
                               const ImportOptions& options, const std::string& name) {
  check_names(options, catalogue);
  return NcclImporter(system, catalogue, options, name).import();
}

}  // namespace trainyard
