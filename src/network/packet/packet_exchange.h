// SPDX-License-Identifier: Apache-2.0
// The packet engine in several processes (network/packet_parts/packet_team.h). Parts of the fabric
// are shared out, the same number of them to each process, in order. A process has a worker for
// each part, but only its own ones run; those of others are where it finds, after each window, what
// the processes that run them have sent: packets for its own parts, and what was noted.
//
// Control is everywhere: each process adds all connections and sends all messages, and each hears
// of all completions and failures in the same order. So the list of messages is the same, slot by
// slot, and what happens between windows needs no word. Which window comes next does.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "network/packet/packet_worker.h"
#include "network/packet_parts/packet_team.h"

namespace trainyard {

class PacketExchange {
 public:
  // `workers` has one for each part.
  PacketExchange(PacketTeam& team, PacketFabric& fabric, PacketSenders& senders,
                 PacketTargets& targets, PacketWatch& watch, PacketWorker::Workers workers);

  // The workers that run here.
  [[nodiscard]] PacketWorker::Workers own() const { return workers_.subspan(first_part_, share_); }
  [[nodiscard]] bool is_own(std::uint32_t part) const { return owner_of(part) == team_.rank(); }
  // Returns whether the connection begins, or ends, at a port of this process.
  [[nodiscard]] bool has_source(std::uint32_t connection) const;
  [[nodiscard]] bool has_target(std::uint32_t connection) const;

  // Something was sent or set up, by all processes: what is due next must be asked for again.
  void forget_next() { is_next_known_ = false; }
  // The next window in which anything is due in any process; kNeverWindow if nothing is. All
  // processes ask at the same moment of their runs.
  [[nodiscard]] std::uint64_t next_window();
  // Own workers have run the round: gives to others what is meant for them, and takes what they
  // have.
  void swap(std::uint64_t round);
  // Brings what results tell of ports and connections of other processes here, as it is after so
  // many windows.
  void gather(std::uint64_t windows);

 private:
  [[nodiscard]] std::uint32_t owner_of(std::uint32_t part) const { return part / share_; }
  [[nodiscard]] std::uint32_t source_owner(std::uint32_t connection) const;
  [[nodiscard]] std::uint32_t target_owner(std::uint32_t connection) const;
  [[nodiscard]] std::uint64_t own_next() const;
  void put_notes(std::uint32_t rank, Parcel& parcel) const;
  void get_notes(std::uint32_t rank, std::uint64_t round, Parcel& parcel);
  void put_results(Parcel& parcel) const;
  void get_results(std::uint32_t rank, Parcel& parcel);
  void put_port(std::uint32_t index, Parcel& parcel) const;
  void get_port(std::uint32_t index, Parcel& parcel);

  PacketTeam& team_;
  PacketFabric& fabric_;
  PacketSenders& senders_;
  PacketTargets& targets_;
  PacketWatch& watch_;
  PacketWorker::Workers workers_;
  std::uint32_t share_;       // Parts of a process.
  std::uint32_t first_part_;  // First part of this process.
  std::vector<Parcel> parcels_;
  bool is_next_known_ = false;
  std::uint64_t next_ = kNeverWindow;
  std::uint64_t gathered_ = 0;  // Windows after which results were gathered.
  std::vector<Due> dues_;       // Scratch.
};

}  // namespace trainyard
