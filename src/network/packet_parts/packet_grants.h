// SPDX-License-Identifier: Apache-2.0
// Receiver credits in the packet engine (hw/control/receiver_credit.h): the source asks by a
// control packet for what it may not send at once, a pacer at the link by which the target gets its
// data grants it by control packets back. docs/models/packet.md says what each packet carries.
//
// The pacer of a port works in the time of the end of its link, as all that happens there: grants
// of a window are made in the window before it, when all is known that comes until then. So they
// are notices on the link like the target's other answers, in order of time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hw/control/receiver_credit.h"
#include "network/packet_parts/packet_port.h"
#include "network/packet_parts/spsc_queue.h"

namespace trainyard {

// A request states this beside the packet that brings it.
struct CreditRequest {
  std::uint64_t unasked;
  std::uint64_t asked;
  bool is_again;
};

class PacketGrants {
 public:
  // A connection, numbered from 0, whose data come by the link of this port. Where several with
  // other settings meet at one port, the largest window holds, from when the pacer first hears of
  // it.
  void add(Port& last, const CreditSettings& settings);
  [[nodiscard]] bool empty() const { return sources_.empty(); }

  // --- Of the source. Between windows: a message of so many bytes on the line is sent at `time`,
  // which must not fall.
  void post(std::uint32_t connection, Picoseconds time, std::int64_t wire) {
    sources_[connection].posted.push({.time = time, .wire = wire});
  }
  // The bytes of those up to `now`, once each.
  [[nodiscard]] std::int64_t take_posted(std::uint32_t connection, Picoseconds now);
  // Returns whether a request is due for what the sender lacks and has not asked for.
  [[nodiscard]] bool must_ask(std::uint32_t connection, const CreditSender& sender) const {
    return sender.asked() > sources_[connection].said;
  }
  // The number of a request for all that the sender lacks, which is on its way from now on.
  [[nodiscard]] std::uint32_t ask(std::uint32_t connection, const CreditSender& sender,
                                  Picoseconds now, bool is_again);
  // A grant has come: how many bytes it brings.
  [[nodiscard]] std::int64_t take_grant(std::uint32_t connection, std::uint32_t sum,
                                        const CreditSender& sender, Picoseconds now);
  // Returns the time at which the request is repeated if nothing is heard; kNeverTime for a sender
  // that lacks nothing.
  [[nodiscard]] Picoseconds deadline(std::uint32_t connection, const CreditSender& sender) const;
  // The time of the alarm for that; kNeverTime if there is none.
  [[nodiscard]] Picoseconds& timer(std::uint32_t connection) { return sources_[connection].timer; }
  // The deadline has come. Whether to ask again, or to give up.
  [[nodiscard]] bool retry(std::uint32_t connection);

  // Takes what the last request stated to the process of the target, where it is put.
  [[nodiscard]] CreditRequest take_asked(std::uint32_t connection) {
    return requests_[connection].pop();
  }
  void put_asked(std::uint32_t connection, const CreditRequest& request) {
    requests_[connection].push(request);
  }

  // --- Of the target. A request has come. Whether to say once more what has been granted.
  [[nodiscard]] bool take_request(std::uint32_t connection, std::uint32_t number, Picoseconds time);
  // Takes so many bytes on the line of data that had not come.
  void on_received(std::uint32_t connection, std::int64_t wire, Picoseconds time);
  // All that was granted to it, modulo 2^32.
  [[nodiscard]] std::uint32_t granted(std::uint32_t connection) const {
    return static_cast<std::uint32_t>(targets_[connection].granted);
  }
  // Advances the pacer with the number in Port::grants: what happens at the end of its link is
  // known up to `time`.
  void advance(std::uint32_t pacer, Picoseconds time) { pacers_[pacer]->now = time; }
  // Returns the time at which its next grant is due; kNeverTime while nobody asks.
  [[nodiscard]] Picoseconds deadline(std::uint32_t pacer) const;
  // Makes it. The connection; none if those that ask have fallen silent.
  [[nodiscard]] std::optional<std::uint32_t> grant(std::uint32_t pacer, Picoseconds time);
  // The start of the window for which the port is in the calendar on the pacer's behalf.
  [[nodiscard]] Picoseconds& noted(std::uint32_t pacer) { return pacers_[pacer]->noted; }

 private:
  struct Posted {
    Picoseconds time;
    std::int64_t wire;
  };
  struct alignas(64) Source {
    Ring<Posted> posted;
    std::uint64_t said = 0;  // Bytes that were asked for.
    Picoseconds heard_at = 0;
    Picoseconds timer = kNeverTime;
    SimTime patience;
    std::uint32_t requests = 0;
    int tries = 0;
    bool has_given_up = false;
  };
  struct alignas(64) Target {
    std::uint32_t pacer = 0;
    std::uint32_t flow = 0;  // At the pacer.
    std::uint32_t heard = 0;
    Bytes window;  // For a round trip of its path.
    std::uint64_t unasked = 0;
    std::uint64_t asked = 0;
    std::uint64_t granted = 0;
  };
  struct alignas(64) Pacer {
    explicit Pacer(const CreditSettings& given) : settings(given), credit(settings) {}

    CreditSettings settings;
    CreditPacer credit;
    std::vector<std::uint32_t> connections;  // Indexed by flow.
    Picoseconds now = 0;
    Picoseconds noted = kNeverTime;
  };

  [[nodiscard]] CreditPacer& hear(const Target& target);

  std::vector<Source> sources_;
  std::vector<Target> targets_;
  std::vector<SpscQueue<CreditRequest>> requests_;
  std::vector<std::unique_ptr<Pacer>> pacers_;  // Their settings must stay where they are.
};

}  // namespace trainyard
