// SPDX-License-Identifier: Apache-2.0
// Plans of MSCCL++: proved, timed against closed forms, and planted mistakes with their places.
#include "support/catch.h"

#include "collectives/msccl/mscclpp_schedule.h"

#include <string>

#include "collectives/msccl/msccl_schedule.h"
#include "collectives/schedule/semantics.h"
#include "support/collective_run.h"
#include "support/imported.h"
#include "support/msccl_files.h"
#include "support/mscclpp_plans.h"

namespace trainyard {
namespace {

std::unique_ptr<Schedule> plan_schedule(const std::string& text) {
  return mscclpp_schedule(read_mscclpp_plan(text, "p.json"), "p.json");
}

std::string error_of_schedule(const std::string& text) {
  return complaint([&] { return plan_schedule(text); });
}

SimTime plan_time(const std::string& text, int ranks, std::int64_t size) {
  const std::unique_ptr<Schedule> schedule = plan_schedule(text);
  const CollectiveRun run =
      run_schedule(idle_switch(ranks), *schedule, Bytes(size), Fidelity::Flow);
  REQUIRE_FALSE(run.violation.has_value());
  return run.finish;
}

// Two thread blocks, of which the second one signals once a semaphore, or a barrier, says that the
// first one has put.
std::string two_block_gather(const std::string& after, const std::string& before) {
  return plan_of({.collective = "allgather", .output_chunks = 2, .remote = "o", .blocks = 2},
                 [&](int rank, int block) {
                   const std::string put =
                       fmt::format(R"({{"name":"put","src_buff":[{}],"dst_buff":[{}],)"
                                   R"("channel_type":"memory"}},{})",
                                   plan_buffer(R"("type":"o")", rank, 1),
                                   plan_buffer(R"("buffer_id":0)", rank, 1), after);
                   return block == 0 ? put
                                     : before + "," + plan_on_channels("signal", 2) + "," +
                                           plan_on_channels("wait", 2);
                 });
}

}  // namespace

TEST_CASE("plans are proved for 2 to 16 GPUs") {
  for (int gpus = 2; gpus <= 16; ++gpus) {
    INFO(gpus);
    REQUIRE_NOTHROW(plan_schedule(put_all_gather(gpus)));
    REQUIRE_NOTHROW(plan_schedule(read_all_reduce(gpus)));
    REQUIRE_NOTHROW(plan_schedule(packet_all_reduce(gpus)));
  }
  REQUIRE_NOTHROW(plan_schedule(read_all_reduce(4, 3)));
}

TEST_CASE("puts take the time of the sends of MSCCL, and reads ask first") {
  for (const std::int64_t size : {8, 8'000'000}) {
    const CollectiveRun sent = run_schedule(
        idle_switch(2), *msccl_schedule(read_msccl_xml(msccl_doubling_all_gather(2), "a"), "a"),
        Bytes(size), Fidelity::Flow);
    const SimTime put = plan_time(put_all_gather(2), 2, size);
    REQUIRE(put == sent.finish);
    // Half of the data goes each way, at first as an answer and then as the sum. Before them and
    // behind them GPUs signal, and a question comes first: three messages without bytes.
    const SimTime empty = plan_time(put_all_gather(2), 2, 0);
    const SimTime read = plan_time(read_all_reduce(2), 2, size);
    REQUIRE(read == put + put + empty + empty);
  }
}

TEST_CASE("thread blocks wait for each other at semaphores and barriers") {
  const std::string barrier = R"({"name":"barrier","barrier_id":0,"num_threadblocks":2})";
  REQUIRE_NOTHROW(plan_schedule(two_block_gather(barrier, barrier)));
  const std::string release = R"({"name":"sem_release","semaphore_ids":[0]})";
  const std::string acquire = R"({"name":"sem_acquire","semaphore_ids":[0]})";
  REQUIRE_NOTHROW(plan_schedule(two_block_gather(release, acquire)));
  REQUIRE(error_of_schedule(two_block_gather(R"({"name":"nop"})", acquire)) ==
          "p.json: gpus[0].threadblocks[1].ops[0]: expected release 1 of the semaphore, found 0 in "
          "all");
  REQUIRE(error_of_schedule(two_block_gather(barrier + "," + barrier, barrier)) ==
          "p.json: gpus[0].threadblocks[0].ops[2]: expected the barrier as often in each of its "
          "thread blocks, found it less often in one");
}

TEST_CASE("what a plan forgets is one line with its place") {
  const std::string gather = put_all_gather(2);
  REQUIRE(error_of_schedule(with(gather, R"("name":"signal")", R"("name":"flush")")) ==
          "p.json: gpus[1].threadblocks[0].ops[3]: expected signal 1 of GPU 0 on this channel, "
          "found 0 in all");
  const std::string packets = packet_all_reduce(2);
  REQUIRE(error_of_schedule(with(packets, R"("name":"ppkt")", R"("name":"put")")) ==
          "p.json: gpus[1].threadblocks[0].ops[1]: expected packets in s[0], found nothing that "
          "writes them");
  // A chunk that is put in the wrong place.
  REQUIRE(
      error_of_schedule(with(gather, R"("buffer_id":0,"index":0)", R"("buffer_id":0,"index":1)"))
          .find("p.json: gpus[") == 0);
}

}  // namespace trainyard
