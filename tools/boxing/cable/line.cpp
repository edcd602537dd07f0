// SPDX-License-Identifier: Apache-2.0
#include "line.h"

#include <algorithm>

namespace trainyard::box {
namespace {

constexpr std::size_t kEthernetHeader = 14;
constexpr std::size_t kLeastIpv4Header = 20;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr unsigned kCongestionExperienced = 3;

}  // namespace

bool is_ipv4(std::span<const unsigned char> frame) {
  return frame.size() >= kEthernetHeader + kLeastIpv4Header && frame[12] == 0x08 &&
         frame[13] == 0x00;
}

bool mark(std::span<unsigned char> frame) {
  if (!is_ipv4(frame)) {
    return false;
  }
  unsigned char& service = frame[kEthernetHeader + 1];
  const unsigned bits = service & 3U;
  if (bits == 0) {
    return false;
  }
  const unsigned added = kCongestionExperienced - bits;
  service = static_cast<unsigned char>(service | kCongestionExperienced);
  // The sum is that of the complements of 16-bit words (RFC 1624); `service` is a low byte.
  unsigned char& high = frame[kEthernetHeader + 10];
  unsigned char& low = frame[kEthernetHeader + 11];
  unsigned sum = (~(static_cast<unsigned>(high) << 8U | low) & 0xffffU) + added;
  sum = (sum & 0xffffU) + (sum >> 16U);
  sum = ~sum & 0xffffU;
  high = static_cast<unsigned char>(sum >> 8U);
  low = static_cast<unsigned char>(sum & 0xffU);
  return true;
}

bool Line::is_lost() {
  // The same on every machine, which std::bernoulli_distribution need not be.
  constexpr double kTwoTo53 = 9007199254740992.0;
  return static_cast<double>(random_() >> 11U) / kTwoTo53 < options_.loss;
}

std::optional<std::int64_t> Line::send(std::int64_t now_ns, std::span<unsigned char> frame) {
  const auto size = static_cast<std::int64_t>(frame.size());
  ++counts_.frames;
  counts_.bytes += size;
  std::int64_t sent_at_ns = now_ns;
  if (options_.bits_per_second > 0) {
    const std::int64_t wait_ns = std::max<std::int64_t>(0, free_at_ns_ - now_ns);
    const auto waiting = static_cast<std::int64_t>(
        static_cast<double>(wait_ns) * static_cast<double>(options_.bits_per_second) / 8e9);
    if (waiting + size > options_.queue_bytes) {
      ++counts_.dropped;
      return std::nullopt;
    }
    counts_.most_waiting_bytes = std::max(counts_.most_waiting_bytes, waiting + size);
    if (options_.mark_from_bytes > 0 && waiting >= options_.mark_from_bytes && mark(frame)) {
      ++counts_.marked;
    }
    const std::int64_t bits = 8 * (size + kOverheadBytes);
    free_at_ns_ = now_ns + wait_ns + bits * kNsPerSecond / options_.bits_per_second;
    sent_at_ns = free_at_ns_;
  }
  // A question for an address that is lost costs its sender a second, which says nothing of a link.
  if (options_.loss > 0.0 && is_ipv4(frame) && is_lost()) {
    ++counts_.lost;
    return std::nullopt;
  }
  return sent_at_ns + options_.delay_ns;
}

}  // namespace trainyard::box
