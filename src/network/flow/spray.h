// SPDX-License-Identifier: Apache-2.0
// Packet spraying: the packets of one message take all equally good paths at once.
//
// Up to kMaxPaths distinct paths of a connection are found by counting: path j takes, at each
// level of the fabric, the choice that the digits of j name, as RoutingPolicy::Static does with the
// number of a target. A connection begins to count where the one before it ended, so that fabrics
// with more paths are used evenly.
//
// The packet engine sprays packets itself. The others know one path a connection: a decorator opens
// a connection of the engine for each path. A message is cut into as many parts, each of at least
// one packet; which paths the parts of a short message take goes round. A message is complete when
// its last part is and those before it are: NICs hand data over in order.
//
// It differs from one path: each part is a flow of its own where flows share a link, so a
// connection with many paths gets more of it than one with few; and the parts of the next message
// follow on each path as soon as it is free. Where there is one path, nothing differs at all.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "network/contract/network.h"

namespace trainyard {

// Counts the paths of connections under RoutingPolicy::Spray.
class SprayPaths {
 public:
  static constexpr std::uint32_t kMaxPaths = 64;

  explicit SprayPaths(Routing& routing) : routing_(routing) {}
  // ConnectionSpec::path for each distinct path of the next connection: at least one, even where
  // there is no way.
  [[nodiscard]] std::vector<std::uint32_t> next(const ConnectionSpec& spec);

 private:
  Routing& routing_;
  std::uint32_t next_path_ = 0;
};

class SprayNetwork final : public Network, private EventHandler {
 public:
  // The least part: what RoCE and InfiniBand carry in a packet of the largest usual size.
  static constexpr Bytes kPacket = Bytes(4096);

  SprayNetwork(Simulator& simulator, Routing& routing, std::unique_ptr<Network> engine);

  ConnectionId connect(const ConnectionSpec& spec) override;
  void send(ConnectionId connection, Bytes size, EventHandler& done, std::uint64_t token) override;
  [[nodiscard]] SimTime quiet_time() const override { return engine_->quiet_time(); }
  void reserve(std::size_t connections) override;
  // Messages and connections as seen from above; a message counts when it is complete.
  [[nodiscard]] NetworkStats stats() const override;
  [[nodiscard]] std::vector<LinkUse> link_use() const override { return engine_->link_use(); }

 private:
  struct Message {
    Bytes size;
    EventHandler* done;
    std::uint64_t token;
    std::uint32_t parts_left;
  };
  struct Connection {
    std::vector<ConnectionId> paths;  // Connections of the engine.
    std::uint32_t next_path = 0;      // Path of the first part of the next message.
    std::uint64_t first = 0;          // Number of the oldest message that is not complete.
    std::deque<Message> messages;     // From that one on.
  };
  // A part under way, by token. Slots are used again.
  struct Part {
    std::uint32_t connection;
    std::uint64_t message;
  };

  void on_event(std::uint64_t token) override;
  [[nodiscard]] std::uint64_t take_slot(const Part& part);

  Simulator& simulator_;
  SprayPaths paths_;
  std::unique_ptr<Network> engine_;
  std::vector<Connection> connections_;
  std::vector<Part> parts_;
  std::vector<std::uint64_t> free_parts_;
  std::uint64_t messages_ = 0;
  Bytes bytes_;
};

}  // namespace trainyard
