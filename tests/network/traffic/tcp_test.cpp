// SPDX-License-Identifier: Apache-2.0
// TCP of the kernel: each resource where it is the slowest one, and what a message alone waits for.
// Published points are in tests/calibration/measured/tcp_measurement_test.cpp.
#include "support/catch.h"

#include "network/traffic/tcp.h"

#include <algorithm>
#include <string>
#include <vector>

#include "support/paths.h"
#include "support/shipped.h"

namespace trainyard {
namespace {

using namespace literals;

VerbPath tcp_path(const std::vector<std::string>& settings = {}) {
  const Cluster cluster = load_cluster(source_dir() / "configs/clusters/azure-nd-a100-v4.yaml",
                                       shipped_catalogue(), {.nodes = 2, .settings = settings});
  return verb_path(cluster, cluster.topology.find("server0/memory0").value(),
                   cluster.topology.find("server1/memory0").value(), "--tcp");
}

TEST_CASE("cores run out before sockets, and sockets before cores") {
  const VerbPath path = tcp_path();
  const TcpCpu cpu = tcp_cpu({}, 128_KiB);
  const auto rate = [&](int sockets, int cores) {
    return tcp_rate(path, {.sockets = sockets, .cores = cores}, 128_KiB);
  };
  // One core runs the interrupt and the thread of the receiver, one after the other.
  REQUIRE(rate(1, 1).limit == "receiver core");
  REQUIRE(rate(1, 1).bytes_per_second == Approx(1e9 / cpu.receiver()));
  REQUIRE(rate(4, 1).bytes_per_second == Approx(rate(1, 1).bytes_per_second));
  // Two of them run beside each other, so that the slower one of all three is left.
  const double slowest = std::max({cpu.sender, cpu.interrupt, cpu.thread});
  REQUIRE(rate(1, 2).bytes_per_second == Approx(1e9 / slowest));
  REQUIRE(rate(1, 8).bytes_per_second == Approx(rate(1, 2).bytes_per_second));
  REQUIRE(rate(2, 2).bytes_per_second == Approx(2 * rate(1, 1).bytes_per_second));
  REQUIRE(rate(32, 32).limit == "wire");
}

TEST_CASE("small messages cost the sender a system call each") {
  const TcpCpu small = tcp_cpu({}, 8_B);
  const TcpCpu large = tcp_cpu({}, 1_MiB);
  REQUIRE(8 * (small.sender - large.sender) == Approx(323 * (1.0 - 8.0 / 1048576.0)));
  REQUIRE(small.receiver() == Approx(large.receiver()));  // It gets full segments.
  REQUIRE(tcp_rate(tcp_path(), {}, 8_B).limit == "sender core");
}

TEST_CASE("packets cost the kernel less with TSO, GRO and a larger MTU") {
  const auto cpu = [](const SocketSettings& settings) { return tcp_cpu(settings, 128_KiB); };
  const double payload = static_cast<double>(tcp_payload({}).count());
  REQUIRE(payload == 1448);
  REQUIRE(cpu({.tso = false}).sender - cpu({}).sender == Approx(330 / payload));
  REQUIRE(cpu({.tso = false}).receiver() == cpu({}).receiver());
  // 45 packets are a segment.
  REQUIRE(cpu({.gro = false}).interrupt - cpu({}).interrupt ==
          Approx(1060 * (1.0 - 1.0 / 45.0) / payload));
  REQUIRE(cpu({.gro = false}).sender == cpu({}).sender);
  REQUIRE(cpu({.mtu = 9000_B}).interrupt < cpu({}).interrupt);
  REQUIRE(cpu({.mtu = 9000_B, .gro = false}).interrupt < cpu({.gro = false}).interrupt / 3);
  // Whatever holds no two packets is a segment of one.
  REQUIRE(cpu({.mtu = 40'000_B}).interrupt == cpu({.mtu = 40'000_B, .gro = false}).interrupt);
}

TEST_CASE("pinned pages cost more than their copy unless they are huge") {
  const auto sender = [](ZeroCopy zero_copy, Bytes size) {
    return tcp_cpu({.zero_copy = zero_copy}, size).sender;
  };
  REQUIRE(sender(ZeroCopy::On, 1_MiB) > sender(ZeroCopy::Off, 1_MiB));
  REQUIRE(sender(ZeroCopy::HugePages, 1_MiB) < 0.5 * sender(ZeroCopy::Off, 1_MiB));
  // Each message has a page of its own.
  REQUIRE(sender(ZeroCopy::On, 64_B) * 64 == Approx(323 + 474 + 1950 * 64.0 / (45 * 1448)));
  REQUIRE(sender(ZeroCopy::HugePages, 64_B) == Approx(sender(ZeroCopy::On, 64_B)));
}

TEST_CASE("a message alone passes all stages once, and its further segments the slowest") {
  const VerbPath path = tcp_path();
  const auto latency = [&](const SocketSettings& settings, Bytes size) {
    return tcp_latency(path, settings, size).microseconds();
  };
  const double host = 0.323 + 1.950 + 4.333 + 0.087 + 1.060;
  REQUIRE(latency({}, 1_B) == Approx(path.there.latency.microseconds() + host).margin(0.001));
  const double byte = (latency({}, 8_MiB) - latency({}, 4_MiB)) / 4.194304;
  REQUIRE(byte * 1e-12 == Approx(1 / tcp_rate(path, {}, 8_MiB).bytes_per_second).epsilon(1e-3));
  // Sockets beside it are of no use to one message, but a second core is.
  REQUIRE(latency({.sockets = 8}, 8_MiB) == latency({}, 8_MiB));
  REQUIRE(latency({.cores = 2}, 8_MiB) < latency({}, 8_MiB));
  REQUIRE(latency({.gro = false}, 64_KiB) > latency({}, 64_KiB) + 40);
}

TEST_CASE("links and adapters limit what enough cores could do") {
  const SocketSettings many{.sockets = 1024, .cores = 1024};
  const VerbPath path = tcp_path();
  const TcpRate wire = tcp_rate(path, many, 1_MiB);
  REQUIRE(wire.limit == "wire");
  // 1448 of 1538 bytes of a frame are data.
  SocketSettings jumbo = many;
  jumbo.mtu = 9000_B;
  REQUIRE(tcp_rate(path, jumbo, 1_MiB).bytes_per_second / wire.bytes_per_second ==
          Approx((8948.0 / 9038.0) / (1448.0 / 1538.0)));
  REQUIRE(tcp_rate(tcp_path({"server.nic={base: ConnectX-6, pcie_lanes: 4}"}), many, 1_MiB).limit ==
          "pcie");
  VerbPath slow = path;
  slow.adapter_rate = 1e6;
  REQUIRE(tcp_rate(slow, many, 1_MiB).limit == "adapter");
  REQUIRE(tcp_rate(slow, many, 1_MiB).bytes_per_second == Approx(1448e6));
}

}  // namespace
}  // namespace trainyard
