// SPDX-License-Identifier: Apache-2.0
// A control that the program has which calls the library (sim/host/control_callback.h): each event
// of a flow is handed on, and the answer holds until the next one.
#pragma once

#include <algorithm>
#include <string_view>

#include "hw/control/control_terms.h"
#include "sim/host/control_callback.h"
#include "sim/units.h"

namespace trainyard {

struct CallbackProfile {
  ControlCallback* callback = nullptr;  // It belongs to the host of the run.
};

struct CallbackSettings {
  ControlCallback* callback = nullptr;
  PortTerms port{};
};

// `settings` must outlive it.
class CallbackFlow {
 public:
  explicit CallbackFlow(const CallbackSettings& settings)
      : settings_(&settings), number_(settings.callback->next_flow()) {
    tell({.kind = ControlEvent::Kind::Start});
  }

  // Adds to the event what is the same for all of this flow.
  void tell(ControlEvent event) {
    const PortTerms& port = settings_->port;
    event.flow = number_;
    event.line_bits_per_second = port.line.bits_per_second();
    event.base_rtt_ps = port.base_rtt.picoseconds();
    event.packet_bytes = port.packet.count();
    pace_ = settings_->callback->pace(event);
  }

  [[nodiscard]] Bytes window() const {
    return pace_.window_bytes == 0 ? kUnlimitedWindow : Bytes(pace_.window_bytes);
  }
  [[nodiscard]] Bandwidth rate() const {
    const Bandwidth line = settings_->port.line;
    return pace_.bits_per_second == 0 ? line : std::min(line, Bandwidth(pace_.bits_per_second));
  }

 private:
  const CallbackSettings* settings_;
  std::uint64_t number_;
  ControlPace pace_{};
};

struct CallbackControl : ControlDefaults {
  using Profile = CallbackProfile;
  using Settings = CallbackSettings;
  using Sender = CallbackFlow;
  static constexpr std::string_view kName = "callback";

  // Refuses a file with it where nobody hosts the run, or the host has none.
  static void fields(Fields& fields, CallbackProfile& profile);
  static CallbackSettings settings(const CallbackProfile& profile, const PortTerms& port) {
    return {.callback = profile.callback, .port = port};
  }
  // The marking is that of --ecn.
  static ControlTraits traits(const CallbackProfile& /*profile*/) {
    return {.packets_per_ack = 1, .needs_ack_times = false, .marks = MarkSignal::Echoes};
  }

  static void on_ack(CallbackFlow& flow, const AckSignal& ack, const PortTerms& /*port*/) {
    flow.tell({.kind = ControlEvent::Kind::Ack,
               .now_ps = ack.now.picoseconds(),
               .rtt_ps = ack.tells_rtt ? ack.rtt.picoseconds() : 0,
               .acked = ack.acked,
               .next = ack.next,
               .size_bytes = ack.size.count(),
               .is_marked = ack.is_marked});
  }
  static void on_loss(CallbackFlow& flow, SimTime now) {
    flow.tell({.kind = ControlEvent::Kind::Loss, .now_ps = now.picoseconds()});
  }
  static void on_timeout(CallbackFlow& flow, SimTime now) {
    flow.tell({.kind = ControlEvent::Kind::Timeout, .now_ps = now.picoseconds()});
  }
  static Bandwidth rate(const CallbackFlow& flow, SimTime /*now*/, const PortTerms& /*port*/) {
    return flow.rate();
  }
  static Bytes window(const CallbackFlow& flow, const PortTerms& /*port*/) { return flow.window(); }
};

}  // namespace trainyard
