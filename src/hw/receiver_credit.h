// SPDX-License-Identifier: Apache-2.0
// Congestion control by the receiver, as EQDS has it (Olteanu et al., NSDI 2022): a pacer at the
// receiving port grants credit at its line rate to the flows that ask, in turn, and keeps what is
// granted but has not come below a window. A sender starts with credit for one bandwidth-delay
// product of its own, so that nothing waits a round trip to begin.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

struct CreditSettings {
  Bandwidth line{};     // Of the receiving port: the pace of the grants.
  Bytes quantum{4096};  // One grant.
  Bytes window{};       // Granted and not yet received, of all flows of the port.
  Bytes speculative{};  // What a sender may send unasked when it starts.
};

// One flow at its sender. All sizes are wire bytes.
class CreditSender {
 public:
  explicit CreditSender(const CreditSettings& settings)
      : speculative_(settings.speculative.count()) {}

  void on_credit(Bytes size) { granted_ += size.count(); }
  [[nodiscard]] bool can_send(Bytes packet) const {
    return granted_ >= packet.count() || speculative_ >= packet.count();
  }
  // Takes the packet's bytes from the grants, or else from what needs none. Whether it was the
  // latter.
  bool spend(Bytes packet) {
    if (granted_ >= packet.count()) {
      granted_ -= packet.count();
      return false;
    }
    CHECK(speculative_ >= packet.count(), "sent without credit");
    speculative_ -= packet.count();
    return true;
  }
  [[nodiscard]] Bytes available() const { return Bytes(granted_ + speculative_); }

 private:
  std::int64_t granted_ = 0;
  std::int64_t speculative_;
};

// One receiving port. Flows are numbers of the caller's, from 0.
class CreditPacer {
 public:
  struct Grant {
    std::uint32_t flow = 0;
    Bytes size{};
  };

  explicit CreditPacer(const CreditSettings& settings) : settings_(&settings) {
    CHECK(settings.quantum > Bytes(0) && settings.window >= settings.quantum,
          "a window below one grant");
  }

  // `flow` has `size` more to send that no credit covers.
  void request(std::uint32_t flow, Bytes size) {
    if (flow >= wanted_.size()) {
      wanted_.resize(flow + std::size_t{1}, 0);
    }
    if (size > Bytes(0) && wanted_[flow] == 0) {
      enqueue(flow);
    }
    wanted_[flow] += size.count();
  }
  // `size` bytes that were granted have come, or are known to be lost.
  void on_received(Bytes size) { outstanding_ -= size.count(); }

  // When the next grant is due; SimTime::max() while nobody asks or the window is full.
  [[nodiscard]] SimTime deadline() const {
    const bool is_full = outstanding_ + settings_->quantum.count() > settings_->window.count();
    return waiting_ == 0 || is_full ? SimTime::max() : ready_;
  }
  // The grant that is due by `now`, if one is.
  std::optional<Grant> grant(SimTime now) {
    if (deadline() > now) {
      return std::nullopt;
    }
    const std::uint32_t flow = dequeue();
    const std::int64_t size =
        wanted_[flow] < settings_->quantum.count() ? wanted_[flow] : settings_->quantum.count();
    wanted_[flow] -= size;
    if (wanted_[flow] > 0) {
      enqueue(flow);
    }
    outstanding_ += size;
    ready_ = (ready_ < now ? now : ready_) + transfer_time(Bytes(size), settings_->line);
    return Grant{.flow = flow, .size = Bytes(size)};
  }
  [[nodiscard]] Bytes outstanding() const { return Bytes(outstanding_); }

 private:
  // A ring of the flows that want something; each is in it at most once.
  void enqueue(std::uint32_t flow) {
    if (ring_.size() < wanted_.size()) {
      grow();
    }
    ring_[(head_ + waiting_) % ring_.size()] = flow;
    ++waiting_;
  }
  std::uint32_t dequeue() {
    const std::uint32_t flow = ring_[head_];
    head_ = (head_ + 1) % ring_.size();
    --waiting_;
    return flow;
  }
  void grow() {
    std::vector<std::uint32_t> larger(wanted_.size() * 2);
    for (std::size_t i = 0; i < waiting_; ++i) {
      larger[i] = ring_[(head_ + i) % ring_.size()];
    }
    ring_ = std::move(larger);
    head_ = 0;
  }

  const CreditSettings* settings_;
  std::vector<std::int64_t> wanted_;
  std::vector<std::uint32_t> ring_;
  std::size_t head_ = 0;
  std::size_t waiting_ = 0;
  std::int64_t outstanding_ = 0;
  SimTime ready_{};
};

}  // namespace trainyard
