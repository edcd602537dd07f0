// SPDX-License-Identifier: Apache-2.0
// A call of a collective of a library that works in host memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collectives/schedule/operation.h"
#include "sim/ids.h"
#include "sim/units.h"

namespace trainyard {

enum class MpiLibrary : std::uint8_t { OpenMpi, Mpich, Gloo };

struct MpiLibraryRow {
  std::string_view name;  // In files of rules.
  std::string_view title;
};
// In the order of the enumerators.
inline constexpr std::array kMpiLibraries{MpiLibraryRow{"open-mpi", "Open MPI"},
                                          MpiLibraryRow{"mpich", "MPICH"},
                                          MpiLibraryRow{"gloo", "Gloo"}};
[[nodiscard]] constexpr std::string_view title_of(MpiLibrary library) {
  return kMpiLibraries[static_cast<std::size_t>(library)].title;
}

struct MpiCall {
  MpiLibrary library = MpiLibrary::OpenMpi;
  Operation operation = Operation::AllReduce;
  int ranks = 1;
  Bytes size = {};  // In the sense of nccl-tests.
  RankId root = {};
};

}  // namespace trainyard
