// SPDX-License-Identifier: Apache-2.0
// Exact fast-forward: what has been seen of packets is told again instead of being simulated.
//
// A phase is what happens on a set of ports from a time at which they are quiet (nothing waits and
// nothing is under way) to the next such time: the messages that are sent over them. Phases that
// come to use the same port, or ports of one switch with a buffer, are one phase from then on, so
// that phases never influence each other. Packets know no clock but that of their phase: times are
// sums of integers, and what else ports and connections hold is the same whenever they are quiet,
// as long as no packet found a queue at which it might be marked, no connection was ever slowed
// down by a CNP, and no switch had to count its buffer. So two phases in which the same messages
// are sent after the same times over ports that are alike do the same, to the picosecond
// (packet_story.h says what is compared; the order of links is, as it decides about ties).
//
// The first such phase is simulated, and its story written down as it goes. Others are told by it:
// nothing is simulated, and messages are complete when the story says, as long as all that is sent
// is in the story and nothing is missing from it. A phase may begin at the same time as the one
// that it is told by; the story is always ahead, as windows are worked through before they are
// told. Once a phase departs from its story, and no other story has all that was sent, it is
// simulated from its beginning to the present, beside all others, whose ports are different ones;
// from then on it is simulated as usual. What it has said until then stays true: in a window
// nothing completes that depends on what is sent after it. Counters of a phase that was told are
// brought up to date when it is over or nothing is left to happen.
//
// A phase that is simulated may repeat itself: after some time T ports, connections and what is
// under way are what they were (packet_snapshot.h), and the same messages were sent meanwhile. As
// long as what is sent is what was sent T before, whatever happens is what happened T before, so
// that the phase stands still and is told by its own past. Once something else is sent, or a long
// message has too little left to go on like that, it is simulated from the last repetition on:
// times and numbers of packets are so much higher, and all else is the same. T is guessed from
// messages or, while none is sent, from packets (packet_repetition.h), and proved by the states at
// two instants so far apart, at which windows are cut in two.
//
// All is decided between windows from what is the same with any number of threads.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "network/packet/packet_fabric.h"
#include "network/packet/packet_messages.h"
#include "network/packet/packet_snapshot.h"
#include "network/packet/packet_transport.h"
#include "network/packet/packet_worker.h"
#include "network/packet_parts/packet_repetition.h"
#include "network/packet_parts/packet_settled.h"
#include "network/packet_parts/packet_story.h"

namespace trainyard {

class PacketPhases {
 public:
  using Workers = std::vector<std::unique_ptr<PacketWorker>>;
  // Tells of a message that is complete at a time.
  using Tell = std::function<void(Picoseconds, const PacketMessage&)>;

  // All are those of the engine; `window` is the length of its windows at any time.
  PacketPhases(PacketFabric& fabric, PacketSenders& senders, PacketTargets& targets,
               PacketMessages& messages, PacketWatch& watch, Workers& workers,
               const Picoseconds& window);

  // A message is sent, with its order.
  void send(std::uint32_t connection, const PacketMessage& message);
  // The time from which on something is to be decided or told; kNeverTime if there is none.
  [[nodiscard]] Picoseconds next_time() const {
    return waits_.empty() ? kNeverTime : waits_.top().time;
  }
  // Before and after the workers work through a window, in which they may have nothing to do.
  void begin_window(std::uint64_t number);
  void end_window(std::uint64_t number, const Tell& news);
  // The time at which a window is to be cut in two; kNeverTime if there is none. Then all before it
  // has been done.
  [[nodiscard]] Picoseconds next_cut() const {
    return cuts_.empty() ? kNeverTime : cuts_.top().time;
  }
  void cut();
  // The length of windows is about to change: whatever stands still is brought up to `time`, a
  // border before which all has been done.
  void resume_all(Picoseconds time);
  // A message was completed by simulation. Whether that is news.
  [[nodiscard]] bool take_whole(const PacketNotes::Whole& whole);
  // Nothing is left to happen: all counters are brought up to date.
  void settle();

  // Counts of what was not simulated.
  [[nodiscard]] const PacketCounts& counts() const { return counts_; }

