// SPDX-License-Identifier: Apache-2.0
// Chrome trace events: "M" (metadata) names processes and threads, "X" is a complete span, "s" and
// "f" are the ends of an arrow between two spans. Written by hand because the JSON library has no
// decimal numbers.
#include "report/formats/trace.h"

#include <spdlog/fmt/fmt.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr std::int64_t kPicosecondsPerMicrosecond = 1'000'000;

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string metadata(std::string_view kind, std::size_t process, std::size_t thread,
                     const std::string& arguments) {
  return fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", process, thread,
                     kind, arguments);
}

}  // namespace

std::string microseconds_text(SimTime time) {
  CHECK(time >= SimTime(), "a trace begins at time zero");
  const std::int64_t whole = time.picoseconds() / kPicosecondsPerMicrosecond;
  const std::int64_t rest = time.picoseconds() % kPicosecondsPerMicrosecond;
  if (rest == 0) {
    return std::to_string(whole);
  }
  std::string text = fmt::format("{}.{:06}", whole, rest);
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

std::string chrome_trace(const TraceRecorder& recorder) {
  std::map<std::string, std::size_t>
      processes;  // Processes by group; numbered from 1 in order of appearance.
  std::vector<std::size_t> process_of_track;
  std::vector<std::string> events;
  for (std::size_t i = 0; i < recorder.tracks().size(); ++i) {
    const TraceTrack& track = recorder.tracks()[i];
    const auto [entry, is_new] = processes.try_emplace(track.group, processes.size() + 1);
    const std::size_t process = entry->second;
    if (is_new) {
      events.push_back(metadata("process_name", process, 0,
                                fmt::format(R"("name":{})", json_text(track.group))));
      events.push_back(
          metadata("process_sort_index", process, 0, fmt::format(R"("sort_index":{})", process)));
    }
    events.push_back(metadata("thread_name", process, i + 1,
                              fmt::format(R"("name":{})", json_text(track.name))));
    events.push_back(
        metadata("thread_sort_index", process, i + 1, fmt::format(R"("sort_index":{})", i + 1)));
    process_of_track.push_back(process);
  }
  for (const TraceSpan& span : recorder.spans()) {
    const std::size_t track = span.track.value();
    events.push_back(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"name":{},"ts":{},"dur":{}}})",
                                 process_of_track[track], track + 1,
                                 json_text(recorder.name(span.name)), microseconds_text(span.start),
                                 microseconds_text(span.end - span.start)));
  }
  for (std::size_t i = 0; i < recorder.flows().size(); ++i) {
    const TraceFlow& flow = recorder.flows()[i];
    const auto add_end = [&](std::string_view kind, TraceTrackId track, SimTime time,
                             std::string_view more) {
      events.push_back(
          fmt::format(R"({{"ph":"{}","pid":{},"tid":{},"id":{},"cat":"flow","name":{},"ts":{}{}}})",
                      kind, process_of_track[track.value()], track.value() + 1, i + 1,
                      json_text(recorder.name(flow.name)), microseconds_text(time), more));
    };
    add_end("s", flow.from, flow.start, "");
    add_end("f", flow.to, flow.end, R"(,"bp":"e")");
  }
  return fmt::format("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n",
                     fmt::join(events, ",\n"));
}

}  // namespace trainyard
