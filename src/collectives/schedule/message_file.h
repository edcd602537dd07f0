// SPDX-License-Identifier: Apache-2.0
// An algorithm as a list of messages in YAML, which people and programs write
// (docs/models/collectives.md).
//
// A rank has a lane on each channel. In each step, by their numbers, a lane first sends and then
// receives, messages of one step in the order of the file. A rank has equally many flows on each
// channel, each a connection to one other rank: connection (channel * flows + flow) * ranks + rank,
// which is what ECMP hashes. Chunks are named alike on all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/schedule/schedule.h"
#include "sim/fields.h"

namespace trainyard {

struct ListedMessage {
  std::uint32_t step = 0;
  std::uint32_t source = 0;
  std::uint32_t target = 0;
  std::vector<std::uint32_t> chunks = {};
  bool reduces = false;
  std::uint32_t channel = 0;
  // Where it is missing: how many other targets the source had before on this channel.
  std::optional<std::uint32_t> flow = {};
};

struct MessageFile {
  Operation operation = Operation::AllReduce;
  std::string name = {};
  std::uint32_t ranks = 0;
  std::uint32_t root = 0;
  std::uint32_t chunks = 0;
  bool rendezvous = false;  // See ScheduleShape.
  std::vector<ListedMessage> messages = {};
};

// The rows of such a file.
void message_file_fields(Fields& fields, MessageFile& file);

// Reads and proves it. `name` represents the file in errors. Throws ConfigError with the line of a
// message that is out of range, that uses the flow to another rank, or that the prover finds fault
// with (semantics.h).
[[nodiscard]] std::unique_ptr<Schedule> read_message_file(const std::string& text,
                                                          const std::string& name);

}  // namespace trainyard
