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
//   T = alpha F        dynamic, alpha a power of two (Choudhury and Hahne, 1998; SAI)
//   T = a constant     static
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
#include <vector>

#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

struct BufferThreshold {
  enum class Kind : std::uint8_t { Dynamic, Static, Unlimited };
  Kind kind = Kind::Dynamic;
  int alpha_exponent = -3;  // Dynamic: alpha = 2^this; SAI allows -7 ... 6.
  Bytes limit{};            // Static.

  // T for this much free space.
  [[nodiscard]] constexpr std::int64_t at(std::int64_t free) const {
    if (kind == Kind::Static) {
      return limit.count();
    }
    if (kind == Kind::Unlimited) {
      return std::int64_t{1} << 62;
    }
    return alpha_exponent >= 0 ? free * (std::int64_t{1} << alpha_exponent)
                               : free >> -alpha_exponent;
  }
};

// The limits of one ingress group.
struct IngressLimits {
  bool lossless = false;  // Sends XOFF, and may use the headroom.
  bool exempt = false;    // Neither counted nor limited: ACKs, CNPs and PFC of some models.
  Bytes reserve{};
  Bytes headroom{};
  BufferThreshold threshold{};
  Bytes resume_offset{};
};

enum class AdmissionRule : std::uint8_t { Guaranteed, Ns3 };

struct SharedBufferSettings {
  Bytes size;
  Bytes cell{1};  // Packets take whole cells of this size; 1 counts bytes.
  AdmissionRule rule = AdmissionRule::Guaranteed;
};

enum class Loss : std::uint8_t { None, Ingress, Headroom, Egress };

struct Admission {
  Loss loss = Loss::None;
  bool xoff = false;  // Tell the sender to stop; said once until the XON.
  [[nodiscard]] bool accepted() const { return loss == Loss::None; }
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
  void set_egress(std::uint32_t port, std::uint32_t priority, const BufferThreshold& threshold);

  Admission admit(const BufferPlace& place, Bytes packet);
  // The packet has left. Whether to tell the sender of its group to go on.
  bool release(const BufferPlace& place, Bytes packet);

  [[nodiscard]] Bytes ingress_bytes(std::uint32_t port, std::uint32_t priority) const;
  [[nodiscard]] Bytes headroom_bytes(std::uint32_t port, std::uint32_t priority) const;
  [[nodiscard]] Bytes headroom_peak(std::uint32_t port, std::uint32_t priority) const;
  [[nodiscard]] Bytes egress_bytes(std::uint32_t port, std::uint32_t priority) const;
  // T of the group now.
  [[nodiscard]] Bytes threshold(std::uint32_t port, std::uint32_t priority) const;
  [[nodiscard]] bool is_paused(std::uint32_t port, std::uint32_t priority) const;
  [[nodiscard]] Bytes shared_used() const { return Bytes(shared_used_); }
  [[nodiscard]] Bytes stored() const { return Bytes(stored_); }

  // Returns whether the sums over groups and queues agree with one another and fit into the buffer.
  [[nodiscard]] bool is_consistent() const;

 private:
  enum class Area : std::uint8_t { Reserve, Shared, Headroom, None };

  struct Group {
    std::int64_t ingress = 0;   // Without what is in the headroom.
    std::int64_t headroom = 0;  // In use.
    std::int64_t headroom_peak = 0;
    std::int64_t reserve = 0;
    std::int64_t headroom_limit = 0;
    std::int64_t resume_offset = 0;
    BufferThreshold threshold{.kind = BufferThreshold::Kind::Unlimited};
    bool lossless = false;
    bool exempt = false;
    bool paused = false;

    [[nodiscard]] std::int64_t above_reserve() const {
      return ingress > reserve ? ingress - reserve : 0;
    }
  };
  struct Queue {
    std::int64_t bytes = 0;
    BufferThreshold threshold{.kind = BufferThreshold::Kind::Unlimited};

    [[nodiscard]] bool is_limited() const {
      return threshold.kind != BufferThreshold::Kind::Unlimited;
    }
  };

