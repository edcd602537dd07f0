// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "collectives/msccl/msccl_xml.h"

#include <string>

#include "sim/config_error.h"
#include "support/msccl_files.h"

namespace trainyard {
namespace {

std::string error_of(const std::string& text) {
  try {
    (void)read_msccl_xml(text, "a.xml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::string file(const std::string& algorithm, const std::string& inside) {
  return "<algo " + algorithm + ">\n" + inside + "\n</algo>\n";
}

const std::string kTwo =
    R"(name="n" proto="LL" nchannels="1" nchunksperloop="1" ngpus="1" coll="allreduce")";

std::string with_step(const std::string& step) {
  return file(kTwo, R"(<gpu id="0" i_chunks="1" o_chunks="1" s_chunks="0">
<tb id="0" send="-1" recv="-1" chan="0">
)" + step + "\n</tb></gpu>");
}

TEST_CASE("an MSCCL file is read as it is") {
  const MscclAlgorithm ring = read_msccl_xml(msccl_ring_all_reduce(4), "a.xml");
  REQUIRE(ring.name == "ring");
  REQUIRE(ring.protocol == "Simple");
  REQUIRE(ring.operation == Operation::AllReduce);
  REQUIRE(ring.in_place);
  REQUIRE(ring.chunks == 4);
  REQUIRE(ring.gpus.size() == 4);
  REQUIRE(ring.gpus[3].input_chunks == 4);
  const MscclBlock& block = ring.gpus[3].blocks.at(0);
  REQUIRE(block.send_peer == 0);
  REQUIRE(block.receive_peer == 2);
  REQUIRE(block.steps.size() == 7);
  REQUIRE(block.steps[1].type == MscclStepType::ReceiveReduceSend);
  REQUIRE(block.steps[1].source_offset == 2);
  REQUIRE(block.steps[1].place.line == 5 + 3 * 11);
  REQUIRE(block.steps[1].place.column == 8);
  const MscclAlgorithm pairs = read_msccl_xml(msccl_all_pairs_all_reduce(3), "a.xml");
  const MscclStep& add = pairs.gpus[0].blocks.at(2).steps.at(1);
  REQUIRE(add.type == MscclStepType::Reduce);
  REQUIRE(add.source_buffer == MscclBuffer::Scratch);
  REQUIRE(add.target_buffer == MscclBuffer::Input);
  REQUIRE(add.depends_on_block == 1);
  REQUIRE(add.depends_on_step == 1);
  REQUIRE(add.is_depended_on);
}

TEST_CASE("what is no MSCCL file is refused in one line") {
  REQUIRE(error_of("") == "a.xml:1:1: expected XML, found a mistake: no document element found");
  REQUIRE(error_of("<system/>") == "a.xml:1:2: expected the element \"algo\", found \"system\"");
  REQUIRE(error_of(file(kTwo + R"( speed="1")", "")) ==
          "a.xml:1:2: algo: unknown attribute \"speed\"; known: name, proto, nchannels, "
          "nchunksperloop, ngpus, coll, inplace, outofplace, redop, root, nthreads, minBytes, "
          "maxBytes, min_bytes, max_bytes, maxcount, nthreadblocks");
  REQUIRE(error_of(file(kTwo, "")) ==
          "a.xml:1:2: algo: expected ngpus, 1, elements \"gpu\", found 0");
  REQUIRE(error_of(file(kTwo, "<tb/>")) ==
          "a.xml:2:2: algo: expected elements \"gpu\" only, found \"tb\"");
  REQUIRE(error_of(file(kTwo, R"(<gpu id="1" i_chunks="1" o_chunks="1" s_chunks="0"/>)")) ==
          "a.xml:2:2: gpu[0]: expected id 0, found 1");
  REQUIRE(error_of(file(kTwo, R"(<gpu id="0" i_chunks="1" o_chunks="1"/>)")) ==
          "a.xml:2:2: gpu[0]: missing attribute \"s_chunks\"");
  REQUIRE(
      error_of(file(R"(name="n" nchannels="33" nchunksperloop="1" ngpus="1" coll="reduce")", "")) ==
      "a.xml:1:2: algo: nchannels: expected a whole number from 1 to 32, found \"33\"");
  REQUIRE(error_of(file(R"(nchannels="1" nchunksperloop="1" ngpus="1" coll="sum")", "")) ==
          "a.xml:1:2: algo: coll: expected one of allreduce, allgather, reduce_scatter, alltoall, "
          "broadcast, reduce, custom, found \"sum\"");
}

TEST_CASE("a step that MSCCL would not run is refused with its line") {
  REQUIRE(error_of(with_step(R"(<step s="0" type="send"/>)")) ==
          "a.xml:4:2: gpu[0].tb[0].step[0]: type: expected one of s, r, rcs, rrs, rrc, rrcs, cpy, "
          "re, ra, nop, found \"send\"");
  REQUIRE(error_of(with_step(R"(<step s="0" type="cpy" srcbuf="x"/>)")) ==
          "a.xml:4:2: gpu[0].tb[0].step[0]: srcbuf: expected one of i, o, s, found \"x\"");
  const std::string copy = R"(type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" )";
  REQUIRE(error_of(with_step("<step s=\"0\" " + copy + "cnt=\"73\"/>")) ==
          "a.xml:4:2: gpu[0].tb[0].step[0]: cnt: expected a whole number from 1 to 72, found "
          "\"73\"");
  REQUIRE(error_of(with_step("<step s=\"0\" " + copy + "cnt=\"1\" depid=\"0\"/>")) ==
          "a.xml:4:2: gpu[0].tb[0].step[0]: expected both depid and deps, or -1 for both");
  std::string many;
  for (int step = 0; step <= 256; ++step) {
    many += "<step s=\"" + std::to_string(step) + "\" type=\"nop\"/>\n";
  }
  REQUIRE(error_of(with_step(many)) ==
          "a.xml:260:2: gpu[0].tb[0].step[256]: expected at most 256 steps of a thread block, as "
          "MSCCL runs them, found more");
}

}  // namespace
}  // namespace trainyard
