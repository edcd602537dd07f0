// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/lowering/parameter_servers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "parallelism/memory/offload.h"
#include "parallelism/traffic/cluster_times.h"
#include "sim/config_error.h"
#include "support/step_rates.h"

namespace trainyard {
namespace {

struct ServerCase {
  ParameterServers servers;
  int nodes = 3;
  int gpus = 8;  // Of a node.
  Fidelity fidelity = Fidelity::Flow;
  ComputeJitter jitter = {};
  Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  ComputeRates rates = shipped_compute("H100-SXM", "nemo");
  SoftwareProfile software = shipped_software("nemo");

  [[nodiscard]] ParameterServerRun run() const {
    Model small = model;
    small.layers.resize(2);
    small.vocabulary = 16384;
    const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = nodes, .gpus_per_node = gpus});
    const ServerPlaces places = server_places(cluster, servers);
    const auto workers = static_cast<int>(places.workers.gpus.size());
    const ParallelPlan plan{
        .data = workers, .global_batch = workers, .sequence = 2048, .servers = servers};
    check(plan, small, workers);
    const std::vector<int> hosts = servers_of_gpus(places.workers);
    return run_servers({.model = small,
                        .plan = plan,
                        .rates = rates,
                        .software = software,
                        .overlap = {},
                        .server_of_rank = hosts},
                       places, fidelity, jitter);
  }
  // The same with another bound.
  [[nodiscard]] ParameterServerRun with(std::optional<int> bound) const {
    ServerCase other = *this;
    other.servers.bound = bound;
    return other.run();
  }
};

const ComputeJitter kNoise{.rank_ppm = 100'000, .operation_ppm = 300'000, .seed = 7};

}  // namespace

TEST_CASE("a step with one worker and one server is the sum of what it does", "[servers]") {
  ServerCase one{.servers = {.count = 1, .steps = 1}, .nodes = 2, .gpus = 1};
  const ParameterServerRun run = one.run();
  REQUIRE(run.workers == 1);
  REQUIRE(run.staleness.max == 0);
  // Embedding and head of 16384 x 4096 each, two layers of 218,112,000 and the last norm: buckets
  // of at least 40 million are head, layer 1, layer 0 and the embedding; updates take 30 bytes.
  const std::int64_t head = std::int64_t{16384} * 4096 + 4096;
  const std::int64_t layer = 218'112'000;
  REQUIRE(run.step.parts.total() == run.step.time);
  const SimTime computes = run.step.parts[StepPart::Linear] + run.step.parts[StepPart::Attention] +
                           run.step.parts[StepPart::MemoryBound] + run.step.parts[StepPart::Head];
  // DGX H100: 307.2 GB/s of a socket, of which 0.46; NICs of 50 GB/s.
  const SimTime last = host_work_time(head - 4096, 30.0, Bandwidth(2'457'600'000'000));
  const SimTime updates =
      host_work_time(head + 2 * layer, 30.0, Bandwidth(2'457'600'000'000)) + last;
  // Everything is pushed, from the first bucket on updated and sent back beside that.
  const double seconds = (run.finish - computes - run.step.parts[StepPart::Host]).seconds();
  const double bytes = static_cast<double>(2 * head + 2 * layer);
  const double push = bytes * one.software.gradient_bytes / 50e9;
  REQUIRE(seconds >= std::max(push, updates.seconds()));
  REQUIRE(seconds <= push + updates.seconds() + bytes * 2.0 / 50e9 * 1.2);
}

TEST_CASE("the bound 0 is synchronous, and one beyond all steps is asynchronous", "[servers]") {
  ServerCase step{.servers = {.count = 2, .steps = 4}, .gpus = 4, .jitter = kNoise};
  const ParameterServerRun synchronous = step.with(0);
  REQUIRE(synchronous.staleness.max == 0);
  const ParameterServerRun free = step.with(std::nullopt);
  const ParameterServerRun far = step.with(4);
  REQUIRE(far.finish == free.finish);
  REQUIRE(far.step.parts == free.step.parts);
  REQUIRE(far.staleness.mean == free.staleness.mean);
  REQUIRE(free.staleness.max > 0);
  REQUIRE(free.finish < synchronous.finish);
}

