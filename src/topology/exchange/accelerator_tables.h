// SPDX-License-Identifier: Apache-2.0
// The tools of AMD and Intel print tables about the GPUs of one server, `rocm-smi --showtopo` and
// `hl-smi topo -c -N`: read as the matrix of nvidia-smi here. Neither shows NICs, or how many links
// join a pair.
#pragma once

#include <string>
#include <string_view>

#include "topology/exchange/smi_matrix.h"

namespace trainyard {

[[nodiscard]] bool looks_like_rocm_smi(std::string_view text);
// The tables "Link Type between two GPUs", "Weight ..." and "Numa Nodes", of which the first is
// needed. A pair of type XGMI is joined where its weight is that of one hop (15, as the driver
// counts), else routed over other GPUs. Throws ConfigError "FILE:LINE: ...".
[[nodiscard]] SmiMatrix read_rocm_smi(std::string_view text, const std::string& name);

[[nodiscard]] bool looks_like_hl_smi(std::string_view text);
// A line for each module with its cores and NUMA node. Modules of a Gaudi server are joined each to
// each. Throws ConfigError "FILE:LINE: ...".
[[nodiscard]] SmiMatrix read_hl_smi(std::string_view text, const std::string& name);

}  // namespace trainyard