  [[nodiscard]] std::size_t index(std::uint32_t port, std::uint32_t priority) const {
    DCHECK(port < ports_ && priority < priorities_, "no such port or priority");
    return std::size_t{port} * priorities_ + priority;
  }
  [[nodiscard]] std::int64_t in_cells(Bytes packet) const {
    if (cell_ == 1) {
      return packet.count();  // A division costs more than all the rest.
    }
    return (packet.count() + cell_ - 1) / cell_ * cell_;
  }
  [[nodiscard]] std::int64_t free() const { return shared_size_ - shared_used_; }
  [[nodiscard]] Area area_of(const Group& group, std::int64_t size) const;
  [[nodiscard]] bool fits_queue(const Queue& queue, std::int64_t size) const;
  void store(Group& group, Area area, std::int64_t size);
  void share_out();

  std::uint32_t ports_;
  std::uint32_t priorities_;
  std::int64_t size_;
  std::int64_t cell_;
  AdmissionRule rule_;
  std::int64_t shared_size_ = 0;
  std::int64_t shared_used_ = 0;
  std::int64_t egress_used_ = 0;  // Used by queues with a threshold.
  std::int64_t stored_ = 0;
  std::vector<Group> groups_;
  std::vector<Queue> queues_;
};

inline SharedBuffer::Area SharedBuffer::area_of(const Group& group, std::int64_t size) const {
  const std::int64_t threshold = group.threshold.at(free());
  const std::int64_t after = group.ingress + size;
  const bool has_headroom = group.headroom + size <= group.headroom_limit;
  if (rule_ == AdmissionRule::Ns3 && !has_headroom && size + group.above_reserve() > threshold) {
    return Area::None;
  }
  if (after <= group.reserve) {
    return Area::Reserve;
  }
  const std::int64_t above = after - group.reserve;
  if (above <= threshold && above - group.above_reserve() <= free()) {
    return Area::Shared;
  }
  return has_headroom ? Area::Headroom : Area::None;
}

inline bool SharedBuffer::fits_queue(const Queue& queue, std::int64_t size) const {
  if (!queue.is_limited()) {
    return true;
  }
  const std::int64_t free_egress = shared_size_ - egress_used_;
  return size <= free_egress && queue.bytes + size <= queue.threshold.at(free_egress);
}

inline void SharedBuffer::store(Group& group, Area area, std::int64_t size) {
  if (area == Area::Headroom) {
    group.headroom += size;
    if (group.headroom > group.headroom_peak) {
      group.headroom_peak = group.headroom;
    }
    return;
  }
  const std::int64_t before = group.above_reserve();
  group.ingress += size;
  shared_used_ += group.above_reserve() - before;
}

inline Admission SharedBuffer::admit(const BufferPlace& place, Bytes packet) {
  Group& group = groups_[index(place.in_port, place.priority)];
  if (group.exempt) {
    return {};
  }
  const std::int64_t size = in_cells(packet);
  const Area area = area_of(group, size);
  if (area == Area::None) {
    return {.loss = group.lossless ? Loss::Headroom : Loss::Ingress};
  }
  Queue& queue = queues_[index(place.out_port, place.priority)];
  if (!fits_queue(queue, size)) {
    return {.loss = Loss::Egress};
  }
  store(group, area, size);
  queue.bytes += size;
  egress_used_ += queue.is_limited() ? size : 0;
  stored_ += size;
  if (!group.lossless || group.paused) {
    return {};
  }
  group.paused = group.headroom > 0 || group.above_reserve() >= group.threshold.at(free());
  return {.xoff = group.paused};
}

inline bool SharedBuffer::release(const BufferPlace& place, Bytes packet) {
  Group& group = groups_[index(place.in_port, place.priority)];
  if (group.exempt) {
    return false;
  }
  const std::int64_t size = in_cells(packet);
  Queue& queue = queues_[index(place.out_port, place.priority)];
  DCHECK(group.ingress + group.headroom >= size && queue.bytes >= size, "nothing to release");
  queue.bytes -= size;
  egress_used_ -= queue.is_limited() ? size : 0;
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
  group.paused = above > 0 && above + group.resume_offset > group.threshold.at(free());
  return !group.paused;
}

}  // namespace trainyard
