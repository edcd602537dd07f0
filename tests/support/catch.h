// SPDX-License-Identifier: Apache-2.0
// Catch2 without its CHECK, which gives way to ours, included before or after it; tests use REQUIRE.
#pragma once

#pragma push_macro("CHECK")
#undef CHECK
#include <catch2/catch.hpp>
#undef CHECK
#pragma pop_macro("CHECK")
