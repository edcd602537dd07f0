// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "calibration/predict/nccl_prediction.h"

#include <cmath>
#include <string>
#include <vector>

#include "nccl/machine/job_nodes.h"
#include "nccl/tuning/graph_xml.h"
#include "nccl/tuning/init.h"
#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/case_files.h"
#include "support/paths.h"

namespace trainyard {
namespace {

using Catch::Matchers::Contains;

const nccl::Profile& profile() {
  static const nccl::Profile instance =
      nccl::Profile::load(kConfigsFolder / "nccl" / "profile.yaml");
  return instance;
}

Cluster cluster_of(const ValidationCase& item) {
  return load_cluster(item.cluster, shipped_catalogue(), item.overrides());
}

std::vector<PredictedTime> predicted(const ValidationCase& item, Operation operation,
                                     const std::vector<Bytes>& sizes) {
  const Predictor predictor = nccl_predictor(profile());
  return predictor(item, cluster_of(item), operation, sizes);
}

// The graphs of one server, the ring cut to its first channels.
std::string graph_text(const Cluster& cluster, int channels) {
  const nccl::InitResult result =
      nccl::make_communicator(nccl::job_nodes(cluster, nccl::Domains::Joined), {});
  nccl::GraphSet file = result.communicator.graphs.front();
  for (nccl::Graph* const graph : {&file.ring, &file.tree}) {
    graph->channel_count = channels;
    graph->channels.resize(static_cast<std::size_t>(channels));
  }
  return nccl::write_graph_xml(file, result.names);
}

}  // namespace

TEST_CASE("a measured table is predicted within half of it", "[nccl][timing]") {
  const std::filesystem::path root = source_dir();
  const LoadedCase loaded = load_validation_case(
      root / "validation" / "cases" / "nccl" / "h100-1x4-nvswitch-allreduce.yaml", root);
  const CaseResult result = run_case(loaded, shipped_catalogue(), nccl_predictor(profile()));
  REQUIRE(result.not_covered.empty());
  REQUIRE(result.errors.large.median < std::log(1.5));
}

TEST_CASE("predictions say what ran", "[nccl][timing]") {
  const CaseFolder folder;
  const ValidationCase item = folder.load("env: {NCCL_ALGO: Ring, NCCL_PROTO: Simple}\n").item;
  const auto times = predicted(item, Operation::AllReduce, {mib(1), gib(1)});
  REQUIRE(times.size() == 2);
  REQUIRE(times[0].time < times[1].time);
  REQUIRE_THAT(times[1].how, Contains("Ring Simple, "));
  REQUIRE(predicted(item, Operation::AllToAll, {mib(1)})[0].how == "sends and receives");
}

TEST_CASE("AllGather counts its bytes as nccl-tests does", "[nccl][timing]") {
  // Its sizes are those of all ranks together, so it takes about half of AllReduce.
  const CaseFolder folder;
  const ValidationCase item = folder.load("env: {NCCL_ALGO: Ring, NCCL_PROTO: Simple}\n").item;
  const SimTime gather = predicted(item, Operation::AllGather, {gib(1)})[0].time;
  const SimTime reduce = predicted(item, Operation::AllReduce, {gib(1)})[0].time;
  REQUIRE(gather / reduce == Approx(0.5).margin(0.1));
}

TEST_CASE("symmetric memory saves all_reduce its copies; no other operation has it",
          "[nccl][timing]") {
  const CaseFolder folder;
  ValidationCase item = folder.load("").item;
  const SimTime classic = predicted(item, Operation::AllReduce, {mib(8)}).front().time;
  item.symmetric = true;
  REQUIRE(predicted(item, Operation::AllReduce, {mib(8)}).front().time < classic);
  REQUIRE_THROWS_AS(predicted(item, Operation::AllGather, {mib(1)}), ConfigError);
}

TEST_CASE("the graph file of a case replaces the search", "[nccl][timing]") {
  const CaseFolder folder;
  ValidationCase item = folder.load("env: {NCCL_ALGO: Ring, NCCL_PROTO: Simple}\n").item;
  const PredictedTime searched = predicted(item, Operation::AllReduce, {gib(1)})[0];
  const ScratchFolder scratch;
  item.graph_file = scratch.write("graph.xml", graph_text(cluster_of(item), 1));
  const PredictedTime given = predicted(item, Operation::AllReduce, {gib(1)})[0];
  // NCCL doubles the channels of a file once.
  REQUIRE(given.how == "Ring Simple, 2 channels");
  REQUIRE(given.time / searched.time > 2.0);

  item.graph_file = scratch.path() / "none.xml";
  REQUIRE_THROWS_AS(predicted(item, Operation::AllReduce, {gib(1)}), ConfigError);
}

}  // namespace trainyard
