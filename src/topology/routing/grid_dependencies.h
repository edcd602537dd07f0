// SPDX-License-Identifier: Apache-2.0
// The buffer dependencies of a grid's routes, in a graph of linear size.
//
// Routes are products: whatever the way through one dimension, any way through a later one may
// follow. So it is enough to know, for each link and channel of a row (the switches that differ in
// one coordinate), whether a way can begin, go on or end there; what ends in dimension d goes to
// the hub of (switch, phase, d + 1), from where ways begin in d + 1 or later. Rows without a
// missing link are alike. The few pairs that need another order or a search are routed one by one.
#pragma once

#include "topology/graph/dependency_graph.h"
#include "topology/routing/grid_router.h"

namespace trainyard {

void add_grid_dependencies(GridRouter& router, DependencyGraph& graph);

}  // namespace trainyard
