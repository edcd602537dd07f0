// SPDX-License-Identifier: Apache-2.0
#include "topology/exchange/hwloc_xml.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "sim/numbers.h"
#include "sim/xml_file.h"
#include "topology/exchange/pci_devices.h"

namespace trainyard {
namespace {

constexpr std::size_t kMaxHwlocBytes = std::size_t{4} << 20;
constexpr int kMaxFamily = 65'535;
// MB/s of one NVLink, as hwloc counts them up: topology-nvml.c, 20 GB/s for the first version.
constexpr int kNvLinkRate = 25'000;

// "0302 [10de:1db8] [10de:131d] a1 00": class, vendor and device.
struct PciType {
  std::string device_class;
  std::string vendor;
  std::string device;
};

std::optional<PciType> parse_type(std::string_view text) {
  constexpr std::size_t kLength = std::string_view("0302 [10de:1db8]").size();
  const auto is_hex = [&](std::size_t at) {
    return text.substr(at, 4).find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  };
  if (text.size() < kLength || text.substr(4, 2) != " [" || text[10] != ':' || !is_hex(0) ||
      !is_hex(6) || !is_hex(11)) {
    return std::nullopt;
  }
  return PciType{.device_class = fmt::format("0x{}00", text.substr(0, 4)),
                 .vendor = fmt::format("0x{}", text.substr(6, 4)),
                 .device = fmt::format("0x{}", text.substr(11, 4))};
}

// The rate of 16 lanes that a bridge has, in NCCL's words; empty for another rate.
std::string speed_of_16_lanes(std::string_view gigabytes) {
  struct Speed {
    double gigabytes;  // 16 lanes with 128/130 encoding.
    std::string_view text;
  };
  constexpr std::array kSpeeds = {Speed{15.75, "8.0 GT/s PCIe"}, Speed{31.51, "16.0 GT/s PCIe"},
                                  Speed{63.02, "32.0 GT/s PCIe"}};
  double rate = 0.0;
  (void)std::from_chars(gigabytes.data(), gigabytes.data() + gigabytes.size(), rate);
  for (const Speed& speed : kSpeeds) {
    if (std::abs(rate / speed.gigabytes - 1.0) < 0.01) {
      return std::string(speed.text);
    }
  }
  return "";
}

std::string_view info_of(const pugi::xml_node& object, std::string_view key) {
  for (const pugi::xml_node info : object.children("info")) {
    if (info.attribute("name").value() == key) {
      return info.attribute("value").value();
    }
  }
  return "";
}

class HwlocReader {
 public:
  HwlocReader(std::string_view text, const std::string& name)
      : file_(text, name, kMaxHwlocBytes, "topology") {}

  NcclSystem read() {
    const pugi::xml_node machine = file_.root().child("object");
    if (!machine) {
      file_.fail(file_.root(), "topology", "expected an object, found none");
    }
    const std::string_view architecture = info_of(machine, "Architecture");
    architecture_ = architecture == "aarch64" ? "arm64" : architecture;
    find_sockets(machine);
    if (system_.cpus.empty()) {
      add_socket(machine);
    }
    find_devices(machine, 0);
    keep_rdma();
    for (const pugi::xml_node distances : file_.root().children()) {
      if (distances.attribute("name").value() == std::string_view("NVLinkBandwidth")) {
        add_nvlinks(distances);
      }
    }
    std::erase_if(system_.cpus, [](const NcclCpu& cpu) { return cpu.pcis.empty(); });
    return std::move(system_);
  }

 private:
  using Pcis = std::vector<NcclPci>;

  [[nodiscard]] static std::string_view type_of(const pugi::xml_node& object) {
    return object.attribute("type").value();
  }

  static bool is_socket(const pugi::xml_node& object) {
    return type_of(object) == "Package" || type_of(object) == "Socket";
  }

  void find_sockets(const pugi::xml_node& object) {
    for (const pugi::xml_node child : object.children("object")) {
      if (is_socket(child)) {
        add_socket(child);
      } else {
        find_sockets(child);
      }
    }
  }

