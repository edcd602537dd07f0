// SPDX-License-Identifier: Apache-2.0
// MSCCL algorithms: those that are shipped, their time, and planted mistakes with their lines.
#include "support/catch.h"

#include "collectives/msccl/msccl_schedule.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "collectives/schedule/semantics.h"
#include "sim/config_error.h"
#include "support/collective_run.h"
#include "support/msccl_files.h"
#include "support/paths.h"

namespace trainyard {
namespace {

std::unique_ptr<Schedule> schedule_of(const std::string& text) {
  return msccl_schedule(read_msccl_xml(text, "a.xml"), "a.xml");
}

SimTime time_of(const std::string& text, int ranks, std::int64_t size) {
  const CollectiveRun run =
      run_schedule(idle_switch(ranks), *schedule_of(text), Bytes(size), Fidelity::Flow);
  REQUIRE_FALSE(run.violation.has_value());
  return run.finish;
}

TEST_CASE("the shipped algorithms are what the generators write") {
  const std::filesystem::path folder = source_dir() / "configs/algorithms";
  for (const auto& [file, text] : {std::pair{"allreduce_ring_8.xml", msccl_ring_all_reduce(8)},
                                   {"allreduce_allpairs_8.xml", msccl_all_pairs_all_reduce(8)},
                                   {"allgather_doubling_8.xml", msccl_doubling_all_gather(8)}}) {
    INFO(file);
    if (std::getenv("UPDATE_GOLDEN") != nullptr) {
      std::ofstream(folder / file, std::ios::binary) << text;
    }
    std::stringstream shipped;
    shipped << std::ifstream(folder / file, std::ios::binary).rdbuf();
    REQUIRE(shipped.str() == text);
    REQUIRE(schedule_of(text)->shape().ranks == 8);
  }
}

TEST_CASE("imported algorithms are proved for 2 to 33 GPUs") {
  for (int gpus = 2; gpus <= 33; ++gpus) {
    INFO(gpus);
    REQUIRE_NOTHROW(schedule_of(msccl_ring_all_reduce(gpus)));
    if (gpus <= 32) {  // Thread blocks of a channel.
      REQUIRE_NOTHROW(schedule_of(msccl_all_pairs_all_reduce(gpus)));
    }
  }
  for (const int gpus : {2, 4, 8, 16, 32}) {
    REQUIRE_NOTHROW(schedule_of(msccl_doubling_all_gather(gpus)));
  }
}

TEST_CASE("imported algorithms take the time of the same ones here") {
  for (const int gpus : {2, 4, 8}) {
    for (const std::int64_t block : {0, 1, 4096, 1'000'003}) {
      const std::int64_t size = block * gpus;
      const auto own = [&](Algorithm algorithm, Operation operation) {
        return idle_time({.algorithm = algorithm, .operation = operation, .ranks = gpus},
                         Bytes(size), Fidelity::Flow);
      };
      INFO(gpus << " GPUs, blocks of " << block);
      REQUIRE(time_of(msccl_ring_all_reduce(gpus), gpus, size) ==
              own(&kRing, Operation::AllReduce));
      REQUIRE(time_of(msccl_doubling_all_gather(gpus), gpus, size) ==
              own(&kHalvingDoubling, Operation::AllGather));
      // Everybody to everybody, twice.
      REQUIRE(time_of(msccl_all_pairs_all_reduce(gpus), gpus, size) ==
              own(&kDirect, Operation::AllToAll) * 2);
    }
  }
}

// Two GPUs with a thread block each that is joined to the other's. Of a step: type, source, target
// and count, such as "rrc i0 o0 1".
std::string pair_of(const std::string& collective, int chunks,
                    const std::vector<std::vector<std::string>>& steps) {
  std::string text = "<algo nchannels=\"1\" ngpus=\"2\" inplace=\"0\" nchunksperloop=\"" +
                     std::to_string(chunks) + "\" coll=" + collective + ">\n";
  const bool is_scatter = collective.find("scatter") != std::string::npos;
  const bool is_gather = collective.find("gather") != std::string::npos;
  for (std::size_t gpu = 0; gpu < 2; ++gpu) {
    text += "<gpu id=\"" + std::to_string(gpu) + "\" s_chunks=\"0\" i_chunks=\"" +
            std::to_string(is_gather ? chunks / 2 : chunks) + "\" o_chunks=\"" +
            std::to_string(is_scatter ? chunks / 2 : chunks) + "\">\n<tb id=\"0\" chan=\"0\"";
    for (const char* key : {"send", "recv"}) {
      text += " " + std::string(key) + "=\"" + std::to_string(1 - gpu) + "\"";
    }
    text += ">\n";
    for (std::size_t index = 0; index < steps[gpu].size(); ++index) {
      std::istringstream words(steps[gpu][index]);
      std::string type;
      std::string source;
      std::string target;
      std::string count;
      words >> type >> source >> target >> count;
      text += "<step s=\"" + std::to_string(index) + "\" type=\"" + type + "\" srcbuf=\"" +
              source[0] + "\" srcoff=\"" + source.substr(1) + "\" dstbuf=\"" + target[0] +
              "\" dstoff=\"" + target.substr(1) + "\" cnt=\"" + count + "\"/>\n";
    }
    text += "</tb>\n</gpu>\n";
  }
  return text + "</algo>\n";
}

TEST_CASE("every collective is proved for what it means, out of place") {
  const auto error = [](const std::string& text) {
    try {
      (void)schedule_of(text);
    } catch (const ConfigError& found) {
      return std::string(found.what());
    }
    return std::string("proved");
  };
  // Two chunks of each GPU for each: the first two are those for, or of, GPU 0.
  REQUIRE(error(pair_of("\"alltoall\"", 4,
                        {{"cpy i0 o0 2", "s i2 i2 2", "r o2 o2 2"},
                         {"cpy i2 o2 2", "s i0 i0 2", "r o0 o0 2"}})) == "proved");
  REQUIRE(error(pair_of("\"alltoall\"", 4,
                        {{"cpy i0 o0 2", "s i2 i2 2", "r o2 o2 2"},
                         {"cpy i2 o2 2", "s i0 i0 1", "s i1 i1 1", "r o0 o0 2"}})) ==
          "a.xml:6:2: gpu[0].tb[0].step[2]: expects 2 chunk(s), but 1 chunk(s) were sent");
  REQUIRE(error(pair_of("\"alltoall\"", 4,
                        {{"cpy i0 o0 2", "s i3 i3 1", "s i2 i2 1", "r o2 o2 2"},
                         {"cpy i2 o2 2", "s i0 i0 2", "r o0 o0 1", "r o1 o1 1"}})) ==
          "a.xml:10:2: gpu[1]: rank 1 ends with {0} in o[0] instead of {0}, of chunk 5 instead of "
          "1");
  REQUIRE(error(pair_of("\"allgather\"", 4,
                        {{"cpy i0 o0 2", "s i0 i0 2", "r o2 o2 2"},
                         {"cpy i0 o2 2", "s i0 i0 2", "r o0 o0 2"}})) == "proved");
  // The sum is kept elsewhere than what it is made of.
  REQUIRE(error(pair_of("\"reduce_scatter\"", 4,
                        {{"s i2 i2 2", "rrc i0 o0 2"}, {"s i0 i0 2", "rrc i2 o0 2"}})) == "proved");
  REQUIRE(error(pair_of("\"reduce_scatter\"", 2,
                        {{"s i1 i1 1", "rrc i0 o0 1"}, {"s i0 i0 1", "rrc i0 o0 1"}})) ==
          "a.xml:11:2: gpu[1].tb[0].step[1]: adds a part of chunk 0 to a part of chunk 1 in a sum "
          "on its way");
  // GPU 0 sends the sum on without keeping it, and gets it back.
  REQUIRE(error(pair_of("\"allreduce\"", 1,
                        {{"rrs i0 i0 1", "r o0 o0 1"}, {"s i0 i0 1", "rcs o0 o0 1"}})) == "proved");
  REQUIRE(error(pair_of("\"allreduce\"", 1, {{"rrcs i0 o0 1"}, {"s i0 i0 1", "r o0 o0 1"}})) ==
          "proved");
  REQUIRE(error(pair_of("\"broadcast\" root=\"1\"", 2,
                        {{"r o0 o0 2"}, {"s i0 i0 2", "cpy i0 o0 2"}})) == "proved");
  REQUIRE(error(pair_of("\"broadcast\" root=\"0\"", 2,
                        {{"r o0 o0 2"}, {"s i0 i0 2", "cpy i0 o0 2"}})) ==
          "a.xml:9:2: gpu[1].tb[0].step[0]: sends i[0], which it does not hold");
  REQUIRE(error(pair_of("\"reduce\" root=\"1\"", 2, {{"s i0 i0 2"}, {"rrc i0 o0 2"}})) == "proved");
  REQUIRE(error(pair_of("\"reduce\" root=\"1\"", 2, {{"s i0 i0 2"}, {"r o0 o0 2"}})) ==
          "a.xml:7:2: gpu[1]: rank 1 ends with {0} in o[0] instead of {0, 1}");
}

// Two GPUs: each sends the other its half and its sum. Line 3 is the thread block of GPU 0, whose
// steps are lines 4 to 6; GPU 1 has lines 8 to 13.
std::string two_gpus() {
  return R"(<algo nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">
<gpu id="0" i_chunks="2" o_chunks="0" s_chunks="1">
<tb id="0" send="1" recv="1" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1"/>
<step s="1" type="rrcs" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1"/>
<step s="2" type="r" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" hasdep="1"/>
</tb>
<tb id="1" send="-1" recv="-1" chan="0">
<step s="0" type="nop" depid="0" deps="2"/>
</tb>
</gpu>
<gpu id="1" i_chunks="2" o_chunks="0" s_chunks="0">
<tb id="0" send="0" recv="0" chan="0">
<step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1"/>
<step s="1" type="rrcs" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1"/>
<step s="2" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1"/>
</tb>
</gpu>
</algo>
)";
}

// The error after the first `old` from `line` on is replaced.
std::string error_after(int line, const std::string& old, const std::string& text) {
  std::string file = two_gpus();
  std::size_t at = 0;
  for (int here = 1; here < line; ++here) {
    at = file.find('\n', at) + 1;
  }
  at = file.find(old, at);
  REQUIRE(at != std::string::npos);
  file.replace(at, old.size(), text);
  try {
    (void)schedule_of(file);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("what is right is accepted") {
  REQUIRE(error_after(1, "algo", "algo") == "no error");
}

TEST_CASE("planted mistakes in an MSCCL file are refused with their line") {
  // An unmatched send: GPU 1 never receives the last message.
  REQUIRE(error_after(16, R"(type="r")", R"(type="nop")") ==
          "a.xml:5:2: gpu[0].tb[0].step[1]: rank 0 sends 1 message(s) to rank 1 that it never "
          "receives");
  // A wrong offset.
  REQUIRE(error_after(4, R"(srcoff="1")", R"(srcoff="0")") ==
          "a.xml:15:2: gpu[1].tb[0].step[1]: adds a part of chunk 0 to a part of chunk 1 in i[1]");
  REQUIRE(error_after(6, R"(dstoff="1")", R"(dstoff="0")") ==
          "a.xml:2:2: gpu[0]: rank 0 ends with {0, 1} in i[0] instead of {0, 1}, of chunk 1 "
          "instead of 0");
  // A missing reduction.
  REQUIRE(error_after(5, "rrcs", "rcs") ==
          "a.xml:2:2: gpu[0]: rank 0 ends with {1} in i[0] instead of {0, 1}");
  // A receive where a send should be; a block that waits for itself; all who wait first.
  REQUIRE(error_after(4, R"(type="s")", R"(type="rcs")") ==
          "a.xml:15:2: gpu[1].tb[0].step[1]: adds a part of chunk 0 to a part of chunk 1 in i[1]");
  REQUIRE(error_after(4, R"(depid="-1" deps="-1")", R"(depid="0" deps="2")") ==
          "a.xml:4:2: gpu[0].tb[0].step[0]: waits for ever for lane 0");
  std::string ring = msccl_ring_all_reduce(3);
  for (std::size_t at = 0; (at = ring.find("type=\"s\"", at)) != std::string::npos;) {
    ring.replace(at, 8, "type=\"nop\"");
  }
  REQUIRE_THROWS_WITH(schedule_of(ring),
                      "a.xml:5:8: gpu[0].tb[0].step[1]: waits for ever for rank 2");
  // A chunk out of range.
  REQUIRE(error_after(4, R"(srcoff="1")", R"(srcoff="2")") ==
          "a.xml:4:2: gpu[0].tb[0].step[0]: srcoff: expected chunks of a buffer of 2, found 2 to "
          "2");
  REQUIRE(error_after(6, R"(dstbuf="i" dstoff="1")", R"(dstbuf="s" dstoff="1")") ==
          "a.xml:6:2: gpu[0].tb[0].step[2]: dstoff: expected chunks of a buffer of 1, found 1 to "
          "1");
  // Data that are not there yet.
  REQUIRE(error_after(4, R"(srcbuf="i" srcoff="1")", R"(srcbuf="s" srcoff="0")") ==
          "a.xml:4:2: gpu[0].tb[0].step[0]: sends s[0], which it does not hold");
  // Messages of different lengths.
  REQUIRE(error_after(4, R"(srcoff="1" dstbuf="i" dstoff="1" cnt="1")",
                      R"(srcoff="0" dstbuf="i" dstoff="0" cnt="2")") ==
          "a.xml:15:2: gpu[1].tb[0].step[1]: expects 1 chunk(s), but 2 chunk(s) were sent");
  // A contribution that is added twice.
  REQUIRE(error_after(6, R"(type="r")", R"(type="rrc")") ==
          "a.xml:6:2: gpu[0].tb[0].step[2]: adds contributions {0} to i[1] a second time");
}

TEST_CASE("dangling dependencies and peers are refused with their line") {
  REQUIRE(error_after(9, R"(deps="2")", R"(deps="3")") ==
          "a.xml:9:2: gpu[0].tb[1].step[0]: depends on step 3 of tb 0, which does not exist");
  REQUIRE(error_after(9, R"(depid="0")", R"(depid="2")") ==
          "a.xml:9:2: gpu[0].tb[1].step[0]: depends on step 2 of tb 2, which does not exist");
  REQUIRE(error_after(9, R"(deps="2")", R"(deps="1")") ==
          "a.xml:9:2: gpu[0].tb[1].step[0]: depends on step 1 of tb 0, which has hasdep=\"0\" and "
          "never says that it is done");
  REQUIRE(error_after(3, R"(send="1")", R"(send="-1")") ==
          "a.xml:4:2: gpu[0].tb[0].step[0]: sends, but its thread block has send=\"-1\"");
  REQUIRE(error_after(3, R"(recv="1")", R"(recv="-1")") ==
          "a.xml:5:2: gpu[0].tb[0].step[1]: receives, but its thread block has recv=\"-1\"");
  REQUIRE(error_after(3, R"(recv="1")", R"(recv="2")") ==
          "a.xml:3:2: gpu[0].tb[0]: recv: expected another GPU from 0 to 1, or -1, found 2");
  REQUIRE(error_after(8, R"(send="-1")", R"(send="1")") ==
          "a.xml:8:2: gpu[0].tb[1]: send: expected one thread block for GPU 1 on channel 0, found "
          "tb[0] as well");
  REQUIRE(error_after(2, R"(i_chunks="2")", R"(i_chunks="3")") ==
          "a.xml:2:2: gpu[0]: i_chunks: expected at most 2 for all_reduce of 2 chunks on 2 GPUs, "
          "found 3");
  REQUIRE(error_after(1, R"(nchunksperloop="2" ngpus="2" coll="allreduce")",
                      R"(nchunksperloop="3" ngpus="2" coll="alltoall")") ==
          "a.xml:1:2: algo: nchunksperloop: expected a multiple of 2 GPUs, found 3");
}

}  // namespace
}  // namespace trainyard
