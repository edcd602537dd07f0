// SPDX-License-Identifier: Apache-2.0
// A handler that remembers when it was woken and with what.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/simulator.h"

namespace trainyard {

struct Woken {
  SimTime time;
  std::uint64_t token;
  friend bool operator==(const Woken&, const Woken&) = default;
};

class Recorder final : public EventHandler {
 public:
  explicit Recorder(Simulator& simulator) : EventHandler(simulator), simulator_(simulator) {}

  void on_event(std::uint64_t token) override {
    events_.push_back({.time = simulator_.now(), .token = token});
  }

  [[nodiscard]] const std::vector<Woken>& events() const { return events_; }
  [[nodiscard]] std::vector<std::uint64_t> tokens() const {
    std::vector<std::uint64_t> tokens;
    for (const Woken& event : events_) {
      tokens.push_back(event.token);
    }
    return tokens;
  }

 private:
  Simulator& simulator_;
  std::vector<Woken> events_;
};

}  // namespace trainyard
