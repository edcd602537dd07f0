// SPDX-License-Identifier: Apache-2.0
#include "hw/switch/shared_buffer.h"

namespace trainyard {
namespace {

void check_threshold(const BufferThreshold& threshold) {
  constexpr int kMinAlpha = -7;
  constexpr int kMaxAlpha = 6;
  CHECK(threshold.alpha_exponent >= kMinAlpha && threshold.alpha_exponent <= kMaxAlpha,
        "alpha is no power of two from 1/128 to 64");
  CHECK(threshold.limit >= Bytes(0), "a negative limit");
}

}  // namespace

SharedBuffer::SharedBuffer(const SharedBufferSettings& settings, std::uint32_t ports,
                           std::uint32_t priorities)
    : ports_(ports),
      priorities_(priorities),
      size_(settings.size.count()),
      cell_(settings.cell.count()),
      rule_(settings.rule),
      groups_(std::size_t{ports} * priorities),
      queues_(std::size_t{ports} * priorities) {
  CHECK(size_ > 0 && cell_ > 0, "a buffer without bytes or cells");
  share_out();
}

void SharedBuffer::set_ingress(std::uint32_t port, std::uint32_t priority,
                               const IngressLimits& limits) {
  CHECK(stored_ == 0, "limits change while packets are stored");
  CHECK(port < ports_ && priority < priorities_, "no such port or priority");
  CHECK(limits.lossless || limits.headroom == Bytes(0), "headroom of a lossy group");
  check_threshold(limits.threshold);
  Group& group = groups_[index(port, priority)];
  group.reserve = limits.reserve.count();
  group.headroom_limit = limits.headroom.count();
  group.resume_offset = limits.resume_offset.count();
  group.threshold = limits.threshold;
  group.lossless = limits.lossless;
  group.exempt = limits.exempt;
  share_out();
}

void SharedBuffer::set_egress(std::uint32_t port, std::uint32_t priority,
                              const BufferThreshold& threshold) {
  CHECK(stored_ == 0, "limits change while packets are stored");
  CHECK(port < ports_ && priority < priorities_, "no such port or priority");
  check_threshold(threshold);
  queues_[index(port, priority)].threshold = threshold;
}

// Shares out the space that the groups do not own.
void SharedBuffer::share_out() {
  shared_size_ = size_;
  for (const Group& group : groups_) {
    shared_size_ -= group.reserve + group.headroom_limit;
  }
  CHECK(shared_size_ >= 0, "reserves and headroom are more than the buffer");
}

Bytes SharedBuffer::ingress_bytes(std::uint32_t port, std::uint32_t priority) const {
  return Bytes(groups_[index(port, priority)].ingress);
}

Bytes SharedBuffer::headroom_bytes(std::uint32_t port, std::uint32_t priority) const {
  return Bytes(groups_[index(port, priority)].headroom);
}

Bytes SharedBuffer::headroom_peak(std::uint32_t port, std::uint32_t priority) const {
  return Bytes(groups_[index(port, priority)].headroom_peak);
}

Bytes SharedBuffer::egress_bytes(std::uint32_t port, std::uint32_t priority) const {
  return Bytes(queues_[index(port, priority)].bytes);
}

Bytes SharedBuffer::threshold(std::uint32_t port, std::uint32_t priority) const {
  return Bytes(groups_[index(port, priority)].threshold.at(free()));
}

bool SharedBuffer::is_paused(std::uint32_t port, std::uint32_t priority) const {
  return groups_[index(port, priority)].paused;
}

bool SharedBuffer::is_consistent() const {
  std::int64_t ingress = 0;
  std::int64_t headroom = 0;
  std::int64_t shared = 0;
  for (const Group& group : groups_) {
    if (group.ingress < 0 || group.headroom < 0 || group.headroom > group.headroom_limit) {
      return false;
    }
    ingress += group.ingress;
    headroom += group.headroom;
    shared += group.above_reserve();
  }
  std::int64_t egress = 0;
  std::int64_t limited = 0;
  for (const Queue& queue : queues_) {
    egress += queue.bytes;
    limited += queue.is_limited() ? queue.bytes : 0;
  }
  const bool sums = ingress + headroom == stored_ && egress == stored_ && limited == egress_used_ &&
                    shared == shared_used_;
  return sums && shared_used_ <= shared_size_ && stored_ <= size_;
}

}  // namespace trainyard
