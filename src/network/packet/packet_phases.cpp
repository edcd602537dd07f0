// SPDX-License-Identifier: Apache-2.0
#include "network/packet/packet_phases.h"

#include <algorithm>
#include <utility>

#include "sim/check.h"

namespace trainyard {
namespace {

// Messages that stories hold at most: about 100 MB. What is sent then is simulated.
constexpr std::size_t kMaxStored = 2'000'000;
// Messages of two phases that are written anew as one; larger ones are only simulated, or many that
// meet one after the other would take the square of the time.
constexpr std::size_t kMaxMerged = 16'384;

void add_once(std::vector<std::uint32_t>& all, std::uint32_t number) {
  if (std::ranges::find(all, number) == all.end()) {
    all.push_back(number);
  }
}

}  // namespace

PacketPhases::PacketPhases(PacketFabric& fabric, PacketSenders& senders, PacketTargets& targets,
                           PacketMessages& messages, PacketWatch& watch, Workers& workers,
                           const Picoseconds& window)
    : fabric_(fabric),
      senders_(senders),
      targets_(targets),
      messages_(messages),
      watch_(watch),
      workers_(workers),
      window_(window),
      packets_per_ack_(static_cast<std::uint32_t>(fabric.options().packets_per_ack)) {
  watch_.notes_disturbed = true;
}

PacketPhases::Line& PacketPhases::line_of(std::uint32_t id) {
  if (id >= lines_.size()) {
    lines_.resize(id + std::size_t{1});
    claims_.resize(fabric_.ports().size());
    node_claims_.resize(fabric_.switches().size(), kNoIndex);
  }
  Line& line = lines_[id];
  if (line.path.empty()) {
    const std::uint8_t hops = senders_.end(id).hops;
    const auto add = [&](std::uint32_t first) {
      for (std::uint32_t hop = 0; hop < hops; ++hop) {
        line.path.push_back(fabric_.positions()[first + hop]);
      }
    };
    add(senders_.end(id).path);
    if (fabric_.has_way_back()) {
      add(targets_.path(id, 0).reverse);
    }
    for (const std::uint32_t port : line.path) {
      add_once(line.ports, port);
      if (fabric_.ports()[port].node != kNoIndex) {
        add_once(line.nodes, fabric_.ports()[port].node);
      }
    }
  }
  return line;
}

void PacketPhases::send(std::uint32_t id, const PacketMessage& message) {
  if (!settled_.empty()) {
    unsettle(message.time);
  }
  const std::uint32_t number = phase_for(line_of(id), message.time);
  add(number, {.message = message, .connection = id});
}

// The phase of which these ports are from now on.
std::uint32_t PacketPhases::phase_for(const Line& line, Picoseconds time) {
  std::uint32_t found = kNoIndex;
  const auto look_at = [&](std::uint32_t owner) {
    if (owner == kNoIndex || owner == found) {
      return;
    }
    if (is_over(owner, time)) {
      finish(owner);
    } else {
      found = found == kNoIndex ? owner : merge(found, owner, time);
    }
  };
  for (const std::uint32_t port : line.ports) {
    look_at(claims_[port].phase);
  }
  for (const std::uint32_t node : line.nodes) {
    look_at(node_claims_[node]);
  }
  return found == kNoIndex ? add_phase(time) : found;
}

std::uint32_t PacketPhases::add_phase(Picoseconds begin) {
  if (unused_.empty()) {
    unused_.push_back(static_cast<std::uint32_t>(phases_.size()));
    phases_.emplace_back();
  }
  const std::uint32_t number = unused_.back();
  unused_.pop_back();
  Phase& phase = phases_[number];
  phase.serial = ++serials_;
  phase.begin = begin;
  phase.is_spoiled = fabric_.is_never_open();
  return number;
}

// Takes the ports of a line that it does not have, and the line.
void PacketPhases::claim(std::uint32_t number, std::uint32_t id) {
  Phase& phase = phases_[number];
  Line& line = lines_[id];
  for (const std::uint32_t index : line.ports) {
    if (claims_[index].phase != number) {
      PortTally& counters = fabric_.ports()[index].counters;
      claims_[index] = {.phase = number, .before = counters};
      counters.max_queued = 0;
      phase.ports.push_back(index);
    }
  }
  for (const std::uint32_t node : line.nodes) {
    if (node_claims_[node] != number) {
      node_claims_[node] = number;
      phase.nodes.push_back(node);
    }
  }
  if (line.serial != phase.serial) {
    line.serial = phase.serial;
    phase.connections.push_back(id);
    if (has_story(phase)) {
      const PacketSenders::SendingEnd& end = senders_.end(id);
      PacketStory& story = story_of(phase);
      line.number = story.add_line(
          fabric_.ports(), line.path,
          {.rate = end.rate, .hops = end.hops, .is_paced = end.is_paced, .places = {}});
      while (story.limits.size() < story.nodes.size()) {
        story.limits.push_back(fabric_.loads()[story.nodes[story.limits.size()]].limit);
      }
    }
  }
}

// A connection that was slowed down, or a switch that counts, is in no story.
bool PacketPhases::is_plain(std::uint32_t id) const {
  return senders_.is_uncut(id) && std::ranges::none_of(lines_[id].nodes, [&](std::uint32_t node) {
           return fabric_.loads()[node].is_counted();
         });
}

void PacketPhases::add(std::uint32_t number, const Entry& entry) {
  Phase& phase = phases_[number];
  const PacketMessage& message = entry.message;
  if (!phase.is_spoiled && (stored_ >= kMaxStored || !is_plain(entry.connection))) {
    spoil(number, done_until(message.time));
  }
  claim(number, entry.connection);
  ++phase.left;
  if (has_story(phase)) {
    story_of(phase).sends.push_back({.time = message.time - phase.begin,
                                     .size = message.size,
                                     .line = lines_[entry.connection].number});
    if (phase.way == Way::Simulated) {
      ++stored_;
      for (const std::uint32_t reader : readers_[phase.story]) {
        wait(reader, phases_[reader].begin + message.time - phase.begin);
      }
    }
  }
  if (phase.is_spoiled && phase.way == Way::Simulated) {
    Entry posted = entry;
    post(posted, workers_);
    return;
  }
  phase.entries.push_back(entry);
  if (phase.way == Way::Simulated && !stands_still(phase)) {
    post(phase.entries.back(), workers_);
  } else {
    wait(number, message.time);
  }
}

// From now on it is simulated, and not told of. Whoever is told by it looks for another story.
void PacketPhases::spoil(std::uint32_t number, Picoseconds now) {
  Phase& phase = phases_[number];
  if (phase.is_spoiled) {
    return;
  }
  if (stands_still(phase)) {
    resume(number, static_cast<std::uint64_t>(now / window_), nullptr);
    spoil(number, now);
    return;
  }
  phase.repeat.reset();
  if (phase.way == Way::Simulated) {
    forget_story(number, now);
    phase.entries.clear();
  }
  phase.is_spoiled = true;
}

// Two phases have come to share ports. Stories of what has not begun yet are written when it does.
std::uint32_t PacketPhases::merge(std::uint32_t first, std::uint32_t second, Picoseconds time) {
  if (phases_[first].ports.size() < phases_[second].ports.size()) {
    std::swap(first, second);
  }
  Phase& phase = phases_[first];
  Phase& other = phases_[second];
  const Picoseconds done = done_until(time);
  const bool is_simulated = phase.way == Way::Simulated || other.way == Way::Simulated;
  const bool is_large = phase.entries.size() + other.entries.size() > kMaxMerged;
  Ends ends;
  for (const std::uint32_t number : {first, second}) {
    stop_reading(number);
    if (!is_simulated) {
      continue;
    }
    if (phases_[number].way != Way::Simulated) {
      catch_up(number, static_cast<std::uint64_t>(done / window_), nullptr);
    } else if (stands_still(phases_[number])) {
      resume(number, static_cast<std::uint64_t>(done / window_), nullptr);
    }
    phases_[number].repeat.reset();
    if (!phases_[number].is_spoiled) {
      take_ends(phases_[number], ends);
      forget_story(number, done);
    }
  }
  const bool is_spoiled = phase.is_spoiled || other.is_spoiled || (is_simulated && is_large);
  phase.entries.insert(phase.entries.end(), other.entries.begin(), other.entries.end());
  phase.begin = std::min(phase.begin, other.begin);
  phase.is_spoiled = is_spoiled;
  phase.left += other.left;
  phase.own.reset();
  take_over(first, second);
  if (!is_simulated) {
    wait(first, done);  // Both have forgotten when they are to be looked at.
  } else if (is_spoiled) {
    phase.entries.clear();
  } else {
    phase.way = Way::Undecided;
    write(first, std::move(ends));
    begin_story(first);
  }
  return first;
}

void PacketPhases::take_ends(const Phase& phase, Ends& ends) {
  for (const PacketStory::End& end : stories_[phase.story]->ends) {
    ends.emplace_back(
        phase.entries[end.send].message.order,
        PacketStory::End{
            .left = end.left + phase.begin, .time = end.time + phase.begin, .send = 0});
  }
}

// Whatever the second has is the first one's.
void PacketPhases::take_over(std::uint32_t first, std::uint32_t second) {
  Phase& phase = phases_[first];
  Phase& other = phases_[second];
  phase.serial = ++serials_;
  phase.next_look = kNeverTime;
  for (const std::uint32_t port : other.ports) {
    claims_[port].phase = first;
  }
  for (const std::uint32_t node : other.nodes) {
    node_claims_[node] = first;
  }
  const auto append = [](std::vector<std::uint32_t>& to, const std::vector<std::uint32_t>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(phase.ports, other.ports);
  append(phase.nodes, other.nodes);
  append(phase.connections, other.connections);
  for (const std::uint32_t id : phase.connections) {
    lines_[id].serial = phase.serial;
  }
  other = {};
  unused_.push_back(second);
}

void PacketPhases::sort_entries(Phase& phase) {
  std::ranges::sort(phase.entries, {}, [](const Entry& entry) { return entry.message.order; });
}

// Writes the story of all messages of a phase that is not simulated, with ends in simulated time.
void PacketPhases::write(std::uint32_t number, Ends ends) {
  Phase& phase = phases_[number];
  sort_entries(phase);
  phase.own = std::make_unique<PacketStory>();
  PacketStory& story = *phase.own;
  for (const std::uint32_t id : std::exchange(phase.connections, {})) {
    lines_[id].serial = kNeverWindow;  // They are numbered anew.
  }
  for (const Entry& entry : phase.entries) {
    claim(number, entry.connection);
    story.sends.push_back({.time = entry.message.time - phase.begin,
                           .size = entry.message.size,
                           .line = lines_[entry.connection].number});
  }
  std::ranges::sort(ends, {}, [](const auto& end) { return end.second.left; });
  for (const auto& [order, end] : ends) {
    const auto entry = std::ranges::lower_bound(
        phase.entries, order, {}, [](const Entry& each) { return each.message.order; });
    story.ends.push_back({.left = end.left - phase.begin,
                          .time = end.time - phase.begin,
                          .send = static_cast<std::uint32_t>(entry - phase.entries.begin())});
  }
  phase.noted_ends = story.ends.size();
}

void PacketPhases::wait(std::uint32_t number, Picoseconds time) {
  Phase& phase = phases_[number];
  if (time < phase.next_look) {
    phase.next_look = time;
    waits_.push({.time = time, .serial = phase.serial, .phase = number});
  }
}

// Adds the phases that are to be looked at to the list.
void PacketPhases::take_due(Picoseconds until) {
  while (!waits_.empty()) {
    const Wait wait = waits_.top();
    const bool is_waited = is_waited_for(wait);
    if (is_waited && wait.time >= until) {
      break;
    }
    waits_.pop();
    if (is_waited) {
      phases_[wait.phase].next_look = kNeverTime;
      due_.push_back(wait.phase);
    }
  }
}

void PacketPhases::begin_window(std::uint64_t number) {
  const Picoseconds begin = static_cast<Picoseconds>(number) * window_;
  take_due(begin + window_);
  for (const std::uint32_t index : due_) {
    const Phase& phase = phases_[index];
    if (phase.way == Way::Undecided && phase.begin >= begin &&
        !find_story(index, begin + window_)) {
      simulate(index);
    }
  }
}

void PacketPhases::end_window(std::uint64_t number, const Tell& news) {
  const Picoseconds begin = static_cast<Picoseconds>(number) * window_;
  const Picoseconds until = begin + window_;
  collect_disturbed(begin);
  note_ends();
  for (const PacketMessage& message : std::exchange(late_, {})) {
    news(until, message);
  }
  for (std::size_t i = 0;; ++i) {
    take_due(until);
    if (i == due_.size()) {
      break;
    }
    const std::uint32_t index = due_[i];
    if (stands_still(phases_[index])) {
      go_on(index, until, news);
      continue;
    }
    if (phases_[index].way == Way::Simulated) {
      continue;
    }
    if (is_told(index, until) || find_story(index, until)) {
      tell(index, until, news);
    } else {
      catch_up(index, number + 1, &news);
    }
  }
  due_.clear();
  border_ = until;
  look_for_repeats(until);
}

void PacketPhases::collect_disturbed(Picoseconds now) {
  for (const auto& worker : workers_) {
    for (const std::uint32_t port : worker->notes().disturbed) {
      // The first port of a switch that counts may be in no phase.
      const std::uint32_t node = fabric_.ports()[port].node;
      spoil(node == kNoIndex ? claims_[port].phase : node_claims_[node], now);
    }
    worker->notes().disturbed.clear();
  }
}

bool PacketPhases::take_whole(const PacketNotes::Whole& whole) {
  const PacketMessage& message = messages_[whole.slot];
  const std::uint32_t id = connection_of_[whole.slot];
  const std::uint32_t number = claims_[senders_.end(id).port].phase;
  Phase& phase = phases_[number];
  bool is_new = true;
  if (!phase.entries.empty()) {
    const auto entry = std::ranges::lower_bound(
        phase.entries, message.order, {}, [](const Entry& each) { return each.message.order; });
    is_new = !entry->is_done;
    entry->is_done = true;
    if (!phase.is_spoiled && (is_new || is_written_anew_)) {
      const Port& last = fabric_.ports()[lines_[id].path[senders_.end(id).hops - 1U]];
      const std::int64_t mtu = fabric_.options().mtu.count();
      const bool is_one = message.size <= mtu;
      const std::int64_t payload = is_one ? message.size : (message.size - 1) % mtu + 1;
      const Picoseconds tail =
          time_on_line(last, fabric_.sizes(), fabric_.wire_of(payload, is_one)) + last.end_delay;
      story_of(phase).ends.push_back(
          {.left = whole.time - tail - phase.begin,
           .time = whole.time - phase.begin,
           .send = static_cast<std::uint32_t>(entry - phase.entries.begin())});
      written_.push_back(number);
    }
  }
  phase.left -= is_new ? 1 : 0;
  return is_new;
}

// Those who are told by a story hear that it has gone on.
void PacketPhases::note_ends() {
  for (const std::uint32_t number : written_) {
    Phase& phase = phases_[number];
    if (phase.way != Way::Simulated || phase.is_spoiled) {
      continue;
    }
    std::vector<PacketStory::End>& ends = stories_[phase.story]->ends;
    if (phase.noted_ends == ends.size()) {
      continue;
    }
    const auto first = ends.begin() + static_cast<std::ptrdiff_t>(phase.noted_ends);
    std::sort(first, ends.end(), [](const PacketStory::End& a, const PacketStory::End& b) {
      return a.left != b.left ? a.left < b.left : a.send < b.send;
    });
    for (const std::uint32_t reader : readers_[phase.story]) {
      wait(reader, phases_[reader].begin + first->left);
    }
    phase.noted_ends = ends.size();
  }
  written_.clear();
}

void PacketPhases::tell(std::uint32_t number, Picoseconds until, const Tell& news) {
  Phase& phase = phases_[number];
  const PacketStory& story = *stories_[phase.story];
  const std::vector<PacketStory::End>& ends = story.ends;
  for (; phase.next_end < ends.size(); ++phase.next_end) {
    const PacketStory::End& end = ends[phase.next_end];
    if (phase.begin + end.left >= until) {
      break;
    }
    Entry& entry = phase.entries[end.send];
    if (!entry.is_done) {
      entry.is_done = true;
      --phase.left;
      news(phase.begin + end.time, entry.message);
    }
  }
  // If the next message of the story is missing here, others may be complete earlier.
  Picoseconds next = kNeverTime;
  if (phase.next_end < ends.size()) {
    next = ends[phase.next_end].left;
  }
  if (phase.match.sends() < story.sends.size()) {
    next = std::min(next, story.sends[phase.match.sends()].time);
  }
  if (phase.match.sends() < phase.own->sends.size()) {
    next = std::min(next, phase.own->sends[phase.match.sends()].time);
  }
  if (next != kNeverTime) {
    wait(number, phase.begin + next);
  }
}

void PacketPhases::resume_all(Picoseconds time) {
  for (std::uint32_t number = 0; number < phases_.size(); ++number) {
    if (stands_still(phases_[number])) {
      resume(number, static_cast<std::uint64_t>(time / window_), nullptr);
    }
  }
}

}  // namespace trainyard
