// SPDX-License-Identifier: Apache-2.0
// Under mpirun and srun the program turns into trainyard-mpi, which is built where Boost.MPI is.
#pragma once

#include <filesystem>

namespace trainyard {

// Whether a launcher of MPI says that this process is one of several. By the environment that Open
// MPI (OMPI_COMM_WORLD_SIZE), PMI (PMI_SIZE) and PMIx (PMIX_RANK) give to processes.
[[nodiscard]] bool is_one_of_several();

// Goes on as trainyard-mpi in the folder of this program, with the same arguments. Throws
// ConfigError if it is not there.
[[noreturn]] void become_team_member(char** argv);

}  // namespace trainyard
