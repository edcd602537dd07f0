// SPDX-License-Identifier: Apache-2.0
// A timer that can be re-armed and cancelled. Nothing is ever removed from the queue: arming and
// cancelling raise a generation number, and an event of an old generation does nothing.
#pragma once

#include <cstdint>

#include "sim/simulator.h"

namespace trainyard {

class TimerOwner {
 public:
  virtual void on_timer() = 0;

 protected:
  ~TimerOwner() = default;
};

class Timer final : public EventHandler {
 public:
  Timer(Simulator& simulator, TimerOwner& owner)
      : EventHandler(simulator), simulator_(simulator), owner_(owner) {}

  // Calls owner.on_timer() after `delay`; an earlier arming is forgotten.
  void arm(SimTime delay) {
    armed_ = true;
    simulator_.schedule(delay, *this, ++generation_);
  }
  void cancel() {
    armed_ = false;
    ++generation_;
  }
  [[nodiscard]] bool armed() const { return armed_; }

  void on_event(std::uint64_t token) override {
    if (token == generation_ && armed_) {
      armed_ = false;
      owner_.on_timer();
    }
  }

 private:
  Simulator& simulator_;
  TimerOwner& owner_;
  std::uint64_t generation_ = 0;
  bool armed_ = false;
};

}  // namespace trainyard