TEST_CASE("weights are never older than the bound, and waiting falls with it", "[servers]") {
  ServerCase step{.servers = {.count = 2, .steps = 6}, .gpus = 4, .jitter = kNoise};
  const SimTime synchronous = step.with(0).finish;
  for (const int bound : {1, 2, 3}) {
    INFO("bound " << bound);
    const ParameterServerRun run = step.with(bound);
    REQUIRE(run.staleness.max <= bound);
    REQUIRE(run.finish < synchronous);
    REQUIRE(run.step.parts.total() == run.step.time);
  }
}

TEST_CASE("more servers take the incast apart", "[servers]") {
  ServerCase step{.servers = {.count = 1, .steps = 2}, .nodes = 5, .gpus = 2};
  const auto data_of = [&](int count, int nodes) {
    step.servers.count = count;
    step.nodes = nodes;
    return step.run().finish.seconds();
  };
  // Four hosts of two workers each, and one, two and four servers.
  const double one = data_of(1, 5);
  const double two = data_of(2, 6);
  const double four = data_of(4, 8);
  REQUIRE(one > 1.5 * two);
  REQUIRE(two > 1.3 * four);
}

TEST_CASE("servers may stand on the hosts of workers", "[servers]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  const ServerPlaces shared = server_places(cluster, {.count = 3, .on_workers = true});
  REQUIRE(shared.workers.gpus.size() == 16);
  REQUIRE(shared.servers.size() == 3);
  REQUIRE(shared.servers[0] == shared.servers[2]);
  const ServerPlaces own = server_places(cluster, {.count = 1});
  REQUIRE(own.workers.gpus.size() == 8);
  REQUIRE(own.servers.front() == shared.servers[1]);
  REQUIRE_THROWS_MATCHES(server_places(cluster, {.count = 2}), ConfigError,
                         Catch::Matchers::Message("parameter servers: expected more hosts than "
                                                  "servers, each on one of its own, found 2 and "
                                                  "2; plan.servers.place: workers shares them"));
  ServerCase step{.servers = {.count = 2, .on_workers = true, .steps = 2}, .nodes = 2, .gpus = 2};
  REQUIRE(step.run().workers == 4);
}

TEST_CASE("packets take about as long as flows, and the same twice", "[servers]") {
  ServerCase step{.servers = {.count = 1, .steps = 1}, .nodes = 2, .gpus = 2};
  step.model.hidden = 1024;
  const ParameterServerRun flow = step.run();
  step.fidelity = Fidelity::Packet;
  const ParameterServerRun packet = step.run();
  REQUIRE(packet.finish / flow.finish == Approx(1.0).epsilon(0.1));
  REQUIRE(step.run().finish == packet.finish);
}

TEST_CASE("parameter servers are for data ranks alone", "[servers]") {
  const Model model = load_model(kConfigsFolder / "workloads/models/llama-3-8b.yaml");
  const ComputeRates rates = unit_rates();
  const SoftwareProfile software = shipped_software("nemo");
  const std::vector<int> hosts(4);
  const ParallelPlan plan{.tensor = 2, .data = 2, .zero_stage = 1, .servers = ParameterServers{}};
  const StepJob job{.model = model,
                    .plan = plan,
                    .rates = rates,
                    .software = software,
                    .overlap = {},
                    .server_of_rank = hosts};
  REQUIRE_THROWS_MATCHES(
      lower_servers(job, Bandwidth(1)), ConfigError,
      Catch::Matchers::Message("parameter servers: expected data ranks alone, without ZeRO and "
                               "offload, found tensor 2, context 1, pipeline 1, expert 1, "
                               "zero_stage 1"));
}

TEST_CASE("runs with more messages than memory are refused before they take any", "[servers]") {
  ServerCase test{.servers = {.count = 1000, .on_workers = true, .steps = 1000}};
  std::string error;
  try {
    static_cast<void>(test.run());
  } catch (const ConfigError& problem) {
    error = problem.what();
  }
  REQUIRE(error.find("parameter servers: expected at most 2000000 messages, found") == 0);
}

}  // namespace trainyard
