// SPDX-License-Identifier: Apache-2.0
#include "hw/parts/part_rows.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <utility>

#include "sim/check.h"

namespace trainyard {
namespace {

// The names are in the order of the enumerations.
constexpr auto kFamilies =
    std::to_array<std::string_view>({"nvlink", "pcie", "c2c", "xgmi", "socket", "ici", "hccs"});
constexpr std::array<std::string_view, 2> kCpuArchitectures{"x86_64", "arm64"};
constexpr std::array<std::string_view, 8> kDataTypes{"fp64", "fp32", "tf32", "bf16",
                                                     "fp16", "fp8",  "fp4",  "int8"};

bool starts_like(std::string_view name, std::string_view word) {
  const auto equal = [](unsigned char a, unsigned char b) {
    return std::tolower(a) == std::tolower(b);
  };
  return name.size() >= word.size() && std::equal(word.begin(), word.end(), name.begin(), equal);
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

// Notes "speed = 25 Gb/s" for a value of a part of the user's own.
void note_value(OwnPart& own, const ConfigNode& node) {
  const std::string key = node.path().substr(node.path().rfind('.') + 1);
  own.values.push_back(
      fmt::format("{} = {}", key, node.is_scalar() ? node.as_string() : node.found()));
}

// {value, evidence, source, note}, of which all is kept; or the plain value of a part of the user's
// own.
template <typename Kind>
struct Quoted {
  Kind of;
  const Citations* citations;
  OwnPart* own;
  template <typename Value>
  void read(const Fields& parent, const ConfigNode& node, Value& value) const {
    auto& result = held(value);
    if (own != nullptr) {
      parent.read_value(of, node, result.value);
      result.evidence = Evidence::User;
      result.source = own->source.empty() ? own->place : own->place + ": " + own->source;
      note_value(*own, node);
      return;
    }
    parent.read_value(of, node.required("value"), result.value);
    result.evidence = static_cast<Evidence>(node.required("evidence").as_choice(kKindsOfEvidence));
    result.source = find_named(*citations, node.required("source"), "a key of \"sources\"");
    if (const std::optional<ConfigNode> note = node.optional("note")) {
      result.source += "; " + note->as_string();
    }
  }
  void describe(Schema& schema) const {
    Undetermined nothing;
    if (own != nullptr) {
      Fields::describe_value(of, schema, nothing);
    } else {
      Cited<Kind>{of}.describe(schema, nothing);
    }
  }
};

template <typename Kind>
Quoted<Kind> quoted(const References& of, Kind kind) {
  return {kind, &of.citations, of.own};
}

std::string link_name(const ConfigNode& node, const std::vector<LinkFamily>& families,
                      const References& of) {
  const LinkModel& link = find_named(of.links, node, "the name of a link in the catalogue");
  if (std::find(families.begin(), families.end(), link.family) == families.end()) {
    std::string wanted;
    for (const LinkFamily family : families) {
      wanted += wanted.empty() ? "" : " or ";
      wanted += kFamilies[static_cast<std::size_t>(family)];
    }
    node.fail("a link of family " + wanted, node.found());
  }
  if (of.own != nullptr) {
    note_value(*of.own, node);
  }
  return link.name;
}

// The name of a link, which must be of one of `families`.
auto link_of(const References& of, std::initializer_list<LinkFamily> families) {
  return Via{Text{}, [&of, wanted = std::vector(families)](const ConfigNode& node) {
               return link_name(node, wanted, of);
             }};
}

// A GPU reaches its CPU over PCIe or over C2C.
void gpu_link_fields(Fields& fields, GpuModel& gpu, const References& of) {
  fields.required("scale_up_links", gpu.scale_up_links, quoted(of, Whole{0, 64}), "To GPUs.");
  fields.where(gpu.scale_up_links.value > 0, [&] {
    fields.required("scale_up_link", gpu.scale_up_link,
                    link_of(of, {LinkFamily::NvLink, LinkFamily::Xgmi, LinkFamily::Hccs}), "Part.");
  });
  const bool has_c2c =
      fields.optional("c2c", gpu.c2c, link_of(of, {LinkFamily::C2c}), "To the CPU.");
  fields.where(!has_c2c, [&] {
    fields.required("pcie", gpu.pcie, link_of(of, {LinkFamily::Pcie}),
                    "To the CPU, without `c2c`.");
    fields.required("pcie_lanes", gpu.pcie_lanes, quoted(of, Via{Whole{1, 32}, lanes}), "Lanes.");
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

}  // namespace

std::string part_advice(std::string_view word, const std::vector<std::string>& names) {
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

void link_fields(Fields& fields, LinkModel& link, const References& of) {
  fields.required("family", link.family, Choice{kFamilies}, "Family.");
  fields.required("bandwidth", link.bandwidth, quoted(of, Rate{}), "Rate of one direction.");
  fields.optional("max_payload", link.max_payload, quoted(of, Via{Amount{}, payload}),
                  "Payload of a PCIe transaction, which gives the efficiency.");
  fields.where(!link.max_payload, [&] {
    fields.required("efficiency", link.efficiency, quoted(of, kEfficiency), "Share of the rate.");
  });
  fields.required("latency", link.latency, quoted(of, Duration{}), "From end to end.");
  fields.optional("gpu_latency", link.gpu_latency, quoted(of, Duration{}), "At an end with a GPU.");
  fields.optional("switch_latency", link.switch_latency, quoted(of, Duration{}), "In a switch.");
  fields.optional("root_latency", link.root_latency, quoted(of, Duration{}), "In a CPU.");
  fields.optional("in_network_reduction", link.in_network_reduction, quoted(of, Flag{}),
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

void gpu_fields(Fields& fields, GpuModel& gpu, const References& of) {
  using Peak = std::map<std::string, Sourced<FlopRate>>;
  const auto peak_fields = [&](Fields& types, Peak& peak) {
    for (const std::string_view type : kDataTypes) {
      std::optional<Sourced<FlopRate>> rate;
      if (types.optional(type, rate, quoted(of, Flops{}), "Dense rate.")) {
        peak.insert_or_assign(std::string(type), std::move(*rate));
      }
    }
  };
  fields.required("title", gpu.title, Text{}, "Name for people.");
  fields.required("architecture", gpu.architecture, Text{}, "Such as `hopper`.");
  fields.optional("compute_capability", gpu.compute_capability,
                  quoted(of, Via{Text{}, compute_capability}), "NVIDIA's.");
  fields.optional("pci_ids", gpu.pci_ids, quoted(of, Via{List{Text{}}, pci_ids}), "PCI devices.");
  fields.optional("multiprocessors", gpu.multiprocessors, quoted(of, Whole{1, 4096}), "Number.");
  fields.required("peak", gpu.peak, Group{peak_fields}, "Rates by type.");
  fields.required("memory", gpu.memory, quoted(of, SomeAmount{}), "Memory.");
  fields.required("memory_bandwidth", gpu.memory_bandwidth, quoted(of, Rate{}), "Its rate.");
  fields.optional("memory_efficiency", gpu.memory_efficiency, quoted(of, kEfficiency), "Share.");
  gpu_link_fields(fields, gpu, of);
}

void cpu_fields(Fields& fields, CpuModel& cpu, const References& of) {
  const auto arch = [](const ConfigNode& node) {
    return kCpuArchitectures[node.as_choice(kCpuArchitectures)];
  };
  fields.required("title", cpu.title, Text{}, "Name for people.");
  fields.required("arch", cpu.arch, Via{Choice{kCpuArchitectures}, arch}, "Instructions.");
  fields.where(cpu.arch == "x86_64", [&] {
    CpuIdentity& identity = cpu.identity ? *cpu.identity : cpu.identity.emplace();
    fields.required("vendor", identity.vendor, Text{}, "As CPUID has it, of `x86_64`.");
    fields.required("family", identity.family, quoted(of, Whole{0, 1000}), "The same.");
    fields.required("model", identity.model, quoted(of, Whole{0, 1000}), "The same.");
  });
  fields.required("pcie", cpu.pcie, link_of(of, {LinkFamily::Pcie}), "Of its root ports.");
  fields.required("memory_bandwidth", cpu.memory_bandwidth, quoted(of, Rate{}), "Of its memory.");
  fields.required("memory_latency", cpu.memory_latency, quoted(of, Duration{}), "Of its memory.");
  fields.optional("socket_link", cpu.socket_link, link_of(of, {LinkFamily::Socket}), "To others.");
  fields.optional("root_bandwidth", cpu.root_bandwidth, quoted(of, Rate{}), "Of a root complex.");
}

void nic_fields(Fields& fields, NicModel& nic, const References& of) {
  fields.required("title", nic.title, Text{}, "Name for people.");
  fields.optional("pci_ids", nic.pci_ids, quoted(of, Via{List{Text{}}, pci_ids}), "PCI devices.");
  fields.required("speed", nic.speed, quoted(of, Rate{}), "Line rate of a port.");
  fields.required("ports", nic.ports, quoted(of, Whole{1, 16}), "Ports.");
  fields.required("pcie", nic.pcie, link_of(of, {LinkFamily::Pcie}), "To its host.");
  fields.required("pcie_lanes", nic.pcie_lanes, quoted(of, Via{Whole{1, 32}, lanes}), "Lanes.");
  fields.required("efficiency", nic.efficiency, quoted(of, kEfficiency), "Share of the rate.");
  fields.required("latency", nic.latency, quoted(of, Duration{}), "Of the NIC alone.");
  fields.optional("grouped", nic.grouped, quoted(of, Flag{}), "NCCL sees the nearest as one.");
}

void nvswitch_fields(Fields& fields, NvSwitchModel& model, const References& of) {
  fields.required("title", model.title, Text{}, "Name for people.");
  fields.required("link", model.link, link_of(of, {LinkFamily::NvLink}), "Of its ports.");
  fields.required("ports", model.ports, quoted(of, Whole{2, 1024}), "Ports.");
  fields.required("in_network_reduction", model.in_network_reduction, quoted(of, Flag{}), "NVLS.");
}

void switch_fields(Fields& fields, SwitchModel& model, const References& of) {
  fields.required("title", model.title, Text{}, "Name for people.");
  fields.required("ports", model.ports, quoted(of, Whole{2, 4096}), "Ports.");
  fields.required("speed", model.speed, quoted(of, Rate{}), "Rate of a port.");
  fields.required("latency", model.latency, quoted(of, Duration{}), "Port to port.");
  fields.optional("buffer", model.buffer, quoted(of, SomeAmount{}), "Memory.");
  fields.optional("in_network_reduction", model.in_network_reduction, quoted(of, Flag{}), "SHARP.");
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
