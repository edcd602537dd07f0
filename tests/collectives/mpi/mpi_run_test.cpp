// SPDX-License-Identifier: Apache-2.0
// The time of a call is the sum of what its CPUs do, which is told by hand here for two ranks.
#include "support/catch.h"

#include "collectives/mpi/mpi_run.h"

#include <spdlog/fmt/fmt.h>

#include <array>
#include <fstream>
#include <sstream>
#include <string>

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

Cluster star(int hosts) {
  return load_cluster(source_dir() / "validation/box/star.yaml", shipped_catalogue(),
                      {.nodes = hosts});
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
  const SimTime one_way = time_of(star(2), Operation::Broadcast, "chain", mib(1));
  const auto all_reduce = [&](int nodes) {
    return time_of(star(nodes), Operation::AllReduce, "rabenseifner", mib(1)) / one_way;
  };
  // Two exchanges of a half with the same rank, which are in step.
  REQUIRE(all_reduce(2) == Approx(1.0).epsilon(0.01));
  // A half, and then, one way after the other, two quarters with one rank and a half with another.
  REQUIRE(all_reduce(4) == Approx(0.5 + 2 * 0.25 * 2 + 0.5 * 2).epsilon(0.01));
  // In a ring requests go against the data, and none wait: four steps of a third.
  REQUIRE(time_of(star(3), Operation::AllReduce, "ring", mib(1)) / one_way ==
          Approx(4.0 / 3.0).epsilon(0.01));
}

// docs/models/mpi.md#how-a-call-begins.
TEST_CASE("announcements to receives that are posted in advance are answered as they come",
          "[collectives][mpi]") {
  const double block = time_of(star(2), Operation::Broadcast, "chain", mib(1)).seconds();
  for (const int nodes : {2, 3, 4, 5, 6}) {
    for (const char* const name : {"linear", "linear_sync"}) {
      INFO(nodes << " hosts, " << name);
      REQUIRE(time_of(star(nodes), Operation::AllToAll, name, mib(nodes)).seconds() ==
              Approx(block * (nodes - 1)).epsilon(0.02));
    }
  }
}

TEST_CASE("messages below eager bring ranks out of step", "[collectives][mpi]") {
  const double block = time_of(star(2), Operation::Broadcast, "chain", kib(64)).seconds();
  // 64 KiB, which is not below it, both ways at once, 32 KiB twice, and 64 KiB one way after the
  // other.
  REQUIRE(time_of(star(4), Operation::AllReduce, "rabenseifner", kib(128)).seconds() ==
          Approx(block * (1 + 0.5 + 0.5 + 2)).epsilon(0.02));
}

// docs/models/mpi.md#eight-ranks-in-a-host.
TEST_CASE("eight ranks in a host are as far off a published table as the page says",
          "[collectives][mpi]") {
  const Cluster host = shipped_cluster("dgx-a100", {.nodes = 1});
  const std::string page = read_text_file(source_dir() / "docs/models/mpi.md");
  std::ifstream file(source_dir() / "validation/hosts/xeon-8260.csv");
  std::size_t held = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#") || line.starts_with("operation")) {
      continue;
    }
    std::istringstream stream(line);
    std::array<std::string, 5> cells;
    for (std::string& cell : cells) {
      std::getline(stream, cell, ',');
    }
    const auto& [operation, ranks, bytes, algorithm, median] = cells;
    const Bytes size(std::stoll(bytes));
    const std::size_t row = page.find(fmt::format("\n| {} KiB | ", size.count() / 1'024),
                                      page.find("### Eight ranks in a host"));
    if (size < kib(1) || row == std::string::npos) {
      continue;  // The page has each second size from 1 KiB on.
    }
    const double measured = std::stod(median);
    const double time =
        time_of(host, parse_operation(operation).value(), algorithm, size).microseconds();
    const std::string cell = fmt::format("| {:.4g} | {:.4g} | {:+.0f} % |", measured, time,
                                         100.0 * (time / measured - 1.0));
    INFO(line << ": " << cell);
    REQUIRE(page.substr(row + 1, page.find('\n', row + 1) - row).find(cell) != std::string::npos);
    ++held;
  }
  REQUIRE(held == 20);
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
