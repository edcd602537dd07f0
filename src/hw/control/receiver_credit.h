// SPDX-License-Identifier: Apache-2.0
// Congestion control by the receiver, as EQDS has it (Olteanu et al., NSDI 2022): a pacer at the
// receiving port grants credit at its line rate to the flows that ask, in turn, and keeps what may
// be on its way to it below a window. A sender that was idle begins with up to one bandwidth-delay
// product that nobody granted, so that nothing waits a round trip to begin.
//
// EQDS leaves some rules open, or puts them into the data packets. They are settled here so that no
// packet that is lost can stop a flow for ever: requests and grants carry sums since the start, so
// that a later one represents those before it; a sender that waits in vain asks again, after
// `patience`, twice that, and so on; a pacer whose window is full and to which no data come for
// that time takes what is missing for lost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "hw/control/control_terms.h"
#include "sim/check.h"
#include "sim/units.h"

namespace trainyard {

struct CreditSettings {
  Bandwidth line{};     // The rate of the receiving port: the pace of the grants.
  Bytes quantum{4096};  // One grant.
  Bytes window{};       // The most on its way, over all flows of the port, when one is granted.
  Bytes speculative{};  // The most that a sender has under way when it begins without a grant.
  SimTime patience = microseconds(320);  // As above.
};

// One flow at its sender. All sizes are wire bytes.
class CreditSender {
 public:
  explicit CreditSender(const CreditSettings& settings) : settings_(&settings) {}

  // There are `size` bytes more to send, with `in_flight` sent that are not known to have come. If
  // all before has been sent, a burst begins: as much of it needs no grant as does not make more
  // than `speculative` in flight.
  void add(Bytes size, Bytes in_flight) {
    if (backlog_ == 0) {
      unasked_left_ = std::max<std::int64_t>(0, (settings_->speculative - in_flight).count());
    }
    const std::int64_t free = std::min(size.count(), unasked_left_);
    unasked_left_ -= free;
    unasked_ += static_cast<std::uint64_t>(free);
    asked_ += static_cast<std::uint64_t>(size.count() - free);
    credit_ += free;
    backlog_ += size.count();
  }
  void on_credit(Bytes size) {
    credit_ += size.count();
    granted_ += static_cast<std::uint64_t>(size.count());
  }
  // Whether a packet may go: it may be larger than the credit that is left, which the next grant
  // makes up for. So nothing stays unused that nobody else could be granted meanwhile.
  [[nodiscard]] bool can_send() const { return credit_ > 0; }
  void spend(Bytes packet) {
    CHECK(can_send(), "sent without credit");
    credit_ -= packet.count();
    backlog_ -= packet.count();
  }

  [[nodiscard]] Bytes available() const { return Bytes(credit_); }
  // Sums since the start: of what needed no grant, what did, and what was granted of that.
  [[nodiscard]] std::uint64_t unasked() const { return unasked_; }
  [[nodiscard]] std::uint64_t asked() const { return asked_; }
  [[nodiscard]] std::uint64_t granted() const { return granted_; }
  [[nodiscard]] bool is_waiting() const { return granted_ < asked_; }

