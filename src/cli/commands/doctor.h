// SPDX-License-Identifier: Apache-2.0
// `trainyard doctor`: whether the log of an nccl-tests run is normal for its machine, and what
// explains it if not.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

namespace trainyard {

int run_doctor(std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
