// SPDX-License-Identifier: Apache-2.0
// Any congestion control of a sender behind one value type: what may be in flight, how fast, and
// what happens when an ACK, a CNP or a timeout comes. No virtual call and no allocation; the
// control is looked up in a variant over the table in hw/control/control_list.h.
#pragma once

#include <algorithm>
#include <variant>

#include "hw/control/control_list.h"
#include "hw/control/control_terms.h"
#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

// The settings that all flows of one port share. They must outlive the flows.
struct ControlSettings : PortTerms {
  ControlList::Rules rules = LineRateSettings();
};

// The sender of one flow.
class SenderControl {
 public:
  explicit SenderControl(const ControlSettings& settings)
      : settings_(&settings),
        state_(visit_control(settings.rules, []<typename Row>(Row /*row*/, const auto& of_port) {
          return State(typename Row::Sender(of_port));
        })) {
    CHECK(settings.line > Bandwidth(0) && settings.packet > Bytes(0), "no rate or no packet");
  }

  void on_ack(const AckSignal& ack) {
    visit_control(state_, [&](auto row, auto& flow) { row.on_ack(flow, ack, *settings_); });
  }
  // Any ACK, before what it tells: the path is alive.
  void on_any_ack() {
    visit_control(state_, [](auto row, auto& flow) { row.on_any_ack(flow); });
  }
  void on_cnp(SimTime now) {
    visit_control(state_, [&](auto row, auto& flow) { row.on_cnp(flow, now); });
  }
  void on_sent(SimTime now, Bytes size) {
    visit_control(state_, [&](auto row, auto& flow) { row.on_sent(flow, now, size); });
  }
  void on_loss(SimTime now) {  // Found by a NAK or by selective acknowledgement.
    visit_control(state_, [&](auto row, auto& flow) { row.on_loss(flow, now); });
  }
  void on_timeout(SimTime now) {
    visit_control(state_, [&](auto row, auto& flow) { row.on_timeout(flow, now); });
  }
  void on_credit(Bytes size) {  // From a CreditPacer.
    visit_control(state_, [&](auto row, auto& flow) { row.on_credit(flow, size); });
  }
  // There is more to send; only receiver credits need to know.
  void add(Bytes size, Bytes in_flight) {
    visit_control(state_, [&](auto row, auto& flow) { row.add(flow, size, in_flight); });
  }

  // The pace at `now`: the next packet may start its wire time at this rate after the last one.
  [[nodiscard]] Bandwidth rate(SimTime now) {
    return visit_control(state_,
                         [&](auto row, auto& flow) { return row.rate(flow, now, *settings_); });
  }
  // Whether the pace represents a window below one packet. Above, ACKs release packets, not time.
  [[nodiscard]] bool pauses() const {
    return visit_control(state_, [](auto row, const auto& flow) { return row.pauses(flow); });
  }
  // The bytes that may be in flight; at least one packet, and kUnlimitedWindow without a window.
  [[nodiscard]] Bytes window() const {
    return std::max(settings_->packet, visit_control(state_, [&](auto row, const auto& flow) {
                      return row.window(flow, *settings_);
                    }));
  }
  // Whether a packet may go as far as credit is concerned.
  [[nodiscard]] bool has_credit() const {
    return visit_control(state_, [](auto row, const auto& flow) { return row.has_credit(flow); });
  }

  // The algorithm itself, for traces: nullptr if it is another one.
  template <typename Algorithm>
  [[nodiscard]] const Algorithm* as() const {
    return std::get_if<Algorithm>(&state_);
  }

 private:
  using State = ControlList::Senders;

  const ControlSettings* settings_;
  State state_;
};

}  // namespace trainyard
