// SPDX-License-Identifier: Apache-2.0
// Finds the story by which a phase is told, and simulates those that no story fits.
#include <algorithm>

#include "network/packet/packet_phases.h"
#include "sim/check.h"

namespace trainyard {
namespace {

// The time for which a phase is simulated before it is looked at whether it repeats itself: about a
// hundred full packets at 400 Gb/s. An estimate; it decides about nothing but speed.
constexpr Picoseconds kPatience = 10'000'000;

}  // namespace

// Whether the story by which it is told has all that was sent, and nothing else before `until`.
bool PacketPhases::is_told(std::uint32_t number, Picoseconds until) {
  Phase& phase = phases_[number];
  if (phase.way != Way::Told || phase.is_spoiled || !stories_[phase.story]) {
    return false;
  }
  return phase.match.matches(fabric_.ports(), *stories_[phase.story], *phase.own,
                             until - phase.begin);
}

// Looks for a story that has all that was sent.
bool PacketPhases::find_story(std::uint32_t number, Picoseconds until) {
  Phase& phase = phases_[number];
  stop_reading(number);
  if (phase.is_spoiled) {
    return false;
  }
  if (!phase.own) {
    write(number, {});
  }
  const auto known = by_key_.find(phase.own->key(fabric_.ports()));
  if (known == by_key_.end()) {
    return false;
  }
  std::vector<std::uint32_t>& stories = known->second;
  std::erase_if(stories, [&](std::uint32_t index) { return !stories_[index]; });
  for (const std::uint32_t index : stories) {
    const PacketStory& story = *stories_[index];
    // One that began later is behind.
    if (story.state == PacketStory::State::Live && phases_[story.phase].begin > phase.begin) {
      continue;
    }
    StoryMatch match;
    if (match.matches(fabric_.ports(), story, *phase.own, until - phase.begin)) {
      phase.way = Way::Told;
      phase.story = index;
      phase.match = match;
      phase.next_end = 0;
      readers_[index].push_back(number);
      return true;
    }
  }
  return false;
}

void PacketPhases::stop_reading(std::uint32_t number) {
  Phase& phase = phases_[number];
  if (phase.way == Way::Told) {
    std::erase(readers_[phase.story], number);
    phase.way = Way::Undecided;
    phase.story = kNoIndex;
  }
}

// It is simulated from now on, and others may be told by it.
void PacketPhases::begin_story(std::uint32_t number) {
  Phase& phase = phases_[number];
  if (phase.is_spoiled) {
    sort_entries(phase);
  } else if (!phase.own) {
    write(number, {});
  }
  phase.way = Way::Simulated;
  if (phase.is_spoiled) {
    return;
  }
  phase.story = static_cast<std::uint32_t>(stories_.size());
  phase.own->phase = number;
  stored_ += phase.own->sends.size();
  by_key_[phase.own->key(fabric_.ports())].push_back(phase.story);
  stories_.push_back(std::move(phase.own));
  readers_.emplace_back();
  phase.patience = kPatience;
  try_later(number, std::max(phase.begin, border_));
}

void PacketPhases::forget_story(std::uint32_t number, Picoseconds now) {
  const std::uint32_t story = phases_[number].story;
  stored_ -= stories_[story]->sends.size();
  stories_[story].reset();
  for (const std::uint32_t reader : readers_[story]) {
    wait(reader, now);
  }
}

// Sends a message for real.
void PacketPhases::post(Entry& entry, const Workers& workers) {
  const std::uint32_t id = entry.connection;
  const std::uint32_t slot = messages_.add(entry.message);
  entry.slot = slot;
  if (slot >= connection_of_.size()) {
    connection_of_.resize(slot + std::size_t{1});
  }
  connection_of_[slot] = id;
  if (!targets_.expect(id, slot)) {
    messages_.append(senders_.end(id).last, slot);
  }
  const std::uint32_t port = senders_.end(id).port;
  PacketWorker& worker = *workers[fabric_.ports()[port].part];
  if (senders_.post(id, slot, worker.notes())) {
    worker.schedule(port);
  }
}

// Nothing of it lies in windows that are over.
void PacketPhases::simulate(std::uint32_t number) {
  begin_story(number);
  Phase& phase = phases_[number];
  for (Entry& entry : phase.entries) {
    post(entry, workers_);
  }
  if (phase.is_spoiled) {
    phase.entries.clear();
  }
}

// Simulates it from its beginning up to the window `until`, by workers of its own, which hand over
// to the others what is under way then.
void PacketPhases::catch_up(std::uint32_t number, std::uint64_t until, const Tell* news) {
  stop_reading(number);
  begin_story(number);
  Phase& phase = phases_[number];
  const Workers late = late_workers(phase.begin);
  for (const std::uint32_t index : phase.ports) {
    Port& port = fabric_.ports()[index];
    port.due = kNeverWindow;
    port.visited = kNeverWindow;
  }
  for (Entry& entry : phase.entries) {
    post(entry, late);
  }
  is_written_anew_ = true;
  run_late(number, late, until, news);
  is_written_anew_ = false;
}

PacketPhases::Workers PacketPhases::late_workers(Picoseconds begin) const {
  Workers late;
  for (std::uint32_t part = 0; part < workers_.size(); ++part) {
    late.push_back(std::make_unique<PacketWorker>(fabric_, senders_, targets_, watch_, part));
    late.back()->begin_at(window_, static_cast<std::uint64_t>(begin / window_));
  }
  return late;
}

void PacketPhases::run_late(std::uint32_t number, const Workers& late, std::uint64_t until,
                            const Tell* news) {
  Phase& phase = phases_[number];
  bool is_disturbed = false;
  for (std::uint64_t round = 1;; ++round) {
    std::uint64_t next = kNeverWindow;
    for (const auto& worker : late) {
      next = std::min(next, worker->next_window());
    }
    if (next >= until) {
      break;
    }
    for (const auto& worker : late) {
      worker->run(next, late, round, kNeverTime);
    }
    for (const auto& worker : late) {
      PacketNotes& notes = worker->notes();
      is_disturbed = is_disturbed || !notes.disturbed.empty();
      for (const PacketNotes::Whole& whole : notes.whole) {
        if (take_whole(whole)) {
          if (news != nullptr && next + 1 == until) {
            (*news)(whole.time, messages_[whole.slot]);
          } else {
            tell_late(number, messages_[whole.slot], until);
          }
        }
        messages_.remove(whole.slot);
      }
      notes.whole.clear();
      notes.starts.clear();
    }
  }
  const Picoseconds begin =
      until == kNeverWindow ? kNeverTime : static_cast<Picoseconds>(until) * window_;
  for (const auto& worker : workers_) {
    worker->absorb(late, phase.ports, begin);
  }
  for (const auto& worker : late) {
    counts_ += worker->notes().counts;
  }
  if (is_disturbed) {
    spoil(number, phase.begin);
  }
  if (phase.is_spoiled) {
    phase.entries.clear();
    return;
  }
  note_ends();
}

// A message is complete in a window that is over. Its story has left it out, which may be where
// that was skipped over at settled rates, and is told of it with the next window.
void PacketPhases::tell_late(std::uint32_t number, const PacketMessage& message,
                             std::uint64_t until) {
  CHECK(fabric_.options().fast_forward == FastForward::Bounded && until != kNeverWindow,
        "a story has left out a message");
  late_.push_back(message);
  wait(number, static_cast<Picoseconds>(until) * window_);
}

// All before this time has been done when a message is sent at `time`.
Picoseconds PacketPhases::done_until(Picoseconds time) const {
  auto window = static_cast<std::uint64_t>(std::min(time, next_time()) / window_);
  for (const auto& worker : workers_) {
    window = std::min(window, worker->next_window());
  }
  return static_cast<Picoseconds>(window) * window_;
}

// The time from which on nothing of it is under way, if that is known.
std::optional<Picoseconds> PacketPhases::quiet_time(const Phase& phase) const {
  if (phase.left > 0 || stands_still(phase)) {
    return std::nullopt;
  }
  Picoseconds quiet = phase.begin;
  for (const std::uint32_t index : phase.ports) {
    const Port& port = fabric_.ports()[index];
    if (port.urgent > 0 || port.stops != 0 || !port.queue.empty()) {
      return std::nullopt;
    }
    quiet = std::max(
        quiet, port.free_at + std::max({port.through_delay, port.end_delay, port.pause_delay}));
  }
  for (const std::uint32_t id : phase.connections) {
    quiet = std::max(quiet, senders_.end(id).next_start);
  }
  return quiet;
}

// Whether it is quiet when a message is sent at `time`.
bool PacketPhases::is_over(std::uint32_t number, Picoseconds time) {
  Phase& phase = phases_[number];
  if (phase.left > 0) {
    return false;
  }
  const Picoseconds done = done_until(time);
  if (phase.way == Way::Told && !is_told(number, time) && !find_story(number, time)) {
    catch_up(number, static_cast<std::uint64_t>(done / window_), nullptr);
  }
  if (phase.way == Way::Simulated) {
    const auto quiet = quiet_time(phase);
    return quiet && *quiet < done;
  }
  const PacketStory& story = *stories_[phase.story];
  if (story.sends.size() != phase.entries.size()) {
    return false;
  }
  if (story.state == PacketStory::State::Over) {
    return phase.begin + story.quiet < done;
  }
  const Phase& told = phases_[story.phase];
  const auto quiet = quiet_time(told);
  return quiet && *quiet < done && *quiet - told.begin + phase.begin < done;
}

}  // namespace trainyard
