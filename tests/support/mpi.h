// SPDX-License-Identifier: Apache-2.0
// The rules and costs of MPI that are shipped.
#pragma once

#include "collectives/mpi/mpi_profile.h"
#include "collectives/mpi/mpi_rules.h"
#include "support/paths.h"

namespace trainyard {

inline MpiRules shipped_mpi_rules() {
  return MpiRules::load(source_dir() / "configs" / "mpi" / "open-mpi-4.1.yaml");
}

inline MpiProfile shipped_mpi_profile() {
  return MpiProfile::load(source_dir() / "configs" / "mpi" / "profile.yaml");
}

}  // namespace trainyard
