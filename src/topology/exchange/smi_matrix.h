// SPDX-License-Identifier: Apache-2.0
// The matrix of `nvidia-smi topo -m`: how near the GPUs and NICs of one server are to each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {

// The distances are in the order of nearness, after NVML's levels of topology.
enum class SmiDistance : std::uint8_t {
  Self,    // X
  NvLink,  // NV#: joined by # NVLinks, directly or through NVSwitches.
  Pix,     // At most one PCIe bridge in between.
  Pxb,     // Several PCIe bridges, no host bridge.
  Phb,     // Through one host bridge (root complex) of a CPU.
  Node,    // Through several host bridges of one NUMA node.
  Sys,     // Through the link between NUMA nodes.
};

struct SmiCell {
  SmiDistance distance = SmiDistance::Self;
  int nvlinks = 0;  // Links at distance NvLink, at least 1.
  [[nodiscard]] bool operator==(const SmiCell&) const = default;
};

struct SmiDevice {
  std::string name;  // "GPU0", "NIC3" or, from older drivers, "mlx5_0".
  bool is_gpu = false;
  std::string cpu_affinity = {};   // "0-23,48-71"; empty where the driver says nothing.
  std::string numa_affinity = {};  // "0", "0-1", "N/A".
  std::string gpu_numa_id = {};    // "N/A" but where the GPU's memory is a NUMA node.
  std::string nic_name = {};       // From the NIC legend: "mlx5_0".
  [[nodiscard]] bool operator==(const SmiDevice&) const = default;
};

struct SmiMatrix {
  std::vector<SmiDevice> devices;           // GPUs and NICs in the order of rows and columns.
  std::vector<std::vector<SmiCell>> cells;  // Symmetric; X on the diagonal and nowhere else.
  bool counts_links =
      true;                // False: a cell says that there are links (nvlinks is 1), not how many.
  std::string maker = {};  // First word of the GPUs' titles in the catalogue; empty: not known.
  [[nodiscard]] bool operator==(const SmiMatrix&) const = default;
};

// "NV4", "PIX", ...
[[nodiscard]] std::string to_string(const SmiCell& cell);

// Returns whether such a matrix is in `text`, as far as telling file formats apart needs it.
[[nodiscard]] bool looks_like_smi_matrix(std::string_view text);

// Returns whether the matrix of `nvidia-smi topo -p2p`, which has no distances, is in `text`.
[[nodiscard]] bool looks_like_p2p_matrix(std::string_view text);

// `name` represents the file in errors. Takes the columns of all drivers (CPU Affinity, NUMA
// Affinity, GPU NUMA ID, or some of them), tabs, blanks or bars between columns, the underline of
// a terminal in the header, both legends or none, and SOC, the older name of SYS. Text in front of
// the header and behind the legends is passed over: prompts, fences, other commands. Throws
// ConfigError "FILE:LINE:COLUMN: ..." for everything else.
[[nodiscard]] SmiMatrix read_smi_matrix(std::string_view text, const std::string& name);

// Writes what nvidia-smi prints: tabs between columns, a legend in our words, the NIC legend if
// NICs have names.
[[nodiscard]] std::string write_smi_matrix(const SmiMatrix& matrix);

}  // namespace trainyard