 private:
  enum class Way : std::uint8_t { Undecided, Told, Simulated };
  struct Entry {
    PacketMessage message;
    std::uint32_t connection;
    bool is_done = false;
    std::uint32_t slot = kNoIndex;  // The message's, once it is simulated.
  };
  // How far it has been found out after which time a phase repeats itself.
  struct Repeat {
    enum class Stage : std::uint8_t { Watched, Guessed, Measured, Proved, Still };
    Stage stage = Stage::Watched;
    Picoseconds asked = 0;  // When it began.
    Picoseconds period = 0;
    // Packets that began since it is watched, and how many are enough for a guess.
    std::vector<Mark> marks = {};
    std::size_t enough = 0;
    // States at equal distances, and the rates between them: packet_settling.cpp.
    std::vector<RateState> states = {};
    std::optional<SettledRates> settled = {};
    // A period apart.
    PacketSnapshot first = {};
    PacketSnapshot second = {};
    std::size_t sends = 0;    // Messages that are sent in a period;
    std::size_t matched = 0;  // so many in all that were sent as one period before.
    // Once it stands still: since when, for how many periods at most, how many messages had been
    // sent, what is under way, and which messages are not complete that others take the place of.
    Picoseconds begin = 0;
    std::int64_t most = 0;
    std::size_t begun = 0;
    std::vector<Due> under_way = {};
    std::vector<std::size_t> moving = {};
    // Messages that are not complete, by connection.
    std::map<std::uint32_t, std::deque<std::size_t>> left = {};
  };
  // How rates of a phase are measured: how far states are apart, how often in a row messages began
  // in between; the rates at which something was skipped last, and the state before.
  struct Settling {
    Picoseconds interval = 0;
    int changes = 0;
    std::optional<SettledRates> rates = {};
    RateState before = {};
  };
  // Counts what the connections of a phase, in their order, and all ports did.
  struct Passed {
    std::vector<std::int64_t> lines = {};
    std::vector<QueueShift> ports = {};
    std::vector<QueueShifts> queues = {};  // Changes of all ports' queues.
  };
  struct Phase {
    std::uint64_t serial = 0;
    Way way = Way::Undecided;
    // No story can be told of it: something that is not in stories matters.
    bool is_spoiled = false;
    Picoseconds begin = 0;
    std::uint32_t story = kNoIndex;         // The one that tells it, or that others are told by.
    std::unique_ptr<PacketStory> own = {};  // Once it is written, until others are told by it.
    std::vector<Entry> entries = {};
    std::uint32_t left = 0;  // Messages that are not complete.
    std::vector<std::uint32_t> ports = {};
    std::vector<std::uint32_t> nodes = {};
    std::vector<std::uint32_t> connections = {};
    StoryMatch match = {};
    std::unique_ptr<Repeat> repeat = {};
    Settling settling = {};
    Picoseconds patience = 0;  // Time until the next try to find how it repeats itself.
    Picoseconds next_look = kNeverTime;
    std::size_t next_end = 0;
    std::size_t noted_ends = 0;  // Ends of its own story that others have been told.
    // After settle(): when it is quiet, and ports and connections as they were.
    bool is_settled = false;
    Picoseconds quiet = 0;
    std::vector<PacketStory::PlaceChange> places_before = {};
    std::vector<Picoseconds> starts_before = {};
  };
  // A port belongs to a phase, which found this tally.
  struct Claim {
    std::uint32_t phase = kNoIndex;
    PortTally before = {};
  };
  // Where a connection belongs.
  struct Line {
    std::vector<std::uint32_t> path = {};   // Ports of the path and of the way back.
    std::vector<std::uint32_t> ports = {};  // Each once,
    std::vector<std::uint32_t> nodes = {};  // and their switches.
    std::uint32_t number = 0;               // In the phase of its first port,
    std::uint64_t serial = kNeverWindow;    // if that is this one.
  };
  struct Wait {
    Picoseconds time;
    std::uint64_t serial;
    std::uint32_t phase;
    friend auto operator<=>(const Wait&, const Wait&) = default;
  };
  // packet_phases.cpp
  [[nodiscard]] Line& line_of(std::uint32_t connection);
  [[nodiscard]] std::uint32_t phase_for(const Line& line, Picoseconds time);
  [[nodiscard]] std::uint32_t add_phase(Picoseconds begin);
  [[nodiscard]] std::uint32_t merge(std::uint32_t first, std::uint32_t second, Picoseconds time);
  void take_over(std::uint32_t first, std::uint32_t second);
  // Ends by the order of their messages.
  using Ends = std::vector<std::pair<std::uint64_t, PacketStory::End>>;
  void take_ends(const Phase& phase, Ends& ends);
  static void sort_entries(Phase& phase);
  void write(std::uint32_t number, Ends ends);
  void claim(std::uint32_t number, std::uint32_t connection);
  [[nodiscard]] bool is_plain(std::uint32_t connection) const;
  void add(std::uint32_t number, const Entry& entry);
  void spoil(std::uint32_t number, Picoseconds now);
  // It is looked at in the window of this time, and then says when it wants to be again.
  void wait(std::uint32_t number, Picoseconds time);
  [[nodiscard]] bool is_waited_for(const Wait& wait) const {
    const Phase& phase = phases_[wait.phase];
    return phase.serial == wait.serial && phase.next_look == wait.time;
  }
  void take_due(Picoseconds until);
  void note_ends();
  void tell(std::uint32_t number, Picoseconds until, const Tell& news);

