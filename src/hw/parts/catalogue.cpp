// SPDX-License-Identifier: Apache-2.0
// Reads configs/hardware/*.yaml. A file is a mapping `sources` from short keys to citations and a
// mapping of parts by name; a value of a part is {value, evidence, source, note}.
#include "hw/parts/catalogue.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "hw/parts/sourced_reader.h"
#include "sim/check.h"

namespace trainyard {
namespace {

// The names are in the order of the enumerations.
constexpr std::array<std::string_view, 5> kEvidences{"datasheet", "measured", "shipped",
                                                     "secondary", "estimate"};
constexpr auto kFamilies =
    std::to_array<std::string_view>({"nvlink", "pcie", "c2c", "xgmi", "socket", "ici", "hccs"});
constexpr std::array<std::string_view, 2> kCpuArchitectures{"x86_64", "arm64"};
constexpr std::array<std::string_view, 8> kDataTypes{"fp64", "fp32", "tf32", "bf16",
                                                     "fp16", "fp8",  "fp4",  "int8"};

// Looking up a name.

bool starts_like(std::string_view name, std::string_view word) {
  const auto equal = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return name.size() >= word.size() && std::equal(word.begin(), word.end(), name.begin(), equal);
}

// Returns the hint of an error after an unknown name: the shortest name that starts like it ("H100"
// is nearer to "H100-SXM" than to "H20"), else the nearest by spelling, else all of them.
std::string advice(std::string_view word, const std::vector<std::string>& names) {
  std::optional<std::string> best;
  for (const std::string& name : names) {
    const bool shorter = !best || name.size() < best->size();
    if (!word.empty() && starts_like(name, word) && shorter) {
      best = name;
    }
  }
  if (!best) {
    best = nearest_word(word, names);
  }
  if (best) {
    return "; did you mean \"" + *best + "\"?";
  }
  std::string list;
  for (const std::string& name : names) {
    list += (list.empty() ? "; known are " : ", ") + name;
  }
  return list;
}

template <typename Value>
const Value& find(const std::map<std::string, Value>& known, const ConfigNode& node,
                  std::string_view expected) {
  const std::string name = node.as_string();
  if (const auto entry = known.find(name); entry != known.end()) {
    return entry->second;
  }
  std::vector<std::string> names;
  for (const auto& [known_name, value] : known) {
    names.push_back(known_name);
  }
  node.fail(expected, node.found() + advice(name, names));
}

// Reading a plain value. `sourced` below adds where it is from.

auto whole(std::int64_t least, std::int64_t most) {
  return [=](const ConfigNode& node) { return static_cast<int>(node.as_integer(least, most)); };
}

// An efficiency below one percent is a slip of the pen.
double share(const ConfigNode& node) {
  return node.as_number(0.01, 1.0);
}

Bytes payload(const ConfigNode& node) {
  const Bytes size = node.as_bytes();
  const bool allowed = size >= Bytes(128) && size <= Bytes(4096) &&
                       std::has_single_bit(static_cast<std::uint64_t>(size.count()));
  if (!allowed) {
    node.fail("a power of two from 128 B to 4096 B", node.found());
  }
  return size;
}

int lanes(const ConfigNode& node) {
  const std::int64_t count = node.as_integer(1, 32);
  if (!std::has_single_bit(static_cast<std::uint64_t>(count))) {
    node.fail("1, 2, 4, 8, 16 or 32 lanes", node.found());
  }
  return static_cast<int>(count);
}

// "9.0" as 90, the way that compilers and NCCL write it.
int compute_capability(const ConfigNode& node) {
  return static_cast<int>(std::lround(node.as_number(1.0, 99.0) * 10.0));
}

// Vendor and device, four lower-case hexadecimal digits each.
std::vector<std::string> pci_ids(const ConfigNode& node) {
  constexpr std::size_t kColon = 4;
  constexpr std::size_t kLength = 9;
  std::vector<std::string> ids;
  for (const ConfigNode& item : node.items()) {
    const std::string id = item.as_string();
    const bool is_id = id.size() == kLength && id.find_first_not_of("0123456789abcdef") == kColon &&
                       id[kColon] == ':' &&
                       id.find_first_not_of("0123456789abcdef", kColon + 1) == std::string::npos;
    if (!is_id) {
      item.fail("vendor and device such as \"10de:2330\"", item.found());
    }
    ids.push_back(id);
  }
  return ids;
}

// Reads the values of the parts of one file.
class PartReader {
 public:
  explicit PartReader(const ConfigNode& sources) {
    for (const auto& [key, citation] : sources.entries()) {
      sources_.emplace(key, citation.as_string());
    }
  }

