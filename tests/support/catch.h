// SPDX-License-Identifier: Apache-2.0
// Catch2, to be included first in every test. Its CHECK gives way to ours; tests use REQUIRE.
#pragma once

#include <catch2/catch.hpp>

#undef CHECK
