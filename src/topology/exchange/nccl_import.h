// SPDX-License-Identifier: Apache-2.0
// A server from NCCL's topology file.
#pragma once

#include <string>

#include "hw/parts/catalogue.h"
#include "topology/exchange/import_parts.h"
#include "topology/exchange/nccl_xml.h"

namespace trainyard {

// `name` stands for the file in errors. Throws ConfigError where the file is no server that a
// cluster file can describe, or leaves a part open that the options do not name.
//
// The values of a part of the catalogue are preferred to those of the file: topology files are
// written by hand, and by hypervisors, and state other PCIe generations than the devices have.
// Where they differ the part wins and a remark says so; a file that is wrong about its devices is
// not believed about the links of its PCIe switches either.
[[nodiscard]] ImportedServer import_nccl_xml(const NcclSystem& system, const Catalogue& catalogue,
                                             const ImportOptions& options, const std::string& name);

}  // namespace trainyard