 private:
  const CreditSettings* settings_;
  std::int64_t credit_ = 0;        // The bytes that may be sent.
  std::int64_t backlog_ = 0;       // The bytes that are to be sent.
  std::int64_t unasked_left_ = 0;  // The bytes of this burst that still need no grant.
  std::uint64_t unasked_ = 0;
  std::uint64_t asked_ = 0;
  std::uint64_t granted_ = 0;
};

// One receiving port. Flows are numbers of the caller's, from 0. `settings` must outlive it.
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
    std::int64_t& wanted = at(flow).wanted;
    if (size > Bytes(0) && wanted == 0 && !at(flow).is_silent) {
      waiting_.push_back(flow);
    }
    wanted += size.count();
  }
  // `flow` says at `now` that it sends `size` without a grant, or has sent it already. Of nothing
  // this only says that the flow is there: who asks again and again for what others have lost must
  // not have the pacer wait for that for ever.
  void expect(std::uint32_t flow, Bytes size, SimTime now) {
    hear(flow);
    if (size > Bytes(0)) {
      last_heard_ = now;
      owe(flow, size.count());
    }
  }
  // `size` bytes of `flow` have come, at `now`.
  void on_received(std::uint32_t flow, Bytes size, SimTime now) {
    hear(flow);
    last_heard_ = now;
    const std::int64_t late = std::min(at(flow).lost, size.count());
    at(flow).lost -= late;
    owe(flow, late - size.count());
  }

  // When the next grant is due; SimTime::max() while nobody asks.
  [[nodiscard]] SimTime deadline() const {
    if (waiting_.empty()) {
      return SimTime::max();
    }
    return is_full() ? std::max(ready_, last_heard_ + settings_->patience) : ready_;
  }
  // The grant that is due by `now`, if one is, and anybody to whom it could go.
  std::optional<Grant> grant(SimTime now) {
    if (deadline() > now) {
      return std::nullopt;
    }
    if (is_full()) {
      write_off();
      if (waiting_.empty()) {
        return std::nullopt;
      }
    }
    const std::uint32_t flow = waiting_.front();
    waiting_.pop_front();
    std::int64_t& wanted = flows_[flow].wanted;
    const std::int64_t size = std::min(wanted, settings_->quantum.count());
    wanted -= size;
    if (wanted > 0) {
      waiting_.push_back(flow);
    }
    owe(flow, size);
    ready_ = std::max(ready_, now) + transfer_time(Bytes(size), settings_->line);
    last_heard_ = std::max(last_heard_, now);
    return Grant{.flow = flow, .size = Bytes(size)};
  }
  // The bytes that may be on their way.
  [[nodiscard]] Bytes outstanding() const { return Bytes(outstanding_); }

 private:
  struct Flow {
    std::int64_t wanted = 0;
    // The bytes that may be on their way; less than 0 where more has come than is known of.
    std::int64_t due = 0;
    std::int64_t lost = 0;   // The bytes taken for lost that have not come all the same.
    bool is_silent = false;  // Nothing was heard of it since: it is granted nothing.
  };

  Flow& at(std::uint32_t flow) {
    if (flow >= flows_.size()) {
      flows_.resize(flow + std::size_t{1});
    }
    return flows_[flow];
  }
  void owe(std::uint32_t flow, std::int64_t size) {
    std::int64_t& due = at(flow).due;
    outstanding_ -= std::max<std::int64_t>(0, due);
    due += size;
    outstanding_ += std::max<std::int64_t>(0, due);
  }
  [[nodiscard]] bool is_full() const {
    return outstanding_ + settings_->quantum.count() > settings_->window.count();
  }
  void hear(std::uint32_t flow) {
    if (std::exchange(at(flow).is_silent, false) && at(flow).wanted > 0) {
      waiting_.push_back(flow);
    }
  }
  void write_off() {
    for (Flow& flow : flows_) {
      const std::int64_t missing = std::max<std::int64_t>(0, flow.due);
      flow.due -= missing;
      flow.lost += missing;
      flow.is_silent = flow.is_silent || missing > 0;
    }
    outstanding_ = 0;
    std::erase_if(waiting_, [this](std::uint32_t flow) { return flows_[flow].is_silent; });
  }

  const CreditSettings* settings_;
  std::vector<Flow> flows_;
  std::deque<std::uint32_t> waiting_;  // The flows that want something, each once.
  std::int64_t outstanding_ = 0;
  SimTime ready_{};
  SimTime last_heard_{};  // The time of the last data, announcement or grant of any flow.
};

// Windows in units of line rate x base RTT.
struct CreditProfile {
  Bytes quantum{};
  double window = 1.5;
  double speculative = 1.0;
  SimTime patience{};
};

struct CreditControl : ControlDefaults {
  using Profile = CreditProfile;
  using Settings = CreditSettings;
  using Sender = CreditSender;
  static constexpr std::string_view kName = "receiver-credit";

  static void fields(Fields& fields, CreditProfile& profile);
  static CreditSettings settings(const CreditProfile& profile, const PortTerms& port);
  // ACKs only say when a sender is idle: as many as without a control that asks for them.
  static ControlTraits traits(const CreditProfile& /*profile*/) {
    return {.packets_per_ack = 16, .is_receiver_driven = true};
  }

  static void on_sent(CreditSender& flow, SimTime /*now*/, Bytes size) { flow.spend(size); }
  static void on_credit(CreditSender& flow, Bytes size) { flow.on_credit(size); }
  static void add(CreditSender& flow, Bytes size, Bytes in_flight) { flow.add(size, in_flight); }
  static bool has_credit(const CreditSender& flow) { return flow.can_send(); }
};

}  // namespace trainyard
