// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "collectives/hccl/hccl_choice.h"

#include <cmath>

#include "sim/config_error.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

HcclMachine a2(std::uint32_t servers, std::uint32_t per_server = 8) {
  return {.product = HcclProduct::AtlasA2, .shape = {.servers = servers, .per_server = per_server}};
}

HcclPlan plan(const HcclMachine& machine, Operation operation, Bytes size,
              const std::vector<std::string>& variables = {}) {
  return choose_hccl(machine, HcclEnvironment::parse(variables), operation, size);
}

HcclBetween between(const HcclMachine& machine, Operation operation, Bytes size,
                    const std::vector<std::string>& variables = {}) {
  return plan(machine, operation, size, variables).way.between;
}

}  // namespace

TEST_CASE("between servers of Atlas A2 HCCL takes what costs least", "[collectives][hccl]") {
  // The comparison that HCCL makes, which the choice has as a rule: steps of 60 us and bytes; a
  // ring before NHR before H-D_R where two cost the same.
  for (std::uint32_t servers = 2; servers <= 200; ++servers) {
    const double steps = servers - 1;
    const double rounds = std::ceil(std::log2(servers));
    const bool is_power = std::exp2(rounds) == servers;
    const double bytes = steps / servers * 123.0;
    const double ring = steps * 60.0 + bytes;
    const double nhr = rounds * 60.0 + bytes;
    const double halving = rounds * 60.0 + (is_power ? bytes : bytes + 123.0);
    HcclBetween least = nhr < ring ? HcclBetween::Nhr : HcclBetween::Ring;
    least = halving < std::min(ring, nhr) ? HcclBetween::HalvingDoubling : least;
    INFO(servers);
    REQUIRE(between(a2(servers), Operation::AllGather, kib(31) * servers * 8) == least);
  }
}

TEST_CASE("long messages go through the pipeline", "[collectives][hccl]") {
  const HcclMachine two = a2(2);
  REQUIRE(between(two, Operation::AllReduce, mib(16)) == HcclBetween::Pipeline);
  REQUIRE(between(two, Operation::AllReduce, mib(16) - Bytes(16)) == HcclBetween::Ring);
  REQUIRE(between(two, Operation::AllGather, kib(512)) == HcclBetween::Pipeline);
  REQUIRE(between(two, Operation::ReduceScatter, kib(512) - Bytes(16)) == HcclBetween::Ring);
  REQUIRE(between(a2(2, 1), Operation::AllReduce, gib(1)) == HcclBetween::Ring);
  // 2 (M (5 x 7 + 8) + 5) tasks are at most 65,535 up to 761 servers.
  REQUIRE(between(a2(761), Operation::AllReduce, gib(16)) == HcclBetween::Pipeline);
  REQUIRE(between(a2(762), Operation::AllReduce, gib(16)) == HcclBetween::Nhr);
}

TEST_CASE("one server takes a star up to 256 KiB, and then its mesh", "[collectives][hccl]") {
  const HcclMachine one = a2(1);
  REQUIRE(plan(one, Operation::AllReduce, kib(256)).way == HcclWay{.inside = HcclInside::Star});
  REQUIRE(plan(one, Operation::AllReduce, kib(256) + Bytes(4)).way ==
          HcclWay{.inside = HcclInside::Mesh});
  REQUIRE(plan(one, Operation::AllGather, kib(1)).way == HcclWay{.inside = HcclInside::Mesh});
  REQUIRE(between(a2(8), Operation::AllReduce, mib(2)) == HcclBetween::NhrTree);
  REQUIRE(between(a2(8), Operation::AllReduce, mib(2) + Bytes(64)) == HcclBetween::Nhr);
}

TEST_CASE("Ascend 910 halves and doubles, or takes rings of odd numbers", "[collectives][hccl]") {
  for (std::uint32_t servers = 2; servers <= 20; ++servers) {
    const HcclMachine machine{.product = HcclProduct::Atlas,
                              .shape = {.servers = servers, .per_server = 4}};
    const bool halves = servers >= 8 || servers == 2 || servers == 4;
    REQUIRE(between(machine, Operation::AllReduce, gib(1)) ==
            (halves ? HcclBetween::HalvingDoubling : HcclBetween::Ring));
  }
}

