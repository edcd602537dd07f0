// SPDX-License-Identifier: Apache-2.0
// Runs a schedule on CPUs: each rank is one thread that does one thing after the other, and its
// time goes into messages, copies and sums.
//
// A rank goes through the steps of its lane. Sends do not wait, but a send that follows a receive
// waits until all sends before have ended, as MPI_Sendrecv and MPI_Waitall do, or, where more may
// be under way, until fewer than these have not. With s the bytes of a message, c a rate of copies:
//   inside a host, s < eager   sender busy send + s/c, then latency; receiver busy receive + s/c
//   inside a host, otherwise   sender busy send, then latency; receiver, when its lane is there,
//                              busy rendezvous + s/read, or s/written for what the sender has
//                              written in this call, and crossing more if it has itself announced
//                              such a message that is not yet read; the send ends a latency later
//   between hosts, s < eager   sender busy send + s/c, then the network; receiver busy
//                              receive + s/c
//   between hosts, otherwise   sender busy send, then an empty message; the receiver, when its lane
//                              is there, busy receive, answers; the sender, busy send + s/c, sends;
//                              the message is there when the network has brought it, and not before
//                              its copy at the sender has ended; receiver busy receive and the copy
//                              of the last fragment. The send ends when the network has brought it
//   the same both ways         if the two ranks are in step, both at once; otherwise, as both ways
//                              have one connection (ob1 and btl/tcp of Open MPI), what the second
//                              one answers comes behind the data that the first one has asked for
//   receiver posts             (Gloo) receiver busy post for each of its next receives, as many as
//                              may be under way, then an empty message; sender busy send; once both
//                              are there busy s/c while the network carries the data; receiver busy
//                              receive and the copy of the last fragment
//   the same inside a host     an empty message comes a loopback later, and the data that much
//                              after its copy at the sender
//   a sum                      receiver busy s/sum more
//   writing what others read   busy s/rewrite more for a message, and instead of s/sum or s/copy
//                              for a sum or a copy, into bytes that others have read in place since
//                              the rank last wrote them (mpi_caches.h)
// Two ranks are in step, that is within the latency of a message of each other, at the beginning
// and after both have had long messages of each other at once, and no other messages between hosts
// since. Ranks that wait poll; a rank answers and reads only when nothing else keeps its CPU busy.
// A rank answers announcements in the order of its receives; those for which it has posted receives
// in advance (mpi_under_way) it answers as they come.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/mpi/mpi_caches.h"
#include "collectives/mpi/mpi_profile.h"
#include "collectives/mpi/mpi_schedule.h"
#include "collectives/schedule/schedule.h"
#include "network/contract/network.h"
#include "sim/simulator.h"
#include "sim/trace.h"

namespace trainyard {

class MpiExecutor final : private EventHandler {
 public:
  // The schedule has one lane for each rank, in their order, and no other steps than messages. Rank
  // r is in the memory nodes[r]; those of one server have a host in common. `under_way` is what
  // mpi_under_way() says. The arguments must outlive the executor. With a trace, what the CPU of
  // each rank is busy with is recorded.
  MpiExecutor(Simulator& simulator, Network& network, const Topology& topology,
              const Schedule& schedule, std::span<const NodeId> nodes, const MpiProfile& profile,
              Bytes size, std::uint32_t under_way, TraceRecorder* trace = nullptr);

  void start(const MpiCopies& copies);  // All ranks begin with these.
  // When the last rank has ended; none if one never does. After the simulator has run.
  [[nodiscard]] std::optional<SimTime> finish_time() const;
  [[nodiscard]] std::uint64_t messages() const { return messages_; }

 private:
  // The subject of an event; the rest of its token is the rank, of Run, or else the link.
  enum class Wake : std::uint8_t {
    Run,      // The rank goes on.
    Launch,   // The sender has done its part.
    Arrive,   // The receiver may take a message.
    Answer,   // The receiver has asked for what the sender has announced,
    Ask,      // and that has come to the sender,
    Send,     // which sends now;
    Bring,    // the network has brought it,
    Ready,    // and its copy at the sender has ended, too.
    Release,  // A send has ended.
    Post,     // The receiver has said that it is ready,
    Posted,   // and that has come to the sender.
  };
  enum class Stage : std::uint8_t { None, Asked, Here };  // Stages of an announced message.

