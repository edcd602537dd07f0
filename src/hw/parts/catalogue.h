// SPDX-License-Identifier: Apache-2.0
// The parts that clusters are made of, read from configs/hardware/*.yaml. Every value has a source;
// docs/models/hardware.md explains the keys and where the numbers come from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config.h"
#include "sim/units.h"

namespace trainyard {

struct Schema;

// Tells how a value is known.
enum class Evidence : std::uint8_t {
  Datasheet,  // The vendor's datasheet or manual.
  Measured,   // Measured; the source says on what and with which tool.
  Shipped,    // Read in a configuration or topology file that a vendor or operator ships.
  Secondary,  // A page or file that quotes a vendor.
  Estimate,   // Derived or assumed; the source gives the rule.
  User,       // Stated by the user; the source is the place, and what the user gives for it.
};

template <typename T>
struct Sourced {
  T value{};
  Evidence evidence = Evidence::Estimate;
  std::string source;  // The full citation, and the note on this value if it has one.
};

enum class LinkFamily : std::uint8_t { NvLink, Pcie, C2c, Xgmi, Socket, Ici, Hccs };

// A generation of a link inside a server, or between chips that route themselves (ICI). Rates are
// per direction.
struct LinkModel {
  std::string name;
  LinkFamily family = LinkFamily::NvLink;
  // NVLink, xGMI, C2C, ICI, socket: payload rate of one physical link. PCIe: of one lane, after
  // encoding.
  Sourced<Bandwidth> bandwidth;
  // Share of it that a long transfer by kernels reaches in each direction while both run. Where the
  // part gives `max_payload` (PCIe) it is pcie_efficiency of that.
  Sourced<double> efficiency;
  std::optional<Sourced<Bytes>> max_payload;
  // The time from one end of the link to the other.
  Sourced<SimTime> latency;
  // Added at an end where a GPU stands: the way between an SM and the port. Absent where `latency`
  // holds it already (NVLink).
  std::optional<Sourced<SimTime>> gpu_latency;
  // Through a switch between two links of this kind: NVSwitch, PCIe switch.
  std::optional<Sourced<SimTime>> switch_latency;
  // Through a CPU between two links of this kind: the PCIe root complex.
  std::optional<Sourced<SimTime>> root_latency;
  // NVLink: whether the NVSwitch of this generation adds up and multicasts what passes through it.
  std::optional<Sourced<bool>> in_network_reduction;
};

struct GpuModel {
  std::string name;
  std::string base;          // The part that it is a variant of; empty: none.
  std::string title;         // "NVIDIA H100 SXM5 80GB"
  std::string architecture;  // "hopper"
  // NVIDIA's, 90 for 9.0: what NCCL calls sm.
  std::optional<Sourced<int>> compute_capability;
  // "10de:2330", the usual one first; empty where nobody published it. How imports know the part.
  std::optional<Sourced<std::vector<std::string>>> pci_ids;
  std::optional<Sourced<int>> multiprocessors;
  std::map<std::string, Sourced<FlopRate>>
      peak;  // Dense rates by data type: "fp32", "tf32", "bf16", ...
  Sourced<Bytes> memory;
  Sourced<Bandwidth> memory_bandwidth;
  std::optional<Sourced<double>> memory_efficiency;
  // The GPU-to-GPU link, if it has one, and how many of them.
  std::string scale_up_link;  // Name of a LinkModel, or empty.
  Sourced<int> scale_up_links;
  // The way to the CPU: the name of a LinkModel of family Pcie and its lanes, or of family C2c.
  std::string pcie;
  Sourced<int> pcie_lanes;
  std::string c2c;
};

// One chip.
struct NvSwitchModel {
  std::string name;
  std::string title;
  std::string link;  // Name of the LinkModel of its ports.
  Sourced<int> ports;
  Sourced<bool> in_network_reduction;  // Multicast and reduction in the switch (NVLS).
};

struct NicModel {
  std::string name;
  std::string title;
  std::optional<Sourced<std::vector<std::string>>> pci_ids;  // As those of a GPU.
  Sourced<Bandwidth> speed;                                  // Line rate of one port.
  Sourced<int> ports;
  std::string pcie;  // Name of a LinkModel of family Pcie.
  Sourced<int> pcie_lanes;
  Sourced<double> efficiency;  // Payload over line rate for large messages.
  Sourced<SimTime> latency;    // Latency of the NIC alone, for a message that leaves or arrives.
  // True if its NCCL plugin gives those nearest to a GPU to NCCL as one.
  std::optional<Sourced<bool>> grouped;
};

struct SwitchModel {
  std::string name;
  std::string title;
  Sourced<int> ports;
  Sourced<Bandwidth> speed;  // Speed of one port.
  Sourced<SimTime> latency;
  std::optional<Sourced<Bytes>> buffer;
  // True if it adds up and multicasts what passes through it (SHARP).
  std::optional<Sourced<bool>> in_network_reduction;
};

// Identifies a processor as CPUID does, in the form that NCCL prints: the extended family as the
// high digit, so that AMD's family 25 is 175 (15 + 16 x 10).
struct CpuIdentity {
  std::string vendor;  // "GenuineIntel"
  Sourced<int> family;
  Sourced<int> model;
};

// One socket.
struct CpuModel {
  std::string name;
  std::string title;
  std::string arch;                     // "x86_64" or "arm64"
  std::optional<CpuIdentity> identity;  // x86 only.
  std::string pcie;                     // Name of a LinkModel of family Pcie: its root ports.
  Sourced<Bandwidth> memory_bandwidth;
  Sourced<SimTime> memory_latency;  // From where its links end to the memory behind it.
  std::string socket_link;          // Name of a LinkModel of family Socket, or empty.
  // Rate of one PCIe root complex in one direction, where it is less than its links.
  std::optional<Sourced<Bandwidth>> root_bandwidth;
};

// A part that the user describes, and what was said of it.
struct OwnPart {
  std::string base;                 // The part that it is a variant of; empty: none.
  std::string place;                // "mine.yaml:7:8"
  std::string source;               // Where the user has the values from; may be empty.
  std::vector<std::string> values;  // "speed = 25 Gb/s", of those that are not of the base.
};

class Catalogue {
 public:
  // Reads cpus.yaml, gpus.yaml, links.yaml, nics.yaml, nvswitches.yaml and switches.yaml of
  // `folder`. Throws ConfigError.
  [[nodiscard]] static Catalogue load(const std::filesystem::path& folder);

