// SPDX-License-Identifier: Apache-2.0
#include "hw/transport/selective_repeat.h"

#include <algorithm>
#include <bit>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr Psn kWordBits = 64;

// Words of a ring that holds `window` packets wherever they begin.
std::size_t words_for(std::int64_t window) {
  CHECK(window > 0 && window <= kMaxOutstanding, "no window of packets");
  return std::bit_ceil(static_cast<Psn>(window) / kWordBits + 2);
}

}  // namespace

PacketBitmap::PacketBitmap(std::int64_t window)
    : words_(words_for(window), 0), mask_(words_.size() - 1) {}

SelectiveSender::SelectiveSender(const SelectiveSettings& settings) : received_(settings.window) {}

Psn SelectiveSender::next_hole() const {
  Psn psn = std::max(hole_, oldest_);
  while (psn < holes_end_ && received_.has(psn)) {
    ++psn;
  }
  return psn;
}

bool SelectiveSender::can_send(const SelectiveSettings& settings) const {
  if (has_failed_) {
    return false;
  }
  return !trimmed_.empty() || next_hole() < holes_end_ ||
         (next_ < end_ && in_flight() < settings.window);
}

Psn SelectiveSender::send(const SelectiveSettings& settings, SimTime now) {
  DCHECK(can_send(settings), "nothing to send");
  if (!trimmed_.empty()) {
    const Psn psn = trimmed_.front();
    trimmed_.pop_front();
    forget_received();
    ++resent_;
    return psn;
  }
  const Psn hole = next_hole();
  if (hole < holes_end_) {
    hole_ = hole + 1;
    ++resent_;
    if (deadline_ == SimTime::max()) {
      arm(settings, now);
    }
    return hole;
  }
  const Psn psn = next_++;
  if (psn == oldest_) {
    arm(settings, now);
  }
  return psn;
}

void SelectiveSender::arm(const SelectiveSettings& settings, SimTime now) {
  const SimTime timeout =
      in_flight() < settings.few ? settings.short_timeout : settings.long_timeout;
  deadline_ = in_flight() == 0 ? SimTime::max() : now + timeout;
}

std::int64_t SelectiveSender::on_ack(const SelectiveSettings& settings, Psn upto, SimTime now) {
  if (upto <= oldest_ || upto > next_) {
    return 0;
  }
  const auto newly = static_cast<std::int64_t>(upto - oldest_);
  for (Psn psn = oldest_; psn < upto; ++psn) {
    received_.clear(psn);
  }
  oldest_ = upto;
  failures_ = 0;
  is_recovering_ = is_recovering_ && upto < recovery_;
  forget_received();
  arm(settings, now);
  return newly;
}

std::int64_t SelectiveSender::on_nack(const SelectiveSettings& settings, Psn upto, Psn received,
                                      SimTime now) {
  const std::int64_t newly = on_ack(settings, upto, now);
  if (received < oldest_ || received >= next_) {
    return newly;
  }
  received_.set(received);
  forget_received();
  const auto margin = static_cast<Psn>(settings.reorder);
  const Psn beyond = received > margin ? received - margin : 0;  // Packets before it are lost.
  if (margin > 0 && beyond <= oldest_) {
    return newly;
  }
  if (!is_recovering_) {
    is_recovering_ = true;
    recovery_ = next_;
    hole_ = oldest_;
  }
  holes_end_ = std::max(holes_end_, beyond);
  return newly;
}

std::int64_t SelectiveSender::on_trimmed(const SelectiveSettings& settings, Psn upto, Psn trimmed,
                                         SimTime now) {
  const std::int64_t newly = on_ack(settings, upto, now);
  failures_ = 0;
  arm(settings, now);
  const bool is_hole_to_send = trimmed >= hole_ && trimmed < holes_end_;
  if (trimmed < oldest_ || trimmed >= next_ || received_.has(trimmed) || is_hole_to_send) {
    return newly;
  }
  // The lowest number goes first, as in uet-htsim @40ccb05 (UecSrc::_rtx_queue): behind others that
  // are trimmed again and again the oldest packet would wait for its timeout.
  const auto place = std::ranges::lower_bound(trimmed_, trimmed);
  if (place == trimmed_.end() || *place != trimmed) {
    trimmed_.insert(place, trimmed);
  }
  if (!is_recovering_) {
    is_recovering_ = true;
    recovery_ = next_;
  }
  return newly;
}

void SelectiveSender::forget_received() {
  while (!trimmed_.empty() && (trimmed_.front() < oldest_ || received_.has(trimmed_.front()))) {
    trimmed_.pop_front();
  }
}

void SelectiveSender::on_timeout(const SelectiveSettings& settings) {
  deadline_ = SimTime::max();
  if (++failures_ > settings.retries) {
    has_failed_ = true;
    return;
  }
  trimmed_.clear();
  is_recovering_ = true;
  recovery_ = next_;
  hole_ = oldest_;
  holes_end_ = next_;
}

SelectiveReceiver::SelectiveReceiver(const SelectiveSettings& settings)
    : received_(settings.window), window_(settings.window) {}

SelectiveReceiver::Answer SelectiveReceiver::on_packet(Psn psn) {
  if (psn < expected_) {
    return {.expected = expected_};
  }
  CHECK(static_cast<std::int64_t>(psn - expected_) < window_, "a packet beyond the window");
  if (psn > expected_) {
    const bool is_new = !received_.has(psn);
    received_.set(psn);
    return {.is_new = is_new, .is_nack = true, .expected = expected_};
  }
  ++expected_;
  while (received_.has(expected_)) {
    received_.clear(expected_++);
  }
  return {.is_new = true, .expected = expected_};
}

}  // namespace trainyard
