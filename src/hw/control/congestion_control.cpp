// SPDX-License-Identifier: Apache-2.0
#include "hw/control/congestion_control.h"

#include <algorithm>

#include "sim/check.h"

namespace trainyard {
namespace {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

// One packet in `time`.
Bandwidth one_in(Bytes packet, SimTime time) {
  __extension__ using Wide = __int128;
  constexpr Wide kBits = Wide{8} * 1'000'000'000'000;
  const Wide rate = kBits * packet.count() / time.picoseconds();
  return std::max(Bandwidth(1), Bandwidth(static_cast<std::int64_t>(rate)));
}

}  // namespace

SenderControl::State SenderControl::state_of(const ControlRules& rules) {
  return std::visit(
      Overloaded{[](const LineRateSettings&) { return State(LineRate{}); },
                 [](const DcqcnSettings& settings) { return State(DcqcnReaction(settings)); },
                 [](const HpccSettings& settings) { return State(Hpcc(settings)); },
                 [](const SwiftSettings& settings) { return State(Swift(settings)); },
                 [](const TimelySettings& settings) { return State(Timely(settings)); },
                 [](const DctcpSettings& settings) { return State(Dctcp(settings)); },
                 [](const CreditSettings& settings) { return State(CreditSender(settings)); }},
      rules);
}

SenderControl::SenderControl(const ControlSettings& settings)
    : settings_(&settings), state_(state_of(settings.rules)) {
  CHECK(settings.line > Bandwidth(0) && settings.packet > Bytes(0), "no rate or no packet");
}

void SenderControl::on_ack(const AckSignal& ack) {
  const auto packet = static_cast<double>(settings_->packet.count());
  std::visit(
      Overloaded{[](LineRate&) {}, [](DcqcnReaction&) {}, [](CreditSender&) {},
                 [&](Hpcc& hpcc) { hpcc.on_ack(ack.acked, ack.next, ack.path, ack.memory); },
                 [&](Swift& swift) {
                   swift.on_ack({.now = ack.now,
                                 .rtt = ack.rtt,
                                 .fabric_delay = ack.rtt - ack.host_delay,
                                 .host_delay = ack.host_delay,
                                 .hops = ack.hops,
                                 .packets = static_cast<double>(ack.size.count()) / packet});
                 },
                 [&](Timely& timely) {
                   segment_ += ack.size.count();
                   if (segment_ >= settings_->timely_segment.count()) {
                     segment_ = 0;
                     timely.on_completion(ack.rtt);
                   }
                 },
                 [&](Dctcp& dctcp) { dctcp.on_ack(ack.acked, ack.next, ack.size, ack.is_marked); }},
      state_);
}

void SenderControl::on_loss(SimTime now) {
  if (auto* swift = std::get_if<Swift>(&state_)) {
    swift->on_loss(now);
  } else if (auto* dctcp = std::get_if<Dctcp>(&state_)) {
    dctcp->on_loss();
  }
}

void SenderControl::on_timeout(SimTime now) {
  if (auto* swift = std::get_if<Swift>(&state_)) {
    swift->on_timeout(now);
  } else if (auto* dctcp = std::get_if<Dctcp>(&state_)) {
    dctcp->on_timeout();
  }
}

Bandwidth SenderControl::other_rate() const {
  const Bandwidth line = settings_->line;
  const Bandwidth wanted = std::visit(
      Overloaded{[&](const LineRate&) { return line; },
                 [](const DcqcnReaction& dcqcn) { return dcqcn.rate(); },
                 [](const Hpcc& hpcc) { return hpcc.rate(); },
                 [&](const Swift& swift) {
                   const SimTime delay = swift.pacing_delay();
                   return delay > SimTime() ? one_in(settings_->packet, delay) : line;
                 },
                 [](const Timely& timely) { return timely.rate(); },
                 [&](const Dctcp&) { return line; }, [&](const CreditSender&) { return line; }},
      state_);
  return std::min(wanted, line);
}

Bytes SenderControl::other_window() const {
  const auto packet = static_cast<double>(settings_->packet.count());
  const auto whole = [](double bytes) { return Bytes(static_cast<std::int64_t>(bytes)); };
  const Bytes bytes = std::visit(
      Overloaded{[](const LineRate&) { return kUnlimitedWindow; },
                 [&](const DcqcnReaction& dcqcn) {
                   const auto line = static_cast<double>(settings_->line.bits_per_second());
                   const auto full = static_cast<double>(settings_->dcqcn_window.count());
                   return whole(full * (dcqcn.current() / line));
                 },
                 [](const Hpcc& hpcc) { return hpcc.window(); },
                 [&](const Swift& swift) { return whole(swift.window() * packet); },
                 [](const Timely&) { return kUnlimitedWindow; },
                 [](const Dctcp& dctcp) { return dctcp.window(); },
                 [](const CreditSender&) { return kUnlimitedWindow; }},
      state_);
  return std::max(bytes, settings_->packet);
}

}  // namespace trainyard
