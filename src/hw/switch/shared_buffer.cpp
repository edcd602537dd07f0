// SPDX-License-Identifier: Apache-2.0
#include "hw/switch/shared_buffer.h"

namespace trainyard {
namespace {

void check_alpha(AlphaExponent alpha) {
  CHECK(!alpha || (*alpha >= -7 && *alpha <= 6), "alpha is no power of two from 1/128 to 64");
}

}  // namespace

SharedBuffer::SharedBuffer(const SharedBufferSettings& settings, std::uint32_t ports,
                           std::uint32_t priorities)
    : ports_(ports),
      priorities_(priorities),
      size_(settings.size.count()),
      rule_(settings.rule),
      groups_(std::size_t{ports} * priorities),
      queues_(std::size_t{ports} * priorities) {
  CHECK(size_ > 0, "a buffer without bytes");
  share_out();
}

void SharedBuffer::set_ingress(std::uint32_t port, std::uint32_t priority,
                               const IngressLimits& limits) {
  CHECK(stored_ == 0, "limits change while packets are stored");
  CHECK(port < ports_ && priority < priorities_, "no such port or priority");
  CHECK(limits.lossless || limits.headroom == Bytes(0), "headroom of a lossy group");
  check_alpha(limits.alpha);
  groups_[index(port, priority)].limits = limits;
  share_out();
}

void SharedBuffer::set_egress(std::uint32_t port, std::uint32_t priority, AlphaExponent alpha) {
  CHECK(stored_ == 0, "limits change while packets are stored");
  CHECK(port < ports_ && priority < priorities_, "no such port or priority");
  check_alpha(alpha);
  queues_[index(port, priority)].alpha = alpha;
}

// Shares out the space that the groups do not own.
void SharedBuffer::share_out() {
  shared_size_ = size_;
  for (const Group& group : groups_) {
    shared_size_ -= (group.limits.reserve + group.limits.headroom).count();
  }
  CHECK(shared_size_ >= 0, "reserves and headroom are more than the buffer");
}

}  // namespace trainyard