  void add_socket(const pugi::xml_node& object) {
    NcclCpu cpu{.place = file_.place_of(object), .numaid = static_cast<int>(system_.cpus.size())};
    const auto text = [&](std::string_view key) {
      const std::string_view value = info_of(object, key);
      return value.empty() ? std::nullopt : std::optional<std::string>(value);
    };
    const auto number = [&](std::string_view key) {
      return parse_number(info_of(object, key), 0, kMaxFamily);
    };
    cpu.arch = architecture_.empty() ? std::nullopt : std::optional(architecture_);
    cpu.vendor = text("CPUVendor");
    cpu.familyid = number("CPUFamilyNumber");
    cpu.modelid = number("CPUModelNumber");
    system_.cpus.push_back(std::move(cpu));
  }

  // Devices below `object`, which is of this socket or above all.
  void find_devices(const pugi::xml_node& object, std::size_t socket) {
    for (const pugi::xml_node child : object.children("object")) {
      if (type_of(child) == "Bridge" || type_of(child) == "PCIDev") {
        add_pci(child, system_.cpus[std::min(socket, system_.cpus.size() - 1)].pcis);
        continue;
      }
      find_devices(child, is_socket(child) ? sockets_seen_++ : socket);
    }
  }

  void add_pci(const pugi::xml_node& object, Pcis& above) {
    const std::string_view bus_id = object.attribute("pci_busid").value();
    const std::optional<PciType> type = parse_type(object.attribute("pci_type").value());
    if (bus_id.empty() || !type) {  // A host bridge.
      for (const pugi::xml_node child : object.children("object")) {
        add_pci(child, above);
      }
      return;
    }
    NcclPci pci{.place = file_.place_of(object),
                .busid = std::string(bus_id),
                .device_class = type->device_class,
                .vendor = type->vendor,
                .device = type->device};
    if (type_of(object) == "Bridge") {
      const std::string speed = speed_of_16_lanes(object.attribute("pci_link_speed").value());
      if (!speed.empty()) {
        pci.link_speed = speed;
        pci.link_width = 16;
      }
      for (const pugi::xml_node child : object.children("object")) {
        add_pci(child, pci.pcis);
      }
      if (!pci.pcis.empty()) {
        above.push_back(std::move(pci));
      }
      return;
    }
    if (type->device_class.starts_with("0x02")) {
      add_ports(object, pci);
    } else if (!is_accelerator(*type)) {
      return;
    }
    bus_ids_[object.attribute("gp_index").value()] = pci.busid;
    for (const pugi::xml_node child : object.children("object")) {
      bus_ids_[child.attribute("gp_index").value()] = pci.busid;
    }
    above.push_back(std::move(pci));
  }

  // Displays and accelerators of NVIDIA, AMD and Habana; other displays are those of boards.
  static bool is_accelerator(const PciType& type) {
    const bool of_maker =
        type.vendor == "0x10de" || type.vendor == "0x1002" || type.vendor == "0x1da3";
    return of_maker &&
           (type.device_class.starts_with("0x03") || type.device_class.starts_with("0x12"));
  }

  // A kind of a set in version 3 of the format, one of a list before: include/hwloc.h.
  [[nodiscard]] bool is_rdma(const pugi::xml_node& object) const {
    constexpr int kSetBit = 32;
    constexpr int kListed = 3;
    const auto kind =
        parse_number<int>(std::string_view(object.attribute("osdev_type").value())).value_or(0);
    const bool is_set =
        std::string_view(file_.root().attribute("version").value()).starts_with('3');
    return is_set ? (kind & kSetBit) != 0 : kind == kListed;
  }

  // One network for each device of RDMA; none for others.
  void add_ports(const pugi::xml_node& object, NcclPci& pci) const {
    for (const pugi::xml_node child : object.children("object")) {
      if (is_rdma(child)) {
        pci.nics.resize(1);
        pci.nics[0].nets.push_back({.name = child.attribute("name").value()});
      }
    }
  }

