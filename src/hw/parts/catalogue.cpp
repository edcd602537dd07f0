// SPDX-License-Identifier: Apache-2.0
// Reads configs/hardware/*.yaml. A file is a mapping `sources` from short keys to citations and a
// mapping of parts by name; a value of a part is {value, evidence, source, note}.
#include "hw/parts/catalogue.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <utility>
#include <vector>

#include "sim/check.h"
#include "sim/fields.h"

namespace trainyard {
namespace {

// The names are in the order of the enumerations.
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
  if (best) {
    return "; did you mean \"" + *best + "\"?";
  }
  return did_you_mean(word, names,
                      names.empty() ? "" : fmt::format("; known are {}", fmt::join(names, ", ")));
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

// Reading a plain value.

constexpr Number kEfficiency{0.01, 1.0};  // Below one percent is a slip of the pen.

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

// The citations of a file, by keys.
using Citations = std::map<std::string, std::string>;

// {value, evidence, source, note}, of which all is kept.
template <typename Kind>
struct Quoted {
  Kind of;
  const Citations* citations;
  template <typename Value>
  void read(const Fields& parent, const ConfigNode& node, Value& value) const {
    auto& result = held(value);
    parent.read_value(of, node.required("value"), result.value);
    result.evidence = static_cast<Evidence>(node.required("evidence").as_choice(kKindsOfEvidence));
    result.source = find(*citations, node.required("source"), "a key of \"sources\"");
    if (const std::optional<ConfigNode> note = node.optional("note")) {
      result.source += "; " + note->as_string();
    }
  }
  void describe(Schema& schema) const {
    Undetermined nothing;
    Cited<Kind>{of}.describe(schema, nothing);
  }
};

using Links = std::map<std::string, LinkModel>;

// Links and citations that the values of parts name.
struct References {
  const Links& links;
  Citations citations = {};

  template <typename Kind>
  [[nodiscard]] Quoted<Kind> quoted(Kind kind) const {
    return {kind, &citations};
  }
  // The name of a link, which must be of one of `families`.
  [[nodiscard]] auto link(std::initializer_list<LinkFamily> families) const {
    return Via{Text{}, [this, wanted = std::vector(families)](const ConfigNode& node) {
                 return link_name(node, wanted);
               }};
  }