  // The value under `key` of `part`, which `read` takes from the node; `read` is a function of a
  // ConfigNode or a member of it.
  template <typename Read>
  [[nodiscard]] auto required(const ConfigNode& part, std::string_view key, Read read) const {
    return sourced(part.required(key), read);
  }

  template <typename Read>
  [[nodiscard]] auto optional(const ConfigNode& part, std::string_view key, Read read) const {
    using Value = std::invoke_result_t<Read, const ConfigNode&>;
    const std::optional<ConfigNode> entry = part.optional(key);
    return entry ? std::optional<Sourced<Value>>(sourced(*entry, read)) : std::nullopt;
  }

 private:
  template <typename Read>
  [[nodiscard]] auto sourced(const ConfigNode& entry, Read read) const {
    Sourced<std::invoke_result_t<Read, const ConfigNode&>> result;
    result.value = std::invoke(read, entry.required("value"));
    result.evidence = static_cast<Evidence>(entry.required("evidence").as_choice(kEvidences));
    result.source = find(sources_, entry.required("source"), "a key of \"sources\"");
    if (const std::optional<ConfigNode> note = entry.optional("note")) {
      result.source += "; " + note->as_string();
    }
    return result;
  }

  std::map<std::string, std::string> sources_;
};

// Reading a part.

using Links = std::map<std::string, LinkModel>;

// The name under `key`, which must be that of a link of one of `families`.
std::string link_name(const ConfigNode& node, const Links& links,
                      std::initializer_list<LinkFamily> families) {
  const LinkModel& link = find(links, node, "the name of a link in the catalogue");
  if (std::find(families.begin(), families.end(), link.family) == families.end()) {
    std::string wanted;
    for (const LinkFamily family : families) {
      wanted += wanted.empty() ? "" : " or ";
      wanted += kFamilies[static_cast<std::size_t>(family)];
    }
    node.fail("a link of family " + wanted, node.found());
  }
  return link.name;
}

// Reads the efficiency from `efficiency`, or from `max_payload` for a PCIe link that gives it
// instead.
void read_efficiency(const PartReader& reader, const ConfigNode& node, LinkModel& link) {
  link.max_payload = reader.optional(node, "max_payload", payload);
  if (!link.max_payload) {
    link.efficiency = reader.required(node, "efficiency", share);
    return;
  }
  if (link.family != LinkFamily::Pcie) {
    node.required("max_payload").fail("only a link of family pcie has a payload size");
  }
  if (const std::optional<ConfigNode> efficiency = node.optional("efficiency")) {
    efficiency->fail("give either this or max_payload, from which it follows");
  }
  link.efficiency = {pcie_efficiency(link.max_payload->value), link.max_payload->evidence,
                     link.max_payload->source};
}

LinkModel read_link(const PartReader& reader, const ConfigNode& node) {
  LinkModel link;
  link.family = static_cast<LinkFamily>(node.required("family").as_choice(kFamilies));
  link.bandwidth = reader.required(node, "bandwidth", &ConfigNode::as_bandwidth);
  read_efficiency(reader, node, link);
  link.latency = reader.required(node, "latency", &ConfigNode::as_time);
  link.gpu_latency = reader.optional(node, "gpu_latency", &ConfigNode::as_time);
  link.switch_latency = reader.optional(node, "switch_latency", &ConfigNode::as_time);
  link.root_latency = reader.optional(node, "root_latency", &ConfigNode::as_time);
  link.in_network_reduction = reader.optional(node, "in_network_reduction", &ConfigNode::as_bool);
  if (link.in_network_reduction && link.family != LinkFamily::NvLink) {
    node.required("in_network_reduction").fail("only a link of family nvlink has an NVSwitch");
  }
  return link;
}

void read_scale_up(const PartReader& reader, const ConfigNode& node, const Links& links,
                   GpuModel& gpu) {
  gpu.scale_up_links = reader.required(node, "scale_up_links", whole(0, 64));
  if (gpu.scale_up_links.value > 0) {
    gpu.scale_up_link = link_name(node.required("scale_up_link"), links,
                                  {LinkFamily::NvLink, LinkFamily::Xgmi, LinkFamily::Hccs});
  } else if (const std::optional<ConfigNode> link = node.optional("scale_up_link")) {
    link->fail("a GPU with 0 scale_up_links has no scale_up_link");
  }
}

// A GPU reaches its CPU over PCIe or over C2C.
void read_host_link(const PartReader& reader, const ConfigNode& node, const Links& links,
                    GpuModel& gpu) {
  if (const std::optional<ConfigNode> c2c = node.optional("c2c")) {
    gpu.c2c = link_name(*c2c, links, {LinkFamily::C2c});
    if (const std::optional<ConfigNode> pcie = node.optional("pcie")) {
      pcie->fail("a GPU reaches its CPU by either pcie or c2c, not both");
    }
    return;
  }
  gpu.pcie = link_name(node.required("pcie"), links, {LinkFamily::Pcie});
  gpu.pcie_lanes = reader.required(node, "pcie_lanes", lanes);
}

GpuModel read_gpu(const PartReader& reader, const ConfigNode& node, const Links& links) {
  GpuModel gpu;
  gpu.title = node.required("title").as_string();
  gpu.architecture = node.required("architecture").as_string();
  gpu.compute_capability = reader.optional(node, "compute_capability", compute_capability);
  gpu.pci_ids = reader.optional(node, "pci_ids", pci_ids);
  gpu.multiprocessors = reader.optional(node, "multiprocessors", whole(1, 4096));
  const ConfigNode peak = node.required("peak");
  for (const std::string_view type : kDataTypes) {
    if (auto rate = reader.optional(peak, type, &ConfigNode::as_flop_rate)) {
      gpu.peak.emplace(type, std::move(*rate));
    }
  }
  gpu.memory = reader.required(node, "memory", some_bytes);
  gpu.memory_bandwidth = reader.required(node, "memory_bandwidth", &ConfigNode::as_bandwidth);
  gpu.memory_efficiency = reader.optional(node, "memory_efficiency", share);
  read_scale_up(reader, node, links, gpu);
  read_host_link(reader, node, links, gpu);
  return gpu;
}

CpuModel read_cpu(const PartReader& reader, const ConfigNode& node, const Links& links) {
  CpuModel cpu;
  cpu.title = node.required("title").as_string();
  cpu.arch = kCpuArchitectures[node.required("arch").as_choice(kCpuArchitectures)];
  if (cpu.arch == "x86_64") {
    cpu.identity = CpuIdentity{.vendor = node.required("vendor").as_string(),
                               .family = reader.required(node, "family", whole(0, 1000)),
                               .model = reader.required(node, "model", whole(0, 1000))};
  }
  cpu.pcie = link_name(node.required("pcie"), links, {LinkFamily::Pcie});
  cpu.memory_bandwidth = reader.required(node, "memory_bandwidth", &ConfigNode::as_bandwidth);
  cpu.memory_latency = reader.required(node, "memory_latency", &ConfigNode::as_time);
  if (const std::optional<ConfigNode> link = node.optional("socket_link")) {
    cpu.socket_link = link_name(*link, links, {LinkFamily::Socket});
  }
  cpu.root_bandwidth = reader.optional(node, "root_bandwidth", &ConfigNode::as_bandwidth);
  return cpu;
}

NicModel read_nic(const PartReader& reader, const ConfigNode& node, const Links& links) {
  NicModel nic;
  nic.title = node.required("title").as_string();
  nic.pci_ids = reader.optional(node, "pci_ids", pci_ids);
  nic.speed = reader.required(node, "speed", &ConfigNode::as_bandwidth);
  nic.ports = reader.required(node, "ports", whole(1, 16));
  nic.pcie = link_name(node.required("pcie"), links, {LinkFamily::Pcie});
  nic.pcie_lanes = reader.required(node, "pcie_lanes", lanes);
  nic.efficiency = reader.required(node, "efficiency", share);
  nic.latency = reader.required(node, "latency", &ConfigNode::as_time);
  nic.grouped = reader.optional(node, "grouped", &ConfigNode::as_bool);
  return nic;
}

NvSwitchModel read_nvswitch(const PartReader& reader, const ConfigNode& node, const Links& links) {
  NvSwitchModel model;
  model.title = node.required("title").as_string();
  model.link = link_name(node.required("link"), links, {LinkFamily::NvLink});
  model.ports = reader.required(node, "ports", whole(2, 1024));
  model.in_network_reduction = reader.required(node, "in_network_reduction", &ConfigNode::as_bool);
  return model;
}

SwitchModel read_switch(const PartReader& reader, const ConfigNode& node) {
  SwitchModel model;
  model.title = node.required("title").as_string();
  model.ports = reader.required(node, "ports", whole(2, 4096));
  model.speed = reader.required(node, "speed", &ConfigNode::as_bandwidth);
  model.latency = reader.required(node, "latency", &ConfigNode::as_time);
  model.buffer = reader.optional(node, "buffer", some_bytes);
  model.in_network_reduction = reader.optional(node, "in_network_reduction", &ConfigNode::as_bool);
  return model;
}

// All parts of a file, each read by `read_part(reader, node)`.
template <typename ReadPart>
auto read_file(const std::filesystem::path& file, std::string_view section, ReadPart read_part) {
  using Part = std::invoke_result_t<ReadPart, const PartReader&, const ConfigNode&>;
  ConfigDocument document = ConfigDocument::load(file);
  const ConfigNode root = document.root();
  const PartReader reader(root.required("sources"));
  std::map<std::string, Part> parts;
  for (const auto& [name, node] : root.required(section).entries()) {
    Part part = read_part(reader, node);
    part.name = name;
    parts.emplace(name, std::move(part));
  }
  document.finish();
  return parts;
}

}  // namespace

std::string_view to_string(Evidence evidence) {
  return kEvidences[static_cast<std::size_t>(evidence)];
}

Catalogue Catalogue::load(const std::filesystem::path& folder) {
  Catalogue catalogue;
  catalogue.folder_ = folder;
  const Links& links = catalogue.links_;
  catalogue.links_ = read_file(folder / "links.yaml", "links", read_link);
  catalogue.cpus_ = read_file(folder / "cpus.yaml", "cpus",
                              [&](const PartReader& reader, const ConfigNode& node) {
                                return read_cpu(reader, node, links);
                              });
  catalogue.gpus_ = read_file(folder / "gpus.yaml", "gpus",
                              [&](const PartReader& reader, const ConfigNode& node) {
                                return read_gpu(reader, node, links);
                              });
  catalogue.nics_ = read_file(folder / "nics.yaml", "nics",
                              [&](const PartReader& reader, const ConfigNode& node) {
                                return read_nic(reader, node, links);
                              });
  catalogue.nvswitches_ = read_file(folder / "nvswitches.yaml", "nvswitches",
                                    [&](const PartReader& reader, const ConfigNode& node) {
                                      return read_nvswitch(reader, node, links);
                                    });
  catalogue.switches_ = read_file(folder / "switches.yaml", "switches", read_switch);
  return catalogue;
}

const CpuModel& Catalogue::cpu(const ConfigNode& name) const {
  return find(cpus_, name, "the name of a CPU in the catalogue");
}

const GpuModel& Catalogue::gpu(const ConfigNode& name) const {
  return find(gpus_, name, "the name of a GPU in the catalogue");
}

const LinkModel& Catalogue::link(const ConfigNode& name) const {
  return find(links_, name, "the name of a link in the catalogue");
}

const NicModel& Catalogue::nic(const ConfigNode& name) const {
  return find(nics_, name, "the name of a NIC in the catalogue");
}

const NvSwitchModel& Catalogue::nvswitch(const ConfigNode& name) const {
  return find(nvswitches_, name, "the name of an NVSwitch in the catalogue");
}

const SwitchModel& Catalogue::network_switch(const ConfigNode& name) const {
  return find(switches_, name, "the name of a switch in the catalogue");
}

const LinkModel& Catalogue::link(std::string_view name) const {
  const auto entry = links_.find(std::string(name));
  CHECK(entry != links_.end(), "no such link in the catalogue");
  return entry->second;
}

double pcie_efficiency(Bytes max_payload) {
  CHECK(max_payload > Bytes(0), "a PCIe transaction carries at least one byte");
  constexpr double kHeaderBytes = 26.0;
  constexpr double kControlPacketBytes = 16.0;
  constexpr double kTransactionsPerControlPacket = 4.0;
  const double payload_bytes = static_cast<double>(max_payload.count());
  return kTransactionsPerControlPacket * payload_bytes /
         (kTransactionsPerControlPacket * (payload_bytes + kHeaderBytes) + kControlPacketBytes);
}

}  // namespace trainyard