  template <typename Visit>
  static void each_pci(Pcis& pcis, const Visit& visit) {
    for (NcclPci& pci : pcis) {
      visit(pci);
      each_pci(pci.pcis, visit);
    }
  }

  void keep_rdma() {
    bool any = false;
    for (NcclCpu& cpu : system_.cpus) {
      each_pci(cpu.pcis, [&](const NcclPci& pci) { any = any || !pci.nics.empty(); });
    }
    const std::function<void(Pcis&)> drop = [&](Pcis& pcis) {
      for (NcclPci& pci : pcis) {
        drop(pci.pcis);
      }
      std::erase_if(pcis, [](const NcclPci& pci) {
        return pci.device_class->starts_with("0x02") && pci.nics.empty();
      });
    };
    for (NcclCpu& cpu : system_.cpus) {
      if (any) {
        drop(cpu.pcis);
      }
    }
  }

  // Numbers and names of all children with this name, in a row.
  static std::vector<std::string_view> words_of(const pugi::xml_node& distances,
                                                const char* child_name) {
    std::vector<std::string_view> words;
    for (const pugi::xml_node child : distances.children(child_name)) {
      std::string_view text = child.text().get();
      while (true) {
        const std::size_t start = std::min(text.find_first_not_of(" \t\r\n"), text.size());
        const std::size_t end = std::min(text.find_first_of(" \t\r\n", start), text.size());
        if (start == end) {
          break;
        }
        words.push_back(text.substr(start, end - start));
        text.remove_prefix(end);
      }
    }
    return words;
  }

  // The matrix between devices, by their gp_index: "OSDev:802", or a number alone. Ports of the
  // NVSwitches are the PCI devices that are no GPU.
  void add_nvlinks(const pugi::xml_node& distances) {
    const std::vector<std::string_view> indexes = words_of(distances, "indexes");
    const std::vector<std::string_view> values = words_of(distances, "u64values");
    if (values.size() != indexes.size() * indexes.size()) {
      file_.fail(distances, "NVLinkBandwidth",
                 fmt::format("expected {} values for {} devices, found {}",
                             indexes.size() * indexes.size(), indexes.size(), values.size()));
    }
    std::vector<std::string> bus_ids;
    for (const std::string_view index : indexes) {
      const auto found = bus_ids_.find(std::string(index.substr(index.find(':') + 1)));
      bus_ids.push_back(found == bus_ids_.end() ? "" : found->second);
    }
    for (NcclCpu& cpu : system_.cpus) {
      each_pci(cpu.pcis, [&](NcclPci& pci) {
        const auto row = std::find(bus_ids.begin(), bus_ids.end(), pci.busid);
        if (!is_gpu(pci) || row == bus_ids.end()) {
          return;
        }
        const auto first = static_cast<std::size_t>(row - bus_ids.begin()) * bus_ids.size();
        for (std::size_t column = 0; column < bus_ids.size(); ++column) {
          const auto rate = parse_number(values[first + column], 0, kMaxRate);
          const bool to_switch = bus_ids[column].empty();
          const bool is_known = !to_switch || indexes[column].starts_with("PCIDev:");
          if (bus_ids[column] == pci.busid || !is_known || !rate || *rate == 0) {
            continue;
          }
          pci.gpus.resize(1);
          pci.gpus[0].nvlinks.push_back({.target = to_switch ? "ffff:ff:ff.f" : bus_ids[column],
                                         .count = std::max(1, *rate / kNvLinkRate),
                                         .tclass = to_switch ? "0x068000" : "0x030200"});
        }
      });
    }
  }

  static constexpr int kMaxRate = 100'000'000;  // MB/s; larger is the distance to itself.

  XmlFile file_;
  NcclSystem system_;
  std::string architecture_;
  std::size_t sockets_seen_ = 0;
  std::map<std::string, std::string> bus_ids_;  // Key: gp_index of a device or of its parts.
};

}  // namespace

NcclSystem read_hwloc_xml(std::string_view text, const std::string& name) {
  return HwlocReader(text, name).read();
}

}  // namespace trainyard
