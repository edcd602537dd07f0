// SPDX-License-Identifier: Apache-2.0
// Spans of simulated time on named tracks, for a timeline viewer (report/formats/trace.h writes
// them).
//
// Whoever may record takes a `TraceRecorder*`; null, the default, records nothing and costs one
// branch. Recording never changes a result.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ids.h"
#include "sim/units.h"

namespace trainyard {

using TraceTrackId = Id<struct TraceTrackTag>;
using TraceNameId = Id<struct TraceNameTag>;

// A line of the timeline. Tracks with the same group ("rank 3", "node 0 links") are shown together.
struct TraceTrack {
  std::string group;
  std::string name;
};

struct TraceSpan {
  TraceTrackId track;
  TraceNameId name;
  SimTime start;
  SimTime end;
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
  void add_span(TraceTrackId track, TraceNameId name, SimTime start, SimTime end);
  void add_span(TraceTrackId track, std::string_view name, SimTime start, SimTime end) {
    add_span(track, intern(name), start, end);
  }

  // `start` must not be after `end`.
  void add_flow(const TraceFlow& flow);

  [[nodiscard]] std::span<const TraceTrack> tracks() const { return tracks_; }
  // Returns the spans in the order of recording.
  [[nodiscard]] std::span<const TraceSpan> spans() const { return spans_; }
  [[nodiscard]] std::span<const TraceFlow> flows() const { return flows_; }
  [[nodiscard]] const std::string& name(TraceNameId id) const;

 private:
  std::vector<TraceTrack> tracks_;
  std::vector<TraceSpan> spans_;
  std::vector<TraceFlow> flows_;
  std::vector<std::string> names_;
  std::map<std::string, TraceNameId, std::less<>> ids_;
};

}  // namespace trainyard
