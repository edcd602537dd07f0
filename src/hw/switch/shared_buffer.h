// SPDX-License-Identifier: Apache-2.0
// The packet buffer of a switch: who may store how much of what all ports share.
//
// A packet is charged twice, to the port and priority that it came from (ingress group) and to
// those that it leaves by (egress queue). Ingress decides about PFC and loss of lossless traffic,
// egress limits lossy traffic and is what ECN looks at. Both count the same bytes, from admit() to
// release().
//
// A group fills its reserve, then the shared part as long as it stays within a threshold T, then
// its headroom. With u the bytes above the reserve and F what is free of the shared part:
//   T = alpha F        alpha a power of two (Choudhury and Hahne, 1998; SAI)
//   a packet of s bytes is stored   in the reserve if ingress + s <= reserve, else
//                                   in the shared part if u after it <= T and F holds it, else
//                                   in the headroom if that has s bytes left, else it is lost
//   XOFF  after storing, if the headroom is in use or u >= T
//   XON   after releasing, if the headroom is empty and (u = 0 or u + resume offset <= T)
// Release empties the headroom first, then the shared part, then the reserve. A packet is in one
// area as a whole, so that the packet that triggers XOFF may itself lie in the headroom: that needs
// the bytes of pfc_headroom() and one frame more.
//
// The order and the terms are those of alibaba-edu/High-Precision-Congestion-Control
// (switch-mmu.cc), but there a packet that neither T nor the headroom admits is lost even where the
// reserve could hold it. `AdmissionRule::Ns3` repeats that.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

// Alpha as a power of two, -7 ... 6 as SAI allows; without one there is no limit.
using AlphaExponent = std::optional<int>;

// T for this much free space.
[[nodiscard]] constexpr std::int64_t threshold_at(AlphaExponent alpha, std::int64_t free) {
  if (!alpha) {
    return std::int64_t{1} << 62;
  }
  return *alpha >= 0 ? free * (std::int64_t{1} << *alpha) : free >> -*alpha;
}

// The limits of one ingress group.
struct IngressLimits {
  bool lossless = false;  // Sends XOFF, and may use the headroom.
  Bytes reserve{};
  Bytes headroom{};
  AlphaExponent alpha = -3;
  Bytes resume_offset{};
};

enum class AdmissionRule : std::uint8_t { Guaranteed, Ns3 };

struct SharedBufferSettings {
  Bytes size;
  AdmissionRule rule = AdmissionRule::Guaranteed;
};

struct Admission {
  bool accepted = true;
  bool xoff = false;  // Tell the sender to stop; said once until the XON.
};

// The place that a packet is charged to.
struct BufferPlace {
  std::uint32_t in_port = 0;
  std::uint32_t out_port = 0;
  std::uint32_t priority = 0;
};

class SharedBuffer {
 public:
  SharedBuffer(const SharedBufferSettings& settings, std::uint32_t ports, std::uint32_t priorities);

  // Must be called before the first packet. A group that is not set is lossy without limits of its
  // own, a queue that is not set unlimited. The reserves and the headroom must leave something to
  // share.
  void set_ingress(std::uint32_t port, std::uint32_t priority, const IngressLimits& limits);
  void set_egress(std::uint32_t port, std::uint32_t priority, AlphaExponent alpha);

  Admission admit(const BufferPlace& place, Bytes packet);
  // The packet has left. Whether to tell the sender of its group to go on.
  bool release(const BufferPlace& place, Bytes packet);

  [[nodiscard]] Bytes ingress_bytes(std::uint32_t port, std::uint32_t priority) const {
    return Bytes(groups_[index(port, priority)].ingress);
  }
  [[nodiscard]] Bytes headroom_bytes(std::uint32_t port, std::uint32_t priority) const {
    return Bytes(groups_[index(port, priority)].headroom);
  }
  // T of the group now.
  [[nodiscard]] Bytes threshold(std::uint32_t port, std::uint32_t priority) const {
    return Bytes(threshold_at(groups_[index(port, priority)].limits.alpha, free()));
  }
  [[nodiscard]] Bytes shared_used() const { return Bytes(shared_used_); }
  [[nodiscard]] Bytes stored() const { return Bytes(stored_); }

 private:
  enum class Area : std::uint8_t { Reserve, Shared, Headroom, None };

  struct Group {
    std::int64_t ingress = 0;   // Without what is in the headroom.
    std::int64_t headroom = 0;  // In use.
    IngressLimits limits{.alpha = std::nullopt};
    bool paused = false;

