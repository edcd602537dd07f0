// SPDX-License-Identifier: Apache-2.0
// The time of a call is the sum of what its CPUs do, which is told by hand here for two ranks.
#include "support/catch.h"

#include "collectives/mpi/mpi_run.h"

#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/mpi.h"

namespace trainyard {
namespace {

SimTime time_of(const Cluster& cluster, Operation operation, std::string_view name, Bytes size) {
  const MpiCall call{
      .operation = operation, .ranks = static_cast<int>(cluster.gpus.size()), .size = size};
  return time_mpi(cluster, mpi_nodes(cluster), name, call, shipped_mpi_rules(),
                  shipped_mpi_profile(), Fidelity::Flow, roce_options())
      .time;
}

}  // namespace

TEST_CASE("a broadcast to one rank is a message", "[collectives][mpi]") {
  const MpiProfile profile = shipped_mpi_profile();
  const MpiProfile::Shared& shared = *profile.shared;
  const Cluster host = shipped_cluster("dgx-a100", {.nodes = 1, .gpus_per_node = 2});
  const Bytes shorter = kib(1);
  REQUIRE(time_of(host, Operation::Broadcast, "chain", shorter) ==
          shared.send + shared.latency + shared.receive + transfer_time(shorter, shared.copy) * 2);
  const Bytes longer = mib(1);
  // The root waits until it has been read.
  REQUIRE(time_of(host, Operation::Broadcast, "chain", longer) ==
          shared.send + shared.latency * 2 + shared.rendezvous +
              transfer_time(longer, shared.read));
}

TEST_CASE("what a CPU is busy with is recorded and changes no time", "[collectives][mpi]") {
  const Cluster host = shipped_cluster("dgx-a100", {.nodes = 1, .gpus_per_node = 2});
  TraceRecorder recorder;
  const MpiCall call{.operation = Operation::Broadcast, .ranks = 2, .size = kib(1)};
  const MpiTiming recorded =
      time_mpi(host, mpi_nodes(host), "chain", call, shipped_mpi_rules(), shipped_mpi_profile(),
               Fidelity::Flow, roce_options(), &recorder);
  REQUIRE(recorded.time == time_of(host, Operation::Broadcast, "chain", kib(1)));
  REQUIRE(recorder.tracks().size() == 2);
  REQUIRE(recorder.spans().size() == 2);
  REQUIRE(recorder.name(recorder.spans()[0].name) == "send to rank 1");
  REQUIRE(recorder.spans()[0].start == SimTime());
  REQUIRE(recorder.name(recorder.spans()[1].name) == "receive from rank 0");
  REQUIRE(recorder.spans()[1].end == recorded.time);
}

TEST_CASE("sums and copies of its own take a rank's time", "[collectives][mpi]") {
  const MpiProfile profile = shipped_mpi_profile();
  const MpiProfile::Shared& shared = *profile.shared;
  const Cluster host = shipped_cluster("dgx-a100", {.nodes = 1, .gpus_per_node = 2});
  const Bytes size = kib(2);
  REQUIRE(time_of(host, Operation::AllReduce, "recursive_doubling", size) ==
          shared.send + shared.latency + shared.receive + transfer_time(size, shared.copy) * 2 +
              transfer_time(size, profile.copy) + transfer_time(size, profile.sum));
  REQUIRE(time_of(host, Operation::Reduce, "linear", size) ==
          shared.send + shared.latency + shared.receive + transfer_time(size, shared.copy) * 2 +
              transfer_time(size, profile.sum));
}

TEST_CASE("lines go from cache to cache where ranks read in place what others write",
          "[collectives][mpi]") {
  const MpiProfile profile = shipped_mpi_profile();
  const MpiProfile::Shared& shared = *profile.shared;
  const Cluster host = shipped_cluster("dgx-a100", {.nodes = 1, .gpus_per_node = 2});
  const Bytes size = kib(64);
  const Bytes half = kib(32);
  // Until the other one knows that a message has been read, the rank adds up.
  const SimTime crossed = shared.send + shared.latency + shared.rendezvous + shared.crossing;
  const SimTime rewritten = transfer_time(half, shared.rewrite);
  // Of what a rank copies, the other one has read one half in the call before. It sends the other
  // half, adds up one that it alone has, sends that, and gets the other one, which had been read.
  REQUIRE(time_of(host, Operation::AllReduce, "ring", size) ==
          rewritten + transfer_time(half, profile.copy) + crossed * 2 +
              transfer_time(half, shared.written) * 2 + transfer_time(half, profile.sum) +
              rewritten + shared.latency);
  REQUIRE(time_of(host, Operation::ReduceScatter, "recursive_halving", size) ==
          rewritten + transfer_time(half, profile.copy) + crossed +
              transfer_time(half, shared.written) + transfer_time(half, profile.sum));
  // It adds up into all of what the other one has read.
  REQUIRE(time_of(host, Operation::AllReduce, "recursive_doubling", size) ==
          transfer_time(size, profile.copy) + crossed + transfer_time(size, shared.written) +
              transfer_time(size, shared.rewrite));
  // Nobody writes what is sent here.
  REQUIRE(time_of(host, Operation::AllToAll, "two_proc", size) ==
          transfer_time(half, profile.copy) + crossed + transfer_time(half, shared.read) +
              shared.latency);
  REQUIRE(time_of(host, Operation::AllGather, "two_proc", size) ==
          time_of(host, Operation::AllToAll, "two_proc", size));
  // One that forwards has written it, and the next one has read that in the call before.
  const Cluster three = shipped_cluster("dgx-a100", {.nodes = 1, .gpus_per_node = 3});
  REQUIRE(time_of(three, Operation::Broadcast, "chain", size) >
          transfer_time(size, shared.read) + transfer_time(size, shared.rewrite) +
              transfer_time(size, shared.written));
}

TEST_CASE("between hosts a long message is asked for", "[collectives][mpi]") {
  const MpiProfile::Tcp tcp = shipped_mpi_profile().tcp;
  const Cluster hosts = shipped_cluster("dgx-a100", {.nodes = 2, .gpus_per_node = 1});
  const SimTime shorter = time_of(hosts, Operation::Broadcast, "chain", *tcp.eager - Bytes(4));
  const SimTime longer = time_of(hosts, Operation::Broadcast, "chain", *tcp.eager);
  const SimTime copy = transfer_time(*tcp.eager, tcp.copy);
  REQUIRE(shorter > tcp.send + tcp.receive + copy * 2 - nanoseconds(10));
  // Two more messages, but copies while the network carries the data, except for the last.
  REQUIRE(longer > tcp.send * 2 + tcp.receive * 2 + copy * 2);
}

// docs/models/mpi.md#between-hosts.
TEST_CASE("long messages both ways follow one another where ranks are out of step",
          "[collectives][mpi]") {
  const std::filesystem::path star = source_dir() / "validation/box/star.yaml";
  const auto hosts = [&](int nodes) {
    return load_cluster(star, shipped_catalogue(), {.nodes = nodes});
  };
  const SimTime one_way = time_of(hosts(2), Operation::Broadcast, "chain", mib(1));
  const auto all_reduce = [&](int nodes) {
    return time_of(hosts(nodes), Operation::AllReduce, "rabenseifner", mib(1)) / one_way;
  };
  // Two exchanges of a half with the same rank, which are in step.
  REQUIRE(all_reduce(2) == Approx(1.0).epsilon(0.01));
  // A half, and then, one way after the other, two quarters with one rank and a half with another.
  REQUIRE(all_reduce(4) == Approx(0.5 + 2 * 0.25 * 2 + 0.5 * 2).epsilon(0.01));
  // In a ring requests go against the data, and none wait: four steps of a third.
  REQUIRE(time_of(hosts(3), Operation::AllReduce, "ring", mib(1)) / one_way ==
          Approx(4.0 / 3.0).epsilon(0.01));
}

TEST_CASE("a root with more ranks to serve takes longer", "[collectives][mpi]") {
  const Cluster four = shipped_cluster("dgx-a100", {.nodes = 1, .gpus_per_node = 4});
  const Cluster eight = shipped_cluster("dgx-a100", {.nodes = 1, .gpus_per_node = 8});
  const SimTime few = time_of(four, Operation::Gather, "basic_linear", kib(256));
  const SimTime many = time_of(eight, Operation::Gather, "basic_linear", kib(512));
  REQUIRE(many > few * 2);
}

TEST_CASE("a message of Gloo goes once its receiver has posted", "[collectives][mpi]") {
  const MpiProfile profile = shipped_gloo_profile();
  const MpiProfile::Tcp& tcp = profile.tcp;
  const Cluster host = shipped_cluster("dgx-a100", {.nodes = 1, .gpus_per_node = 2});
  const Bytes size = mib(1);
  const auto time_of_gloo = [&](Operation operation, std::string_view name) {
    const MpiCall call{
        .library = MpiLibrary::Gloo, .operation = operation, .ranks = 2, .size = size};
    return time_mpi(host, mpi_nodes(host), name, call, shipped_mpi_rules("gloo"), profile,
                    Fidelity::Flow, roce_options())
        .time;
  };
  const SimTime last = transfer_time(tcp.fragment, tcp.copy);
  REQUIRE(time_of_gloo(Operation::Broadcast, "binomial") ==
          *tcp.post + *profile.loopback * 2 + transfer_time(size, tcp.copy) + tcp.receive + last);
  // Two halves; the second is sent before the first has been read.
  const SimTime whole = time_of_gloo(Operation::AllReduce, "bcube");
  REQUIRE(time_of_gloo(Operation::AllReduce, "ring") > whole);
}

}  // namespace trainyard
