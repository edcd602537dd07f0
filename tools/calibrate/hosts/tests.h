// SPDX-License-Identifier: Apache-2.0
// What trainyard-calibrate-hosts measures, as ranks of MPI run it. docs/accuracy/hosts.md says what
// each test is.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace trainyard::hosts {

struct Row {
  std::string test;       // "ping-pong", "copy", "all_reduce", ...
  std::string path = {};  // "shared", "tcp" or "memory": what bytes go through.
  int ranks = 2;
  std::size_t bytes = 0;  // Of a message, or of a collective as nccl-tests counts them.
  double least_us = 0.0;  // Of one message, one call or one copy.
  double median_us = 0.0;
  int repeats = 0;
  double cpu_us = 0.0;  // CPU time of both ends of a message; 0 where none was measured.
};

using Sink = std::function<void(const Row&)>;  // Rank 0 alone has rows.

// All are called by every rank of MPI_COMM_WORLD, of which the first two take part in all but
// collectives. `quick` takes few repeats and sizes.
void measure_memory(bool quick, const Sink& sink);
void measure_messages(const std::string& path, bool quick, const Sink& sink);
void measure_sockets(bool quick, const Sink& sink);
void measure_collectives(const std::string& path, bool quick, const Sink& sink);

}  // namespace trainyard::hosts
