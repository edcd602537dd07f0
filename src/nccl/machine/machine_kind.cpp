// SPDX-License-Identifier: Apache-2.0
#include "nccl/machine/machine_kind.h"

namespace trainyard::nccl {

std::string to_string(const MachineKind& kind) {
  return kind.gpu + ", " + kind.scale_up + ", " + kind.network;
}

}  // namespace trainyard::nccl
