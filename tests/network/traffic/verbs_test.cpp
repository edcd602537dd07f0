// SPDX-License-Identifier: Apache-2.0
// Verbs against the paths that they split, and each resource where it is the slowest one. Measured
// tables are in tests/calibration/measured/verb_measurement_test.cpp.
#include "support/catch.h"

#include "network/traffic/verbs.h"

#include <string>
#include <vector>

#include "network/traffic/transfers.h"
#include "support/paths.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

using namespace literals;

Cluster verb_cluster(const std::string& name, const std::vector<std::string>& settings = {}) {
  return load_cluster(source_dir() / "configs/clusters" / (name + ".yaml"), shipped_catalogue(),
                      {.nodes = 2, .settings = settings});
}

NodeId verb_device(const Cluster& cluster, const std::string& name) {
  return cluster.topology.find(name).value();
}

VerbPath path_in(const Cluster& cluster) {
  return verb_path(cluster, verb_device(cluster, "server0/memory0"),
                   verb_device(cluster, "server1/memory0"));
}

const std::string kHdr = "azure-nd-a100-v4";

TEST_CASE("a verb has the latency and the rate of the path that it takes") {
  for (const std::string& name : {kHdr, std::string("dgx-h100"), std::string("rtx2080ti-ib")}) {
    const Cluster cluster = verb_cluster(name);
    const Transfer pair{.source = verb_device(cluster, "server0/memory0"),
                        .target = verb_device(cluster, "server1/memory0")};
    const VerbPath path = path_in(cluster);
    const double latency = run_transfers(cluster, std::vector{pair}, 8_B)[0].microseconds();
    REQUIRE(verb_latency(path, {}, 8_B).microseconds() == Approx(latency).margin(0.002));
    const double rate =
        total_gigabytes_per_second(run_transfers(cluster, std::vector{pair}, 1_GiB), 1_GiB);
    for (const Verb verb : {Verb::Write, Verb::Read, Verb::Send}) {
      const VerbRate large = verb_rate(path, {.verb = verb}, 8_MiB);
      REQUIRE(large.messages_per_second * 8.388608e-3 == Approx(rate).epsilon(0.001));
    }
  }
}

TEST_CASE("a read takes a path there and one back, and data that are fetched one over PCIe") {
  const VerbPath path = path_in(verb_cluster(kHdr));
  const auto latency = [&](const VerbSettings& settings, Bytes size) {
    return verb_latency(path, settings, size);
  };
  REQUIRE(latency({.verb = Verb::Read}, 8_B) == latency({}, 8_B) + path.back.latency);
  REQUIRE(latency({.inline_limit = 0_B}, 8_B) ==
          latency({}, 8_B) + path.there.source_host + path.back.target_host);
  REQUIRE(latency({.inline_limit = 64_B}, 128_B) > latency({}, 128_B));
  REQUIRE(latency({.verb = Verb::Send}, 8_B) == latency({}, 8_B) + 62_ns);
}

TEST_CASE("what follows the first packet of a message is under way everywhere at once") {
  const VerbPath path = path_in(verb_cluster(kHdr));
  const auto growth = [&](Bytes from, Bytes to) {
    return (verb_latency(path, {}, to) - verb_latency(path, {}, from)).seconds() /
           static_cast<double>((to - from).count());
  };
  const double wire = 1.0 / (path.there.network_links[0].bandwidth.gigabytes_per_second() * 1e9);
  REQUIRE(growth(4_KiB, 1_MiB) == Approx(wire).epsilon(1e-3));
  REQUIRE(growth(1_KiB, 4_KiB) > 2.5 * wire);
}

TEST_CASE("a core makes one request after the other, and tells the adapter of a batch at once") {
  const VerbPath path = path_in(verb_cluster(kHdr, {"server.cpu=EPYC-Milan"}));
  const VerbRate one = verb_rate(path, {}, 8_B);
  REQUIRE(one.messages_per_second == Approx(1e9 / (75 + 100 + 0.62)));
  REQUIRE(one.limit == "doorbell");
  const VerbRate batch = verb_rate(path, {.batch = 10}, 8_B);
  REQUIRE(batch.messages_per_second == Approx(1e9 / (75 + 10 + 0.62)));
  REQUIRE(batch.limit == "cpu");
  REQUIRE(verb_rate(path, {.cores = 2}, 8_B).messages_per_second ==
          Approx(2 * one.messages_per_second));
  const VerbRate sends = verb_rate(path, {.verb = Verb::Send, .batch = 10}, 8_B);
  REQUIRE(sends.messages_per_second == Approx(1e9 / (75 + 62)));
  REQUIRE(sends.limit == "cpu of the receiver");
  // The writes of EPYC Rome to devices take longer.
  const VerbPath rome = path_in(verb_cluster(kHdr, {"server.cpu=EPYC-Rome"}));
  REQUIRE(verb_rate(rome, {}, 8_B).messages_per_second == Approx(1e9 / (75 + 275 + 0.62)));
}