 private:
  [[nodiscard]] std::string link_name(const ConfigNode& node,
                                      const std::vector<LinkFamily>& families) const {
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
};

// Reading a part.

void link_fields(Fields& fields, LinkModel& link, const References& of) {
  fields.required("family", link.family, Choice{kFamilies}, "Family.");
  fields.required("bandwidth", link.bandwidth, of.quoted(Rate{}), "Rate of one direction.");
  fields.optional("max_payload", link.max_payload, of.quoted(Via{Amount{}, payload}),
                  "Payload of a PCIe transaction, which gives the efficiency.");
  fields.where(!link.max_payload, [&] {
    fields.required("efficiency", link.efficiency, of.quoted(kEfficiency), "Share of the rate.");
  });
  fields.required("latency", link.latency, of.quoted(Duration{}), "From end to end.");
  fields.optional("gpu_latency", link.gpu_latency, of.quoted(Duration{}), "At an end with a GPU.");
  fields.optional("switch_latency", link.switch_latency, of.quoted(Duration{}), "In a switch.");
  fields.optional("root_latency", link.root_latency, of.quoted(Duration{}), "In a CPU.");
  fields.optional("in_network_reduction", link.in_network_reduction, of.quoted(Flag{}),
                  "NVLink: its NVSwitch adds up.");
  fields.check([&](const ConfigNode& node) {
    if (link.max_payload && link.family != LinkFamily::Pcie) {
      node.required("max_payload").fail("only a link of family pcie has a payload size");
    }
    if (link.max_payload) {
      if (const std::optional<ConfigNode> efficiency = node.optional("efficiency")) {
        efficiency->fail("give either this or max_payload, from which it follows");
      }
      link.efficiency = {pcie_efficiency(link.max_payload->value), link.max_payload->evidence,
                         link.max_payload->source};
    }
    if (link.in_network_reduction && link.family != LinkFamily::NvLink) {
      node.required("in_network_reduction").fail("only a link of family nvlink has an NVSwitch");
    }
  });
}

// A GPU reaches its CPU over PCIe or over C2C.
void gpu_link_fields(Fields& fields, GpuModel& gpu, const References& of) {
  fields.required("scale_up_links", gpu.scale_up_links, of.quoted(Whole{0, 64}), "To GPUs.");
  fields.where(gpu.scale_up_links.value > 0, [&] {
    fields.required("scale_up_link", gpu.scale_up_link,
                    of.link({LinkFamily::NvLink, LinkFamily::Xgmi, LinkFamily::Hccs}), "Part.");
  });
  const bool has_c2c = fields.optional("c2c", gpu.c2c, of.link({LinkFamily::C2c}), "To the CPU.");
  fields.where(!has_c2c, [&] {
    fields.required("pcie", gpu.pcie, of.link({LinkFamily::Pcie}), "To the CPU, without `c2c`.");
    fields.required("pcie_lanes", gpu.pcie_lanes, of.quoted(Via{Whole{1, 32}, lanes}), "Lanes.");
  });
  fields.check([&](const ConfigNode& node) {
    const std::optional<ConfigNode> link = node.optional("scale_up_link");
    if (link && gpu.scale_up_links.value == 0) {
      link->fail("a GPU with 0 scale_up_links has no scale_up_link");
    }
    if (const auto pcie = has_c2c ? node.optional("pcie") : std::nullopt) {
      pcie->fail("a GPU reaches its CPU by either pcie or c2c, not both");
    }
  });
}

void gpu_fields(Fields& fields, GpuModel& gpu, const References& of) {
  using Peak = std::map<std::string, Sourced<FlopRate>>;
  const auto peak_fields = [&](Fields& types, Peak& peak) {
    for (const std::string_view type : kDataTypes) {
      std::optional<Sourced<FlopRate>> rate;
      if (types.optional(type, rate, of.quoted(Flops{}), "Dense rate.")) {
        peak.emplace(type, std::move(*rate));
      }
    }
  };
  fields.required("title", gpu.title, Text{}, "Name for people.");
  fields.required("architecture", gpu.architecture, Text{}, "Such as `hopper`.");
  fields.optional("compute_capability", gpu.compute_capability,
                  of.quoted(Via{Text{}, compute_capability}), "NVIDIA's.");
  fields.optional("pci_ids", gpu.pci_ids, of.quoted(Via{List{Text{}}, pci_ids}), "PCI devices.");
  fields.optional("multiprocessors", gpu.multiprocessors, of.quoted(Whole{1, 4096}), "Number.");
  fields.required("peak", gpu.peak, Group{peak_fields}, "Rates by type.");
  fields.required("memory", gpu.memory, of.quoted(SomeAmount{}), "Memory.");
  fields.required("memory_bandwidth", gpu.memory_bandwidth, of.quoted(Rate{}), "Its rate.");
  fields.optional("memory_efficiency", gpu.memory_efficiency, of.quoted(kEfficiency), "Share.");
  gpu_link_fields(fields, gpu, of);
}

void cpu_fields(Fields& fields, CpuModel& cpu, const References& of) {
  const auto arch = [](const ConfigNode& node) {
    return kCpuArchitectures[node.as_choice(kCpuArchitectures)];
  };
  fields.required("title", cpu.title, Text{}, "Name for people.");
  fields.required("arch", cpu.arch, Via{Choice{kCpuArchitectures}, arch}, "Instructions.");
  fields.where(cpu.arch == "x86_64", [&] {
    CpuIdentity& identity = cpu.identity.emplace();
    fields.required("vendor", identity.vendor, Text{}, "As CPUID has it, of `x86_64`.");
    fields.required("family", identity.family, of.quoted(Whole{0, 1000}), "The same.");
    fields.required("model", identity.model, of.quoted(Whole{0, 1000}), "The same.");
  });
  fields.required("pcie", cpu.pcie, of.link({LinkFamily::Pcie}), "Of its root ports.");
  fields.required("memory_bandwidth", cpu.memory_bandwidth, of.quoted(Rate{}), "Of its memory.");
  fields.required("memory_latency", cpu.memory_latency, of.quoted(Duration{}), "Of its memory.");
  fields.optional("socket_link", cpu.socket_link, of.link({LinkFamily::Socket}), "To others.");
  fields.optional("root_bandwidth", cpu.root_bandwidth, of.quoted(Rate{}), "Of a root complex.");
}

void nic_fields(Fields& fields, NicModel& nic, const References& of) {
  fields.required("title", nic.title, Text{}, "Name for people.");
  fields.optional("pci_ids", nic.pci_ids, of.quoted(Via{List{Text{}}, pci_ids}), "PCI devices.");
  fields.required("speed", nic.speed, of.quoted(Rate{}), "Line rate of a port.");
  fields.required("ports", nic.ports, of.quoted(Whole{1, 16}), "Ports.");
  fields.required("pcie", nic.pcie, of.link({LinkFamily::Pcie}), "To its host.");
  fields.required("pcie_lanes", nic.pcie_lanes, of.quoted(Via{Whole{1, 32}, lanes}), "Lanes.");
  fields.required("efficiency", nic.efficiency, of.quoted(kEfficiency), "Share of the rate.");
  fields.required("latency", nic.latency, of.quoted(Duration{}), "Of the NIC alone.");
  fields.optional("grouped", nic.grouped, of.quoted(Flag{}), "NCCL sees the nearest as one.");
}

void nvswitch_fields(Fields& fields, NvSwitchModel& model, const References& of) {
  fields.required("title", model.title, Text{}, "Name for people.");
  fields.required("link", model.link, of.link({LinkFamily::NvLink}), "Of its ports.");
  fields.required("ports", model.ports, of.quoted(Whole{2, 1024}), "Ports.");
  fields.required("in_network_reduction", model.in_network_reduction, of.quoted(Flag{}), "NVLS.");
}

void switch_fields(Fields& fields, SwitchModel& model, const References& of) {
  fields.required("title", model.title, Text{}, "Name for people.");
  fields.required("ports", model.ports, of.quoted(Whole{2, 4096}), "Ports.");
  fields.required("speed", model.speed, of.quoted(Rate{}), "Rate of a port.");
  fields.required("latency", model.latency, of.quoted(Duration{}), "Port to port.");
  fields.optional("buffer", model.buffer, of.quoted(SomeAmount{}), "Memory.");
  fields.optional("in_network_reduction", model.in_network_reduction, of.quoted(Flag{}), "SHARP.");
}

template <typename Part>
using PartRows = void (*)(Fields&, Part&, const References&);

// Rows of a file: citations, and parts below `section`.
template <typename Part>
void part_file_fields(Fields& fields, std::string_view section, std::map<std::string, Part>& parts,
                      const Links& links, PartRows<Part> rows) {
  References of{links};
  const auto part_rows = [&](Fields& row, Part& part) { rows(row, part, of); };
  fields.required("sources", of.citations, Named{Text{}}, "Citations by short keys.");
  fields.required(section, parts, Named{Group{part_rows}}, "Parts.");
}

template <typename Part>
auto read_parts(const std::filesystem::path& folder, const std::string& section, const Links& links,
                PartRows<Part> rows) {
  ConfigDocument document = ConfigDocument::load(folder / (section + ".yaml"));
  Fields fields(document.root());
  std::map<std::string, Part> parts;
  part_file_fields(fields, section, parts, links, rows);
  for (auto& [name, part] : parts) {
    part.name = name;
  }
  document.finish();
  return parts;
}

template <typename Part>
Schema part_schema(std::string_view section, PartRows<Part> rows) {
  Schema schema;
  Fields fields(schema);
  std::map<std::string, Part> parts;
  part_file_fields(fields, section, parts, {}, rows);
  return schema;
}

}  // namespace

Catalogue Catalogue::load(const std::filesystem::path& folder) {
  Catalogue catalogue;
  catalogue.folder_ = folder;
  Links& links = catalogue.links_;
  links = read_parts(folder, "links", {}, link_fields);
  catalogue.cpus_ = read_parts(folder, "cpus", links, cpu_fields);
  catalogue.gpus_ = read_parts(folder, "gpus", links, gpu_fields);
  catalogue.nics_ = read_parts(folder, "nics", links, nic_fields);
  catalogue.nvswitches_ = read_parts(folder, "nvswitches", links, nvswitch_fields);
  catalogue.switches_ = read_parts(folder, "switches", links, switch_fields);
  return catalogue;
}

std::map<std::string, Schema> catalogue_schemas() {
  return {{"links", part_schema("links", link_fields)},
          {"cpus", part_schema("cpus", cpu_fields)},
          {"gpus", part_schema("gpus", gpu_fields)},
          {"nics", part_schema("nics", nic_fields)},
          {"nvswitches", part_schema("nvswitches", nvswitch_fields)},
          {"switches", part_schema("switches", switch_fields)}};
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
