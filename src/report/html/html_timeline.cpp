// SPDX-License-Identifier: Apache-2.0
#include "report/html/html_timeline.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "report/formats/trace.h"

namespace trainyard {
namespace {

std::int64_t nanoseconds_of(SimTime time) {
  return time.picoseconds() / 1000;
}

void append_number(std::uint64_t value, std::string& bytes) {
  while (value >= 128U) {
    bytes += static_cast<char>(value % 128U + 128U);
    value /= 128U;
  }
  bytes += static_cast<char>(value);
}

// The length from which on spans are kept.
SimTime min_length(const TraceRecorder& recorder, std::size_t max) {
  std::vector<SimTime> lengths;
  for (const TraceSpan& span : recorder.spans()) {
    lengths.push_back(span.end - span.start);
  }
  if (lengths.size() <= max) {
    return {};
  }
  const auto cut = lengths.end() - static_cast<std::ptrdiff_t>(max);
  std::nth_element(lengths.begin(), cut, lengths.end());
  return *cut + picoseconds(1);  // Takes none of equal ones: which of them stay would be chance.
}

}  // namespace

std::string base64(const std::string& bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t three = 0;
    for (std::size_t index = 0; index < 3; ++index) {
      const std::uint32_t byte =
          at + index < bytes.size() ? static_cast<unsigned char>(bytes[at + index]) : 0U;
      three = three * 256U + byte;
    }
    for (std::size_t index = 0; index < 4; ++index) {
      const bool is_padding = at + index > bytes.size();
      text += is_padding ? '=' : kDigits[three >> (18U - 6U * index) & 63U];
    }
  }
  return text;
}

HtmlTimeline html_timeline(const TraceRecorder& recorder, std::size_t max) {
  const SimTime min = min_length(recorder, max);
  std::vector<std::vector<TraceSpan>> spans(recorder.tracks().size());
  std::size_t left_out = 0;
  for (const TraceSpan& span : recorder.spans()) {
    if (span.end - span.start < min) {
      ++left_out;
    } else {
      spans[span.track.value()].push_back(span);
    }
  }
  std::map<std::string, std::size_t> group_places;
  std::vector<std::pair<std::size_t, std::size_t>> order;  // Place of the group, track.
  for (std::size_t track = 0; track < spans.size(); ++track) {
    const std::size_t place =
        group_places.try_emplace(recorder.tracks()[track].group, group_places.size()).first->second;
    order.emplace_back(place, track);
  }
  std::sort(order.begin(), order.end());
  HtmlTimeline made;
  std::map<TraceNameId, std::uint64_t> names;
  std::string bytes;
  for (const auto& [place, track] : order) {
    std::vector<TraceSpan>& of_track = spans[track];
    if (of_track.empty()) {
      continue;
    }
    std::stable_sort(of_track.begin(), of_track.end(),
                     [](const TraceSpan& a, const TraceSpan& b) { return a.start < b.start; });
    made.tracks.push_back({{"group", recorder.tracks()[track].group},
                           {"name", recorder.tracks()[track].name},
                           {"count", of_track.size()}});
    std::int64_t last = 0;
    for (const TraceSpan& span : of_track) {
      const std::int64_t start = nanoseconds_of(span.start);
      const auto [name, is_new] = names.try_emplace(span.name, names.size());
      if (is_new) {
        made.names.push_back(recorder.name(span.name));
      }
      append_number(static_cast<std::uint64_t>(start - last), bytes);
      append_number(static_cast<std::uint64_t>(nanoseconds_of(span.end) - start), bytes);
      append_number(name->second, bytes);
      last = start;
    }
  }
  made.encoded = base64(bytes);
  if (left_out > 0) {
    made.note = fmt::format("{} operations shorter than {} us are left out", left_out,
                            microseconds_text(min));
  }
  return made;
}

}  // namespace trainyard
