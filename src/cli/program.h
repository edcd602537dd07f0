// SPDX-License-Identifier: Apache-2.0
// The program as a function: it finds the command that is named and runs it.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "cli/common/options.h"

namespace trainyard {

// Runs `arguments`, without the name of the program, or explains the program. Returns the exit
// status. With `kept`, the result stays there. Throws ConfigError.
int run_words(std::span<const std::string> arguments, std::ostream& out,
              KeptResult* kept = nullptr);

// The whole program, from the state in which a process begins: under mpirun it turns into
// trainyard-mpi, a crash says what to send to whom, and an error is one line on standard error.
// Returns the exit status.
[[nodiscard]] int run_process(int argc, char** argv);

}  // namespace trainyard
