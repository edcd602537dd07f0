// SPDX-License-Identifier: Apache-2.0
// The rules and costs of MPI and Gloo that are shipped.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "collectives/mpi/mpi_profile.h"
#include "collectives/mpi/mpi_rules.h"
#include "support/paths.h"

namespace trainyard {

inline constexpr std::array<std::string_view, 3> kShippedMpiRules{"open-mpi-4.1", "mpich-4.1",
                                                                  "gloo"};

inline MpiRules shipped_mpi_rules(std::string_view name = "open-mpi-4.1") {
  return MpiRules::load(source_dir() / "configs" / "mpi" / (std::string(name) + ".yaml"));
}

inline MpiProfile shipped_mpi_profile() {
  return MpiProfile::load(source_dir() / "configs" / "mpi" / "profile.yaml");
}

inline MpiProfile shipped_gloo_profile() {
  return MpiProfile::load(source_dir() / "configs" / "mpi" / "gloo-profile.yaml");
}

}  // namespace trainyard
