// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "report/formats/trace.h"

namespace trainyard {
namespace {

using namespace literals;

TEST_CASE("times are exact microseconds") {
  REQUIRE(microseconds_text(0_ps) == "0");
  REQUIRE(microseconds_text(1_ps) == "0.000001");
  REQUIRE(microseconds_text(1500_ns) == "1.5");
  REQUIRE(microseconds_text(10_us) == "10");
  REQUIRE(microseconds_text(SimTime::max()) == "9223372036854.775807");
}

TEST_CASE("a trace is written event by event") {
  TraceRecorder recorder;
  const TraceTrackId send = recorder.add_track("rank 0", "send");
  const TraceTrackId link = recorder.add_track("links", "nvlink \"0\"");
  recorder.add_span(send, "chunk 0", 0_us, 1500_ns);
  recorder.add_span(link, "a\nb", 1_ps, 3_ps);
  const std::string text = chrome_trace(recorder);
  REQUIRE(text ==
          R"({"displayTimeUnit":"ns","traceEvents":[
{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"rank 0"}},
{"ph":"M","pid":1,"tid":0,"name":"process_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"send"}},
{"ph":"M","pid":1,"tid":1,"name":"thread_sort_index","args":{"sort_index":1}},
{"ph":"M","pid":2,"tid":0,"name":"process_name","args":{"name":"links"}},
{"ph":"M","pid":2,"tid":0,"name":"process_sort_index","args":{"sort_index":2}},
{"ph":"M","pid":2,"tid":2,"name":"thread_name","args":{"name":"nvlink \"0\""}},
{"ph":"M","pid":2,"tid":2,"name":"thread_sort_index","args":{"sort_index":2}},
{"ph":"X","pid":1,"tid":1,"name":"chunk 0","ts":0,"dur":1.5},
{"ph":"X","pid":2,"tid":2,"name":"a\nb","ts":0.000001,"dur":0.000002}
]}
)");
  REQUIRE(nlohmann::json::parse(text)["traceEvents"].size() == 10);
}

TEST_CASE("arrows have two ends with one number") {
  TraceRecorder recorder;
  const TraceTrackId send = recorder.add_track("rank 0", "send");
  const TraceTrackId receive = recorder.add_track("rank 1", "receive");
  recorder.add_span(send, "chunk", 1_us, 2_us);
  recorder.add_span(receive, "chunk", 1_us, 3_us);
  recorder.add_flow(
      {.from = send, .to = receive, .name = recorder.intern("chunk"), .start = 1_us, .end = 2_us});
  const std::string text = chrome_trace(recorder);
  REQUIRE(text.find(R"({"ph":"s","pid":1,"tid":1,"id":1,"cat":"flow","name":"chunk","ts":1},
{"ph":"f","pid":2,"tid":2,"id":1,"cat":"flow","name":"chunk","ts":2,"bp":"e"})") !=
          std::string::npos);
}

TEST_CASE("spans of bytes have their category, rate and texts, and a counter of all of them") {
  TraceRecorder recorder;
  recorder.say("algorithm", "ring");
  const TraceTrackId track = recorder.add_track("rank 0", "send");
  recorder.add_span(track, "chunk", 0_us, 2_us, {.category = "unit", .bytes = Bytes(4'000)});
  recorder.add_span(track, "chunk", 2_us, 4_us, {.category = "unit", .bytes = Bytes(2'000)});
  const std::string text = chrome_trace(recorder);
  REQUIRE(text.find(R"-("ts":0,"dur":2,"cat":"unit","args":{"bytes":4000,"rate (GB/s)":2,)-"
                    R"-("algorithm":"ring"}})-") != std::string::npos);
  std::vector<std::pair<double, double>> samples;
  const nlohmann::json trace = nlohmann::json::parse(text);
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "C") {
      REQUIRE(event["name"] == "unit (GB/s)");
      samples.emplace_back(event["ts"], event["args"]["now"]);
    }
  }
  REQUIRE(samples == std::vector<std::pair<double, double>>{{0.0, 2.0}, {2.0, 1.0}, {4.0, 0.0}});
}

TEST_CASE("samples of a counter are written in its group") {
  TraceRecorder recorder;
  recorder.add_sample(
      {.counter = recorder.add_counter("rank 0", "memory (GiB)"), .time = 1_us, .value = 2.5});
  const std::string text = chrome_trace(recorder);
  const std::string expected =
      R"-({"ph":"C","pid":1,"name":"memory (GiB)","ts":1,"args":{"now":2.5}})-";
  REQUIRE(text.find(expected) != std::string::npos);
}

TEST_CASE("a trace of nothing is still a trace") {
  REQUIRE(nlohmann::json::parse(chrome_trace(TraceRecorder()))["traceEvents"].empty());
}

}  // namespace
}  // namespace trainyard