  void collect_disturbed(Picoseconds now);
  [[nodiscard]] static bool has_story(const Phase& phase) {
    return !phase.is_spoiled && (phase.way == Way::Simulated || phase.own);
  }
  [[nodiscard]] PacketStory& story_of(Phase& phase) {
    return phase.way == Way::Simulated ? *stories_[phase.story] : *phase.own;
  }

  // packet_phase_stories.cpp
  [[nodiscard]] bool is_told(std::uint32_t number, Picoseconds until);
  [[nodiscard]] bool find_story(std::uint32_t number, Picoseconds until);
  void stop_reading(std::uint32_t number);
  void begin_story(std::uint32_t number);
  void forget_story(std::uint32_t number, Picoseconds now);
  void post(Entry& entry, const Workers& workers);
  void simulate(std::uint32_t number);
  void catch_up(std::uint32_t number, std::uint64_t until, const Tell* news);
  [[nodiscard]] Picoseconds done_until(Picoseconds time) const;
  void run_late(std::uint32_t number, const Workers& late, std::uint64_t until, const Tell* news);
  void tell_late(std::uint32_t number, const PacketMessage& message, std::uint64_t until);
  [[nodiscard]] Workers late_workers(Picoseconds begin) const;
  [[nodiscard]] std::optional<Picoseconds> quiet_time(const Phase& phase) const;
  [[nodiscard]] bool is_over(std::uint32_t number, Picoseconds time);

  // packet_phase_ends.cpp
  void finish(std::uint32_t number);
  void write_end(Phase& phase, PacketStory& story) const;
  const PacketStory& ended_story(std::uint32_t number);
  void release(std::uint32_t number);
  void change(Phase& phase, const PacketStory& story);
  void count(Phase& phase, std::int64_t sign);
  void settle_one(std::uint32_t number);
  void undo(Phase& phase);
  void unsettle(Picoseconds time);
  void move_messages(Phase& phase, std::int64_t periods);
  void move_connections(Phase& phase, std::int64_t periods);
  void move_ports(Phase& phase, std::int64_t periods);

