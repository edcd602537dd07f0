// SPDX-License-Identifier: Apache-2.0
// How many cases long tests try. Sanitizers make them ten times slower, and the release build has
// tried all of them: there a part is enough to run every line.
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

// Of `all` cases; one in five under sanitizers.
[[nodiscard]] constexpr std::uint64_t cases(std::uint64_t all) {
  return kIsSanitized ? (all + 4) / 5 : all;
}

}  // namespace trainyard
