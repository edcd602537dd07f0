// SPDX-License-Identifier: Apache-2.0
// What the page reads back: base64 of numbers of 7 bits a byte.
#include "support/catch.h"

#include "report/html/html_timeline.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainyard {
namespace {

std::string plain_of(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char digit : text) {
    if (digit == '=') {
      break;
    }
    bits = bits * 64U + static_cast<std::uint32_t>(kDigits.find(digit));
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> static_cast<unsigned>(count) & 255U);
    }
  }
  return bytes;
}

std::vector<std::uint64_t> numbers_of(const HtmlTimeline& timeline) {
  std::vector<std::uint64_t> numbers;
  std::uint64_t value = 0;
  std::uint64_t factor = 1;
  for (const char character : plain_of(timeline.encoded)) {
    const auto byte = static_cast<unsigned char>(character);
    value += (byte & 127U) * factor;
    factor *= 128;
    if (byte < 128U) {
      numbers.push_back(value);
      value = 0;
      factor = 1;
    }
  }
  return numbers;
}

}  // namespace

TEST_CASE("base64 is that of RFC 4648", "[html-timeline]") {
  REQUIRE(base64("").empty());
  REQUIRE(base64("f") == "Zg==");
  REQUIRE(base64("fo") == "Zm8=");
  REQUIRE(base64("foo") == "Zm9v");
  REQUIRE(base64("foobar") == "Zm9vYmFy");
  REQUIRE(base64("\xff\xfe") == "//4=");
}

TEST_CASE("a timeline has its tracks by group and its spans by start", "[html-timeline]") {
  TraceRecorder recorder;
  const TraceTrackId first = recorder.add_track("rank 0", "compute");
  const TraceTrackId other = recorder.add_track("rank 1", "compute");
  const TraceTrackId second = recorder.add_track("rank 0", "data");
  static_cast<void>(recorder.add_track("rank 2", "empty"));
  recorder.add_span(first, "b", microseconds(5), microseconds(6));
  recorder.add_span(first, "a", microseconds(1), microseconds(3));
  recorder.add_span(other, "a", microseconds(2), microseconds(4));
  recorder.add_span(second, "c", seconds(10), seconds(20));
  const HtmlTimeline timeline = html_timeline(recorder, 100);
  REQUIRE(timeline.tracks.size() == 3);
  REQUIRE(timeline.tracks[0]["count"] == 2);
  REQUIRE(timeline.tracks[1]["name"] == "data");
  REQUIRE(timeline.tracks[2]["group"] == "rank 1");
  REQUIRE(timeline.names == std::vector<std::string>{"a", "b", "c"});
  REQUIRE(timeline.note.empty());
  REQUIRE(numbers_of(timeline) == std::vector<std::uint64_t>{1000, 2000, 0, 4000, 1000, 1,
                                                             10'000'000'000, 10'000'000'000, 2,
                                                             2000, 2000, 0});
}

TEST_CASE("of too many spans the longest are kept, and the others counted", "[html-timeline]") {
  TraceRecorder recorder;
  const TraceTrackId track = recorder.add_track("rank 0", "compute");
  for (int index = 0; index < 10; ++index) {
    const SimTime start = microseconds(100 * index);
    recorder.add_span(track, "a", start, start + microseconds(index + 1));
  }
  const HtmlTimeline timeline = html_timeline(recorder, 4);
  REQUIRE(timeline.tracks.front()["count"] <= 4);
  REQUIRE(timeline.tracks.front()["count"] >= 3);
  REQUIRE(timeline.note.find("operations shorter than") != std::string::npos);
}

}  // namespace trainyard
