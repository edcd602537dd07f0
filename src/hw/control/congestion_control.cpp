// SPDX-License-Identifier: Apache-2.0
#include "hw/control/congestion_control.h"

#include "sim/check.h"

namespace trainyard {

SenderControl::SenderControl(const ControlSettings& settings)
    : settings_(&settings),
      state_(visit_control(settings.rules, []<typename Row>(Row /*row*/, const auto& of_port) {
        return State(typename Row::Sender(of_port));
      })) {
  CHECK(settings.line > Bandwidth(0) && settings.packet > Bytes(0), "no rate or no packet");
}

void SenderControl::on_ack(const AckSignal& ack) {
  visit_control(state_,
                [&]<typename Row>(Row /*row*/, auto& flow) { Row::on_ack(flow, ack, *settings_); });
}

void SenderControl::on_loss(SimTime now) {
  visit_control(state_, [&]<typename Row>(Row /*row*/, auto& flow) { Row::on_loss(flow, now); });
}

void SenderControl::on_timeout(SimTime now) {
  visit_control(state_, [&]<typename Row>(Row /*row*/, auto& flow) { Row::on_timeout(flow, now); });
}

}  // namespace trainyard