  // Returns the folder that it was read from.
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  // Parts for the value of a key in a cluster file, by name: an unknown one is an error at that
  // place that suggests the nearest. Where the value is a mapping it describes a part of the user's
  // own, which is added; with the key `base` it holds what differs from that part.
  [[nodiscard]] const CpuModel& cpu(const ConfigNode& part);
  [[nodiscard]] const GpuModel& gpu(const ConfigNode& part);
  [[nodiscard]] const LinkModel& link(const ConfigNode& part);
  [[nodiscard]] const NicModel& nic(const ConfigNode& part);
  [[nodiscard]] const NvSwitchModel& nvswitch(const ConfigNode& part);
  [[nodiscard]] const SwitchModel& network_switch(const ConfigNode& part);
  // Adds the user's parts in a mapping of kinds, each a mapping of parts by names. A name that is
  // known is an error.
  void add(const ConfigNode& kinds);
  // The same for a file, or the YAML files of a folder.
  void add(const std::filesystem::path& file_or_folder);
  // Leaves links and parts of these names alone.
  void keep(const std::vector<std::string>& names);
  // Returns what add() and the look-ups added, by name.
  [[nodiscard]] const std::map<std::string, OwnPart>& own() const { return own_; }
  // The name of the part of the catalogue that `name` is or varies.
  [[nodiscard]] const std::string& base_of(const std::string& name) const;

  // Looks up a name that the catalogue itself holds (checked when it was loaded).
  [[nodiscard]] const LinkModel& link(std::string_view name) const;

  // Everything by name, for lists.
  [[nodiscard]] const std::map<std::string, CpuModel>& cpus() const { return cpus_; }
  [[nodiscard]] const std::map<std::string, GpuModel>& gpus() const { return gpus_; }
  [[nodiscard]] const std::map<std::string, LinkModel>& links() const { return links_; }
  [[nodiscard]] const std::map<std::string, NicModel>& nics() const { return nics_; }
  [[nodiscard]] const std::map<std::string, NvSwitchModel>& nvswitches() const {
    return nvswitches_;
  }
  [[nodiscard]] const std::map<std::string, SwitchModel>& switches() const { return switches_; }

 private:
  friend struct Shelves;
  template <typename Part>
  const Part& look_up(const ConfigNode& node);

  std::filesystem::path folder_;
  std::map<std::string, OwnPart> own_;
  std::map<std::string, CpuModel> cpus_;
  std::map<std::string, GpuModel> gpus_;
  std::map<std::string, LinkModel> links_;
  std::map<std::string, NicModel> nics_;
  std::map<std::string, NvSwitchModel> nvswitches_;
  std::map<std::string, SwitchModel> switches_;
};

// Payload share of a PCIe link after encoding for transactions of `max_payload` bytes: 26 bytes of
// header and framing a transaction and one 16-byte control packet for four of them (the model of
// UCX, src/ucs/sys/topo): 4 P / (4 (P + 26) + 16). `max_payload` must be positive.
[[nodiscard]] double pcie_efficiency(Bytes max_payload);

// Returns the schemas of the files by their names: "gpus" for gpus.yaml.
[[nodiscard]] std::map<std::string, Schema> catalogue_schemas();
// Describes a part where a cluster file has one: its name, or a mapping, whose keys `parts` has.
void describe_part(Schema& schema);
// Describes a mapping of kinds that Catalogue::add reads.
void describe_own_parts(Schema& schema);

}  // namespace trainyard
