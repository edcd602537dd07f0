// SPDX-License-Identifier: Apache-2.0
// The number of cases that long tests try. Sanitizers make them ten times slower, and the release
// build has tried all of them: there a part is enough to run every line. Tests with the tag [long]
// do not run under sanitizers at all; shorter ones run the same lines (tools/ci/run_in_shares.sh).
#pragma once

#include <cstdint>

namespace trainyard {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif
#else
inline constexpr bool kIsSanitized = false;
#endif

// Returns `all`; one in ten of it under sanitizers.
[[nodiscard]] constexpr std::uint64_t cases(std::uint64_t all) {
  return kIsSanitized ? (all + 9) / 10 : all;
}

}  // namespace trainyard
