// SPDX-License-Identifier: Apache-2.0
// Finds after which time a phase that is simulated repeats itself, and tells it by its own past.
#include <algorithm>
#include <utility>

#include "network/packet/packet_phases.h"
#include "sim/check.h"
#include "sim/random.h"

namespace trainyard {
namespace {

// Estimates, which decide about nothing but speed. Packets of a port that are watched for a guess,
// at first and at most, and messages that are looked at.
constexpr std::size_t kFirstMarks = 16;
constexpr std::size_t kMostMarks = 1024;
constexpr std::size_t kLeastMarks = 256;  // The least of all ports.
constexpr std::size_t kMaxSends = std::size_t{1} << 20;
// After a try in vain there is none for so many times as long.
constexpr Picoseconds kPauses = 4;
// A long message that goes on for fewer periods is simulated.
constexpr std::int64_t kLeastPeriods = 8;

std::uint64_t key_of(std::uint64_t first, std::uint64_t second) {
  return hash64(hash64(first) ^ second);
}

}  // namespace

void PacketPhases::try_later(std::uint32_t number, Picoseconds now) {
  const Phase& phase = phases_[number];
  tries_.push({.time = now + phase.patience, .serial = phase.serial, .phase = number});
}

void PacketPhases::give_up(std::uint32_t number, Picoseconds now) {
  Phase& phase = phases_[number];
  if (phase.repeat->settled) {
    measure_later(number, now);
    return;
  }
  phase.patience = std::max(2 * phase.patience, kPauses * (now - phase.repeat->asked));
  set_watched(number, false);
  phase.repeat.reset();
  try_later(number, now);
}

// At the end of a window.
void PacketPhases::look_for_repeats(Picoseconds until) {
  take_starts();
  for (; !tries_.empty() && tries_.top().time < until; tries_.pop()) {
    const auto [time, serial, number] = tries_.top();
    Phase& phase = phases_[number];
    const bool is_meant =
        phase.serial == serial && phase.way == Way::Simulated && !phase.is_spoiled && !phase.repeat;
    if (!is_meant) {
      continue;
    }
    phase.repeat = std::make_unique<Repeat>();
    phase.repeat->asked = until;
    if (measure(number, until) || guess(number, until)) {
      continue;
    }
    if (fabric_.options().fast_forward == FastForward::Bounded) {
      measure_later(number, until);
    } else {
      phase.repeat->enough = std::max(kLeastMarks, kFirstMarks * phase.ports.size());
      set_watched(number, true);
      watched_.push_back(number);
    }
  }
  watch_packets(until);
  std::erase_if(proved_, [&](std::uint32_t number) {
    const Phase& phase = phases_[number];
    const bool is_proved = phase.repeat && phase.repeat->stage == Repeat::Stage::Proved;
    return !is_proved || stand_still(number, until);
  });
}

void PacketPhases::set_watched(std::uint32_t number, bool is_watched) {
  watch_.ports.resize(fabric_.ports().size());
  for (const std::uint32_t index : phases_[number].ports) {
    watch_.ports[index] = is_watched;
  }
}

// Hands the packets that began in this window to the phases that are watched.
void PacketPhases::take_starts() {
  starts_.clear();
  for (const auto& worker : workers_) {
    std::vector<PacketStart>& starts = worker->notes().starts;
    starts_.insert(starts_.end(), starts.begin(), starts.end());
    starts.clear();
  }
  std::ranges::sort(starts_);
  for (const PacketStart& start : starts_) {
    const std::uint32_t number = claims_[fabric_.port_index(LinkId(start.link))].phase;
    if (number != kNoIndex && phases_[number].repeat &&
        phases_[number].repeat->stage == Repeat::Stage::Watched) {
      phases_[number].repeat->marks.push_back(
          {.time = start.time, .key = key_of(start.link, start.connection)});
    }
  }
}

void PacketPhases::watch_packets(Picoseconds until) {
  std::erase_if(watched_, [&](std::uint32_t number) {
    Phase& phase = phases_[number];
    if (!phase.repeat || phase.repeat->stage != Repeat::Stage::Watched) {
      return true;
    }
    if (phase.repeat->marks.size() < phase.repeat->enough) {
      return false;
    }
    if (guess(number, until)) {
      return true;
    }
    phase.repeat->enough *= 2;
    if (phase.repeat->enough > kMostMarks * phase.ports.size() || phase.left == 0) {
      give_up(number, until);
      return true;
    }
    return false;
  });
  watch_.is_traced = !watched_.empty();
  watch_.is_on = watch_.is_traced;
  if (!watch_.is_traced) {
    watch_.ports.clear();  // Those of phases that are over, too.
  }
}

// The time after which the messages that were sent last repeat those before.
std::optional<Picoseconds> PacketPhases::period_of_sends(Phase& phase, Picoseconds until) {
  const std::vector<PacketStory::Send>& sends = story_of(phase).sends;
  std::vector<Mark> marks;
  for (std::size_t i = sends.size() - std::min(sends.size(), kMaxSends); i < sends.size(); ++i) {
    if (phase.begin + sends[i].time < until) {
      marks.push_back({.time = sends[i].time,
                       .key = key_of(sends[i].line, static_cast<std::uint64_t>(sends[i].size))});
    }
  }
  std::ranges::sort(marks, [](const Mark& a, const Mark& b) {
    return a.time != b.time ? a.time < b.time : a.key < b.key;
  });
  const auto period = period_of(marks, 0);
  const bool is_overdue = !marks.empty() && until - phase.begin - marks.back().time > period;
  return is_overdue ? std::nullopt : period;
}

// Guesses a period. Whether it did; then the proof is under way.
bool PacketPhases::guess(std::uint32_t number, Picoseconds until) {
  Phase& phase = phases_[number];
  Repeat& repeat = *phase.repeat;
  std::optional<Picoseconds> period = period_of_sends(phase, until);
  if (!period) {
    period = period_of(repeat.marks, repeat.marks.size() / 2);
  }
  if (!period) {
    return false;
  }
  set_watched(number, false);
  repeat.stage = Repeat::Stage::Guessed;
  repeat.period = *period;
  repeat.marks = {};
  repeat.first = snapshot(number, until);
  cuts_.push({.time = until + *period, .serial = phase.serial, .phase = number});
  return true;
}

void PacketPhases::cut() {
  const auto [time, serial, number] = cuts_.top();
  cuts_.pop();
  Phase& phase = phases_[number];
  if (phase.serial != serial || !phase.repeat) {
    return;
  }
  if (phase.repeat->stage == Repeat::Stage::Measured) {
    if (phase.repeat->states.back().time + phase.settling.interval == time) {
      go_on_measuring(number, time);
    }
    return;
  }
  if (phase.repeat->stage != Repeat::Stage::Guessed ||
      phase.repeat->first.time + phase.repeat->period != time) {
    return;
  }
  Repeat& repeat = *phase.repeat;
  repeat.second = snapshot(number, time);
  if (!repeat.first.repeats_in(repeat.second)) {
    give_up(number, time);
    return;
  }
  repeat.stage = Repeat::Stage::Proved;
  repeat.sends = repeat.second.sends - repeat.first.sends;
  repeat.matched = repeat.second.sends;
  proved_.push_back(number);
}

// The messages that are not complete.
std::vector<std::size_t> PacketPhases::left_of(const Phase& phase) {
  std::vector<std::size_t> left;
  for (std::size_t i = phase.entries.size(); i > 0 && left.size() < phase.left; --i) {
    if (!phase.entries[i - 1].is_done) {
      left.push_back(i - 1);
    }
  }
  std::ranges::reverse(left);
  return left;
}

PacketSnapshot PacketPhases::snapshot(std::uint32_t number, Picoseconds time) const {
  const Phase& phase = phases_[number];
  PacketSnapshot all{.time = time};
  const auto sent = std::ranges::lower_bound(phase.entries, time, {},
                                             [](const Entry& entry) { return entry.message.time; });
  all.sends = static_cast<std::uint64_t>(sent - phase.entries.begin());
  for (const std::size_t i : left_of(phase)) {
    const Entry& entry = phase.entries[i];
    if (i < all.sends) {
      all.pending.push_back(
          {.number = i, .connection = entry.connection, .size = entry.message.size});
    }
  }
  std::ranges::stable_sort(all.pending, {}, [&](const PacketSnapshot::Pending& each) {
    return senders_.end(each.connection).source;
  });
  PacketSnapshot::Parts parts{.ports = phase.ports,
                              .nodes = phase.nodes,
                              .connections = phase.connections,
                              .under_way = {}};
  for (const auto& worker : workers_) {
    worker->list_under_way([&](std::uint32_t port) { return claims_[port].phase == number; },
                           parts.under_way);
  }
  all.add(parts, fabric_, senders_, targets_, messages_);
  return all;
}

// The messages that were sent at the time of the first one: connections and sizes, in the order in
// which equals take turns at each source. Between sources order does not matter.
PacketPhases::Sent PacketPhases::sent_at_once(const Phase& phase, std::size_t first,
                                              Picoseconds until) const {
  Sent sent;
  for (std::size_t i = first; i < phase.entries.size(); ++i) {
    const Entry& entry = phase.entries[i];
    if (entry.message.time != phase.entries[first].message.time || entry.message.time >= until) {
      break;
    }
    sent.emplace_back(entry.connection, entry.message.size);
  }
  std::ranges::stable_sort(sent, {},
                           [&](const auto& each) { return senders_.end(each.first).source; });
  return sent;
}

// The time at which what was sent before `until` departs from what was sent a period before, if it
// does.
std::optional<Picoseconds> PacketPhases::departure(Phase& phase, Picoseconds until) const {
  Repeat& repeat = *phase.repeat;
  while (true) {
    const std::size_t before = repeat.matched - repeat.sends;
    const Picoseconds expected =
        repeat.sends > 0 ? phase.entries[before].message.time + repeat.period : kNeverTime;
    const Picoseconds found = repeat.matched < phase.entries.size()
                                  ? phase.entries[repeat.matched].message.time
                                  : kNeverTime;
    const Picoseconds next = std::min(expected, found);
    if (next >= until) {
      return std::nullopt;
    }
    if (expected != found || sent_at_once(phase, repeat.matched, until) !=
                                 sent_at_once(phase, before, until - repeat.period)) {
      return next;
    }
    for (; repeat.matched < phase.entries.size() &&
           phase.entries[repeat.matched].message.time == next;
         ++repeat.matched) {
      repeat.left[phase.entries[repeat.matched].connection].push_back(repeat.matched);
    }
  }
}

// The number of periods for which all messages that are still to be sent for long are long enough.
std::int64_t PacketPhases::most_periods(const Phase& phase) const {
  const Repeat& repeat = *phase.repeat;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < repeat.second.lines.size(); ++i) {
    const PacketSnapshot::Line& before = repeat.first.lines[i];
    const PacketSnapshot::Line& after = repeat.second.lines[i];
    if (after.order == kNeverWindow || before.order != after.order ||
        before.unsent == after.unsent) {
      continue;
    }
    const PacketSenders::SendingEnd& end = senders_.end(phase.connections[i]);
    if (end.sending == kNoIndex || messages_[end.sending].order != after.order) {
      return 0;
    }
    most = std::min(most, (end.unsent - 1) / (before.unsent - after.unsent));
  }
  return most;
}

