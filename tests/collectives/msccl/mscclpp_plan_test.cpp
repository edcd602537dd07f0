// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "collectives/msccl/mscclpp_plan.h"

#include <string>

#include "support/imported.h"
#include "support/mscclpp_plans.h"

namespace trainyard {
namespace {

std::string error_of_plan(const std::string& text) {
  return complaint([&] { return read_mscclpp_plan(text, "p.json"); });
}

}  // namespace

TEST_CASE("a plan is GPUs, thread blocks and operations on memory here and elsewhere") {
  const MscclppPlan plan = read_mscclpp_plan(read_all_reduce(3), "p.json");
  REQUIRE(plan.algorithm.name == "plan");
  REQUIRE(plan.algorithm.operation == Operation::AllReduce);
  REQUIRE(plan.algorithm.in_place);
  REQUIRE(plan.algorithm.chunks == 3);
  REQUIRE(plan.steps.size() == 3);
  const std::vector<PlanStep>& steps = plan.steps[1][0];
  REQUIRE(steps.size() == 5);
  REQUIRE(steps[0].operation == PlanOperation::Signal);
  REQUIRE(steps[0].channels.size() == 2);
  REQUIRE(steps[0].channels[1].peer == 2);
  REQUIRE(steps[2].place == "gpus[1].threadblocks[0].ops[2]");
  REQUIRE(steps[2].operation == PlanOperation::Reduce);
  REQUIRE(steps[2].sources.size() == 3);
  REQUIRE(steps[2].sources[2].rank == 2);
  REQUIRE(steps[2].sources[2].buffer == MscclBuffer::Input);
  REQUIRE(steps[2].sources[2].first == 1);
}

TEST_CASE("thread blocks that share an operation each have their share of a chunk") {
  const MscclppPlan plan = read_mscclpp_plan(read_all_reduce(2, 4), "p.json");
  REQUIRE(plan.algorithm.chunks == 8);
  REQUIRE(plan.algorithm.gpus[1].input_chunks == 8);
  for (int block = 0; block < 4; ++block) {
    const PlanStep& step = plan.steps[1][static_cast<std::size_t>(block)][2];
    REQUIRE(step.sources[0].first == 4 + block);
    REQUIRE(step.sources[0].count == 1);
    // The channels of a block are its own.
    REQUIRE(step.channels.empty());
    REQUIRE(plan.steps[1][static_cast<std::size_t>(block)][0].channels[0].number == block);
  }
}

TEST_CASE("mistakes in a plan are one line with their place, and what is not modelled has a name") {
  const std::string text = put_all_gather(2);
  REQUIRE(error_of_plan("{").find("p.json:1:2: expected JSON") == 0);
  REQUIRE(error_of_plan("{\"name\": 1}") == "p.json: name: expected a text, found 1");
  REQUIRE(error_of_plan(with(text, "allgather", "gather")) ==
          "p.json: collective: expected one of allreduce, allgather, reducescatter, alltoall, "
          "found \"gather\"");
  REQUIRE(error_of_plan(with(text, "\"put\"", "\"push\""))
              .find("p.json: gpus[0].threadblocks[0].ops[0].name: expected one of nop, flush, ") ==
          0);
  REQUIRE(error_of_plan(with(text, "\"put\"", "\"glres\"")) ==
          "p.json: gpus[0].threadblocks[0].ops[0].name: expected an operation that is modelled "
          "(not one of switches, or a pipeline), found \"glres\"");
  REQUIRE(error_of_plan(with(text, "\"input_chunks\"", "\"chunks\"")) ==
          "p.json: gpus[0]: expected the key input_chunks, found none");
  REQUIRE(error_of_plan(with(text, R"("buffer_id":0)", R"("buffer_id":1)")) ==
          "p.json: gpus[0].threadblocks[0].ops[0].dst_buff[0].buffer_id: expected one of 1, found "
          "1");
  REQUIRE(error_of_plan(with(text, R"("index":0,"size":1)", R"("index":1,"size":2)")) ==
          "p.json: gpus[0].threadblocks[0].ops[0].src_buff[0]: expected chunks of a buffer of 2, "
          "found 1 to 2");
  REQUIRE(error_of_plan(with(text, R"("index":0,"size":1)", R"("index":0,"size":2)")) ==
          "p.json: gpus[0].threadblocks[0].ops[0]: expected targets as large as what is written, "
          "found chunks 1 and 2");
  REQUIRE(error_of_plan(with(text, "\"put\"", "\"copy\"")) ==
          "p.json: gpus[0].threadblocks[0].ops[0]: expected dst_buff in the memory of this GPU, "
          "found that of GPU 1");
  REQUIRE(error_of_plan(with(text, R"("output_chunks":2)", R"("output_chunks":3)")) ==
          "p.json: gpus[0]: expected buffers of all_gather for 2 GPUs, as the first one has, found "
          "input_chunks 1 and output_chunks 3");
}

}  // namespace trainyard
