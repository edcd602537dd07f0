// SPDX-License-Identifier: Apache-2.0
#include "network/flow/flow.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace trainyard {

namespace {

// Token of the event that solves; all others are generations of the wake-up for the next end.
constexpr std::uint64_t kSolve = 0;

constexpr std::uint32_t kLocalClass = 0;

std::vector<Bandwidth> capacities_of(const Topology& topology) {
  std::vector<Bandwidth> capacities;
  capacities.reserve(topology.link_count());
  for (std::uint32_t link = 0; link < topology.link_count(); ++link) {
    capacities.push_back(topology.link(LinkId(link)).spec.bandwidth);
  }
  return capacities;
}

std::uint32_t hash_path(const std::vector<LinkId>& path) {
  std::uint64_t hash = path.size();
  for (const LinkId link : path) {
    hash = (hash ^ link.value()) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return static_cast<std::uint32_t>(hash);
}

// Work of a message: its bits times 2^16 times the picoseconds of a second.
unsigned __int128 work_of(Bytes size) {
  constexpr std::uint64_t kPicosecondsPerSecond = 1'000'000'000'000;
  const auto bits = static_cast<unsigned __int128>(size.count()) * 8;
  return (bits << kFlowRateFractionBits) * kPicosecondsPerSecond;
}

}  // namespace

FlowNetwork::FlowNetwork(Simulator& simulator, Routing& routing)
    : EventHandler(simulator),
      simulator_(simulator),
      routing_(routing),
      solver_(capacities_of(routing.topology())),
      classes_(1),
      tables_(routing.topology().link_count()) {}

void FlowNetwork::reserve(std::size_t connections) {
  connections_.reserve(connections);
  messages_.reserve(connections);
  classes_.reserve(connections + 1);
  pending_.reserve(connections);
  ended_.reserve(connections);
  ends_.grow(connections + 1);
  solver_.reserve(connections, 2 * connections);
}

// Doubles the table of a link when it is half full.
void FlowNetwork::make_room(PathTable& table) {
  if (2 * table.used < table.slots.size()) {
    return;
  }
  std::vector<TableSlot> old(std::max<std::size_t>(4, 2 * table.slots.size()));
  old.swap(table.slots);
  const std::size_t mask = table.slots.size() - 1;
  for (const TableSlot entry : old) {
    if (entry.path_class != kNone) {
      std::size_t slot = entry.hash & mask;
      while (table.slots[slot].path_class != kNone) {
        slot = (slot + 1) & mask;
      }
      table.slots[slot] = entry;
    }
  }
}

std::uint32_t FlowNetwork::class_of(const std::vector<LinkId>& path) {
  if (path.empty()) {
    return kLocalClass;
  }
  PathTable& table = tables_[path.front().value()];
  make_room(table);
  const std::uint32_t hash = hash_path(path);
  const std::size_t mask = table.slots.size() - 1;
  std::size_t slot = hash & mask;
  for (; table.slots[slot].path_class != kNone; slot = (slot + 1) & mask) {
    const TableSlot& entry = table.slots[slot];
    if (entry.hash == hash &&
        std::ranges::equal(links_of(entry.path_class), path, {}, {}, &LinkId::value)) {
      return entry.path_class;
    }
  }
  link_indices_.clear();
  for (const LinkId link : path) {
    link_indices_.push_back(link.value());
  }
  if (const auto staging = staging_bandwidth(routing_.topology(), path)) {
    link_indices_.push_back(solver_.add_link(*staging));
  }
  PathClass item;
  item.latency = path_latency(routing_.topology(), path);
  classes_.push_back(item);
  const auto index = static_cast<std::uint32_t>(classes_.size() - 1);
  CHECK(solver_.add_class(link_indices_) == index - 1, "classes of network and solver differ");
  table.slots[slot] = {.hash = hash, .path_class = index};
  ++table.used;
  ends_.grow(classes_.size());
  return index;
}

std::span<const MaxMinSolver::LinkIndex> FlowNetwork::links_of(std::uint32_t index) const {
  auto path = solver_.path(index - 1);
  while (path.back() >= routing_.topology().link_count()) {
    path = path.first(path.size() - 1);
  }
  return path;
}

ConnectionId FlowNetwork::connect(const ConnectionSpec& spec) {
  route_connection(routing_, spec, spec.path, route_);
  Connection connection{};
  connection.path_class = class_of(route_);
  connections_.push_back(connection);
  CHECK(connections_.size() < kNone, "too many connections");
  return ConnectionId(static_cast<std::uint32_t>(connections_.size() - 1));
}

std::uint32_t FlowNetwork::take_slot(const Message& message) {
  if (free_message_ == kNone) {
    messages_.push_back(message);
    return static_cast<std::uint32_t>(messages_.size() - 1);
  }
  const std::uint32_t slot = free_message_;
  free_message_ = messages_[slot].next;
  messages_[slot] = message;
  return slot;
}

void FlowNetwork::send(ConnectionId id, Bytes size, EventHandler& done, std::uint64_t token) {
  CHECK(size >= Bytes(0), "a message of negative size");
  const std::uint32_t slot =
      take_slot({.size = size, .done = &done, .token = token, .next = kNone});
  Connection& connection = connections_[id.value()];
  if (connection.first != kNone) {
    messages_[connection.last].next = slot;
    connection.last = slot;
    return;
  }
  connection.first = slot;
  connection.last = slot;
  begin_next(id.value());
}

// Starts the first message of an idle connection. Those without work to do leave at once.
void FlowNetwork::begin_next(std::uint32_t index) {
  Connection& connection = connections_[index];
  while (connection.first != kNone) {
    const Message& message = messages_[connection.first];
    if (connection.path_class != kLocalClass && message.size > Bytes(0)) {
      break;
    }
    finish(index);
  }
  if (connection.first == kNone) {
    return;
  }
  PathClass& path_class = classes_[connection.path_class];
  if (path_class.flows == 0) {
    path_class.service = 0;
    path_class.updated = simulator_.now();
  } else {
    advance(connection.path_class);
  }
  connection.end = path_class.service + work_of(messages_[connection.first].size);
  connection.sequence = sends_++;
  connection.left = kNone;
  connection.right = kNone;
  connection.rank = 1;
  path_class.heap = merge(path_class.heap, index);
  ++path_class.flows;
  mark_stale(connection.path_class);
}

// The last byte of the first message has left: completes it after the latency and forgets it.
void FlowNetwork::finish(std::uint32_t index) {
  Connection& connection = connections_[index];
  const std::uint32_t slot = connection.first;
  Message& message = messages_[slot];
  PathClass& path_class = classes_[connection.path_class];
  simulator_.schedule(path_class.latency, *message.done, message.token);
  path_class.bytes += message.size;
  ++stats_.messages;
  stats_.bytes += message.size;
  connection.first = message.next;
  message.next = free_message_;
  free_message_ = slot;
}

void FlowNetwork::mark_stale(std::uint32_t index) {
  PathClass& path_class = classes_[index];
  solver_.set_multiplicity(index - 1, path_class.flows);
  if (!path_class.pending) {
    path_class.pending = true;
    pending_.push_back(index);
  }
  if (!solve_scheduled_) {
    solve_scheduled_ = true;
    simulator_.schedule(SimTime(), *this, kSolve);
  }
}

void FlowNetwork::on_event(std::uint64_t token) {
  if (token == kSolve) {
    solve_scheduled_ = false;
    resolve();
  } else if (token == wake_generation_) {
    wake_time_ = SimTime::max();
    if (ends_.min() == simulator_.now()) {
      finish_due();
    }
  }
  wake_at_least();
}

// Gives every class its new rate, and those whose flows or rate changed their next end.
void FlowNetwork::resolve() {
  ++stats_.solves;
  const std::span<const MaxMinSolver::ClassIndex> changed = solver_.solve();
  stats_.rate_changes += changed.size();
  for (const MaxMinSolver::ClassIndex solver_index : changed) {
    const std::uint32_t index = solver_index + 1;
    advance(index);
    classes_[index].rate = solver_.rate(solver_index);
    if (!classes_[index].pending) {
      update_end(index);
    }
  }
  for (const std::uint32_t index : pending_) {
    classes_[index].pending = false;
    advance(index);
    update_end(index);
  }
  if (watcher_ != nullptr) {
    for (const MaxMinSolver::ClassIndex solver_index : changed) {
      note_taken(solver_index + 1);
    }
    for (const std::uint32_t index : pending_) {
      note_taken(index);
    }
    tell_watcher();
  }
  pending_.clear();
}

void FlowNetwork::note_taken(std::uint32_t index) {
  PathClass& path_class = classes_[index];
  const FlowRate taken = path_class.is_guest ? 0 : path_class.flows * solver_.rate(index - 1);
  if (taken == path_class.taken) {
    return;
  }
  for (const MaxMinSolver::LinkIndex link : links_of(index)) {
    taken_[link] += taken - path_class.taken;
    moved_.push_back(link);
  }
  path_class.taken = taken;
}

void FlowNetwork::tell_watcher() {
  for (const std::uint32_t link : moved_) {
    if (taken_[link] != told_[link]) {
      told_[link] = taken_[link];
      watcher_->on_taken(LinkId(link), taken_[link]);
    }
  }
  moved_.clear();
}

void FlowNetwork::wake_at_least() {
  const SimTime min = ends_.min();
  if (min != wake_time_ && !solve_scheduled_ && min != SimTime::max()) {
    wake_time_ = min;
    simulator_.schedule_at(min, *this, ++wake_generation_);
  }
}

// Classes come in the order of their numbers, which in collectives is nearly that of the sends:
// often a rotation of it.
void FlowNetwork::sort_by_send() {
  const auto run = std::ranges::is_sorted_until(ended_, {}, &Ended::sequence);
  if (std::ranges::is_sorted(run, ended_.end(), {}, &Ended::sequence)) {
    std::ranges::inplace_merge(ended_, run, {}, &Ended::sequence);
  } else {
    std::ranges::sort(ended_, {}, &Ended::sequence);
  }
}

void FlowNetwork::finish_due() {
  due_.clear();
  ended_.clear();
  ends_.collect_least(due_);
  for (const std::uint32_t index : due_) {
    advance(index);
    PathClass& path_class = classes_[index];
    while (path_class.heap != kNone && connections_[path_class.heap].end <= path_class.service) {
      const std::uint32_t top = path_class.heap;
      path_class.heap = merge(connections_[top].left, connections_[top].right);
      --path_class.flows;
      ended_.push_back({.sequence = connections_[top].sequence, .connection = top});
    }
  }
  sort_by_send();
  for (const Ended& ended : ended_) {
    finish(ended.connection);
    begin_next(ended.connection);
  }
  for (const std::uint32_t index : due_) {
    mark_stale(index);
  }
}

// Brings the service of a class up to the present.
void FlowNetwork::advance(std::uint32_t index) {
  PathClass& path_class = classes_[index];
  const SimTime now = simulator_.now();
  if (path_class.updated != now) {
    const auto elapsed = static_cast<std::uint64_t>((now - path_class.updated).picoseconds());
    path_class.service += static_cast<Work>(elapsed) * path_class.rate;
    path_class.updated = now;
  }
}

void FlowNetwork::update_end(std::uint32_t index) {
  PathClass& path_class = classes_[index];
  if (path_class.heap == kNone) {
    ends_.set(index, SimTime::max());
    return;
  }
  const Work left = connections_[path_class.heap].end - path_class.service;
  ends_.set(index, simulator_.now() + time_for(left, path_class.rate));
}

SimTime FlowNetwork::time_for(Work work, FlowRate rate) {
  if (work != known_work_ || rate != known_rate_) {
    CHECK(rate > 0, "more flows share a link than it has units of rate");
    known_work_ = work;
    known_rate_ = rate;
    known_time_ = SimTime(static_cast<std::int64_t>((work + rate - 1) / rate));
  }
  return known_time_;
}

bool FlowNetwork::before(std::uint32_t a, std::uint32_t b) const {
  const Connection& first = connections_[a];
  const Connection& second = connections_[b];
  return first.end != second.end ? first.end < second.end : first.sequence < second.sequence;
}

// Merges two leftist heaps; the right spine, and so the depth, is logarithmic.
std::uint32_t FlowNetwork::merge(std::uint32_t a, std::uint32_t b) {
  if (a == kNone || b == kNone) {
    return a == kNone ? b : a;
  }
  if (before(b, a)) {
    std::swap(a, b);
  }
  Connection& top = connections_[a];
  top.right = merge(top.right, b);
  const auto rank_of = [this](std::uint32_t index) {
    return index == kNone ? 0 : connections_[index].rank;
  };
  if (rank_of(top.left) < rank_of(top.right)) {
    std::swap(top.left, top.right);
  }
  top.rank = rank_of(top.right) + 1;
  return a;
}

void FlowNetwork::watch(FlowWatcher& watcher) {
  watcher_ = &watcher;
  taken_.resize(routing_.topology().link_count());
  told_.resize(taken_.size());
}

std::uint32_t FlowNetwork::add_guest(std::span<const LinkId> path) {
  link_indices_.clear();
  FlowRate max = std::numeric_limits<FlowRate>::max();
  for (const LinkId link : path) {
    link_indices_.push_back(link.value());
    max = std::min(max, solver_.capacity(link.value()));
  }
  const MaxMinSolver::LinkIndex limit = solver_.add_link(kMaxBandwidth);
  link_indices_.push_back(limit);
  PathClass item;
  item.is_guest = true;
  classes_.push_back(item);
  const auto index = static_cast<std::uint32_t>(classes_.size() - 1);
  CHECK(solver_.add_class(link_indices_) == index - 1, "classes of network and solver differ");
  ends_.grow(classes_.size());
  guests_.push_back({.path_class = index, .limit = limit, .max = max});
  return static_cast<std::uint32_t>(guests_.size() - 1);
}

void FlowNetwork::set_present(std::uint32_t guest, bool is_present) {
  classes_[guests_[guest].path_class].flows = is_present ? 1 : 0;
  mark_stale(guests_[guest].path_class);
}

void FlowNetwork::limit_guest(std::uint32_t guest, FlowRate max) {
  solver_.set_capacity(guests_[guest].limit, std::min(max, guests_[guest].max));
  mark_stale(guests_[guest].path_class);
}

NetworkStats FlowNetwork::stats() const {
  NetworkStats stats = stats_;
  stats.connections = connections_.size();
  stats.path_classes = classes_.size() - 1 - guests_.size();
  return stats;
}

std::vector<LinkUse> FlowNetwork::link_use() const {
  std::vector<Bytes> bytes(routing_.topology().link_count());
  for (std::uint32_t index = 1; index < classes_.size(); ++index) {
    for (const MaxMinSolver::LinkIndex link : links_of(index)) {
      bytes[link] += classes_[index].bytes;
    }
  }
  return use_of(bytes);
}

}  // namespace trainyard
