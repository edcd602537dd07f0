// SPDX-License-Identifier: Apache-2.0
// Spans of simulated time on named tracks, for a timeline viewer (report/formats/trace.h writes
// them).
//
// Whoever may record takes a `TraceRecorder*`; null, the default, records nothing and costs one
// branch. Recording never changes a result.
#pragma once

#include <compare>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/ids.h"
#include "sim/units.h"

namespace trainyard {

using TraceTrackId = Id<struct TraceTrackTag>;
using TraceNameId = Id<struct TraceNameTag>;
using TraceDetailId = Id<struct TraceDetailTag>;
using TraceCounterId = Id<struct TraceCounterTag>;

// A line of the timeline. Tracks with the same group ("rank 3", "node 0 links") are shown together.
struct TraceTrack {
  std::string group;
  std::string name;
};

// Viewers say this of a span beside its name. Spans of one kind have one category, which viewers
// filter by; all bytes of a category that are on their way at a time are a counter.
struct TraceDetail {
  std::string category = {};
  Bytes bytes = {};  // Zero: of no bytes.
  std::vector<std::pair<std::string, std::string>> texts = {};

  friend auto operator<=>(const TraceDetail&, const TraceDetail&) = default;
};

struct TraceSpan {
  TraceTrackId track;
  TraceNameId name;
  SimTime start;
  SimTime end;
  TraceDetailId detail;
};

// A value over time, which stays until the next sample; the name ends with the unit: "memory
// (GiB)".
struct TraceCounter {
  std::string group;
  std::string name;
};

struct TraceSample {
  TraceCounterId counter;
  SimTime time;
  double value = 0.0;
};

// An arrow from a span to another one: each end is a time at which its span runs.
struct TraceFlow {
  TraceTrackId from;
  TraceTrackId to;
  TraceNameId name;
  SimTime start;
  SimTime end;
};

class TraceRecorder {
 public:
  TraceRecorder() = default;
  TraceRecorder(const TraceRecorder&) = delete;
  TraceRecorder& operator=(const TraceRecorder&) = delete;

  TraceTrackId add_track(std::string group, std::string name);
  // The id of a span name; the same text gives the same id.
  TraceNameId intern(std::string_view name);

  // Records [start, end]; start must not be after end. Spans of one track should nest or not
  // overlap: viewers draw anything else wrongly.
  void add_span(TraceTrackId track, TraceNameId name, SimTime start, SimTime end,
                const TraceDetail& detail = {});
  void add_span(TraceTrackId track, std::string_view name, SimTime start, SimTime end,
                const TraceDetail& detail = {}) {
    add_span(track, intern(name), start, end, detail);
  }
  // Adds a text to the details of all spans from now on: "algorithm" and "ring".
  void say(std::string key, std::string text) {
    said_.emplace_back(std::move(key), std::move(text));
  }

  TraceCounterId add_counter(std::string group, std::string name);
  // Samples of a counter come in the order of their times.
  void add_sample(const TraceSample& sample);

  // `start` must not be after `end`.
  void add_flow(const TraceFlow& flow);

  [[nodiscard]] std::span<const TraceTrack> tracks() const { return tracks_; }
  // Returns the spans in the order of recording.
  [[nodiscard]] std::span<const TraceSpan> spans() const { return spans_; }
  [[nodiscard]] std::span<const TraceFlow> flows() const { return flows_; }
  [[nodiscard]] std::span<const TraceCounter> counters() const { return counters_; }
  [[nodiscard]] std::span<const TraceSample> samples() const { return samples_; }
  [[nodiscard]] const std::string& name(TraceNameId id) const;
  [[nodiscard]] const TraceDetail& detail(TraceDetailId id) const;

 private:
  std::vector<TraceTrack> tracks_;
  std::vector<TraceSpan> spans_;
  std::vector<TraceFlow> flows_;
  std::vector<std::string> names_;
  std::map<std::string, TraceNameId, std::less<>> ids_;
  std::vector<TraceDetail> details_;
  std::map<TraceDetail, TraceDetailId> detail_ids_;
  std::vector<std::pair<std::string, std::string>> said_;
  std::vector<TraceCounter> counters_;
  std::vector<TraceSample> samples_;
};

}  // namespace trainyard
