// SPDX-License-Identifier: Apache-2.0
#include "cli/mpi_start.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "sim/config_error.h"

namespace trainyard {

bool is_one_of_several() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const count = std::getenv(name);
    if (count != nullptr && std::strtol(count, nullptr, 10) > 1) {
      return true;
    }
  }
  return std::getenv("PMIX_RANK") != nullptr && std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr;
}

void become_team_member(char** argv) {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path team = own.parent_path() / "trainyard-mpi";
  execv(team.c_str(), argv);
  throw ConfigError(fmt::format(
      "several processes: expected {}, which is built where Boost.MPI is installed, found: {}",
      team.string(), std::strerror(errno)));
}

}  // namespace trainyard
