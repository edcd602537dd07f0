// SPDX-License-Identifier: Apache-2.0
#include "hw/transport/tcp.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace trainyard {
namespace {

SimTime part(SimTime time, std::int64_t parts) {
  return SimTime(time.picoseconds() / parts);
}

}  // namespace

double small_queue(double pace, double memory_of_packet, bool is_again) {
  constexpr double kTime = 1.0 / 1024;       // sk_pacing_shift is 10: about 1 ms.
  constexpr double kMost = 4.0 * (1 << 20);  // tcp_limit_output_bytes, ip-sysctl.rst.
  const double limit = std::min(std::max(2.0 * memory_of_packet, pace * kTime), kMost);
  return is_again ? 2.0 * limit : limit;
}

Psn TcpSender::next() const {
  if (lost_ == 0) {
    return next_;
  }
  const auto first = std::ranges::find_if(records_, &Record::is_lost);
  return oldest_ + static_cast<Psn>(first - records_.begin());
}

Psn TcpSender::send(const TcpSettings& settings, SimTime now) {
  DCHECK(can_send(settings), "nothing to send");
  const Psn psn = next();
  const bool is_new = psn == next_;
  if (is_new) {
    ++next_;
    records_.push_back({});
  } else {
    ++resent_;
    --lost_;
  }
  record(psn).is_lost = false;
  record(psn).sent = now;
  if (timeout_at_ == SimTime::max()) {
    timeout_at_ = now + timeout(settings);
    deadline_ = timeout_at_;
  }
  if (is_new) {
    arm_probe(settings, now);
  }
  return psn;
}

// RFC 6298, section 2, with the variation that Linux lets fall no lower than its least timeout.
SimTime TcpSender::timeout(const TcpSettings& settings) const {
  constexpr int kMostDoublings = 20;
  SimTime timeout = smoothed_ + std::max(settings.min_timeout, variation_ * 4);
  for (int i = 0; i < std::min(failures_, kMostDoublings) && timeout < settings.max_timeout; ++i) {
    timeout = timeout * 2;
  }
  return std::min(timeout, settings.max_timeout);
}

void TcpSender::measure(SimTime round_trip) {
  least_ = std::min(least_, round_trip);
  if (smoothed_ == SimTime()) {
    smoothed_ = round_trip;
    variation_ = part(round_trip, 2);
    return;
  }
  const SimTime apart = round_trip > smoothed_ ? round_trip - smoothed_ : smoothed_ - round_trip;
  variation_ = part(variation_ * 3 + apart, 4);
  smoothed_ = part(smoothed_ * 7 + round_trip, 8);
}

// Sets the probe anew. It waits for the delay of an ACK, too, where one packet is alone.
void TcpSender::arm_probe(const TcpSettings& settings, SimTime now) {
  deadline_ = timeout_at_;
  const bool can_probe =
      in_flight() > 0 && !is_recovering_ && !has_probed_ && smoothed_ > SimTime();
  if (can_probe) {
    const SimTime more = in_flight() == 1 ? settings.min_timeout : settings.min_probe;
    deadline_ = std::min(deadline_, now + smoothed_ * 2 + more);
  }
}

void TcpSender::deliver(Record& record, Psn psn, SimTime now) {
  if (std::pair(record.sent, psn) >= std::pair(newest_, newest_psn_)) {
    newest_ = record.sent;
    newest_psn_ = psn;
    newest_rtt_ = now - record.sent;
  }
  if (record.is_lost) {
    record.is_lost = false;
    --lost_;
  }
}

std::int64_t TcpSender::on_ack(const TcpSettings& settings, Psn upto, Psn received, SimTime now) {
  newly_lost_.clear();
  if (upto > next_ || received >= next_) {
    return 0;
  }
  std::int64_t newly = 0;
  for (; oldest_ < upto; ++oldest_, ++newly) {
    Record& front = records_.front();
    if (front.is_received) {
      --early_;
    } else {
      deliver(front, oldest_, now);
      if (newly == 0) {
        measure(now - front.sent);
      }
    }
    records_.pop_front();
  }
  if (received >= oldest_ && !record(received).is_received) {
    deliver(record(received), received, now);
    record(received).is_received = true;
    ++early_;
  }
  if (newly > 0) {
    failures_ = 0;
    has_probed_ = false;
    is_recovering_ = is_recovering_ && upto < recovery_;
  }
  find_losses(settings, now);
  if (newly > 0) {
    timeout_at_ = in_flight() == 0 ? SimTime::max() : now + timeout(settings);
    arm_probe(settings, now);
  }
  return newly;
}

