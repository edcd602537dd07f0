// SPDX-License-Identifier: Apache-2.0
// The links between GPUs that a topology file leaves to the machine. NCCL reads NVLinks from the
// driver where a file has none, as in the templates of clouds; here a shipped server of the same
// GPU shows them.
#pragma once

#include "hw/parts/catalogue.h"
#include "topology/exchange/import_parts.h"

namespace trainyard {

// Joins the GPUs of a server, which have no links so far, like those of a server of configs/servers
// with the same GPU, whatever its memory, and as many of them, or with more of them on switches.
// Cards that only bridges join stay apart. Adds a remark that says what was done.
void complete_gpu_links(ImportedServer& server, const Catalogue& catalogue);

}  // namespace trainyard
