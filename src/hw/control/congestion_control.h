// SPDX-License-Identifier: Apache-2.0
// Any congestion control of a sender behind one value type: what may be in flight, how fast, and
// what happens when an ACK, a CNP or a timeout comes. No virtual call and no allocation; which
// algorithm it is, is looked up in a variant.
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "hw/control/dcqcn.h"
#include "hw/control/dctcp.h"
#include "hw/control/hpcc.h"
#include "hw/control/receiver_credit.h"
#include "hw/control/swift.h"
#include "hw/control/timely.h"
#include "sim/units.h"

namespace trainyard {

// No control at all: the line rate, for ever. What fabrics run that leave it to PFC or credits.
struct LineRateSettings {
  Bandwidth line{};
};

using ControlRules = std::variant<LineRateSettings, DcqcnSettings, HpccSettings, SwiftSettings,
                                  TimelySettings, DctcpSettings, CreditSettings>;

// What all flows of one port share. It must outlive its flows.
struct ControlSettings {
  ControlRules rules{};
  Bandwidth line{};    // Of the sending port.
  Bytes packet{4178};  // A full packet on the wire: the least window, and Swift's unit.
  // DCQCN with a window, as some simulators have it: what may be in flight at the line rate; it
  // falls with the rate. 0: no window.
  Bytes dcqcn_window{};
  Bytes timely_segment{16'384};  // Acknowledged bytes that make a completion.
};

// What an ACK tells. Sizes count as the window does; the engine says whether that is wire bytes.
struct AckSignal {
  SimTime now{};
  SimTime rtt{};            // Of the packet that it answers.
  SimTime host_delay{};     // Of that, in the receiving host.
  std::uint64_t acked = 0;  // All bytes before this one have come.
  std::uint64_t next = 0;   // The next byte to send.
  Bytes size{};             // Newly acknowledged.
  bool is_marked = false;   // ECN echo.
  int hops = 0;
  std::span<const IntHop> path{};  // HPCC.
  HpccMemory* memory = nullptr;    // What HPCC saw of this path, if the flow has several.
};

// More than any flow has in flight.
inline constexpr Bytes kUnlimitedWindow{std::int64_t{1} << 60};

// The sender of one flow.
class SenderControl {
 public:
  explicit SenderControl(const ControlSettings& settings);

  void on_ack(const AckSignal& ack);
  // Any ACK, before what it tells: that the path is alive.
  void on_any_ack();
  void on_cnp(SimTime now);
  void on_sent(SimTime now, Bytes size);
  void on_loss(SimTime now);  // Found by a NAK or by selective acknowledgement.
  void on_timeout(SimTime now);
  void on_credit(Bytes size);  // From a CreditPacer.
  // There is more to send; only receiver credits need to know.
  void add(Bytes size, Bytes in_flight);

  // The pace at `now`: the next packet may start its wire time at this rate after the last one.
  [[nodiscard]] Bandwidth rate(SimTime now);
  // Whether the pace stands for a window below one packet. Above, ACKs release packets, not time.
  [[nodiscard]] bool pauses() const;
  // What may be in flight; at least one packet, and kUnlimitedWindow without a window.
  [[nodiscard]] Bytes window() const;
  // Whether a packet may go as far as credit is concerned.
  [[nodiscard]] bool has_credit() const;
  // When rate() may change if nothing comes in; SimTime::max() if it will not.
  [[nodiscard]] SimTime deadline() const;

  // The algorithm itself, for traces: nullptr if it is another one.
  template <typename Algorithm>
  [[nodiscard]] const Algorithm* as() const {
    return std::get_if<Algorithm>(&state_);
  }

 private:
  struct LineRate {};
  using State = std::variant<LineRate, DcqcnReaction, Hpcc, Swift, Timely, Dctcp, CreditSender>;

  static State state_of(const ControlRules& rules);
  [[nodiscard]] Bandwidth other_rate() const;
  [[nodiscard]] Bytes other_window() const;

  const ControlSettings* settings_;
  State state_;
  std::int64_t segment_ = 0;  // TIMELY: acknowledged since the last completion.
};

// The usual cases inline: rate and window are asked for with each packet.
inline Bandwidth SenderControl::rate(SimTime now) {
  if (auto* dcqcn = std::get_if<DcqcnReaction>(&state_)) {
    dcqcn->advance(now);
    return dcqcn->rate();
  }
  return std::holds_alternative<LineRate>(state_) ? settings_->line : other_rate();
}

inline Bytes SenderControl::window() const {
  const bool has_none =
      std::holds_alternative<LineRate>(state_) ||
      (std::holds_alternative<DcqcnReaction>(state_) && settings_->dcqcn_window == Bytes(0));
  return has_none ? kUnlimitedWindow : other_window();
}

inline void SenderControl::on_cnp(SimTime now) {
  if (auto* dcqcn = std::get_if<DcqcnReaction>(&state_)) {
    dcqcn->on_cnp(now);
  }
}

inline void SenderControl::on_sent(SimTime now, Bytes size) {
  if (auto* dcqcn = std::get_if<DcqcnReaction>(&state_)) {
    dcqcn->on_sent(now, size);
  } else if (auto* credit = std::get_if<CreditSender>(&state_)) {
    credit->spend(size);
  }
}

inline void SenderControl::on_any_ack() {
  if (auto* swift = std::get_if<Swift>(&state_)) {
    swift->on_any_ack();
  }
}

inline bool SenderControl::pauses() const {
  const auto* swift = std::get_if<Swift>(&state_);
  return swift != nullptr && swift->pacing_delay() > SimTime();
}

inline void SenderControl::on_credit(Bytes size) {
  if (auto* credit = std::get_if<CreditSender>(&state_)) {
    credit->on_credit(size);
  }
}

inline void SenderControl::add(Bytes size, Bytes in_flight) {
  if (auto* credit = std::get_if<CreditSender>(&state_)) {
    credit->add(size, in_flight);
  }
}

inline bool SenderControl::has_credit() const {
  const auto* credit = std::get_if<CreditSender>(&state_);
  return credit == nullptr || credit->can_send();
}

inline SimTime SenderControl::deadline() const {
  const auto* dcqcn = std::get_if<DcqcnReaction>(&state_);
  return dcqcn == nullptr ? SimTime::max() : dcqcn->deadline();
}

}  // namespace trainyard
