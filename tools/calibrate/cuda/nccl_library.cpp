// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cuda/nccl_library.h"

#include <fmt/format.h>

#include "calibrate/text.h"

namespace trainyard::calibrate {

Nccl::Nccl(const Options& options) : library(options.nccl, {"libnccl.so.2", "libnccl.so"}) {}

void Nccl::require(ncclResult_t result, const char* what) const {
  if (result == ncclSuccess) {
    return;
  }
  const char* const more = last_error != nullptr ? last_error(nullptr) : "";
  throw std::runtime_error(fmt::format("{}: {}{}{}", what, ncclGetErrorString(result),
                                       more != nullptr && *more != '\0' ? ": " : "",
                                       one_line(more != nullptr ? more : "")));
}

std::string nccl_version(const Options& options) {
  const Library library(options.nccl, {"libnccl.so.2", "libnccl.so"});
  auto* const version = library.optional<decltype(ncclGetVersion)>("ncclGetVersion");
  int code = 0;
  if (version == nullptr || version(&code) != ncclSuccess) {
    return "";
  }
  return fmt::format("{}.{}.{}", code / 10'000, code / 100 % 100, code % 100);
}

}  // namespace trainyard::calibrate
