// SPDX-License-Identifier: Apache-2.0
// A host that takes data slower than its link brings them, and stops the switch: the receive buffer
// of a NIC behind PCIe or memory that is slower than the line, or whose address translations miss
// (Guo et al., "RDMA over commodity Ethernet at scale", SIGCOMM 2016, section 4.4: the slow
// receiver symptom). It sends XOFF once more than `xoff` bytes wait, and XON once no more than
// `xon` do.
//
// The buffer drains all the time at one rate, so it is known by the instant at which it will be
// empty, in whole picoseconds.
#pragma once

#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

struct SlowReceiverSettings {
  Bandwidth drain{};
  Bytes xoff{};
  Bytes xon{};
};

class SlowReceiver {
 public:
  explicit SlowReceiver(const SlowReceiverSettings& settings)
      : drain_(settings.drain),
        above_(transfer_time(settings.xoff, settings.drain)),
        below_(transfer_time(settings.xon, settings.drain)) {
    CHECK(settings.drain > Bandwidth(0) && settings.xon <= settings.xoff,
          "a receiver that takes nothing, or goes on before it stops");
  }

  // A packet is whole at `now`, which must not fall. Whether to tell the sender to stop; said once
  // until the XON.
  [[nodiscard]] bool on_packet(Bytes size, SimTime now) {
    empty_at_ = (empty_at_ < now ? now : empty_at_) + transfer_time(size, drain_);
    if (is_paused_ || empty_at_ - now <= above_) {
      return false;
    }
    is_paused_ = true;
    return true;
  }
  // Returns the time to tell it to go on if nothing more comes: at once if that is over.
  // SimTime::max() while it is not stopped.
  [[nodiscard]] SimTime resume_time() const {
    return is_paused_ ? empty_at_ - below_ : SimTime::max();
  }
  void resume() { is_paused_ = false; }

  [[nodiscard]] bool is_paused() const { return is_paused_; }
  // Returns for how long what waits at `now` will keep it busy.
  [[nodiscard]] SimTime backlog(SimTime now) const {
    return empty_at_ < now ? SimTime() : empty_at_ - now;
  }

 private:
  Bandwidth drain_;
  SimTime above_;
  SimTime below_;
  SimTime empty_at_;
  bool is_paused_ = false;
};

}  // namespace trainyard