  // packet_repeats.cpp
  [[nodiscard]] static bool stands_still(const Phase& phase) {
    return phase.repeat && phase.repeat->stage == Repeat::Stage::Still;
  }
  void try_later(std::uint32_t number, Picoseconds now);
  void watch_packets(Picoseconds until);
  void set_watched(std::uint32_t number, bool is_watched);
  void take_starts();
  void look_for_repeats(Picoseconds until);
  [[nodiscard]] std::optional<Picoseconds> period_of_sends(Phase& phase, Picoseconds until);
  [[nodiscard]] bool guess(std::uint32_t number, Picoseconds until);
  void give_up(std::uint32_t number, Picoseconds now);
  [[nodiscard]] static std::vector<std::size_t> left_of(const Phase& phase);
  [[nodiscard]] PacketSnapshot snapshot(std::uint32_t number, Picoseconds time) const;
  [[nodiscard]] std::optional<Picoseconds> departure(Phase& phase, Picoseconds until) const;
  using Sent = std::vector<std::pair<std::uint32_t, std::int64_t>>;
  [[nodiscard]] Sent sent_at_once(const Phase& phase, std::size_t first, Picoseconds until) const;
  [[nodiscard]] std::int64_t most_periods(const Phase& phase) const;
  [[nodiscard]] bool stand_still(std::uint32_t number, Picoseconds until);
  void wait_still(std::uint32_t number);
  void go_on(std::uint32_t number, Picoseconds until, const Tell& news);
  void resume(std::uint32_t number, std::uint64_t until, const Tell* news);

  // packet_settling.cpp
  // Whether a state counts what waits in queues, by connection.
  enum class Queues : bool { NotCounted, Counted };
  [[nodiscard]] RateState rate_state(std::uint32_t number, Picoseconds time, Queues queues);
  [[nodiscard]] std::map<std::uint32_t, std::int64_t> waiting_in(const Ring<Packet>& queue);
  [[nodiscard]] std::vector<RatePath> rate_paths(const Phase& phase) const;
  [[nodiscard]] bool measure(std::uint32_t number, Picoseconds until);
  void go_on_measuring(std::uint32_t number, Picoseconds time);
  void measure_later(std::uint32_t number, Picoseconds now);
  [[nodiscard]] std::int64_t most_settled(std::uint32_t number) const;
  [[nodiscard]] std::int64_t most_queued(const Phase& phase, std::int64_t most) const;
  [[nodiscard]] std::optional<Passed> passed_in(const Phase& phase, std::int64_t periods) const;
  [[nodiscard]] std::int64_t move_settled(Phase& phase, std::int64_t periods);
  void move_queue(std::uint32_t index, const SettledRates::Queue& rates, std::int64_t periods,
                  const QueueShifts& shifts);

  PacketFabric& fabric_;
  PacketSenders& senders_;
  PacketTargets& targets_;
  PacketMessages& messages_;
  PacketWatch& watch_;
  Workers& workers_;
  const Picoseconds& window_;
  const std::uint32_t packets_per_ack_;

  std::deque<Phase> phases_;
  std::vector<std::uint32_t> unused_;         // Numbers of phases that can be used again.
  std::vector<Claim> claims_;                 // Indexed by port.
  std::vector<std::uint32_t> node_claims_;    // Indexed by switch.
  std::vector<Line> lines_;                   // Indexed by connection.
  std::vector<std::uint32_t> connection_of_;  // Indexed by slot, if it is simulated.
  std::vector<std::unique_ptr<PacketStory>> stories_;
  std::vector<std::vector<std::uint32_t>> readers_;  // Phases by the story that they are told by.
  std::map<std::uint64_t, std::vector<std::uint32_t>> by_key_;  // Stories.
  using Waits = std::priority_queue<Wait, std::vector<Wait>, std::greater<>>;
  Waits waits_;
  Waits tries_;  // Times from which on phases may be found to repeat themselves: nobody waits.
  Waits cuts_;
  std::vector<std::uint32_t> watched_;  // Phases by stage of their Repeat,
  std::vector<std::uint32_t> proved_;   // or of which that has changed since.
  std::vector<PacketStart> starts_;     // Scratch.
  Picoseconds border_ = 0;              // End of the last window.
  bool is_written_anew_ = false;        // The story of the phase that late workers simulate.
  std::vector<std::int64_t> waiting_;   // Scratch of waiting_in(): zeros, indexed by connection.
  std::vector<PacketMessage> late_;     // Complete, and not told.
  std::vector<std::uint32_t> due_;      // Phases to look at in this window.
  std::vector<std::uint32_t> written_;  // Phases whose stories have new ends.
  std::vector<std::uint32_t> settled_;
  std::size_t stored_ = 0;  // Messages in stories.
  std::uint64_t serials_ = 0;
  PacketCounts counts_;
};

}  // namespace trainyard
