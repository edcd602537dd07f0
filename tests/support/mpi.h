// SPDX-License-Identifier: Apache-2.0
// The rules and costs of MPI and Gloo that are shipped, and Open MPI itself.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "collectives/mpi/mpi_profile.h"
#include "collectives/mpi/mpi_rules.h"
#include "support/paths.h"
#include "support/program.h"

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

// The words of a shell that start so many processes of a program.
inline std::string mpirun(int processes, const std::string& program) {
  return "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm=isolated\n"
         "exec mpirun --oversubscribe -n " +
         std::to_string(processes) + " '" + program + "' ";
}

// Returns whether mpirun starts any on this machine. A test that warns with kNoMpirun counts as
// skipped (tests/CMakeLists.txt).
inline constexpr const char* kNoMpirun = "skipped: mpirun starts no processes on this machine";
inline bool mpirun_starts(const std::filesystem::path& folder) {
  return run_shell(mpirun(2, "true"), folder).status == 0;
}

}  // namespace trainyard
