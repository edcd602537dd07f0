// SPDX-License-Identifier: Apache-2.0
// Servers from the files of other programs, and the parts of the catalogue that they are made of. A
// file rarely names them: what it says must leave one part, or the user names it.
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
  // Bus ids of those devices without a class that are NICs (--nic-at); the others are GPUs.
  std::optional<std::vector<std::string>> nics_at = {};
};

struct ImportedServer {
  ServerOutline tree;
  // Contradictions between the file and the tree, and facts that the tree lacks; one sentence each.
  std::vector<std::string> remarks = {};
};

// Throws ConfigError "--gpu: expected ..." for a name that is no part.
void check_names(const ImportOptions& options, const Catalogue& catalogue);

// Collects the parts that a file leaves open, so that the user is asked once.
class OpenParts {
 public:
  // `what` fits `candidates`, or nothing where there are none; `option` names the part.
  void ask(const std::string& place, const std::string& what, const std::string& option,
           const std::vector<std::string>& candidates);
  // Asks in other words.
  void ask(const std::string& place, const std::string& sentence, const std::string& option);
  // Throws ConfigError with all that is open, if anything is: "PLACE: ..., ...; expected --gpu PART
  // and --cpu PART, found none".
  void check() const;

 private:
  struct Question {
    std::string place;
    std::string sentence;
    std::string option;
  };
  std::vector<Question> questions_;
};

// The name that RCCL has for one of AMD's architectures, such as "gfx942" for "cdna3"; nothing for
// other makers' and older ones.
[[nodiscard]] std::optional<std::string> gcn_of(std::string_view architecture);

// The facts that a file states about a GPU.
struct GpuEvidence {
  std::optional<std::string> pci_id = {};  // "10de:2330"
  // NVIDIA's compute capability or, where there is a gcn, the number of AMD's compute units.
  std::optional<int> sm = {};
  std::string maker = {};               // First word of the title in the catalogue.
  std::optional<std::string> gcn = {};  // "gfx942", or "906", "908", "910" in older files of RCCL.
  int links =
      0;  // NVLinks or xGMI links, all together; 0 fits every part, as bridges may be missing.
};

// Returns null where the part is asked for.
[[nodiscard]] const GpuModel* choose_gpu(const GpuEvidence& evidence, const ImportOptions& options,
                                         const Catalogue& catalogue, const std::string& place,
                                         OpenParts& open);

// The facts that a file states about a NIC.
struct NicEvidence {
  std::optional<std::string> pci_id = {};
  int ports = 1;
  std::int64_t speed = 0;  // Mb/s, all ports together.
};

// The part with this PCI id, of several the one with as many ports; else the only one of this
// speed, or of this speed and without an id; null where that leaves none or several.
[[nodiscard]] const NicModel* recognise_nic(const NicEvidence& evidence,
                                            const Catalogue& catalogue);
[[nodiscard]] std::string speed_text(std::int64_t megabits_per_second);

// The parts that a NIC of this vendor and speed may be.
[[nodiscard]] std::vector<std::string> possible_nics(const NicEvidence& evidence,
                                                     const Catalogue& catalogue);

// The name of the CPU's part. Empty if nothing leads to one and one socket needs none, or if it is
// asked for. AMD's families count as NCCL prints them (143) or as CPUID adds them up (23).
[[nodiscard]] std::string choose_cpu(const NcclCpu& cpu, std::size_t sockets,
                                     const ImportOptions& options, const Catalogue& catalogue,
                                     const std::string& place, OpenParts& open);

// A server from NCCL's topology file. `name` represents the file in errors. Throws ConfigError if
// the file is no server that a cluster file can describe, or leaves a part open that the options do
// not name.
//
// The values of a part of the catalogue are preferred to those of the file: topology files are
// written by hand, and by hypervisors, and state other PCIe generations than the devices have.
// Where they differ the part wins and a remark says so; a file that is wrong about its devices is
// not believed about the links of its PCIe switches either.
[[nodiscard]] ImportedServer import_nccl_xml(const NcclSystem& system, const Catalogue& catalogue,
                                             const ImportOptions& options, const std::string& name);

// A server from the matrix of `nvidia-smi topo -m`: the simplest tree with these distances. Devices
// that are PIX to each other share a PCIe switch, PXB a switch above one for each such group, PHB
// and NODE a socket; SYS parts sockets. NV# between two GPUs hides how near they are by PCIe, so
// that the other devices and the affinities must tell. More of a tree the matrix does not show: a
// third level of switches, one that holds a single device, the links of switches. `name` represents
// the file in errors. Throws ConfigError where no tree has these distances, or a part is open that
// the options do not name.
[[nodiscard]] ImportedServer import_smi_matrix(const SmiMatrix& matrix, const Catalogue& catalogue,
                                               const ImportOptions& options,
                                               const std::string& name);

// Puts the tree in order and remarks where that changed the numbers of devices.
void finish_import(ImportedServer& server);

}  // namespace trainyard
