// SPDX-License-Identifier: Apache-2.0
// A recorded timeline, small enough to stand in a page: spans in whole nanoseconds, as base64 of
// variable-length numbers (7 bits a byte, lowest first): for each span the start since that of the
// one before it on the track, the length, and the number of the name.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/trace.h"

namespace trainyard {

struct HtmlTimeline {
  std::string note = {};
  // Objects of `group`, `name` and `count`, the number of spans.
  nlohmann::ordered_json tracks = nlohmann::ordered_json::array();
  std::vector<std::string> names = {};
  std::string encoded = {};  // The spans of all tracks, one track after the other.
};

// Groups in the order of their first track. If there are more than `most` spans, the longest are
// kept, and the note says how many are not there. Tracks without spans are left out.
[[nodiscard]] HtmlTimeline html_timeline(const TraceRecorder& recorder, std::size_t max);

// RFC 4648.
[[nodiscard]] std::string base64(const std::string& bytes);

}  // namespace trainyard
