// SPDX-License-Identifier: Apache-2.0
// NCCL's topology file, as NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE reads it: one server as a
// tree of CPUs, PCIe devices, GPUs and network ports.
//
// The structs are the elements of the file, an absent attribute is an absent value, and nothing is
// interpreted here: server_export.h and import_parts.h do that. Names, meanings and limits are from
// NVIDIA/nccl, src/graph/xml.cc, xml.h and topo.cc; `gcn`, `arch` of a GPU and the element `xgmi`
// are what ROCm/rccl adds for AMD. Read on purpose and used by nothing, only kept for writing back:
// host_hash (NCCL replaces it by that of the machine it runs on), keep, gdr, coll, maxconn, net,
// gin, rma, rank, subsystem_vendor and subsystem_device.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/xml_file.h"

namespace trainyard {

// Links to one other device: <nvlink>, or <xgmi> for AMD.
struct NcclGpuLink {
  FilePlace place = {};
  std::string target;  // Bus id; f's where the guest does not see the NVSwitch.
  int count = 0;
  std::string tclass;  // PCI class of the target: 0x068000 NVSwitch, 0x03... GPU, 0x068001 CPU.
  [[nodiscard]] bool operator==(const NcclGpuLink&) const = default;
};

struct NcclC2c {
  FilePlace place = {};
  int bw = 0;  // MB/s of one link.
  int count = 0;
  [[nodiscard]] bool operator==(const NcclC2c&) const = default;
};

struct NcclGpu {
  FilePlace place = {};
  std::optional<int> dev = {};  // NVML index.
  std::optional<int> sm = {};   // Compute capability: 90 is 9.0.
  std::optional<int> mlopart = {};
  std::optional<std::string> gcn = {};
  std::optional<int> arch = {};
  std::optional<int> rank = {};
  std::optional<int> gdr = {};
  std::optional<int> keep = {};
  std::vector<NcclGpuLink> nvlinks = {};
  std::vector<NcclGpuLink> xgmis = {};
  std::vector<NcclC2c> c2cs = {};
  [[nodiscard]] bool operator==(const NcclGpu&) const = default;
};

struct NcclNet {
  FilePlace place = {};
  std::optional<std::string> name = {};
  std::optional<int> dev = {};
  std::optional<int> speed = {};  // Mb/s.
  std::optional<int> port = {};
  std::optional<double> latency = {};    // Microseconds.
  std::optional<std::string> guid = {};  // Ports with the same guid share one adapter.
  std::optional<int> maxconn = {};
  std::optional<int> gdr = {};
  std::optional<int> coll = {};
  std::optional<int> net = {};
  std::optional<int> gin = {};
  std::optional<int> rma = {};
  std::optional<int> rail = {};
  std::optional<int> plane = {};
  std::optional<int> keep = {};
  [[nodiscard]] bool operator==(const NcclNet&) const = default;
};

struct NcclNic {
  FilePlace place = {};
  std::vector<NcclNet> nets = {};
  [[nodiscard]] bool operator==(const NcclNic&) const = default;
};

// A link between PCIe switches that no bridge shows.
struct NcclPciLink {
  FilePlace place = {};
  std::string target;
  [[nodiscard]] bool operator==(const NcclPciLink&) const = default;
};

struct NcclPci {
  FilePlace place = {};
  std::string busid;                             // "0000:07:00.0"
  std::optional<std::string> device_class = {};  // The attribute `class`: "0x060400".
  std::optional<std::string> vendor = {};        // "0x15b3"
  std::optional<std::string> device = {};
  std::optional<std::string> subsystem_vendor = {};
  std::optional<std::string> subsystem_device = {};
  std::optional<std::string> link_speed = {};  // "16.0 GT/s PCIe"; anything, even empty.
  std::optional<int> link_width = {};          // Lanes; 0 is unknown.
  std::vector<NcclGpu> gpus = {};
  std::vector<NcclNic> nics = {};
  std::vector<NcclPci> pcis = {};
  std::vector<NcclPciLink> pcilinks = {};
  [[nodiscard]] bool operator==(const NcclPci&) const = default;
};

struct NcclCpu {
  FilePlace place = {};
  std::optional<std::string> host_hash = {};
  int numaid = 0;  // -1: unknown.
  std::optional<std::string> affinity = {};
  std::optional<std::string> arch = {};    // "x86_64", "arm64", "ppc64".
  std::optional<std::string> vendor = {};  // "GenuineIntel", "AuthenticAMD", ...
  // NCCL computes these from CPUID: family + 16 x extended family, model + 16 x extended model.
  std::optional<int> familyid = {};
  std::optional<int> modelid = {};
  std::vector<NcclPci> pcis = {};
  std::vector<NcclNic> nics = {};
  [[nodiscard]] bool operator==(const NcclCpu&) const = default;
};

struct NcclSystem {
  FilePlace place = {};
  int version = 1;  // 1 in NCCL's files, 2 in RCCL's, with the same elements but for `xgmi`.
  std::vector<NcclCpu> cpus = {};
  [[nodiscard]] bool operator==(const NcclSystem&) const = default;
};

// NCCL reads no larger file, and no longer value.
inline constexpr std::size_t kMaxXmlElements = 256;
inline constexpr std::size_t kMaxXmlCharacters = 255;

// `name` represents the file in errors. Throws ConfigError "FILE:LINE:COLUMN: PATH: ..." for text
// that is no XML, an unknown element or attribute, a missing or impossible value, more than the
// limits above, or more than 2 MiB.
[[nodiscard]] NcclSystem read_nccl_xml(std::string_view text, const std::string& name);

// Writes what NCCL writes: attributes in NCCL's order, two blanks for each level.
[[nodiscard]] std::string write_nccl_xml(const NcclSystem& system);

// Elements in it, which must be at most kMaxXmlElements for NCCL to read the file.
[[nodiscard]] std::size_t element_count(const NcclSystem& system);

}  // namespace trainyard
