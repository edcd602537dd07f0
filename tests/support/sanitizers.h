// SPDX-License-Identifier: Apache-2.0
// Whether this is a build with the address sanitizer, in which tests of many packets or seeds take
// ten times as long.
#pragma once

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

}  // namespace trainyard