// Has a phase of which it is proved that it repeats itself stand still. False if that has to wait.
bool PacketPhases::stand_still(std::uint32_t number, Picoseconds until) {
  Phase& phase = phases_[number];
  Repeat& repeat = *phase.repeat;
  if (phase.is_spoiled || phase.left == 0 || departure(phase, until)) {
    give_up(number, until);
    return true;
  }
  if (phase.entries.back().message.time >= until) {
    return false;  // It is posted, and at the end of a window that has not been done.
  }
  repeat.most = repeat.settled ? most_settled(number) : most_periods(phase);
  const std::vector<PacketStory::End>& ends = story_of(phase).ends;
  const auto last = std::ranges::lower_bound(ends, until - repeat.period - phase.begin, {},
                                             &PacketStory::End::left);
  if (repeat.most < (repeat.settled ? 1 : kLeastPeriods) ||
      static_cast<std::size_t>(ends.end() - last) != repeat.sends) {
    give_up(number, until);
    return true;
  }
  std::vector<std::size_t> staying;
  for (std::size_t i = 0; i < repeat.first.pending.size(); ++i) {
    if (repeat.first.pending[i].number == repeat.second.pending[i].number) {
      staying.push_back(repeat.first.pending[i].number);
    }
  }
  repeat.left.clear();
  for (const std::size_t i : left_of(phase)) {
    repeat.left[phase.entries[i].connection].push_back(i);
    if (std::ranges::find(staying, i) == staying.end()) {
      repeat.moving.push_back(i);
    }
  }
  const auto is_meant = [&](std::uint32_t port) { return claims_[port].phase == number; };
  for (const auto& worker : workers_) {
    worker->list_under_way(is_meant, repeat.under_way);
    worker->take_out(is_meant);
  }
  repeat.stage = Repeat::Stage::Still;
  repeat.begin = until;
  repeat.begun = phase.entries.size();
  wait_still(number);
  return true;
}

