// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "nccl/tuning/point_to_point.h"
#include "sim/random.h"
#include "support/nccl_machines.h"

namespace trainyard::nccl {
namespace {

// 18 NVLinks of 20.6 GB/s through switches.
constexpr PeerPath kH100Peer{
    .kind = PeerPath::Kind::NvLink, .bandwidth = 370.8, .link_bandwidth = 20.6, .nics = 0};
constexpr PeerPath kNic400{
    .kind = PeerPath::Kind::Network, .bandwidth = 48.0, .link_bandwidth = 0.0, .nics = 1};
constexpr PeerPath kPcie{
    .kind = PeerPath::Kind::Pcie, .bandwidth = 24.0, .link_bandwidth = 0.0, .nics = 0};

Communicator h100() {
  Communicator communicator = communicator_of(h100_node());
  set_up_point_to_point(communicator, {kH100Peer}, {});
  return communicator;
}

Communicator over_network(Version version, int ranks, int nodes,
                          const Environment& environment = {}) {
  Communicator communicator;
  communicator.min_compute_capability = 90;
  communicator.version = version;
  communicator.ranks = ranks;
  communicator.nodes = nodes;
  communicator.channels = 16;
  set_up_point_to_point(communicator, {kH100Peer, kNic400}, environment);
  return communicator;
}

TEST_CASE("eight H100 use more channels for larger sends", "[nccl][p2p]") {
  const Communicator communicator = h100();
  REQUIRE(communicator.p2p_channels == 32);
  REQUIRE(communicator.p2p_channels_per_peer == 32);
  REQUIRE(communicator.p2p_chunk == kib(512));
  const std::vector<int> parts{4, 4, 8, 16, 32, 32};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto plan = plan_point_to_point(communicator, {}, mib(std::int64_t{32} << i), false);
    REQUIRE(plan.parts == parts[i]);
    REQUIRE(plan.protocol == Protocol::Simple);
    REQUIRE(plan.chunk == kib(512));
  }
  REQUIRE(plan_point_to_point(communicator, {}, kib(64), false).parts == 1);
  REQUIRE(plan_point_to_point(communicator, {}, kib(65), false).parts == 2);
}

TEST_CASE("small sends use LL where both ends have its buffers", "[nccl][p2p]") {
  const Communicator communicator = h100();
  REQUIRE(plan_point_to_point(communicator, {}, kib(16), false).protocol == Protocol::LL);
  REQUIRE(plan_point_to_point(communicator, {}, kib(16), false).chunk == kib(32));
  REQUIRE(plan_point_to_point(communicator, {}, kib(17), false).protocol == Protocol::Simple);
  REQUIRE(plan_point_to_point(communicator, {}, kib(16), true).protocol == Protocol::Simple);
  Environment environment;
  environment.allocate_p2p_net_ll_buffers = true;
  REQUIRE(plan_point_to_point(communicator, environment, kib(16), true).protocol == Protocol::LL);
  environment.p2p_ll_threshold = Bytes(0);
  REQUIRE(plan_point_to_point(communicator, environment, kib(1), false).protocol ==
          Protocol::Simple);
}

TEST_CASE("up to which size sends use LL depends on the release", "[nccl][p2p]") {
  Communicator communicator = h100();  // Up to 32 channels a send, one up to 64 KiB.
  const auto plan = [&](Version version, Bytes size) {
    communicator.version = version;
    return plan_point_to_point(communicator, {}, size, false);
  };
  REQUIRE(plan(Version::V2_12, kib(1)).protocol == Protocol::Simple);
  for (const Version version : {Version::V2_14, Version::V2_21, Version::V2_29, Version::V2_30}) {
    REQUIRE(plan(version, kib(16)).protocol == Protocol::LL);
    REQUIRE(plan(version, kib(17)).protocol == Protocol::Simple);
  }
  for (const Version version : {Version::V2_23, Version::V2_28}) {
    // 16 KiB for each of 32 channels; an eighth of a step of LL's buffers, 8 KiB, to a channel, of
    // which eight ranks leave four to each.
    REQUIRE(plan(version, kib(512)).protocol == Protocol::LL);
    REQUIRE(plan(version, kib(513)).protocol == Protocol::Simple);
    REQUIRE(plan(version, kib(8)).parts == 1);
    REQUIRE(plan(version, kib(24)).parts == 3);
    REQUIRE(plan(version, kib(512)).parts == 4);
  }
}

TEST_CASE("over the network the number of channels depends on peers and release", "[nccl][p2p]") {
  REQUIRE(over_network(Version::V2_30, 16, 2).p2p_channels_per_peer ==
          4);  // 48 GB/s at 14 a channel.
  REQUIRE(over_network(Version::V2_30, 16, 2).p2p_channels == 16);
  REQUIRE(over_network(Version::V2_30, 80, 10).p2p_channels_per_peer == 1);
  REQUIRE(over_network(Version::V2_28, 16, 2).p2p_channels_per_peer == 2);
  REQUIRE(over_network(Version::V2_29, 16, 2).p2p_channels_per_peer ==
          over_network(Version::V2_30, 16, 2).p2p_channels_per_peer);
  REQUIRE(over_network(Version::V2_28, 80, 10).p2p_channels_per_peer == 1);
  Environment environment;
  environment.channels_per_net_peer = 8;
  REQUIRE(over_network(Version::V2_28, 16, 2, environment).p2p_channels_per_peer == 8);
  // Nothing lowers what is set; by default rounds of all peers fit the channels, or of these.
  REQUIRE(over_network(Version::V2_30, 80, 10, environment).p2p_channels_per_peer == 8);
  Environment few;
  few.p2p_max_peers = 8;
  REQUIRE(over_network(Version::V2_30, 80, 10, few).p2p_channels_per_peer == 4);
  environment.max_p2p_channels = 4;
  REQUIRE(over_network(Version::V2_28, 16, 2, environment).p2p_channels == 4);
  REQUIRE(over_network(Version::V2_28, 16, 2, environment).p2p_channels_per_peer == 4);
  environment.min_p2p_channels = 33;
  REQUIRE(over_network(Version::V2_28, 16, 2, environment).p2p_channels == 64);
  Communicator pcie;
  pcie.ranks = 4;
  pcie.nodes = 1;
  pcie.channels = 2;
  set_up_point_to_point(pcie, {kPcie}, {});
  REQUIRE(pcie.p2p_channels_per_peer == 2);
}

TEST_CASE("chunks of sends: NVLink, PCIe, network, and shorter for short messages", "[nccl][p2p]") {
  Communicator made;
  const auto chunk = [&](int nodes, bool nvlink, int capability, CpuKind cpu,
                         const Environment& environment = {}) {
    made.nodes = nodes;
    made.min_compute_capability = capability;
    made.cpu = cpu;
    set_up_point_to_point(made, {nvlink ? kH100Peer : kPcie}, environment);
    return made.p2p_chunk;
  };
  REQUIRE(chunk(1, true, 90, CpuKind::Intel) == kib(512));
  REQUIRE(chunk(1, false, 90, CpuKind::Intel) == kib(128));
  REQUIRE(chunk(2, true, 90, CpuKind::Intel) == kib(128));
  REQUIRE(chunk(2, true, 100, CpuKind::Arm) == kib(256));
  made.version = Version::V2_27;
  REQUIRE(chunk(2, true, 100, CpuKind::Arm) == kib(128));
  made.version = Version::V2_30;
  Environment environment;
  environment.simple_buffer = mib(1);
  REQUIRE(chunk(1, true, 90, CpuKind::Intel, environment) == kib(128));
  environment.p2p_net_chunk = kib(64);
  REQUIRE(chunk(4, true, 90, CpuKind::Intel, environment) == kib(64));

  Communicator communicator = communicator_of(h100_400g(2));
  communicator.p2p_channels = 16;
  communicator.p2p_channels_per_peer = 4;
  REQUIRE(plan_point_to_point(communicator, {}, kib(127), true).chunk == kib(32));
  REQUIRE(plan_point_to_point(communicator, {}, kib(128), true).chunk == kib(64));
  REQUIRE(plan_point_to_point(communicator, {}, mib(1), true).chunk == kib(128));
  REQUIRE(plan_point_to_point(communicator, {}, mib(1), true).parts == 4);
  REQUIRE(plan_point_to_point(communicator, {}, kib(127), false).chunk == kib(128));
  environment.p2p_chunk = kib(8);
  REQUIRE(plan_point_to_point(communicator, environment, mib(1), true).chunk == kib(8));
}

TEST_CASE("groups meet in a quadratic order", "[nccl][p2p]") {
  const auto rounds = point_to_point_schedule(0, 16, 1);
  std::vector<int> order;
  for (const PointToPointRound& round : rounds) {
    order.push_back(round.send_to);
  }
  REQUIRE(order == std::vector<int>{0, 1, 3, 6, 10, 15, 5, 12, 4, 13, 7, 2, 14, 11, 9, 8});
  const auto single = point_to_point_schedule(3, 8, 8);
  REQUIRE(single[0] == PointToPointRound{.send_to = 3, .receive_from = 3});
  REQUIRE(single[6] == PointToPointRound{.send_to = 1, .receive_from = 5});
  const auto two = point_to_point_schedule(9, 16, 8);
  REQUIRE(two[1] == PointToPointRound{.send_to = 10, .receive_from = 8});
  REQUIRE(two[15] == PointToPointRound{.send_to = 0, .receive_from = 2});
}

TEST_CASE("each rank meets each once, and sends meet their receives in the same round",
          "[nccl][p2p]") {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "schedules");
    const int group = 1 + static_cast<int>(random.below(9));
    const int ranks = group * (1 + static_cast<int>(random.below(12)));
    std::vector<std::vector<PointToPointRound>> all;
    for (int rank = 0; rank < ranks; ++rank) {
      all.push_back(point_to_point_schedule(rank, ranks, group));
      std::vector<bool> met(static_cast<std::size_t>(ranks), false);
      for (const PointToPointRound& round : all.back()) {
        REQUIRE_FALSE(met[static_cast<std::size_t>(round.send_to)]);
        met[static_cast<std::size_t>(round.send_to)] = true;
      }
      REQUIRE(all.back().size() == met.size());
      REQUIRE(all.back().front() == PointToPointRound{.send_to = rank, .receive_from = rank});
    }
    for (int rank = 0; rank < ranks; ++rank) {
      for (std::size_t i = 0; i < all.front().size(); ++i) {
        const int peer = all[static_cast<std::size_t>(rank)][i].send_to;
        REQUIRE(all[static_cast<std::size_t>(peer)][i].receive_from == rank);
      }
    }
  }
}

