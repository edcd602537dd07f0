// SPDX-License-Identifier: Apache-2.0
// Catch2 without its CHECK, which gives way to ours, be that included before or after; tests use
// REQUIRE.
#pragma once

#pragma push_macro("CHECK")
#undef CHECK
#include <catch2/catch.hpp>
#undef CHECK
#pragma pop_macro("CHECK")
