// SPDX-License-Identifier: Apache-2.0
// `trainyard sweep`: a command over lists and ranges of its options, one table of all results.
#pragma once

#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "cli/sweep/sweep_file.h"
#include "cli/sweep/sweep_team.h"
#include "report/formats/table.h"

namespace trainyard {

// A row for each row of each point, in the order of points: what varies, what the command printed,
// the error. Points whose columns differ from those of the first that has any are errors, too.
[[nodiscard]] Table sweep_table(const SweepSpec& spec, const SweepResults& results);

// Returns the axes, those that go together as "A, B", whose values change no row of any point.
[[nodiscard]] std::vector<std::string> idle_axes(const SweepSpec& spec,
                                                 const SweepResults& results);

// In a team each process does every n-th point, and rank 0 writes.
int run_sweep_in(SweepTeam& team, std::span<const std::string> arguments, std::ostream& out);

}  // namespace trainyard