TEST_CASE("variables choose and cut into loops", "[collectives][hccl]") {
  const HcclMachine four = a2(4);
  const std::vector<std::string> one{
      "HCCL_ALGO=allreduce=level0:NA;level1:NB/alltoall=level0:NA;level1:pairwise"};
  REQUIRE(between(four, Operation::AllReduce, gib(1), one) == HcclBetween::Nb);
  REQUIRE(between(four, Operation::AllGather, gib(1), one) == HcclBetween::Pipeline);
  REQUIRE(plan(four, Operation::AllToAll, mib(1), one).way.inside == HcclInside::None);
  REQUIRE(plan(four, Operation::AllToAll, mib(1)).way ==
          HcclWay{.inside = HcclInside::Mesh, .between = HcclBetween::Pairwise});
  const std::vector<std::string> ring{"HCCL_ALGO=level0:NA;level1:ring", "HCCL_BUFFSIZE=100"};
  const HcclPlan loops = plan(four, Operation::AllReduce, gib(1), ring);
  REQUIRE(loops.loops == 11);
  REQUIRE(loops.loop == mib(100));
  REQUIRE(plan(four, Operation::AllReduce, gib(8)).loops == 2);  // 32 x 200 MiB hold 6.25 GiB.
  REQUIRE(plan(four, Operation::ReduceScatter, gib(8)).loops == 4);
}

TEST_CASE("machines are read off the links of their NPUs", "[collectives][hccl]") {
  Cluster cluster = shipped_cluster("ascend-910b", {.nodes = 3});
  REQUIRE(hccl_machine(cluster).shape.servers == 3);
  REQUIRE(hccl_machine(cluster).shape.per_server == 8);
  std::vector<int> ranks{0, 1, 2, 3, 8, 9};
  keep_ranks(std::vector(cluster.gpus), ranks, cluster);
  const HcclMachine uneven = hccl_machine(cluster);
  REQUIRE_FALSE(uneven.is_even);
  REQUIRE(uneven.shape.servers == 6);
  REQUIRE(choose_hccl(uneven, {}, Operation::AllReduce, gib(1)).way ==
          HcclWay{.between = HcclBetween::Ring});
}

TEST_CASE("what is not HCCL's is refused in one line", "[collectives][hccl]") {
  const auto parse = [](const std::string& text) {
    return HcclEnvironment::parse(std::vector<std::string>{text});
  };
  REQUIRE_THROWS_WITH(parse("NCCL_ALGO=Ring"),
                      "--env: expected HCCL_ALGO or HCCL_BUFFSIZE with --runtime hccl, found "
                      "\"NCCL_ALGO=Ring\"");
  REQUIRE_THROWS_WITH(parse("HCCL_ALGO=level0:NA;level1:AHC"),
                      "--env HCCL_ALGO: expected level0:NA;level1: with ring, H-D_R, NHR, NB, "
                      "pipeline or pairwise, found \"level1:AHC\"");
  REQUIRE_THROWS_AS(parse("HCCL_ALGO=gather=level1:ring"), ConfigError);
  REQUIRE_THROWS_AS(parse("HCCL_BUFFSIZE=0"), ConfigError);
  REQUIRE_THROWS_WITH(plan(a2(2), Operation::Broadcast, mib(1)),
                      "--runtime hccl: expected all_reduce, all_gather, reduce_scatter, alltoall "
                      "or sendrecv, found broadcast; --runtime plain has it");
  const std::vector<std::string> pipeline{"HCCL_ALGO=level0:NA;level1:pipeline"};
  REQUIRE_THROWS_AS(plan(a2(2), Operation::AllToAll, mib(1), pipeline), ConfigError);
  const Cluster other = shipped_cluster("dgx-h100", {});
  REQUIRE_THROWS_WITH(hccl_machine(other),
                      "--runtime hccl: expected Ascend-910A or Ascend-910B, found "
                      "H100-SXM");
}

}  // namespace trainyard
