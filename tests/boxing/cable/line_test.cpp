// SPDX-License-Identifier: Apache-2.0
// A cable's port and line in virtual time: each figure is counted by hand.
#include "line.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "support/catch.h"

namespace trainyard::box {
namespace {

constexpr unsigned char kNotCapable = 0;
constexpr unsigned char kCapable = 2;
constexpr std::int64_t kFrame = 1514;  // With kOverheadBytes 1538 on the line.

// The sum of an IPv4 header's words, which is 0xffff with a right check sum (RFC 791).
unsigned header_sum(const std::vector<unsigned char>& frame) {
  unsigned sum = 0;
  for (std::size_t i = 14; i < 34; i += 2) {
    sum += static_cast<unsigned>(frame[i]) << 8U | frame[i + 1];
  }
  return (sum & 0xffffU) + (sum >> 16U);
}

std::vector<unsigned char> ipv4_frame(unsigned char service, unsigned char identity = 7) {
  std::vector<unsigned char> frame(kFrame, 0);
  const std::array<unsigned char, 20> header = {
      0x45, service, 0x05, 0xdc, 0, identity, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2};
  frame[12] = 0x08;
  std::copy(header.begin(), header.end(), frame.begin() + 14);
  const unsigned sum = ~header_sum(frame) & 0xffffU;
  frame[24] = static_cast<unsigned char>(sum >> 8U);
  frame[25] = static_cast<unsigned char>(sum & 0xffU);
  return frame;
}

TEST_CASE("frames of a cable leave one after the other and arrive after its delay") {
  Line line({.bits_per_second = 50'000'000, .delay_ns = 1'000'000});
  std::vector<unsigned char> frame = ipv4_frame(kNotCapable);
  const std::int64_t takes_ns = 246'080;  // 1538 bytes at 50 Mb/s.
  REQUIRE(line.send(0, frame) == takes_ns + 1'000'000);
  REQUIRE(line.send(0, frame) == 2 * takes_ns + 1'000'000);
  REQUIRE(line.send(10 * takes_ns, frame) == 11 * takes_ns + 1'000'000);
  REQUIRE(line.counts().frames == 3);
  REQUIRE(line.counts().bytes == 3 * kFrame);
}

TEST_CASE("a cable without a rate only delays") {
  Line line({.delay_ns = 5});
  std::vector<unsigned char> frame = ipv4_frame(kNotCapable);
  REQUIRE(line.send(100, frame) == 105);
  REQUIRE(line.send(100, frame) == 105);
}

TEST_CASE("a port of a cable drops what its queue has no room for") {
  Line line({.bits_per_second = 1'000'000, .queue_bytes = 4 * 1538});
  std::vector<unsigned char> frame = ipv4_frame(kNotCapable);
  int carried = 0;
  for (int i = 0; i < 10; ++i) {
    carried += line.send(0, frame) ? 1 : 0;
  }
  // The first is on the line and counts until it has left.
  REQUIRE(carried == 4);
  REQUIRE(line.counts().dropped == 6);
  REQUIRE(line.counts().most_waiting_bytes <= 4 * 1538);
}

TEST_CASE("a cable marks frames that find so many bytes before them, if they take part in ECN") {
  Line line({.bits_per_second = 1'000'000, .mark_from_bytes = 2 * 1538});
  for (int i = 0; i < 4; ++i) {
    std::vector<unsigned char> frame = ipv4_frame(kCapable);
    REQUIRE(line.send(0, frame));
    REQUIRE((frame[15] & 3) == (i < 2 ? kCapable : 3));
    REQUIRE(header_sum(frame) == 0xffff);
  }
  std::vector<unsigned char> other = ipv4_frame(kNotCapable);
  REQUIRE(line.send(0, other));
  REQUIRE(other == ipv4_frame(kNotCapable));
  REQUIRE(line.counts().marked == 2);
}

TEST_CASE("marked headers keep a right check sum, whatever it was") {
  for (unsigned identity = 0; identity < 256; ++identity) {
    for (const unsigned char service : std::array<unsigned char, 3>{1, 2, 3}) {
      std::vector<unsigned char> frame = ipv4_frame(service, static_cast<unsigned char>(identity));
      REQUIRE(mark(frame));
      REQUIRE(frame[15] == 3);
      REQUIRE(header_sum(frame) == 0xffff);
    }
  }
  std::vector<unsigned char> question(42, 0);
  question[12] = 0x08;
  question[13] = 0x06;  // ARP.
  REQUIRE_FALSE(mark(question));
}

TEST_CASE("a cable loses the share that it is told to, the same frames for the same seed") {
  const auto lost = [](std::uint64_t seed) {
    Line line({.loss = 0.01, .seed = seed});
    std::vector<unsigned char> frame = ipv4_frame(kNotCapable);
    std::vector<int> result;
    for (int i = 0; i < 100'000; ++i) {
      if (!line.send(i, frame)) {
        result.push_back(i);
      }
    }
    REQUIRE(line.counts().lost == static_cast<std::int64_t>(result.size()));
    return result;
  };
  const std::vector<int> first = lost(1);
  // Six standard deviations of a binomial distribution, sqrt(100,000 x 0.01 x 0.99) = 31.5.
  REQUIRE(first.size() > 1000 - 189);
  REQUIRE(first.size() < 1000 + 189);
  REQUIRE(lost(1) == first);
  REQUIRE(lost(2) != first);
}

TEST_CASE("a cable that loses everything still carries questions for addresses") {
  Line line({.loss = 1.0});
  std::vector<unsigned char> question(42, 0);
  question[12] = 0x08;
  question[13] = 0x06;
  std::vector<unsigned char> frame = ipv4_frame(kNotCapable);
  REQUIRE(line.send(0, question) == 0);
  REQUIRE(line.send(0, frame) == std::nullopt);
}

}  // namespace
}  // namespace trainyard::box
