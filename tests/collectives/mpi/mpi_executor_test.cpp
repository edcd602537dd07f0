// SPDX-License-Identifier: Apache-2.0
// Every schedule ends on CPUs, inside hosts and between them, with equal results each time.
#include "support/catch.h"

#include "collectives/mpi/mpi_executor.h"

#include "collectives/mpi/mpi_run.h"
#include "support/built_clusters.h"
#include "support/mpi.h"

namespace trainyard {

TEST_CASE("every algorithm ends on hosts of any number, and twice alike", "[collectives][mpi]") {
  const std::string_view file = GENERATE(from_range(kShippedMpiRules));
  const MpiRules rules = shipped_mpi_rules(file);
  const MpiProfile profile = file == "gloo" ? shipped_gloo_profile() : shipped_mpi_profile();
  for (const auto& [nodes, gpus] : {std::pair{1, 1}, {1, 8}, {3, 1}, {2, 3}, {4, 4}}) {
    const Cluster cluster = shipped_cluster("dgx-a100", {.nodes = nodes, .gpus_per_node = gpus});
    const std::vector<NodeId> places = mpi_nodes(cluster);
    for (const auto& [operation, rule] : rules.rules) {
      for (const Bytes size : {Bytes(16 * nodes * gpus), kib(48 * nodes * gpus), mib(12)}) {
        const MpiCall call{.library = rules.library,
                           .operation = *parse_operation(operation),
                           .ranks = nodes * gpus,
                           .size = size};
        for (const std::string& wanted : rule.algorithms) {
          const auto name = mpi_algorithm(wanted, call);
          if (!name) {
            continue;
          }
          INFO(operation << " by " << *name << " of " << call.ranks << ", " << to_string(size));
          const auto run = [&] {
            return time_mpi(cluster, places, *name, call, rules, profile, Fidelity::Flow,
                            roce_options());
          };
          const MpiTiming first = run();
          REQUIRE((call.ranks == 1 || first.time > SimTime()));
          REQUIRE(first.fingerprint == run().fingerprint);
        }
      }
    }
  }
}

}  // namespace trainyard
