// SPDX-License-Identifier: Apache-2.0
// The names of NCCL's environment variables that Environment (environment.h) knows.
#pragma once

#include <string_view>
#include <vector>

namespace trainyard::nccl {

// Those that the machine of a run has, in the order of the alphabet.
[[nodiscard]] std::vector<std::string_view> modelled_variables();

}  // namespace trainyard::nccl
