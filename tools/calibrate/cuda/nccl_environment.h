// SPDX-License-Identifier: Apache-2.0
// What NCCL is told before it is loaded.
#pragma once

#include <string>
#include <string_view>

#include "calibrate/catalogue.h"
#include "calibrate/options.h"

namespace trainyard::calibrate {

// As the samples name it.
[[nodiscard]] std::string_view mode_text(NcclMode mode);

// Sets the variables of this rank for the setting; nobody else's are unset.
void set_environment(const NcclSetting& setting, const Options& options);
// All variables of NCCL, "NAME=value" a line.
[[nodiscard]] std::string nccl_environment();

// "mps" or "time slices", from the process that started the ranks to the ranks.
void set_sharing_of_the_gpu(bool at_once);
[[nodiscard]] std::string sharing_of_the_gpu();

// Names in the rendezvous folder.
[[nodiscard]] std::string log_file(const Options& options);
[[nodiscard]] std::string topology_file(const Options& options);
[[nodiscard]] std::string graph_file(const Options& options);

}  // namespace trainyard::calibrate
