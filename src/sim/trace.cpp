// SPDX-License-Identifier: Apache-2.0
// Recording of spans.
#include "sim/trace.h"

#include <utility>

#include "sim/check.h"

namespace trainyard {

TraceTrackId TraceRecorder::add_track(std::string group, std::string name) {
  tracks_.push_back({.group = std::move(group), .name = std::move(name)});
  return TraceTrackId(static_cast<std::uint32_t>(tracks_.size() - 1));
}

TraceNameId TraceRecorder::intern(std::string_view name) {
  if (const auto known = ids_.find(name); known != ids_.end()) {
    return known->second;
  }
  const TraceNameId id(static_cast<std::uint32_t>(names_.size()));
  names_.emplace_back(name);
  ids_.emplace(names_.back(), id);
  return id;
}

void TraceRecorder::add_span(TraceTrackId track, TraceNameId name, SimTime start, SimTime end,
                             const TraceDetail& detail) {
  CHECK(track.value() < tracks_.size(), "a span on a track that does not exist");
  CHECK(name.value() < names_.size(), "a span with a name that was not interned");
  CHECK(start <= end, "a span that ends before it starts");
  TraceDetail all = detail;
  all.texts.insert(all.texts.end(), said_.begin(), said_.end());
  const auto [known, is_new] = detail_ids_.try_emplace(
      std::move(all), TraceDetailId(static_cast<std::uint32_t>(details_.size())));
  if (is_new) {
    details_.push_back(known->first);
  }
  spans_.push_back(
      {.track = track, .name = name, .start = start, .end = end, .detail = known->second});
}

TraceCounterId TraceRecorder::add_counter(std::string group, std::string name) {
  counters_.push_back({.group = std::move(group), .name = std::move(name)});
  return TraceCounterId(static_cast<std::uint32_t>(counters_.size() - 1));
}

void TraceRecorder::add_sample(const TraceSample& sample) {
  CHECK(sample.counter.value() < counters_.size(), "a sample of a counter that does not exist");
  samples_.push_back(sample);
}

void TraceRecorder::add_flow(const TraceFlow& flow) {
  CHECK(flow.from.value() < tracks_.size(), "a flow from a track that does not exist");
  CHECK(flow.to.value() < tracks_.size(), "a flow to a track that does not exist");
  CHECK(flow.name.value() < names_.size(), "a flow with a name that was not interned");
  CHECK(flow.start <= flow.end, "a flow that ends before it starts");
  flows_.push_back(flow);
}

const std::string& TraceRecorder::name(TraceNameId id) const {
  CHECK(id.value() < names_.size(), "a trace name that was not interned");
  return names_[id.value()];
}

const TraceDetail& TraceRecorder::detail(TraceDetailId id) const {
  CHECK(id.value() < details_.size(), "details that no span has");
  return details_[id.value()];
}

}  // namespace trainyard
