// SPDX-License-Identifier: Apache-2.0
// `trainyard plan`: what NCCL would do on a machine, and why.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

int run_plan(std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