TEST_CASE("groups divide all nodes", "[nccl][p2p]") {
  REQUIRE(schedule_group_size({0, 72}, {}) == 72);
  REQUIRE(schedule_group_size({0, 8, 16}, {}) == 8);
  REQUIRE(schedule_group_size({0, 72, 144}, {}) == 8);
  REQUIRE(schedule_group_size({0, 4, 8}, {}) == 4);
  REQUIRE(schedule_group_size({0, 8, 14}, {}) == 2);
  REQUIRE(schedule_group_size({0, 1, 2}, {}) == 1);
  Environment environment;
  environment.p2p_schedule_group_size = 4;
  REQUIRE(schedule_group_size({0, 8, 16}, environment) == 4);
}

TEST_CASE("an all-to-all of one node spreads over all channels", "[nccl][p2p]") {
  std::vector<int> used(32, 0);
  for (int round = 0; round < 8; ++round) {
    for (int part = 0; part < 4; ++part) {
      ++used[static_cast<std::size_t>(channel_of_part(round, part, 32, 1, 8))];
    }
  }
  REQUIRE(used == std::vector<int>(32, 1));
  REQUIRE(channel_of_part(1, 0, 32, 1, 8) == 16);
  REQUIRE(channel_of_part(3, 2, 32, 1, 8) == 26);
  const auto batches = point_to_point_batches(std::vector<int>(8, 4), 32, 1, 8, {});
  for (const auto& channel : batches) {
    REQUIRE(channel.size() == 1);
    REQUIRE(channel.front().size() == 1);
  }
}

