// SPDX-License-Identifier: Apache-2.0
// Flows with TCP's controls at one queue that loses what finds no room. Packets are numbered; an
// ACK comes for each one, a base round trip after it left the queue, and shows that packets of its
// flow with lower numbers were lost. What is lost is not under way, as in the packet engine.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/control/control_terms.h"
#include "sim/units.h"

namespace trainyard {

template <typename Control>
class TcpQueue {
 public:
  struct Setup {
    typename Control::Settings settings{};
    PortTerms port{};
    Bandwidth bottleneck{};  // Of the queue.
    std::size_t flows = 1;
    std::size_t room = 0;  // Packets in the queue.
    SimTime stagger{};     // From the start of one flow to that of the next.
  };

  explicit TcpQueue(const Setup& setup)
      : setup_(setup), slot_(transfer_time(setup.port.packet, setup.bottleneck)) {
    for (std::size_t i = 0; i < setup.flows; ++i) {
      flows_.push_back(Flow{.sender = typename Control::Sender(setup_.settings),
                            .next = setup.stagger * static_cast<std::int64_t>(i)});
    }
  }
  TcpQueue(const TcpQueue&) = delete;
  TcpQueue& operator=(const TcpQueue&) = delete;

  void run(SimTime until) {
    while (true) {
      Flow* sender = nullptr;
      for (Flow& flow : flows_) {
        if (fits(flow) && (sender == nullptr || flow.next < sender->next)) {
          sender = &flow;
        }
      }
      const SimTime ack = head_ < path_.size() ? path_[head_].back : SimTime::max();
      const SimTime send = sender == nullptr ? SimTime::max() : std::max(sender->next, now_);
      const SimTime alarm = timeout();
      now_ = std::min(std::min(ack, send), alarm);
      if (now_ > until) {
        now_ = until;
        return;
      }
      if (ack == now_) {
        answer(path_[head_++]);
      } else if (alarm == now_) {
        lose_all();
      } else {
        post(*sender);
      }
    }
  }

  // Forgets what was measured so far.
  void restart() {
    start_ = now_;
    for (Flow& flow : flows_) {
      flow.came = 0;
    }
  }
  // The share of the line that was used.
  [[nodiscard]] double utilisation() const {
    double packets = 0.0;
    for (const Flow& flow : flows_) {
      packets += static_cast<double>(flow.came);
    }
    return packets * (slot_ / (now_ - start_));
  }
  // Jain's index: 1 if all have sent the same, 1 / n if one has sent all.
  [[nodiscard]] double fairness() const {
    double sum = 0.0;
    double squares = 0.0;
    for (const Flow& flow : flows_) {
      const auto came = static_cast<double>(flow.came);
      sum += came;
      squares += came * came;
    }
    return sum * sum / (squares * static_cast<double>(flows_.size()));
  }
  [[nodiscard]] const typename Control::Sender& sender(std::size_t flow) const {
    return flows_[flow].sender;
  }
  [[nodiscard]] std::int64_t under_way(std::size_t flow) const { return flows_[flow].under_way; }
  [[nodiscard]] std::int64_t losses() const { return losses_; }
  [[nodiscard]] std::int64_t timeouts() const { return timeouts_; }

 private:
  struct Flow {
    typename Control::Sender sender;
    SimTime next{};         // The pace allows a packet from then on.
    SimTime heard{};        // The last ACK, or the first packet after a pause.
    std::int64_t sent = 0;  // Packets, with lost ones.
    std::int64_t expected = 0;
    std::int64_t under_way = 0;
    std::int64_t acked = 0;
    std::int64_t came = 0;
  };
  struct Packet {
    std::size_t flow = 0;
    std::int64_t number = 0;
    SimTime sent{};
    SimTime back{};
  };

  static constexpr SimTime kTimeout = milliseconds(400);

  [[nodiscard]] bool fits(const Flow& flow) const {
    const Bytes window = Control::window(flow.sender, setup_.port);
    return flow.under_way == 0 || setup_.port.packet * (flow.under_way + 1) <= window;
  }

  [[nodiscard]] SimTime timeout() const {
    SimTime first = SimTime::max();
    for (const Flow& flow : flows_) {
      if (flow.under_way > 0) {
        first = std::min(first, flow.heard + kTimeout);
      }
    }
    return first;
  }

  void post(Flow& flow) {
    flow.next =
        now_ + transfer_time(setup_.port.packet, Control::rate(flow.sender, now_, setup_.port));
    flow.heard = flow.under_way == 0 ? now_ : flow.heard;
    ++flow.under_way;
    const std::int64_t number = flow.sent++;
    const SimTime room = slot_ * static_cast<std::int64_t>(setup_.room);
    if (free_ > now_ && free_ - now_ > room) {
      ++losses_;
      return;
    }
    free_ = std::max(free_, now_) + slot_;
    path_.push_back({.flow = static_cast<std::size_t>(&flow - flows_.data()),
                     .number = number,
                     .sent = now_,
                     .back = free_ + setup_.port.base_rtt});
  }

  void answer(const Packet& packet) {
    Flow& flow = flows_[packet.flow];
    if (packet.number < flow.expected) {
      return;  // It was taken for lost.
    }
    const std::int64_t lost = packet.number - flow.expected;
    flow.expected = packet.number + 1;
    flow.under_way -= lost + 1;
    flow.heard = now_;
    ++flow.acked;
    ++flow.came;
    const auto bytes = static_cast<std::uint64_t>(setup_.port.packet.count());
    const auto acked = static_cast<std::uint64_t>(flow.acked) * bytes;
    Control::on_ack(flow.sender,
                    {.now = now_,
                     .rtt = now_ - packet.sent,
                     .acked = acked,
                     .next = acked + static_cast<std::uint64_t>(flow.under_way) * bytes,
                     .size = setup_.port.packet},
                    setup_.port);
    if (lost > 0) {
      Control::on_loss(flow.sender, now_);
    }
  }

  void lose_all() {
    for (Flow& flow : flows_) {
      if (flow.under_way > 0 && flow.heard + kTimeout <= now_) {
        ++timeouts_;
        flow.under_way = 0;
        flow.expected = flow.sent;
        Control::on_timeout(flow.sender, now_);
      }
    }
  }

  Setup setup_;
  SimTime slot_;
  std::vector<Flow> flows_;
  std::vector<Packet> path_;  // In the order in which they leave the queue.
  std::size_t head_ = 0;
  SimTime now_{};
  SimTime start_{};
  SimTime free_{};
  std::int64_t losses_ = 0;
  std::int64_t timeouts_ = 0;
};

}  // namespace trainyard
