// SPDX-License-Identifier: Apache-2.0
// A server from the matrix of `nvidia-smi topo -m`.
#pragma once

#include <string>

#include "hw/parts/catalogue.h"
#include "topology/exchange/import_parts.h"
#include "topology/exchange/smi_matrix.h"

namespace trainyard {

// The simplest tree with these distances: devices that are PIX to each other share a PCIe switch,
// PXB a switch above one for each such group, PHB and NODE a socket; SYS parts sockets. NV# between
// two GPUs hides how near they are by PCIe, so that the other devices and the affinities must tell.
// More of a tree the matrix does not show: a third level of switches, one that holds a single
// device, the links of switches. `name` stands for the file in errors. Throws ConfigError where no
// tree has these distances, or a part is open that the options do not name.
[[nodiscard]] ImportedServer import_smi_matrix(const SmiMatrix& matrix, const Catalogue& catalogue,
                                               const ImportOptions& options,
                                               const std::string& name);

}  // namespace trainyard
