// SPDX-License-Identifier: Apache-2.0
// A congestion control of the program that hosts a run: it is told what happens to each flow, and
// says how much may be in flight and how fast.
#pragma once

#include <cstdint>

namespace trainyard {

// An event of a flow comes in plain numbers: picoseconds, bits per second, bytes on the wire.
struct ControlEvent {
  enum class Kind : std::uint8_t { Start, Ack, Loss, Timeout };
  Kind kind = Kind::Start;
  std::uint64_t flow = 0;  // In the order in which flows start, over all networks of a run.
  std::int64_t now_ps = 0;
  // The same for the life of a flow: its port, its round trip with everything idle, a full packet.
  std::int64_t line_bits_per_second = 0;
  std::int64_t base_rtt_ps = 0;
  std::int64_t packet_bytes = 0;
  // An ACK tells these. The round trip is 0 where the packet was sent again: nobody knows it.
  std::int64_t rtt_ps = 0;
  std::uint64_t acked = 0;  // All bytes before this one have come.
  std::uint64_t next = 0;   // The next byte to send.
  std::int64_t size_bytes = 0;
  bool is_marked = false;
};

struct ControlPace {
  std::int64_t window_bytes = 0;     // 0: no window. Less than a packet counts as one.
  std::int64_t bits_per_second = 0;  // 0: that of the port, which is also the most.
};

class ControlCallback {
 public:
  ControlCallback() = default;
  ControlCallback(const ControlCallback&) = delete;
  ControlCallback& operator=(const ControlCallback&) = delete;

  // A flow starts with a call of kind Start. It is called by one thread, in an order that is the
  // same in each run. It must not throw: a host that cannot answer ends the run.
  virtual ControlPace pace(const ControlEvent& event) = 0;
  [[nodiscard]] std::uint64_t next_flow() { return flows_++; }

 protected:
  ~ControlCallback() = default;

 private:
  std::uint64_t flows_ = 0;
};

}  // namespace trainyard