void TcpSender::lose(Psn psn) {
  record(psn).is_lost = true;
  ++lost_;
  newly_lost_.push_back(psn);
}

void TcpSender::find_losses(const TcpSettings& settings, SimTime now) {
  reorder_at_ = SimTime::max();
  if (early_ == 0 && !is_recovering_) {
    return;
  }
  const bool is_sure = is_recovering_ || early_ >= settings.duplicates;
  if (!is_sure && least_ == SimTime::max()) {
    return;
  }
  const SimTime margin = is_sure ? SimTime() : part(least_, 4);
  SimTime last_due{};
  for (Psn psn = oldest_; psn < next_; ++psn) {
    const Record& each = record(psn);
    const bool is_before = std::pair(each.sent, psn) < std::pair(newest_, newest_psn_);
    if (each.is_received || each.is_lost || !is_before) {
      continue;
    }
    const SimTime due = each.sent + newest_rtt_ + margin;
    if (due <= now) {
      lose(psn);
    } else {
      last_due = std::max(last_due, due);
    }
  }
  if (last_due > SimTime()) {  // Linux: tcp_rack_mark_lost() adds TCP_TIMEOUT_MIN.
    reorder_at_ = last_due + settings.min_probe;
  }
  if (!newly_lost_.empty() && !is_recovering_) {
    is_recovering_ = true;
    recovery_ = next_;
  }
}

Expiry TcpSender::on_timeout(const TcpSettings& settings) {
  newly_lost_.clear();
  if (reorder_at_ <= deadline_ && reorder_at_ < SimTime::max()) {
    find_losses(settings, reorder_at_);
    deadline_ = timeout_at_;
    return Expiry::Loss;
  }
  reorder_at_ = SimTime::max();
  const SimTime now = deadline_;
  if (now < timeout_at_) {
    has_probed_ = true;
    deadline_ = timeout_at_;
    Psn last = next_ - 1;
    while (record(last).is_received) {
      --last;  // The oldest has not come.
    }
    if (!record(last).is_lost) {
      lose(last);
    }
    return Expiry::Probe;
  }
  deadline_ = SimTime::max();
  timeout_at_ = SimTime::max();
  if (++failures_ > settings.retries) {
    has_failed_ = true;
    return Expiry::Timeout;
  }
  for (Psn psn = oldest_; psn < next_; ++psn) {
    if (!record(psn).is_received && !record(psn).is_lost) {
      lose(psn);
    }
  }
  is_recovering_ = true;
  recovery_ = next_;
  return Expiry::Timeout;
}

TcpReceiver::Answer TcpReceiver::on_packet(const TcpSettings& settings, Psn psn) {
  bool is_new = psn >= expected_;
  const bool is_in_order = psn == expected_ && early_count_ == 0;
  if (psn > expected_) {
    const auto place = static_cast<std::size_t>(psn - expected_ - 1);
    if (place >= early_.size()) {
      early_.resize(place + 1, false);
    }
    is_new = !early_[place];
    early_[place] = true;
    early_count_ += is_new ? 1 : 0;
  } else if (is_new) {
    ++expected_;
    for (; !early_.empty() && early_.front(); early_.pop_front()) {
      ++expected_;
      --early_count_;
    }
    if (!early_.empty()) {
      early_.pop_front();  // The packet that is expected now.
    }
  }
  ++unanswered_;
  const bool is_sent =
      !is_in_order || unanswered_ >= settings.ack_every || answers_ < settings.quick_acks;
  if (is_sent) {
    unanswered_ = 0;
    ++answers_;
  }
  return {.is_new = is_new, .is_sent = is_sent, .expected = expected_};
}

}  // namespace trainyard
