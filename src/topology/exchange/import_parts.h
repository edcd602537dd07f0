// SPDX-License-Identifier: Apache-2.0
// Finds the parts of the catalogue that an imported machine is made of. A file rarely names them:
// what it says must leave one part, or the user names it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/parts/catalogue.h"
#include "topology/exchange/nccl_xml.h"
#include "topology/exchange/server_outline.h"

namespace trainyard {

// Names that the user gave (--gpu, --nic, --cpu). Checked by `check_names`.
struct ImportOptions {
  std::optional<std::string> gpu = {};
  std::optional<std::string> nic = {};
  std::optional<std::string> cpu = {};
};

struct ImportedServer {
  ServerOutline tree;
  // Contradictions between the file and the tree, and facts that the tree lacks; one sentence each.
  std::vector<std::string> remarks = {};
};

// Throws ConfigError "--gpu: expected ..." for a name that is no part.
void check_names(const ImportOptions& options, const Catalogue& catalogue);

// The facts that a file states about a GPU.
struct GpuEvidence {
  std::optional<std::string> pci_id = {};  // "10de:2330"
  std::optional<int> sm = {};
  int links =
      0;  // NVLinks or xGMI links, all together; 0 fits every part, as bridges may be missing.
};

// `place` begins the error that asks for --gpu.
[[nodiscard]] const GpuModel& choose_gpu(const GpuEvidence& evidence, const ImportOptions& options,
                                         const Catalogue& catalogue, std::string_view place);

// The facts that a file states about a NIC.
struct NicEvidence {
  std::optional<std::string> pci_id = {};
  int ports = 1;
  std::int64_t speed = 0;  // Mb/s, all ports together.
};

// The part with this PCI id, of several the one with as many ports; else the only one of this
// speed; null where that leaves none or several.
[[nodiscard]] const NicModel* recognise_nic(const NicEvidence& evidence,
                                            const Catalogue& catalogue);
[[nodiscard]] std::string speed_text(std::int64_t megabits_per_second);

// The name of the CPU's part. Empty if nothing leads to one and one socket needs none.
[[nodiscard]] std::string choose_cpu(const NcclCpu& cpu, std::size_t sockets,
                                     const ImportOptions& options, const Catalogue& catalogue,
                                     std::string_view place);

// Puts the tree in order and remarks where that changed the numbers of devices.
void finish_import(ImportedServer& server);

}  // namespace trainyard
