// SPDX-License-Identifier: Apache-2.0
// NCCL, loaded at run time: the one that the machine's programs use, whatever its version. It reads
// its environment when it is first used, so that settings are made before.
#pragma once

#include <nccl.h>

#include <string>

#include "calibrate/cuda/library.h"
#include "calibrate/options.h"

namespace trainyard::calibrate {

struct Nccl {
  // Throws std::runtime_error where there is no library.
  explicit Nccl(const Options& options);

  Library library;
#define TRAINYARD_NCCL(name) decltype(&::name) name = library.function<decltype(::name)>(#name)
  TRAINYARD_NCCL(ncclGetVersion);
  TRAINYARD_NCCL(ncclGetErrorString);
  TRAINYARD_NCCL(ncclGetUniqueId);
  TRAINYARD_NCCL(ncclCommInitRank);
  TRAINYARD_NCCL(ncclCommInitAll);
  TRAINYARD_NCCL(ncclCommDestroy);
  TRAINYARD_NCCL(ncclGroupStart);
  TRAINYARD_NCCL(ncclGroupEnd);
  TRAINYARD_NCCL(ncclAllReduce);
  TRAINYARD_NCCL(ncclAllGather);
  TRAINYARD_NCCL(ncclReduceScatter);
  TRAINYARD_NCCL(ncclBroadcast);
  TRAINYARD_NCCL(ncclReduce);
  TRAINYARD_NCCL(ncclSend);
  TRAINYARD_NCCL(ncclRecv);
#undef TRAINYARD_NCCL
  // Since 2.13.
  decltype(&::ncclGetLastError) last_error =
      library.optional<decltype(::ncclGetLastError)>("ncclGetLastError");

  // Throws std::runtime_error with NCCL's own words.
  void require(ncclResult_t result, const char* what) const;
};

// "2.28.9", or empty where the library is not found.
[[nodiscard]] std::string nccl_version(const Options& options);

}  // namespace trainyard::calibrate