TEST_CASE("between nodes the eight peers of a node share a channel side by side", "[nccl][p2p]") {
  const auto batches = point_to_point_batches(std::vector<int>(32, 1), 2, 4, 8, {});
  REQUIRE(batches[0].size() == 2);
  REQUIRE(batches[0][0] == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  REQUIRE(batches[0][1].front() == 16);
  REQUIRE(batches[1][0].front() == 8);
}

TEST_CASE("a batch holds eight pairs, of one group of rounds unless epochs are off",
          "[nccl][p2p][environment]") {
  const std::vector<int> parts(12, 1);
  const auto batches = point_to_point_batches(parts, 1, 1, 12, {});
  REQUIRE(batches[0].size() == 2);
  REQUIRE(batches[0][0].size() == 8);
  std::vector<int> sparse(16, 0);
  sparse[1] = sparse[7] = sparse[9] = 1;
  REQUIRE(point_to_point_batches(sparse, 1, 1, 16, {})[0].size() == 2);
  Environment environment;
  environment.p2p_epoch_enable = false;
  REQUIRE(point_to_point_batches(sparse, 1, 1, 16, environment)[0].size() == 1);
}

TEST_CASE("parts of a send add up to it", "[nccl][p2p]") {
  Communicator communicator = h100();
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    INFO("seed=" << seed);
    RandomStream random(seed, "sends");
    communicator.nodes = 1 + static_cast<int>(random.below(2));
    const std::uint64_t scale = random.below(33);
    const Bytes bytes(static_cast<std::int64_t>(random.below(std::uint64_t{1} << scale)));
    const bool network = random.below(2) == 1;
    const auto plan = plan_point_to_point(communicator, {}, bytes, network);
    REQUIRE(plan.parts >= 1);
    REQUIRE(plan.parts <= communicator.p2p_channels_per_peer);
    REQUIRE(plan.part.count() % 4096 == 0);
    REQUIRE(plan.chunk > Bytes(0));
    Bytes sum;
    for (int part = 0; part < plan.parts; ++part) {
      sum += plan.bytes_of_part(part, bytes);
    }
    REQUIRE(sum == bytes);
  }
}

}  // namespace
}  // namespace trainyard::nccl
