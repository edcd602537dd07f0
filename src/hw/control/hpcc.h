// SPDX-License-Identifier: Apache-2.0
// HPCC (Li et al., SIGCOMM 2019, algorithm 1): switches write into each packet how much they have
// sent and hold, the receiver returns that in the ACK, and the sender sets its window so that the
// busiest link on the path is used to a share eta.
//
// Window and utilisation are real numbers, as in the paper; what comes in and the rate that goes
// out are integers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "hw/control/control_terms.h"
#include "sim/units.h"

namespace trainyard {

// The wire format of the paper's prototype has few bits: 24 of time in ns, 20 of bytes sent in
// units of 128 B, 17 of queue in units of 80 B. Counters wrap; the queue stops at its largest
// value. 8 B for each hop, and with the count of hops 42 B on data and on ACKs for up to five.
[[nodiscard]] IntHop rounded_to_wire(const IntHop& hop);
inline constexpr Bytes kIntWireBytes{42};

struct HpccSettings {
  Bandwidth line{};     // The rate of the NIC: the first window is line x base_rtt.
  SimTime base_rtt{};   // T, the base RTT of the whole network.
  double eta = 0.95;    // What a link is used to.
  int max_stage = 5;    // Additive steps before the next multiplicative one.
  double additive{};    // W_AI in bytes; window x (1 - eta) / flows is its largest sensible value.
  double min_window{};  // The window never falls below; 0 takes W_AI.
  bool wire_counters = false;  // Hops come through rounded_to_wire(): times and bytes wrap.
};

// The sender of one flow. `settings` must outlive it.
class Hpcc {
 public:
  explicit Hpcc(const HpccSettings& settings);

  // An ACK for everything before `acked` has come, `next` is the next byte to be sent, `hops` are
  // the links of the path in order. Hops beyond kMaxIntHops are not looked at. On another path
  // than that of the ACK before, measuring begins anew. A flow over several paths, which the paper
  // does not have, gives the memory of the one that the packet took: there is one window, for which
  // each ACK counts that compares links with what they did before.
  void on_ack(std::uint64_t acked, std::uint64_t next, std::span<const IntHop> hops,
              IntMemory* memory = nullptr);

  [[nodiscard]] Bytes window() const { return Bytes(static_cast<std::int64_t>(window_)); }
  // The pace: window / T.
  [[nodiscard]] Bandwidth rate() const;

  [[nodiscard]] double window_bytes() const { return window_; }
  [[nodiscard]] double reference_window() const { return reference_; }  // Wc
  [[nodiscard]] double utilisation() const { return utilisation_; }     // U
  [[nodiscard]] int stage() const { return stage_; }

 private:
  using Seen = IntMemory::Seen;

  void measure(std::span<const IntHop> hops, const IntMemory& memory);
  [[nodiscard]] SimTime time_between(const Seen& seen, const IntHop& hop) const;
  [[nodiscard]] double bytes_between(const Seen& seen, const IntHop& hop) const;
  void update(bool is_full);

  const HpccSettings* settings_;
  double first_window_;
  double window_;
  double reference_;
  double utilisation_ = 1.0;
  int stage_ = 0;
  std::uint64_t last_update_ = 0;
  IntMemory memory_;
};

struct HpccProfile {
  HpccSettings settings{};
  RateRule additive{};  // W_AI is this times the base RTT.
};

struct HpccControl : ControlDefaults {
  using Profile = HpccProfile;
  using Settings = HpccSettings;
  using Sender = Hpcc;
  static constexpr std::string_view kName = "hpcc";

  static void fields(Fields& fields, HpccProfile& profile);
  static HpccSettings settings(const HpccProfile& profile, const PortTerms& port);
  static ControlTraits traits(const HpccProfile& profile) {
    return {.packets_per_ack = 1,
            .telemetry = profile.settings.wire_counters ? IntFormat::Wire : IntFormat::Exact,
            .shares_rtt = true};
  }

  static void on_ack(Hpcc& flow, const AckSignal& ack, const PortTerms& /*port*/) {
    flow.on_ack(ack.acked, ack.next, ack.path, ack.memory);
  }
  static Bandwidth rate(const Hpcc& flow, SimTime /*now*/, const PortTerms& /*port*/) {
    return flow.rate();
  }
  static Bytes window(const Hpcc& flow, const PortTerms& /*port*/) { return flow.window(); }
};

}  // namespace trainyard
