// SPDX-License-Identifier: Apache-2.0
// HPCC (Li et al., SIGCOMM 2019, algorithm 1): switches write into each packet how much they have
// sent and hold, the receiver returns that in the ACK, and the sender sets its window so that the
// busiest link on the path is used to a share eta.
//
// Window and utilisation are real numbers, as in the paper; what comes in and the rate that goes
// out are integers.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "sim/units.h"

namespace trainyard {

// What one egress port writes when a packet leaves it.
struct IntHop {
  Bandwidth rate{};
  SimTime time{};
  std::uint64_t sent_bytes = 0;  // By the port since the start.
  Bytes queue{};                 // Without the packet itself.
  std::uint32_t port = 0;        // Which one it is: the path id of the paper, link by link.
};

inline constexpr std::size_t kMostIntHops = 8;

// The wire format of the paper's prototype has few bits: 24 of time in ns, 20 of bytes sent in
// units of 128 B, 17 of queue in units of 80 B. Counters wrap; the queue stops at its largest
// value. 8 B for each hop, and with the count of hops 42 B on data and on ACKs for up to five.
[[nodiscard]] IntHop rounded_to_wire(const IntHop& hop);
inline constexpr Bytes kIntWireBytes{42};

struct HpccSettings {
  Bandwidth line{};    // Of the NIC: the first window is line x base_rtt.
  SimTime base_rtt{};  // T, of the whole network.
  double eta = 0.95;   // What a link is used to.
  int max_stage = 5;   // Additive steps before the next multiplicative one.
  double additive{};   // W_AI in bytes; window x (1 - eta) / flows is its largest sensible value.
  double least_window{};       // The window never falls below; 0 takes W_AI.
  bool wire_counters = false;  // Hops come through rounded_to_wire(): times and bytes wrap.
};

// What ACKs brought last of each link of a path.
struct HpccMemory {
  struct Seen {
    SimTime time{};
    std::uint64_t sent_bytes = 0;
    Bytes queue{};
    std::uint32_t port = 0;
  };
  std::uint8_t hops = 0;  // 0: nothing seen yet.
  std::array<Seen, kMostIntHops> seen{};
};

// The sender of one flow. `settings` must outlive it.
class Hpcc {
 public:
  explicit Hpcc(const HpccSettings& settings);

  // An ACK for everything before `acked` has come, `next` is the next byte to be sent, `hops` are
  // the links of the path in order. Hops beyond kMostIntHops are not looked at. On another path
  // than that of the ACK before, measuring begins anew. A flow over several paths, which the paper
  // does not have, gives the memory of the one that the packet took: there is one window, for which
  // each ACK counts that compares links with what they did before.
  void on_ack(std::uint64_t acked, std::uint64_t next, std::span<const IntHop> hops,
              HpccMemory* memory = nullptr);

  [[nodiscard]] Bytes window() const { return Bytes(static_cast<std::int64_t>(window_)); }
  // The pace: window / T.
  [[nodiscard]] Bandwidth rate() const;

  [[nodiscard]] double window_bytes() const { return window_; }
  [[nodiscard]] double reference_window() const { return reference_; }  // Wc
  [[nodiscard]] double utilisation() const { return utilisation_; }     // U
  [[nodiscard]] int stage() const { return stage_; }

 private:
  using Seen = HpccMemory::Seen;

  void measure(std::span<const IntHop> hops, const HpccMemory& memory);
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
  HpccMemory memory_;
};

}  // namespace trainyard