TEST_CASE("many cores meet the rate of the adapter, or PCIe") {
  const VerbPath path = path_in(verb_cluster(kHdr));
  const VerbRate adapter = verb_rate(path, {.cores = 128}, 8_B);
  REQUIRE(adapter.messages_per_second == Approx(215e6));
  REQUIRE(adapter.limit == "adapter");
  // Inline, a request of 128 B takes two packets of 94 B and the data leave none over.
  const VerbSettings inlined{.cores = 1024, .inline_limit = 200_B};
  const VerbPath narrow = path_in(
      verb_cluster(kHdr, {"server.nic={base: ConnectX-6, pcie_lanes: 4, speed: 1000 Gb/s}"}));
  const VerbRate pcie = verb_rate(narrow, inlined, 64_B);
  REQUIRE(pcie.limit == "pcie");
  const VerbLink link = narrow.there.source_links.back();
  REQUIRE(link.kind == LinkKind::Pcie);
  const double raw = link.bandwidth.gigabytes_per_second() * 1e9 * (256.0 + 30.0) / 256.0;
  REQUIRE(pcie.messages_per_second == Approx(raw / (2 * 94)));
  // A variant keeps the published rate of its base; of others nothing is known.
  REQUIRE(narrow.adapter_rate == 215e6);
  REQUIRE(!path_in(verb_cluster(kHdr, {"server.nic=Thor2"})).adapter_rate);
}

TEST_CASE("reads wait for those under way, and headers of small packets for the wire") {
  const VerbPath path = path_in(verb_cluster(kHdr, {"fabric.cable=1000 m"}));
  VerbSettings reads{.verb = Verb::Read};
  const VerbRate one = verb_rate(path, reads, 8_B);
  REQUIRE(one.limit == "reads under way");
  REQUIRE(one.messages_per_second ==
          Approx(16 / verb_latency(path, reads, 8_B).seconds()).epsilon(1e-6));
  reads.queue_pairs = 2;
  REQUIRE(verb_rate(path, reads, 8_B).messages_per_second == Approx(2 * one.messages_per_second));
  const VerbRate writes = verb_rate(path, {.batch = 100}, 8_B);
  REQUIRE(writes.limit == "queue depth");
  const VerbPath near = path_in(verb_cluster(kHdr));
  const double large = verb_rate(near, {}, 8_MiB).messages_per_second;
  const VerbRate small = verb_rate(near, {.mtu = 1_KiB}, 8_MiB);
  REQUIRE(small.limit == "wire");
  REQUIRE(small.messages_per_second / large ==
          Approx((4178.0 / 4096.0) / (1106.0 / 1024.0)).epsilon(1e-4));
}

TEST_CASE("atomics take as long as a read, and one after the other a fetch over PCIe") {
  const VerbPath path = path_in(verb_cluster(kHdr));
  for (const Verb verb : {Verb::FetchAndAdd, Verb::CompareAndSwap}) {
    REQUIRE(verb_latency(path, {.verb = verb}, 8_B) ==
            verb_latency(path, {.verb = Verb::Read}, 8_B));
    // A counter does not become faster by more cores that change it.
    for (const int cores : {1, 16}) {
      const VerbRate rate = verb_rate(path, {.verb = verb, .cores = cores}, 8_B);
      REQUIRE(rate.limit == "atomic");
      REQUIRE(rate.messages_per_second ==
              Approx(1 / (path.there.target_host + path.back.source_host).seconds()));
    }
  }
  const VerbPath far = path_in(verb_cluster(kHdr, {"fabric.cable=1000 m"}));
  REQUIRE(verb_rate(far, {.verb = Verb::FetchAndAdd}, 8_B).limit == "reads under way");
}

