// SPDX-License-Identifier: Apache-2.0
#include "network/packet/packet_exchange.h"

#include <algorithm>

#include "sim/check.h"

namespace trainyard {
namespace {

// Those of `items` that are for the process.
template <typename Item, typename OwnerOf>
void put_items_of(std::uint32_t rank, PacketWorker::Workers workers,
                  std::vector<Item> PacketNotes::*items, const OwnerOf& owner_of, Parcel& parcel) {
  std::vector<Item> meant;
  for (const auto& worker : workers) {
    for (const Item& item : worker->notes().*items) {
      if (owner_of(item.connection) == rank) {
        meant.push_back(item);
      }
    }
  }
  parcel.put_list(meant);
}

void put_queue(const Ring<Packet>& queue, bool is_stopped, Parcel& parcel) {
  std::vector<Packet> packets;
  for (std::uint32_t i = 0; is_stopped && i < queue.size(); ++i) {
    packets.push_back(queue.at(i));
  }
  parcel.put_list(packets);
}

void get_queue(Ring<Packet>& queue, Parcel& parcel) {
  while (!queue.empty()) {
    static_cast<void>(queue.pop());
  }
  std::vector<Packet> packets;
  parcel.get_list(packets);
  for (const Packet& packet : packets) {
    queue.push(packet);
  }
}

}  // namespace

PacketExchange::PacketExchange(PacketTeam& team, PacketFabric& fabric, PacketSenders& senders,
                               PacketTargets& targets, PacketWatch& watch,
                               PacketWorker::Workers workers)
    : team_(team),
      fabric_(fabric),
      senders_(senders),
      targets_(targets),
      watch_(watch),
      workers_(workers),
      share_(static_cast<std::uint32_t>(workers.size()) / team.size()),
      first_part_(team.rank() * share_),
      parcels_(team.size()) {}

std::uint32_t PacketExchange::source_owner(std::uint32_t id) const {
  return owner_of(fabric_.ports()[senders_.end(id).port].part);
}

std::uint32_t PacketExchange::target_owner(std::uint32_t id) const {
  return owner_of(fabric_.ports()[senders_.target_port(id)].part);
}

bool PacketExchange::has_source(std::uint32_t id) const {
  return source_owner(id) == team_.rank();
}

bool PacketExchange::has_target(std::uint32_t id) const {
  return target_owner(id) == team_.rank();
}

// Work that goes to others counts as well, until it is taken in.
std::uint64_t PacketExchange::own_next() const {
  std::uint64_t next = kNeverWindow;
  for (const auto& worker : own()) {
    next = std::min(next, worker->next_window());
  }
  return next;
}

std::uint64_t PacketExchange::next_window() {
  if (is_next_known_) {
    return next_;
  }
  next_ = own_next();
  for (Parcel& parcel : parcels_) {
    parcel.clear();
    parcel.put(next_);
  }
  team_.exchange(parcels_);
  for (Parcel& parcel : parcels_) {
    next_ = std::min(next_, parcel.get<std::uint64_t>());
  }
  is_next_known_ = true;
  return next_;
}

void PacketExchange::swap(std::uint64_t round) {
  const std::uint64_t next = own_next();
  for (std::uint32_t rank = 0; rank < team_.size(); ++rank) {
    parcels_[rank].clear();
    if (rank != team_.rank()) {
      parcels_[rank].put(next);
      put_notes(rank, parcels_[rank]);
    }
  }
  for (const auto& worker : own()) {
    worker->notes().statements.clear();
    worker->notes().requests.clear();
    worker->notes().stamps.clear();
  }
  team_.exchange(parcels_);
  next_ = next;
  for (std::uint32_t rank = 0; rank < team_.size(); ++rank) {
    if (rank != team_.rank()) {
      next_ = std::min(next_, parcels_[rank].get<std::uint64_t>());
      get_notes(rank, round, parcels_[rank]);
      CHECK(parcels_[rank].is_read(), "more came from another process than was meant");
    }
  }
  is_next_known_ = true;
}

void PacketExchange::put_notes(std::uint32_t rank, Parcel& parcel) const {
  for (const auto& worker : own()) {
    parcel.put_list(worker->notes().whole);
    parcel.put_list(worker->notes().failures);
    parcel.put_list(worker->notes().starts);
    for (std::uint32_t part = rank * share_; part < (rank + 1) * share_; ++part) {
      parcel.put_list(worker->crossings(part));
    }
  }
  const auto source = [&](std::uint32_t id) { return source_owner(id); };
  const auto target = [&](std::uint32_t id) { return target_owner(id); };
  put_items_of(rank, own(), &PacketNotes::statements, source, parcel);
  put_items_of(rank, own(), &PacketNotes::requests, target, parcel);
  put_items_of(rank, own(), &PacketNotes::stamps, source, parcel);
}

void PacketExchange::get_notes(std::uint32_t rank, std::uint64_t round, Parcel& parcel) {
  for (const auto& worker : workers_.subspan(rank * share_, share_)) {
    parcel.get_list(worker->notes().whole);
    parcel.get_list(worker->notes().failures);
    parcel.get_list(worker->notes().starts);
    worker->begin_round(round);
    for (std::uint32_t part = first_part_; part < first_part_ + share_; ++part) {
      parcel.get_list(dues_);
      worker->put_crossings(part, dues_);
    }
  }
  std::vector<StatementElsewhere> statements;
  parcel.get_list(statements);
  for (const StatementElsewhere& said : statements) {
    senders_.take(said);
  }
  std::vector<RequestElsewhere> requests;
  parcel.get_list(requests);
  for (const RequestElsewhere& said : requests) {
    targets_.grants().put_asked(said.connection, said.request);
  }
  std::vector<StampElsewhere> stamps;
  parcel.get_list(stamps);
  for (const StampElsewhere& said : stamps) {
    senders_.take(said);
  }
}

void PacketExchange::gather(std::uint64_t windows) {
  if (windows == gathered_) {
    return;
  }
  gathered_ = windows;
  for (Parcel& parcel : parcels_) {
    parcel.clear();
  }
  Parcel& own_parcel = parcels_[team_.rank()];
  put_results(own_parcel);
  for (Parcel& parcel : parcels_) {
    parcel.bytes() = own_parcel.bytes();
  }
  team_.exchange(parcels_);
  for (std::uint32_t rank = 0; rank < team_.size(); ++rank) {
    if (rank != team_.rank()) {
      get_results(rank, parcels_[rank]);
    }
  }
}

void PacketExchange::put_results(Parcel& parcel) const {
  PacketCounts counts;
  for (const auto& worker : own()) {
    counts += worker->notes().counts;
  }
  parcel.put(counts);
  for (std::uint32_t index = 0; index < fabric_.ports().size(); ++index) {
    if (is_own(fabric_.ports()[index].part)) {
      put_port(index, parcel);
    }
  }
  for (std::uint32_t id = 0; id < senders_.count(); ++id) {
    if (has_source(id)) {
      senders_.put_results(id, parcel);
    }
    if (has_target(id)) {
      targets_.put_results(id, parcel);
    }
  }
}

void PacketExchange::get_results(std::uint32_t rank, Parcel& parcel) {
  workers_[rank * share_]->notes().counts = parcel.get<PacketCounts>();
  for (std::uint32_t index = 0; index < fabric_.ports().size(); ++index) {
    if (owner_of(fabric_.ports()[index].part) == rank) {
      get_port(index, parcel);
    }
  }
  for (std::uint32_t id = 0; id < senders_.count(); ++id) {
    if (source_owner(id) == rank) {
      senders_.get_results(id, parcel);
    }
    if (target_owner(id) == rank) {
      targets_.get_results(id, parcel);
    }
  }
  CHECK(parcel.is_read(), "more came from another process than results");
}

// With the packets that wait where it is stopped, which a deadlock is told by.
void PacketExchange::put_port(std::uint32_t index, Parcel& parcel) const {
  const Port& port = fabric_.ports()[index];
  parcel.put(port.counters);
  parcel.put(port.stops);
  parcel.put(port.paused_since);
  if (port.guard != kNoIndex) {
    parcel.put(fabric_.guards()[port.guard].storms);
  }
  if (port.credits != kNoIndex) {
    parcel.put(fabric_.credits()[port.credits].starved_since);
    parcel.put(fabric_.credits()[port.credits].starved_time);
  }
  if (fabric_.losses().knows(LinkId(port.link))) {
    parcel.put(fabric_.losses().tally(LinkId(port.link)));
  }
  if (!watch_.queue_times.empty()) {
    parcel.put(watch_.queue_times[index]);
  }
  if (port.lanes == kNoIndex) {
    put_queue(port.queue, port.is_stopped(), parcel);
    return;
  }
  const LaneQueues& queues = fabric_.lanes()[port.lanes];
  parcel.put(queues.paused);
  parcel.put(queues.starved);
  for (std::uint32_t lane = 0; lane < queues.lanes.size(); ++lane) {
    put_queue(queues.lanes.at(lane).queue, queues.is_stopped(lane), parcel);
  }
}

void PacketExchange::get_port(std::uint32_t index, Parcel& parcel) {
  Port& port = fabric_.ports()[index];
  port.counters = parcel.get<PortTally>();
  port.stops = parcel.get<std::uint8_t>();
  port.paused_since = parcel.get<Picoseconds>();
  if (port.guard != kNoIndex) {
    fabric_.guards()[port.guard].storms = parcel.get<std::uint64_t>();
  }
  if (port.credits != kNoIndex) {
    fabric_.credits()[port.credits].starved_since = parcel.get<Picoseconds>();
    fabric_.credits()[port.credits].starved_time = parcel.get<Picoseconds>();
  }
  if (fabric_.losses().knows(LinkId(port.link))) {
    fabric_.losses().set_tally(LinkId(port.link), parcel.get<PacketLosses::Tally>());
  }
  if (!watch_.queue_times.empty()) {
    watch_.queue_times[index] = parcel.get<QueueTimes>();
  }
  if (port.lanes == kNoIndex) {
    get_queue(port.queue, parcel);
    return;
  }
  LaneQueues& queues = fabric_.lanes()[port.lanes];
  queues.paused = parcel.get<std::uint8_t>();
  queues.starved = parcel.get<std::uint8_t>();
  for (LaneQueues::Lane& lane : queues.lanes) {
    get_queue(lane.queue, parcel);
  }
}

// From here on: what the ends of connections do with it.

void PacketSenders::put_results(std::uint32_t id, Parcel& parcel) const {
  const SendingEnd& end = ends_[id];
  parcel.put(end.sequence);
  parcel.put(end.sent_bytes);
  if (!reliable_.empty()) {
    parcel.put(reliable_[id].resent());
    parcel.put(reliable_[id].timeouts());
  }
  parcel.put_list(fabric_.routes().of(id));
  if (const std::uint32_t spray = spray_of(id); spray != kNoIndex) {
    parcel.put_list(sprays_[spray].paths());
  }
}

void PacketSenders::get_results(std::uint32_t id, Parcel& parcel) {
  SendingEnd& end = ends_[id];
  end.sequence = parcel.get<std::uint32_t>();
  end.sent_bytes = parcel.get<std::int64_t>();
  if (!reliable_.empty()) {
    const auto resent = parcel.get<std::uint64_t>();
    reliable_[id].count_elsewhere(resent, parcel.get<std::uint64_t>());
  }
  std::vector<PacketRoutes::Change> changes;
  parcel.get_list(changes);
  fabric_.routes().recount(id, changes);
  if (const std::uint32_t spray = spray_of(id); spray != kNoIndex) {
    parcel.get_list(sprays_[spray].paths());
  }
}

void PacketSenders::take(const StatementElsewhere& said) {
  reliable_[said.connection].put_statement(said.statement);
}

void PacketSenders::take(const StampElsewhere& said) {
  control_->stamp(said.connection, said.sequence, said.position, said.stamp);
}

void PacketTargets::put_results(std::uint32_t id, Parcel& parcel) const {
  const ReceivingEnd& end = ends_[id];
  parcel.put(end.cnps);
  if (end.ways != kNoIndex) {
    for (const AdaptiveWays& ways : ways_[end.ways]) {
      parcel.put_list(ways.packets);
    }
  }
}

void PacketTargets::get_results(std::uint32_t id, Parcel& parcel) {
  ReceivingEnd& end = ends_[id];
  end.cnps = parcel.get<std::uint32_t>();
  if (end.ways != kNoIndex) {
    for (AdaptiveWays& ways : ways_[end.ways]) {
      parcel.get_list(ways.packets);
    }
  }
}

void PacketTargets::complete_elsewhere(std::uint32_t id, std::uint32_t slot) {
  CHECK(ends_[id].oldest == slot, "messages of a connection are complete in another order");
  ends_[id].oldest = messages_[slot].next;
}

}  // namespace trainyard
