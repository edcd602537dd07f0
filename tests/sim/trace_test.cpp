// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "sim/trace.h"

namespace trainyard {
namespace {

using namespace literals;

TEST_CASE("spans are kept in the order of recording, with their track and name") {
  TraceRecorder recorder;
  const TraceTrackId first = recorder.add_track("rank 0", "send");
  const TraceTrackId second = recorder.add_track("rank 0", "receive");
  recorder.add_span(second, "chunk 1", 5_us, 7_us);
  recorder.add_span(first, "chunk 0", 1_us, 1_us);
  REQUIRE(recorder.tracks().size() == 2);
  REQUIRE(recorder.tracks()[1].name == "receive");
  REQUIRE(recorder.spans().size() == 2);
  REQUIRE(recorder.spans()[0].track == second);
  REQUIRE(recorder.name(recorder.spans()[0].name) == "chunk 1");
  REQUIRE(recorder.spans()[1].start == 1_us);
  REQUIRE(recorder.spans()[1].end == 1_us);
}

TEST_CASE("arrows are kept in the order of recording") {
  TraceRecorder recorder;
  const TraceTrackId first = recorder.add_track("rank 0", "send");
  const TraceTrackId second = recorder.add_track("rank 1", "receive");
  const TraceNameId name = recorder.intern("chunk");
  recorder.add_flow({.from = first, .to = second, .name = name, .start = 1_us, .end = 2_us});
  REQUIRE(recorder.flows().size() == 1);
  REQUIRE(recorder.flows()[0].to == second);
}

TEST_CASE("a name is stored once") {
  TraceRecorder recorder;
  const TraceNameId name = recorder.intern("chunk");
  REQUIRE(recorder.intern("chunk") == name);
  REQUIRE(recorder.intern("other") != name);
  REQUIRE(recorder.name(name) == "chunk");
}

}  // namespace
}  // namespace trainyard
