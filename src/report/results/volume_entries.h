// SPDX-License-Identifier: Apache-2.0
// How documents say what links carry, by tier (parallelism/run/tier_volumes.h).
#pragma once

#include <string>
#include <vector>

#include "parallelism/run/tier_volumes.h"
#include "report/formats/document.h"
#include "report/formats/table.h"

namespace trainyard {

// "NVLink 3.5 GiB, links of NICs 512 MiB", for people.
[[nodiscard]] std::string volumes_text(const std::vector<TierVolume>& volumes);

// "nvlink=3758096384;nic=536870912" in bytes: one field of CSV, whose columns must not depend on
// the cluster.
[[nodiscard]] Field volumes_field(const std::vector<TierVolume>& volumes);

// The columns of one tier: its key, its links, its bytes, those of its busiest link.
[[nodiscard]] std::vector<Field> tier_fields(const TierVolume& volume);

// Adds a table with a line for each tier and with what they are for, in JSON each purpose's bytes;
// in CSV one figure.
void add_volumes(const std::string& title, const std::vector<TierVolume>& volumes,
                 Document& document);

}  // namespace trainyard
