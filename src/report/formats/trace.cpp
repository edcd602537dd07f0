// SPDX-License-Identifier: Apache-2.0
// Chrome trace events: "M" (metadata) names processes and threads, "X" is a complete span, "s" and
// "f" are the ends of an arrow between two spans, "C" is a sample of a counter. Written by hand
// because the JSON library has no decimal numbers.
#include "report/formats/trace.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
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

// Groups as processes, numbered from 1 in order of appearance.
class Processes {
 public:
  explicit Processes(std::vector<std::string>& events) : events_(events) {}
  std::size_t of(const std::string& group) {
    const auto [entry, is_new] = numbers_.try_emplace(group, numbers_.size() + 1);
    const std::size_t process = entry->second;
    if (is_new) {
      events_.push_back(
          metadata("process_name", process, 0, fmt::format(R"("name":{})", json_text(group))));
      events_.push_back(
          metadata("process_sort_index", process, 0, fmt::format(R"("sort_index":{})", process)));
    }
    return process;
  }

 private:
  std::vector<std::string>& events_;
  std::map<std::string, std::size_t> numbers_;
};

// The category and the arguments of a span: its bytes, and their rate in 1e9 bytes a second.
std::string details_of(const TraceDetail& detail, SimTime time) {
  std::string text =
      detail.category.empty() ? "" : fmt::format(R"(,"cat":{})", json_text(detail.category));
  std::vector<std::string> arguments;
  if (detail.bytes > Bytes(0)) {
    arguments.push_back(fmt::format(R"("bytes":{})", detail.bytes.count()));
    if (time > SimTime()) {
      arguments.push_back(
          fmt::format(R"-("rate (GB/s)":{:.4g})-",
                      static_cast<double>(detail.bytes.count()) / time.seconds() / 1e9));
    }
  }
  for (const auto& [key, value] : detail.texts) {
    arguments.push_back(fmt::format("{}:{}", json_text(key), json_text(value)));
  }
  if (!arguments.empty()) {
    text += fmt::format(R"(,"args":{{{}}})", fmt::join(arguments, ","));
  }
  return text;
}

void add_sample(std::size_t process, const std::string& name, SimTime time, double value,
                std::vector<std::string>& events) {
  events.push_back(fmt::format(R"({{"ph":"C","pid":{},"name":{},"ts":{},"args":{{"now":{:.6g}}}}})",
                               process, json_text(name), microseconds_text(time), value));
}

// Adds how many bytes of each category are carried in a second, over all spans together: the mean
// of each of equal parts of the time. A span carries its bytes evenly.
void add_rates(const TraceRecorder& recorder, Processes& processes,
               std::vector<std::string>& events) {
  constexpr std::int64_t kParts = 500;
  SimTime end;
  std::map<std::string, std::vector<double>> bytes;  // Indexed by part.
  for (const TraceSpan& span : recorder.spans()) {
    end = std::max(end, span.end);
  }
  const SimTime part(std::max<std::int64_t>(1, (end.picoseconds() + kParts - 1) / kParts));
  for (const TraceSpan& span : recorder.spans()) {
    const TraceDetail& detail = recorder.detail(span.detail);
    if (detail.bytes == Bytes(0)) {
      continue;
    }
    std::vector<double>& of = bytes.try_emplace(detail.category, kParts + 1, 0.0).first->second;
    const double whole =
        static_cast<double>(std::max<std::int64_t>(1, (span.end - span.start).picoseconds()));
    const auto last = static_cast<std::size_t>(span.end.picoseconds() / part.picoseconds());
    for (auto at = static_cast<std::size_t>(span.start.picoseconds() / part.picoseconds());
         at <= last; ++at) {
      const SimTime begin = part * static_cast<std::int64_t>(at);
      const SimTime from = std::max(begin, span.start);
      const SimTime to = std::min(begin + part, span.end);
      const double share =
          span.end == span.start ? 1.0 : static_cast<double>((to - from).picoseconds()) / whole;
      of[at] += share * static_cast<double>(detail.bytes.count());
    }
  }
  for (const auto& [category, of_parts] : bytes) {
    const std::size_t process = processes.of("carried");
    double before = -1.0;
    for (std::size_t at = 0; at < of_parts.size(); ++at) {
      const double rate = of_parts[at] / part.seconds() / 1e9;
      if (rate != before) {
        add_sample(process, category + " (GB/s)", part * static_cast<std::int64_t>(at), rate,
                   events);
      }
      before = rate;
    }
  }
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
  std::vector<std::size_t> process_of_track;
  std::vector<std::string> events;
  Processes processes(events);
  for (std::size_t i = 0; i < recorder.tracks().size(); ++i) {
    const TraceTrack& track = recorder.tracks()[i];
    const std::size_t process = processes.of(track.group);
    events.push_back(metadata("thread_name", process, i + 1,
                              fmt::format(R"("name":{})", json_text(track.name))));
    events.push_back(
        metadata("thread_sort_index", process, i + 1, fmt::format(R"("sort_index":{})", i + 1)));
    process_of_track.push_back(process);
  }
  for (const TraceSpan& span : recorder.spans()) {
    const std::size_t track = span.track.value();
    const SimTime time = span.end - span.start;
    events.push_back(fmt::format(
        R"({{"ph":"X","pid":{},"tid":{},"name":{},"ts":{},"dur":{}{}}})", process_of_track[track],
        track + 1, json_text(recorder.name(span.name)), microseconds_text(span.start),
        microseconds_text(time), details_of(recorder.detail(span.detail), time)));
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
  for (const TraceSample& sample : recorder.samples()) {
    const TraceCounter& counter = recorder.counters()[sample.counter.value()];
    add_sample(processes.of(counter.group), counter.name, sample.time, sample.value, events);
  }
  add_rates(recorder, processes, events);
  return fmt::format("{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n{}\n]}}\n",
                     fmt::join(events, ",\n"));
}

}  // namespace trainyard
