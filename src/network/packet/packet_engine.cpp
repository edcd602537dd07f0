// SPDX-License-Identifier: Apache-2.0
// Setting up, messages, and what lies between windows.
#include "network/packet/packet_engine.h"

#include <algorithm>

#include "sim/check.h"
#include "sim/config_error.h"

namespace trainyard {

PacketEngine::PacketEngine(const Topology& topology, const PacketOptions& options)
    : fabric_(topology, options),
      senders_(fabric_, messages_, reliable_, grants_),
      targets_(fabric_, messages_, reliable_, grants_),
      sampler_(options.sample_every) {
  for (std::uint32_t part = 0; part < fabric_.parts(); ++part) {
    workers_.push_back(std::make_unique<PacketWorker>(fabric_, senders_, targets_, watch_, part));
  }
  own_ = workers_;
  if (PacketTeam* const team = options.team; team != nullptr && team->size() > 1) {
    exchange_ = std::make_unique<PacketExchange>(*team, fabric_, senders_, targets_, watch_, own_);
    own_ = exchange_->own();
  }
  if (own_.size() > 1) {
    pool_ = std::make_unique<ThreadPool>(static_cast<std::uint32_t>(own_.size()));
  }
  if (options.fast_forward != FastForward::Off) {
    phases_ = std::make_unique<PacketPhases>(fabric_, senders_, targets_, messages_, watch_,
                                             workers_, window_);
  }
  watch_.is_on = fabric_.sizes().stamps > 0 || !options.slow_hosts.empty();
  if (options.watchdog && options.watchdog->action == StormAction::Drop && !options.sends_again()) {
    targets_.lose();
  }
  for (const LinkFailure& failure : options.failures) {
    fail_link(failure.link, failure.time.picoseconds());
  }
}

std::uint32_t PacketEngine::add_connection(std::span<const LinkId> whole,
                                           std::optional<std::uint8_t> lane) {
  const std::span<const LinkId> links = fabric_.from_queue(whole);
  fabric_.add_lane(lane);
  PacketPath path{.first = static_cast<std::uint32_t>(fabric_.positions().size()),
                  .hops = static_cast<std::uint8_t>(links.size())};
  Picoseconds min = fabric_.add_path(links);
  if (fabric_.has_way_back()) {
    path.reverse = static_cast<std::uint32_t>(fabric_.positions().size());
    min = std::min(min, fabric_.add_way_back(links));
  }
  const auto id = static_cast<std::uint32_t>(senders_.count());
  min = std::min(min, senders_.add(path, fabric_.own_rate(whole)));
  for (const LinkId link : whole.first(whole.size() - links.size())) {
    before_queues_.push_back({.connection = id, .link = link});
  }
  targets_.add(path);
  set_up_ports();
  shorten_window(min);
  return id;
}

void PacketEngine::add_alternative(std::uint32_t id, std::span<const LinkId> whole) {
  const std::span<const LinkId> links = fabric_.from_queue(whole);
  if (phases_) {
    throw ConfigError(
        "packet engine: expected no fast-forward where packets are sprayed, found both");
  }
  CHECK(links.size() == senders_.end(id).hops, "sprayed paths of different lengths");
  if (!row_of(fabric_.options().retransmission).takes_overtaking) {
    throw ConfigError(
        "packet engine: expected no go-back-N over sprayed paths, where packets that overtake "
        "would count as lost; found both (selective repeat goes with it)");
  }
  const auto first = static_cast<std::uint32_t>(fabric_.positions().size());
  const Picoseconds min = fabric_.add_path(links);
  const PacketPath path = targets_.path(id, first);
  const std::vector<std::uint32_t>& positions = fabric_.positions();
  const std::uint32_t last = senders_.end(id).hops - 1U;
  CHECK(positions[first] == senders_.end(id).port &&
            positions[first + last] == positions[senders_.end(id).path + last],
        "sprayed paths that do not begin and end alike");
  targets_.spray(id, senders_.add_alternative(path, id));
  set_up_ports();
  shorten_window(min);
}

void PacketEngine::reroute(std::uint32_t id, Picoseconds time, std::span<const LinkId> whole) {
  const std::span<const LinkId> links = fabric_.from_queue(whole);
  CHECK(fabric_.options().sends_again(),
        "another path where nobody waits for packets that are overtaken");
  CHECK(time >= begin_time_, "another path from a time on that is over");
  PacketPath path{.first = static_cast<std::uint32_t>(fabric_.positions().size()),
                  .hops = static_cast<std::uint8_t>(links.size())};
  Picoseconds min = fabric_.add_path(links);
  path.reverse = static_cast<std::uint32_t>(fabric_.positions().size());
  min = std::min(min, fabric_.add_way_back(links));
  const std::vector<std::uint32_t>& positions = fabric_.positions();
  CHECK(positions[path.first] == senders_.end(id).port &&
            positions[path.reverse - 1] ==
                positions[senders_.end(id).path + senders_.end(id).hops - 1U],
        "another path that does not begin and end alike");
  fabric_.routes().add(id, time, path);
  senders_.add_way(id, path);
  set_up_ports();
  shorten_window(min);
}

// Sets up what is kept of ports beside the fabric.
void PacketEngine::set_up_ports() {
  for (const auto& worker : workers_) {
    worker->look_up();
  }
  const std::vector<Port>& ports = fabric_.ports();
  for (; ports_set_up_ < ports.size(); ++ports_set_up_) {
    set_up_losses(LinkId(ports[ports_set_up_].link));
  }
  if (fabric_.options().queue_times) {
    watch_.queue_times.resize(ports.size());
  }
}

// Windows are counted anew from the same instant on.
void PacketEngine::shorten_window(Picoseconds lookahead) {
  const SimTime longest = fabric_.options().longest_window;
  if (longest > SimTime()) {
    lookahead = std::min(lookahead, longest.picoseconds());
  }
  if (exchange_) {
    exchange_->forget_next();
  }
  if (lookahead < window_) {
    if (phases_) {
      phases_->resume_all(begin_time_);
    }
    window_ = lookahead;
    for (const auto& worker : workers_) {
      worker->start_over(window_, begin_time_);
    }
  }
}

void PacketEngine::send(std::uint32_t id, const Message& message) {
  CHECK(message.time >= begin_time_, "a message was sent in a window that is over");
  if (sampler_.is_due(message.time)) [[unlikely]] {
    sample_before(message.time);
  }
  Message ordered = message;
  ordered.order = messages_.take_order();
  ordered.connection = id;
  if (phases_) {
    phases_->send(id, ordered);
    return;
  }
  const std::uint32_t slot = messages_.add(ordered);
  if (!targets_.expect(id, slot)) {
    messages_.append(senders_.end(id).last, slot);
  }
  if (exchange_) {
    exchange_->forget_next();
    if (!exchange_->has_source(id)) {
      senders_.post_elsewhere(id, slot);
      return;
    }
  }
  PacketWorker& worker = worker_of(senders_.end(id).port);
  if (senders_.post(id, slot, worker.notes())) {
    worker.schedule(senders_.end(id).port);
  }
}

// A message is sent at `time`: what was before it is looked at without it, as far as all is done.
void PacketEngine::sample_before(Picoseconds time) {
  const std::uint64_t next = next_window();
  const Picoseconds done = next == kNeverWindow ? time : static_cast<Picoseconds>(next) * window_;
  sampler_.take_until(*this, std::min(time, done));
}

std::uint64_t PacketEngine::next_window() const {
  if (exchange_) {
    return exchange_->next_window();
  }
  std::uint64_t next = kNeverWindow;
  for (const auto& worker : workers_) {
    next = std::min(next, worker->next_window());
  }
  const Picoseconds time = phases_ ? phases_->next_time() : kNeverTime;
  return time == kNeverTime ? next : std::min(next, static_cast<std::uint64_t>(time / window_));
}

Picoseconds PacketEngine::next_border() const {
  const std::uint64_t next = next_window();
  return next == kNeverWindow ? kNeverTime : static_cast<Picoseconds>(next + 1) * window_;
}

void PacketEngine::run_window(std::vector<Completion>& completions) {
  const std::uint64_t number = next_window();
  CHECK(number != kNeverWindow, "a window without work");
  begin_time_ = static_cast<Picoseconds>(number) * window_;
  if (sampler_.is_due(begin_time_)) [[unlikely]] {
    sampler_.take_until(*this, begin_time_);
  }
  if (phases_) {
    phases_->begin_window(number);
  }
  ++windows_;
  const auto before = static_cast<std::ptrdiff_t>(completions.size());
  const Picoseconds border = begin_time_ + window_;
  while (phases_ && phases_->next_cut() < border) {
    if (phases_->next_cut() > begin_time_) {
      run_workers(number, phases_->next_cut());
      collect(completions);
    }
    phases_->cut();
  }
  run_workers(number, border);
  if (exchange_) {
    exchange_->swap(rounds_);
  }
  begin_time_ = border;
  if (sampler_.is_due(begin_time_)) [[unlikely]] {
    sampler_.take_at(*this, begin_time_);
  }
  collect(completions);
  if (phases_) {
    phases_->end_window(number, [&](Picoseconds time, const Message& message) {
      completions.push_back(
          {.time = time, .order = message.order, .done = message.done, .token = message.token});
    });
    if (next_window() == kNeverWindow) {
      phases_->settle();
    }
  }
  std::sort(completions.begin() + before, completions.end(),
            [](const Completion& a, const Completion& b) {
              return a.time != b.time ? a.time < b.time : a.order < b.order;
            });
}

// Works through a window up to `until`.
void PacketEngine::run_workers(std::uint64_t number, Picoseconds until) {
  ++rounds_;
  if (!pool_) {
    own_.front()->run(number, workers_, rounds_, until);
    return;
  }
  std::size_t due = 0;
  for (const auto& worker : workers_) {
    due += worker->due(number);
  }
  if (due < static_cast<std::size_t>(fabric_.options().min_shared)) {
    for (const auto& worker : own_) {
      worker->run(number, workers_, rounds_, until);
    }
    return;
  }
  pool_->do_all([&](std::uint32_t own) { own_[own]->run(number, workers_, rounds_, until); });
}

// Collects what was noted in the window, in an order that no way of working through it changes.
void PacketEngine::collect(std::vector<Completion>& completions) {
  const auto failed_before = static_cast<std::ptrdiff_t>(failures_.size());
  const std::size_t started_before = starts_ != nullptr ? starts_->size() : 0;
  for (const auto& worker : workers_) {
    PacketNotes& notes = worker->notes();
    for (const PacketNotes::Whole& whole : notes.whole) {
      const Message& message = messages_[whole.slot];
      // A story that was skipped over at settled rates may have told of it already.
      if (!phases_ || phases_->take_whole(whole)) {
        completions.push_back({.time = whole.time,
                               .order = message.order,
                               .done = message.done,
                               .token = message.token});
      }
      if (exchange_ && !exchange_->has_target(message.connection)) {
        targets_.complete_elsewhere(message.connection, whole.slot);
      }
      messages_.remove(whole.slot);
    }
    notes.whole.clear();
    failures_.insert(failures_.end(), notes.failures.begin(), notes.failures.end());
    notes.failures.clear();
    if (starts_ != nullptr) {
      starts_->insert(starts_->end(), notes.starts.begin(), notes.starts.end());
      notes.starts.clear();
    }
  }
  std::sort(failures_.begin() + failed_before, failures_.end());
  if (starts_ != nullptr) {
    std::sort(starts_->begin() + static_cast<std::ptrdiff_t>(started_before), starts_->end());
  }
}

}  // namespace trainyard