TEST_CASE("without a reliable connection nothing waits for the other end") {
  const VerbPath path = path_in(verb_cluster(kHdr, {"fabric.cable=1000 m"}));
  for (const Verb verb : {Verb::Write, Verb::Send}) {
    const VerbSettings reliable{.verb = verb, .batch = 16};
    VerbSettings unreliable = reliable;
    unreliable.connection = Connection::Unreliable;
    REQUIRE(verb_latency(path, unreliable, 8_B) == verb_latency(path, reliable, 8_B));
    REQUIRE(verb_rate(path, reliable, 8_B).limit == "queue depth");
    REQUIRE(verb_rate(path, unreliable, 8_B).limit ==
            (verb == Verb::Send ? "cpu of the receiver" : "cpu"));
  }
}

TEST_CASE("a datagram has more headers and a larger request") {
  const VerbPath path = path_in(verb_cluster(kHdr));
  VerbSettings settings{.verb = Verb::Send, .cores = 64};
  settings.batch = 64;
  const auto per_message = [&](Connection connection, Bytes size) {
    settings.connection = connection;
    const VerbRate rate = verb_rate(path, settings, size);
    REQUIRE(rate.limit == "wire");
    return 1e9 / rate.messages_per_second;
  };
  // 8 B of header on the wire: 4178 B are a full packet without.
  REQUIRE(per_message(Connection::Datagram, 4_KiB) / per_message(Connection::Reliable, 4_KiB) ==
          Approx(4186.0 / 4178.0));
  const VerbSettings datagram{.verb = Verb::Send, .connection = Connection::Datagram};
  const VerbSettings reliable{.verb = Verb::Send};
  REQUIRE(verb_latency(path, datagram, 188_B) == verb_latency(path, reliable, 188_B));
  REQUIRE(verb_latency(path, datagram, 189_B) ==
          verb_latency(path, reliable, 189_B) + path.there.source_host + path.back.target_host);
  REQUIRE(greatest_message(
              {.verb = Verb::Send, .mtu = 1_KiB, .connection = Connection::Datagram}) == 1_KiB);
}

TEST_CASE("a core that sleeps is woken up before it goes on") {
  const VerbPath path = path_in(verb_cluster(kHdr));
  for (const Verb verb : {Verb::Read, Verb::Send, Verb::FetchAndAdd}) {
    const VerbSettings polls{.verb = verb};
    const VerbSettings sleeps{.verb = verb, .events = true};
    REQUIRE(verb_latency(path, sleeps, 8_B) == verb_latency(path, polls, 8_B) + 4333_ns);
    REQUIRE(verb_rate(path, sleeps, 8_B).messages_per_second <=
            verb_rate(path, polls, 8_B).messages_per_second);
  }
  REQUIRE(verb_rate(path, {.verb = Verb::Read, .events = true}, 8_B).limit == "reads under way");
}

TEST_CASE("registration of a buffer costs a call and its pages") {
  REQUIRE(registration_time(1_B) == 16_us + 60_ps);
  REQUIRE((registration_time(1_GiB) - registration_time(1_MiB)).seconds() ==
          Approx(0.06e-9 * (1073741824.0 - 1048576.0)));
  // Published times of ibv_reg_mr: "more than 20 seconds" for 256 GB (ofiwg/libfabric, issue 4738),
  // and 49.2 s for 500 GB, one region after the other (kvcache-ai/Mooncake, pull request 855). The
  // model is 18 and 35 % below them.
  REQUIRE(registration_time(1_GiB * 256).seconds() / 20.0 == Approx(0.82).margin(0.01));
  REQUIRE(registration_time(1_GiB * 500).seconds() / 49.198 == Approx(0.65).margin(0.01));
}

TEST_CASE("verbs need two host memories that a network joins") {
  const Cluster cluster = verb_cluster(kHdr);
  const auto path = [&](const std::string& from, const std::string& to) {
    return verb_path(cluster, verb_device(cluster, from), verb_device(cluster, to));
  };
  REQUIRE_THROWS_WITH(path("server0/gpu0", "server1/memory0"),
                      "--verb: expected --from and --to to be host memories, such as "
                      "server0/memory0, found server0/gpu0");
  REQUIRE_THROWS_WITH(path("server0/memory0", "server0/memory1"),
                      "--verb: expected --from and --to in two servers that a network joins, found "
                      "server0/memory0 and server0/memory1");
}

}  // namespace
}  // namespace trainyard
