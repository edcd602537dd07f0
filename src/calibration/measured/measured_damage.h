// SPDX-License-Identifier: Apache-2.0
// Rows of a measured table that cannot be what they say: what a corrupted, repeated or reordered
// log leaves behind once each row by itself can be read.
#pragma once

#include <string>
#include <vector>

#include "calibration/measured/measurement.h"

namespace trainyard {

// Leaves out rows whose bandwidth is not size / time (unless that is so of most: old nccl-tests
// divided otherwise) and all but the row with the median time of a size that is there several
// times, and sorts the rest by size. A line in `warnings` for each thing that is wrong,
// "NAME:LINE: ..."; without a line where the table is of no log.
void repair(MeasuredTable& table, const std::string& name, std::vector<std::string>& warnings);

}  // namespace trainyard
