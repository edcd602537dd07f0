// SPDX-License-Identifier: Apache-2.0
// How a program of ours starts and ends: standard streams that are there, one line for each error,
// and crashes that say what to send to whom.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>

namespace trainyard {

// Must run before any file is opened. A standard stream that the caller closed is opened on
// /dev/null, so that no file of ours gets its number and what is meant for the stream: input has
// nothing, output fails as on a full disk, errors get lost.
void keep_standard_streams();

// From now on a crash begins with crash_advice() (sim/crash_advice.h) on standard error.
void explain_crashes();

// Returns the text as one line of less than 400 bytes. Longer ones lose their middle: an error
// begins with its place and ends with what was found.
[[nodiscard]] std::string one_line(std::string_view text);

// Writes "trainyard: TEXT" as one line on standard error, as far as that can be written.
void print_error(std::string_view text);

// Returns the line for the user where the input or the machine is the reason, but for a lack of
// memory; nothing for a mistake of ours.
[[nodiscard]] std::optional<std::string> user_mistake(std::exception_ptr thrown);

// Prints what was thrown and returns the exit status: 2 where the input or the machine is the
// reason, 3 where it is a mistake of ours.
[[nodiscard]] int end_with(std::exception_ptr thrown);

}  // namespace trainyard