  struct Link {
    std::uint32_t source = 0;
    std::uint32_t target = 0;
    bool is_inside = false;
    ConnectionId there = {};  // Between hosts, both ways.
    ConnectionId back = {};
    std::vector<Bytes> leaving = {};  // Sizes of messages before Launch.
    // The bytes of messages read in place that the sender has written in this call.
    std::deque<Bytes> written = {};
    std::uint32_t arrived = 0;        // Messages that the receiver may take.
    std::uint32_t launched = 0;       // Where receivers post: messages that wait for that,
    std::uint32_t posted = 0;         // receives that wait for messages,
    std::deque<SimTime> copies = {};  // and when copies of what is under way have ended.
    Stage stage = Stage::None;        // The first of them is so far.
    Bytes asked = {};                 // Its size,
    SimTime copied = {};              // and when its copy at the sender has ended.
    bool is_expected = false;         // Whether its receive is posted in advance.
    std::optional<std::uint32_t> opposite = {};  // Between hosts: the link the other way.
    bool is_busy = false;     // From the receiver's answer on until the message is there.
    bool is_held_up = false;  // The answer waits for what the opposite link is busy with.
    bool is_in_step = false;  // Whether the ranks were when it was answered.
  };
  static constexpr std::uint32_t kEverybody = 0xffff'ffff;
  static constexpr std::uint32_t kNobody = 0xffff'fffe;
  struct Rank {
    std::uint64_t next = 0;       // Step.
    SimTime free = {};            // When its CPU has nothing to do.
    std::uint32_t sends = 0;      // Those that have not ended,
    std::uint32_t offers = 0;     // and those of them that are read in place.
    std::uint64_t posting = 0;    // The step from which on receives are not posted,
    std::uint32_t posts = 0;      // and how many before have not come.
    std::uint64_t expecting = 0;  // The step from which on none is expected.
    bool has_received = false;    // Since the last send.
    bool is_waiting = false;
    // The rank that it is in step with in its last sends and the receives behind them, and after.
    std::uint32_t company = kEverybody;
    std::uint32_t next_company = kEverybody;
  };

  void on_event(std::uint64_t token) override;
  void wake(SimTime time, Wake what, std::uint32_t index);
  void hand_over(ConnectionId connection, Bytes size, Wake what, std::uint32_t index);
  void run(std::uint32_t rank);
  // Return whether the rank has done the step; if not, it waits.
  bool send(std::uint32_t rank, const Step& step);
  bool take(std::uint32_t rank, const Step& step);
  void launch(std::uint32_t index);
  // Posts the next receives of a rank that has all its sends behind it.
  void expect(std::uint32_t rank);
  // The receiver of a link answers what has been announced to it.
  void ask(Link& link, std::uint32_t index);
  // Sends the answer of a link's receiver, or holds it up.
  void answer(std::uint32_t index);
  // The data of a link has come; what was held up behind it has as well.
  void pass(Link& link);
  void post(std::uint32_t rank);
  // Sends what is both launched and posted.
  void match(std::uint32_t index);
  // Lets a rank go on that waits.
  void resume(std::uint32_t rank);
  // Keeps the CPU of a rank busy with `what` for a message of that link; returns until when.
  SimTime occupy(std::uint32_t rank, SimTime busy, std::string_view what, const Link& link,
                 Bytes size = {});
  [[nodiscard]] bool is_eager(const Link& link, Bytes size) const;
  [[nodiscard]] bool is_in_place(const Link& link, Bytes size) const;
  [[nodiscard]] bool is_announced(const Link& link, Bytes size) const;
  // CPU time of a receiver for a message until it has all of it, sums apart.
  SimTime receiving(std::uint32_t rank, Link& link, Bytes size);
  // CPU time for writing so many bytes, of which others had read `had`.
  [[nodiscard]] SimTime writing(Bytes size, Bytes had, Bandwidth rate) const;

  Simulator& simulator_;
  Network& network_;
  const Schedule& schedule_;
  const MpiProfile& profile_;
  std::uint32_t under_way_;
  Chunking chunking_;
  std::vector<Link> links_;
  std::vector<Rank> ranks_;
  std::optional<MpiCaches> caches_ = {};
  std::uint32_t left_ = 0;
  SimTime end_ = {};
  std::uint64_t messages_ = 0;
  TraceRecorder* trace_;
  std::vector<TraceTrackId> tracks_ = {};  // One for each rank, with a trace only.
};

}  // namespace trainyard