// When it is to be looked at again.
void PacketPhases::wait_still(std::uint32_t number) {
  Phase& phase = phases_[number];
  const Repeat& repeat = *phase.repeat;
  Picoseconds next = kNeverTime;
  if (repeat.most != std::numeric_limits<std::int64_t>::max()) {
    next = repeat.begin + repeat.most * repeat.period;
  }
  if (repeat.sends > 0) {
    const std::vector<PacketStory::End>& ends = story_of(phase).ends;
    next =
        std::min({next, phase.entries[repeat.matched - repeat.sends].message.time + repeat.period,
                  phase.begin + ends[ends.size() - repeat.sends].left + repeat.period});
  }
  wait(number, next);
}

// Tells of messages that are complete before `until`, if what was sent is what it was before.
void PacketPhases::go_on(std::uint32_t number, Picoseconds until, const Tell& news) {
  Phase& phase = phases_[number];
  Repeat& repeat = *phase.repeat;
  const bool is_over = (until - repeat.begin) / repeat.period >= repeat.most;
  if (is_over || departure(phase, until)) {
    resume(number, static_cast<std::uint64_t>(until / window_), &news);
    return;
  }
  if (repeat.sends > 0) {
    std::vector<PacketStory::End>& ends = story_of(phase).ends;
    while (true) {
      PacketStory::End end = ends[ends.size() - repeat.sends];
      end.left += repeat.period;
      end.time += repeat.period;
      if (phase.begin + end.left >= until) {
        break;
      }
      std::deque<std::size_t>& left = repeat.left[phase.entries[end.send].connection];
      CHECK(!left.empty(), "a message is complete that was not sent");
      end.send = static_cast<std::uint32_t>(left.front());
      left.pop_front();
      ends.push_back(end);
      Entry& entry = phase.entries[end.send];
      CHECK(!entry.is_done, "a message is complete a second time");
      entry.is_done = true;
      --phase.left;
      news(phase.begin + end.time, entry.message);
    }
    written_.push_back(number);
    note_ends();
  }
  wait_still(number);
}

