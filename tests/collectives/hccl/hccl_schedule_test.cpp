// SPDX-License-Identifier: Apache-2.0
// Every way of HCCL is proved to be its operation, and sends what its documents say: so many steps,
// so many blocks in each.
#include "support/catch.h"

#include "collectives/hccl/hccl_schedule.h"

#include <bit>
#include <map>

#include "collectives/schedule/semantics.h"

namespace trainyard {
namespace {

void require_proof(Operation operation, const HcclShape& shape, const HcclWay& way) {
  INFO(to_string(operation) << " on " << shape.servers << " x " << shape.per_server << ", "
                            << to_string(way.inside) << "+" << to_string(way.between));
  const auto schedule = hccl_schedule(operation, shape, way);
  const auto violation = find_violation(*schedule);
  INFO((violation ? violation->text : ""));
  REQUIRE_FALSE(violation.has_value());
}

constexpr HcclBetween kReducing[] = {HcclBetween::Ring, HcclBetween::HalvingDoubling,
                                     HcclBetween::Nhr, HcclBetween::Nb, HcclBetween::Pipeline};
constexpr Operation kReduced[] = {Operation::AllReduce, Operation::AllGather,
                                  Operation::ReduceScatter};

}  // namespace

TEST_CASE("all ways between servers are proved", "[collectives][hccl]") {
  for (std::uint32_t servers = 1; servers <= 16; ++servers) {
    for (const std::uint32_t per_server : {1U, 2U, 3U, 4U}) {
      const HcclShape shape{.servers = servers, .per_server = per_server};
      const HcclInside inside = per_server > 1 ? HcclInside::Mesh : HcclInside::None;
      for (const Operation operation : kReduced) {
        for (const HcclBetween between : kReducing) {
          require_proof(operation, shape, {.inside = inside, .between = between});
        }
      }
      require_proof(Operation::AllReduce, shape,
                    {.inside = inside, .between = HcclBetween::NhrTree});
    }
  }
  for (std::uint32_t servers = 17; servers <= 33; ++servers) {
    for (const Operation operation : kReduced) {
      require_proof(operation, {.servers = servers}, {.between = HcclBetween::Nhr});
    }
  }
}

TEST_CASE("a server of eight, a star and exchanges are proved", "[collectives][hccl]") {
  const HcclShape server{.servers = 1, .per_server = 8};
  for (const Operation operation : kReduced) {
    require_proof(operation, server, {.inside = HcclInside::Mesh});
  }
  for (std::uint32_t ranks = 2; ranks <= 8; ++ranks) {
    require_proof(Operation::AllReduce, {.per_server = ranks}, {.inside = HcclInside::Star});
    require_proof(Operation::SendReceive, {.per_server = ranks}, {});
    require_proof(Operation::AllToAll, {.servers = ranks}, {.between = HcclBetween::Pairwise});
  }
  for (const std::uint32_t servers : {1U, 2U, 3U, 4U}) {
    require_proof(Operation::AllToAll, {.servers = servers, .per_server = 4},
                  {.inside = HcclInside::Mesh, .between = HcclBetween::Pairwise});
  }
}

TEST_CASE("NHR takes ceil(log2 N) steps of floor((N-1+d) / 2d) blocks", "[collectives][hccl]") {
  for (std::uint32_t ranks = 2; ranks <= 33; ++ranks) {
    const auto schedule =
        hccl_schedule(Operation::AllGather, {.servers = ranks}, {.between = HcclBetween::Nhr});
    std::uint32_t blocks = 0;
    std::uint32_t sends = 0;
    for (std::uint64_t index = 0; index < schedule->step_count(LaneId(0)); ++index) {
      const Step step = schedule->step(LaneId(0), index);
      if (step.kind == StepKind::Send) {
        const std::uint32_t distance =
            schedule->connection(step.connection).target.value();  // From rank 0.
        REQUIRE(step.chunks.count == (ranks - 1 + distance) / (2 * distance));
        blocks += step.chunks.count;
        ++sends;
      }
    }
    INFO(ranks);
    REQUIRE(sends == static_cast<std::uint32_t>(std::bit_width(ranks - 1)));
    REQUIRE(blocks == ranks - 1);  // Each other block once: no more than a ring.
  }
}

TEST_CASE("the pipeline sends a block between servers once, all_gather of serial levels g times",
          "[collectives][hccl]") {
  const HcclShape shape{.servers = 4, .per_server = 8};
  const auto crossing = [&](HcclBetween between) {
    const auto schedule = hccl_schedule(Operation::AllGather, shape,
                                        {.inside = HcclInside::Mesh, .between = between});
    std::uint32_t chunks = 0;
    for (std::uint64_t index = 0; index < schedule->step_count(LaneId(3)); ++index) {
      const Step step = schedule->step(LaneId(3), index);
      if (step.kind == StepKind::Send &&
          schedule->connection(step.connection).target.value() >= 8) {
        chunks += step.chunks.count;
      }
    }
    return chunks;
  };
  REQUIRE(crossing(HcclBetween::Pipeline) == 3);
  REQUIRE(crossing(HcclBetween::Ring) == 3 * 8);
}

}  // namespace trainyard
