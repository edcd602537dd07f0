// SPDX-License-Identifier: Apache-2.0
// The costs of the tasks of HCCL, read from configs/hccl/profile.yaml.
#pragma once

#include <filesystem>

#include "sim/units.h"

namespace trainyard {

class Fields;

struct HcclProfile {
  SimTime call;       // Start and end of a call.
  SimTime notify;     // A signal inside a server.
  SimTime copy;       // A copy between NPUs of a server, below 512 KiB;
  SimTime long_copy;  // the same from 512 KiB on.
  SimTime rdma;       // A message, or a signal, between servers.
  Bandwidth memory;   // The rate of copies within an NPU.

  // Throws ConfigError.
  [[nodiscard]] static HcclProfile load(const std::filesystem::path& file);
};

void hccl_fields(Fields& fields, HcclProfile& profile);

}  // namespace trainyard
