// SPDX-License-Identifier: Apache-2.0
#include "collectives/mpi/mpi_executor.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr std::uint64_t kKinds = 16;  // At least those of Wake.

}  // namespace

MpiExecutor::MpiExecutor(Simulator& simulator, Network& network, const Topology& topology,
                         const Schedule& schedule, std::span<const NodeId> nodes,
                         const MpiProfile& profile, Bytes size, std::uint32_t under_way,
                         TraceRecorder* trace)
    : EventHandler(simulator),
      simulator_(simulator),
      network_(network),
      schedule_(schedule),
      profile_(profile),
      under_way_(under_way),
      chunking_(schedule.shape(), size),
      ranks_(nodes.size()),
      trace_(trace) {
  CHECK(schedule.shape().lanes == nodes.size(), "a lane for each rank");
  for (std::size_t rank = 0; trace_ != nullptr && rank < nodes.size(); ++rank) {
    tracks_.push_back(trace_->add_track(fmt::format("rank {}", rank), "CPU"));
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, ConnectionId> connections;
  const auto connect = [&](std::uint32_t from, std::uint32_t to) {
    const auto [entry, fresh] = connections.try_emplace({from, to});
    if (fresh) {
      entry->second =
          network.connect({.source = nodes[from],
                           .target = nodes[to],
                           .flow_label = static_cast<std::uint32_t>(connections.size() - 1)});
    }
    return entry->second;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> others;
  for (std::uint32_t index = 0; index < schedule.shape().connections; ++index) {
    const ScheduleConnection ends = schedule.connection(index);
    Link link{.source = ends.source.value(), .target = ends.target.value()};
    link.is_inside =
        topology.node(nodes[link.source]).server == topology.node(nodes[link.target]).server;
    if (!link.is_inside) {
      link.there = connect(link.source, link.target);
      link.back = connect(link.target, link.source);
      others[{link.source, link.target}] = index;
      if (const auto other = others.find({link.target, link.source}); other != others.end()) {
        link.opposite = other->second;
        links_[other->second].opposite = index;
      }
    }
    links_.push_back(std::move(link));
  }
  caches_.emplace(schedule, size, [&](const Step& step) {
    return is_in_place(links_[step.connection], chunking_.bytes(step.chunks));
  });
}

void MpiExecutor::start(const MpiCopies& copies) {
  left_ = static_cast<std::uint32_t>(ranks_.size());
  const std::uint32_t chunks = schedule_.shape().chunk_count;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    const std::uint32_t own = chunks / left_;
    const Bytes had = copies.sent == MpiCopies::Sent::Whole ? caches_->copy(rank, {0, chunks})
                      : copies.sent == MpiCopies::Sent::Block
                          ? caches_->copy(rank, {rank * own, own})
                          : Bytes();
    const SimTime copied = writing(copies.bytes, had, profile_.copy);
    if (trace_ != nullptr && copied > SimTime()) {
      trace_->add_span(tracks_[rank], "copy its own", SimTime(), copied,
                       {.category = "copy its own", .bytes = copies.bytes});
    }
    wake(copied, Wake::Run, rank);
  }
}

std::optional<SimTime> MpiExecutor::finish_time() const {
  return left_ == 0 ? std::optional(end_) : std::nullopt;
}

void MpiExecutor::wake(SimTime time, Wake what, std::uint32_t index) {
  simulator_.schedule(time - simulator_.now(), *this,
                      index * kKinds + static_cast<std::uint64_t>(what));
}

void MpiExecutor::hand_over(ConnectionId connection, Bytes size, Wake what, std::uint32_t index) {
  if (links_[index].is_inside) {
    return wake(simulator_.now() + *profile_.loopback, what, index);
  }
  network_.send(connection, size, *this, index * kKinds + static_cast<std::uint64_t>(what));
}

SimTime MpiExecutor::occupy(std::uint32_t rank, SimTime busy, std::string_view what,
                            const Link& link, Bytes size) {
  SimTime& free = ranks_[rank].free;
  const SimTime start = std::max(free, simulator_.now());
  free = start + busy;
  if (trace_ != nullptr && busy > SimTime()) {
    const std::uint32_t other = link.source == rank ? link.target : link.source;
    trace_->add_span(tracks_[rank], fmt::format("{} rank {}", what, other), start, free,
                     {.category = std::string(what), .bytes = size});
  }
  return free;
}

void MpiExecutor::resume(std::uint32_t rank) {
  if (std::exchange(ranks_[rank].is_waiting, false)) {
    wake(std::max(simulator_.now(), ranks_[rank].free), Wake::Run, rank);
  }
}

bool MpiExecutor::is_eager(const Link& link, Bytes size) const {
  return size < (link.is_inside ? profile_.shared->eager : *profile_.tcp.eager);
}

bool MpiExecutor::is_in_place(const Link& link, Bytes size) const {
  return link.is_inside && profile_.shared && !is_eager(link, size);
}

bool MpiExecutor::is_announced(const Link& link, Bytes size) const {
  return !profile_.tcp.post && !link.is_inside && !is_eager(link, size);
}

SimTime MpiExecutor::writing(Bytes size, Bytes had, Bandwidth rate) const {
  const SimTime fresh = transfer_time(size - had, rate);
  return had > Bytes() ? fresh + transfer_time(had, profile_.shared->rewrite) : fresh;
}

void MpiExecutor::on_event(std::uint64_t token) {
  const auto index = static_cast<std::uint32_t>(token / kKinds);
  const auto what = static_cast<Wake>(token % kKinds);
  if (what == Wake::Run) {
    return run(index);
  }
  Link& link = links_[index];
  switch (what) {
    case Wake::Run:
      return;
    case Wake::Launch:
      return launch(index);
    case Wake::Arrive:
      ++link.arrived;
      if (link.is_expected && link.stage == Stage::None) {
        ask(link, index);
      }
      return resume(link.target);
    case Wake::Post:
      return hand_over(link.back, Bytes(0), Wake::Posted, index);
    case Wake::Posted:
      ++link.posted;
      return match(index);
    case Wake::Answer:
      return answer(index);
    case Wake::Ask:
      return wake(occupy(link.source, profile_.tcp.send, "go on with", link), Wake::Send, index);
    case Wake::Send:
      link.copied = occupy(link.source, transfer_time(link.asked, profile_.tcp.copy), "copy for",
                           link, link.asked);
      return hand_over(link.there, link.asked, Wake::Bring, index);
    case Wake::Bring:
      if (profile_.tcp.post) {
        link.copied = link.copies.front();
        link.copies.pop_front();
      }
      return wake(std::max(simulator_.now(), link.copied), Wake::Ready, index);
    case Wake::Ready:
      if (profile_.tcp.post) {
        ++link.arrived;
      } else {
        link.stage = Stage::Here;
        pass(link);
      }
      resume(link.target);
      --ranks_[link.source].sends;
      return resume(link.source);
    case Wake::Release:
      --ranks_[link.source].sends;
      --ranks_[link.source].offers;
      return resume(link.source);
  }
}

void MpiExecutor::run(std::uint32_t rank) {
  Rank& self = ranks_[rank];
  if (simulator_.now() < self.free) {
    return wake(self.free, Wake::Run, rank);  // It has answered somebody meanwhile.
  }
  if (self.next == schedule_.step_count(LaneId(rank))) {
    if (self.sends > 0) {
      self.is_waiting = true;
      return;
    }
    --left_;
    end_ = std::max(end_, simulator_.now());
    return;
  }
  post(rank);
  const Step step = schedule_.step(LaneId(rank), self.next);
  CHECK(is_message(step.kind), "a step that is a message");
  if (step.kind != StepKind::Send) {
    expect(rank);
  }
  if (step.kind == StepKind::Send ? send(rank, step) : take(rank, step)) {
    ++self.next;
    wake(self.free, Wake::Run, rank);
  } else {
    self.is_waiting = true;
  }
}

bool MpiExecutor::send(std::uint32_t rank, const Step& step) {
  Rank& self = ranks_[rank];
  if (self.has_received && self.sends >= under_way_) {
    return false;
  }
  if (std::exchange(self.has_received, false)) {
    self.company = self.next_company;
  }
  ++messages_;
  Link& link = links_[step.connection];
  const Bytes size = chunking_.bytes(step.chunks);
  const bool by_memory = link.is_inside && profile_.shared;
  SimTime busy = by_memory ? profile_.shared->send : profile_.tcp.send;
  if (!profile_.tcp.post && is_eager(link, size)) {
    busy += transfer_time(size, by_memory ? profile_.shared->copy : profile_.tcp.copy);
  } else {
    ++self.sends;
  }
  if (is_in_place(link, size)) {
    ++self.offers;
    link.written.push_back(caches_->read(rank, step.chunks));
  }
  link.leaving.push_back(size);
  wake(occupy(rank, busy, "send to", link, size), Wake::Launch, step.connection);
  return true;
}

void MpiExecutor::launch(std::uint32_t index) {
  Link& link = links_[index];
  if (profile_.tcp.post) {
    ++link.launched;
    return match(index);
  }
  const Bytes size = link.leaving.front();
  link.leaving.erase(link.leaving.begin());
  if (link.is_inside) {
    wake(simulator_.now() + profile_.shared->latency, Wake::Arrive, index);
  } else {
    hand_over(link.there, is_eager(link, size) ? size : Bytes(0), Wake::Arrive, index);
  }
}

void MpiExecutor::expect(std::uint32_t rank) {
  Rank& self = ranks_[rank];
  if (under_way_ < 2) {
    return;  // It has no other than that of its step.
  }
  const std::uint64_t steps = schedule_.step_count(LaneId(rank));
  self.expecting = std::max(self.expecting, self.next);
  for (; self.expecting < steps && self.expecting - self.next < under_way_; ++self.expecting) {
    const Step step = schedule_.step(LaneId(rank), self.expecting);
    if (step.kind == StepKind::Send) {
      return;
    }
    Link& link = links_[step.connection];
    const Bytes size = chunking_.bytes(step.chunks);
    if (is_announced(link, size) && !link.is_expected && link.stage == Stage::None) {
      link.is_expected = true;
      link.asked = size;
      if (link.arrived > 0) {
        ask(link, step.connection);
      }
    }
  }
}

void MpiExecutor::ask(Link& link, std::uint32_t index) {
  link.stage = Stage::Asked;
  wake(occupy(link.target, profile_.tcp.receive, "answer", link), Wake::Answer, index);
}

void MpiExecutor::answer(std::uint32_t index) {
  Link& link = links_[index];
  Rank& source = ranks_[link.source];
  Rank& target = ranks_[link.target];
  if (link.opposite && links_[*link.opposite].is_busy) {
    if (!links_[*link.opposite].is_in_step) {
      link.is_held_up = true;
      return;
    }
    source.next_company = link.target;
    target.next_company = link.source;
  } else {
    const auto is_with = [](const Rank& rank, std::uint32_t other) {
      return rank.company == kEverybody || rank.company == other;
    };
    link.is_in_step = is_with(source, link.target) && is_with(target, link.source);
    source.next_company = kNobody;
    target.next_company = kNobody;
  }
  link.is_busy = true;
  hand_over(link.back, Bytes(0), Wake::Ask, index);
}

void MpiExecutor::pass(Link& link) {
  link.is_busy = false;
  if (link.opposite && std::exchange(links_[*link.opposite].is_held_up, false)) {
    Link& other = links_[*link.opposite];
    other.is_busy = true;
    other.is_in_step = false;
    wake(simulator_.now(), Wake::Ask, *link.opposite);  // It comes behind the data.
  }
}

void MpiExecutor::post(std::uint32_t rank) {
  Rank& self = ranks_[rank];
  if (!profile_.tcp.post) {
    return;
  }
  const std::uint64_t steps = schedule_.step_count(LaneId(rank));
  for (; self.posts < under_way_ && self.posting < steps; ++self.posting) {
    const Step step = schedule_.step(LaneId(rank), self.posting);
    if (step.kind != StepKind::Send) {
      ++self.posts;
      wake(occupy(rank, *profile_.tcp.post, "post for", links_[step.connection]), Wake::Post,
           step.connection);
    }
  }
}

void MpiExecutor::match(std::uint32_t index) {
  Link& link = links_[index];
  if (link.launched == 0 || link.posted == 0) {
    return;
  }
  --link.launched;
  --link.posted;
  const Bytes size = link.leaving.front();
  link.leaving.erase(link.leaving.begin());
  const SimTime copied =
      occupy(link.source, transfer_time(size, profile_.tcp.copy), "copy for", link, size);
  link.copies.push_back(link.is_inside ? copied + *profile_.loopback : copied);
  hand_over(link.there, size, Wake::Bring, index);
}

SimTime MpiExecutor::receiving(std::uint32_t rank, Link& link, Bytes size) {
  const MpiProfile::Tcp& tcp = profile_.tcp;
  if (tcp.post) {
    --ranks_[rank].posts;
  } else if (is_in_place(link, size)) {
    const MpiProfile::Shared& shared = *profile_.shared;
    const Bytes written = link.written.front();
    link.written.pop_front();
    const SimTime crossing = ranks_[rank].offers > 0 ? shared.crossing : SimTime();
    return shared.rendezvous + crossing +
           (size < shared.cached ? transfer_time(written, shared.written) +
                                       transfer_time(size - written, shared.read)
                                 : transfer_time(size, shared.uncached));
  } else if (is_eager(link, size)) {
    return link.is_inside ? profile_.shared->receive + transfer_time(size, profile_.shared->copy)
                          : tcp.receive + transfer_time(size, tcp.copy);
  }
  return tcp.receive + transfer_time(std::min(size, tcp.fragment), tcp.copy);
}

bool MpiExecutor::take(std::uint32_t rank, const Step& step) {
  Link& link = links_[step.connection];
  if (link.arrived == 0 || link.stage == Stage::Asked) {
    return false;
  }
  const Bytes size = chunking_.bytes(step.chunks);
  if (is_announced(link, size) && link.stage == Stage::None) {
    link.asked = size;
    ask(link, step.connection);
    return false;
  }
  link.stage = Stage::None;
  link.is_expected = false;
  if (!link.is_inside && is_eager(link, size)) {
    ranks_[rank].next_company = kNobody;
  }
  const bool is_sum = step.kind == StepKind::Reduce;
  const Bytes had = caches_->write(rank, step.chunks);
  const SimTime moved = receiving(rank, link, size);
  const SimTime there = occupy(rank, is_sum ? moved : moved + writing(had, had, profile_.copy),
                               "receive from", link, size);
  if (is_in_place(link, size)) {
    wake(there + profile_.shared->latency, Wake::Release, step.connection);
  }
  if (is_sum) {
    (void)occupy(rank, writing(size, had, profile_.sum), "add what came from", link, size);
  }
  --link.arrived;
  ranks_[rank].has_received = true;
  return true;
}

}  // namespace trainyard