    [[nodiscard]] std::int64_t above_reserve() const {
      const std::int64_t reserve = limits.reserve.count();
      return ingress > reserve ? ingress - reserve : 0;
    }
  };
  struct Queue {
    std::int64_t bytes = 0;
    AlphaExponent alpha = std::nullopt;
  };

  [[nodiscard]] std::size_t index(std::uint32_t port, std::uint32_t priority) const {
    DCHECK(port < ports_ && priority < priorities_, "no such port or priority");
    return std::size_t{port} * priorities_ + priority;
  }
  [[nodiscard]] std::int64_t free() const { return shared_size_ - shared_used_; }
  [[nodiscard]] Area area_of(const Group& group, std::int64_t size) const;
  [[nodiscard]] bool fits_queue(const Queue& queue, std::int64_t size) const;
  void store(Group& group, Area area, std::int64_t size);
  void share_out();

  std::uint32_t ports_;
  std::uint32_t priorities_;
  std::int64_t size_;
  AdmissionRule rule_;
  std::int64_t shared_size_ = 0;
  std::int64_t shared_used_ = 0;
  std::int64_t egress_used_ = 0;  // Used by queues with a threshold.
  std::int64_t stored_ = 0;
  std::vector<Group> groups_;
  std::vector<Queue> queues_;
};

inline SharedBuffer::Area SharedBuffer::area_of(const Group& group, std::int64_t size) const {
  const std::int64_t threshold = threshold_at(group.limits.alpha, free());
  const std::int64_t after = group.ingress + size;
  const bool has_headroom = group.headroom + size <= group.limits.headroom.count();
  if (rule_ == AdmissionRule::Ns3 && !has_headroom && size + group.above_reserve() > threshold) {
    return Area::None;
  }
  const std::int64_t above = after - group.limits.reserve.count();
  if (above <= 0) {
    return Area::Reserve;
  }
  if (above <= threshold && above - group.above_reserve() <= free()) {
    return Area::Shared;
  }
  return has_headroom ? Area::Headroom : Area::None;
}

inline bool SharedBuffer::fits_queue(const Queue& queue, std::int64_t size) const {
  if (!queue.alpha) {
    return true;
  }
  const std::int64_t free_egress = shared_size_ - egress_used_;
  return size <= free_egress && queue.bytes + size <= threshold_at(queue.alpha, free_egress);
}

inline void SharedBuffer::store(Group& group, Area area, std::int64_t size) {
  if (area == Area::Headroom) {
    group.headroom += size;
    return;
  }
  const std::int64_t before = group.above_reserve();
  group.ingress += size;
  shared_used_ += group.above_reserve() - before;
}

inline Admission SharedBuffer::admit(const BufferPlace& place, Bytes packet) {
  Group& group = groups_[index(place.in_port, place.priority)];
  Queue& queue = queues_[index(place.out_port, place.priority)];
  const std::int64_t size = packet.count();
  const Area area = area_of(group, size);
  if (area == Area::None || !fits_queue(queue, size)) {
    return {.accepted = false};
  }
  store(group, area, size);
  queue.bytes += size;
  egress_used_ += queue.alpha ? size : 0;
  stored_ += size;
  if (!group.limits.lossless || group.paused) {
    return {};
  }
  group.paused =
      group.headroom > 0 || group.above_reserve() >= threshold_at(group.limits.alpha, free());
  return {.xoff = group.paused};
}

inline bool SharedBuffer::release(const BufferPlace& place, Bytes packet) {
  Group& group = groups_[index(place.in_port, place.priority)];
  const std::int64_t size = packet.count();
  Queue& queue = queues_[index(place.out_port, place.priority)];
  DCHECK(group.ingress + group.headroom >= size && queue.bytes >= size, "nothing to release");
  queue.bytes -= size;
  egress_used_ -= queue.alpha ? size : 0;
  stored_ -= size;
  const std::int64_t from_headroom = size < group.headroom ? size : group.headroom;
  group.headroom -= from_headroom;
  const std::int64_t before = group.above_reserve();
  group.ingress -= size - from_headroom;
  shared_used_ -= before - group.above_reserve();
  if (!group.paused || group.headroom > 0) {
    return false;
  }
  const std::int64_t above = group.above_reserve();
  group.paused = above > 0 && above + group.limits.resume_offset.count() >
                                  threshold_at(group.limits.alpha, free());
  return !group.paused;
}

}  // namespace trainyard