// Goes on with simulating, after as many periods as were alike, up to the window `until`.
void PacketPhases::resume(std::uint32_t number, std::uint64_t until, const Tell* news) {
  Phase& phase = phases_[number];
  const Picoseconds end = static_cast<Picoseconds>(until) * window_;
  const Picoseconds alike = departure(phase, end).value_or(end);
  const Repeat& repeat = *phase.repeat;
  std::int64_t periods = std::min(repeat.most, (alike - repeat.begin) / repeat.period);
  if (repeat.settled) {
    periods = move_settled(phase, periods);
  } else {
    move_messages(phase, periods);
    move_connections(phase, periods);
    move_ports(phase, periods);
  }
  const Picoseconds by = periods * repeat.period;
  const Picoseconds begin = repeat.begin + by;
  const Workers late = late_workers(begin);
  for (Due due : repeat.under_way) {
    const std::uint32_t port =
        due.next == kNoIndex ? senders_.end(due.packet.connection).port : due.next;
    due.time += by;
    late[fabric_.ports()[port].part]->put_back(due);
  }
  for (const std::uint32_t index : phase.ports) {
    late[fabric_.ports()[index].part]->put_back(index, begin);
  }
  const std::size_t sent = repeat.begun + static_cast<std::size_t>(periods) * repeat.sends;
  phase.repeat.reset();
  for (std::size_t i = sent; i < phase.entries.size(); ++i) {
    post(phase.entries[i], late);
  }
  run_late(number, late, until, news);
  if (!phase.is_spoiled) {
    try_later(number, end);
  }
}

}  // namespace trainyard
