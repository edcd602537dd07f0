// SPDX-License-Identifier: Apache-2.0
// Which chunks of a rank the caches of other ranks have, where messages are read in place.
//
// A core must take a line from another core's cache before it reads what that has just written,
// and before it writes what that has just read. So each chunk of each rank has two states:
//   written   the rank has written it in this call: who reads it finds it in the rank's cache
//   read      others have read it since the rank last wrote it: writing it takes it from theirs
// A call follows another one of the same kind, as in benchmarks and training steps: at its start
// nothing is written, and read is what others had read at the end of the call before.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "collectives/schedule/schedule.h"
#include "sim/units.h"

namespace trainyard {

class MpiCaches {
 public:
  // `is_in_place` says whether the message of a send is read where it lies. Lanes are ranks. The
  // schedule must outlive this.
  MpiCaches(const Schedule& schedule, Bytes size,
            const std::function<bool(const Step& step)>& is_in_place);

  // Another rank is to read these chunks, which are those of a step; returns the bytes that are
  // written.
  Bytes read(std::uint32_t rank, ChunkRange entries);
  // The rank writes the chunks of a step; returns the bytes that others had read.
  Bytes write(std::uint32_t rank, ChunkRange entries);
  // The same for chunks by their numbers.
  Bytes copy(std::uint32_t rank, ChunkRange chunks);

 private:
  struct State {
    bool is_written = false;
    bool is_read = false;
  };
  Bytes write_one(std::uint32_t rank, std::uint32_t chunk);
  [[nodiscard]] Bytes size_of(std::uint32_t chunk) const { return chunking_.bytes({chunk, 1}); }

  const Schedule& schedule_;
  Chunking chunking_;
  // Indexed by rank; only chunks that are ever read in place are there.
  std::vector<std::map<std::uint32_t, State>> chunks_;
};

}  // namespace trainyard
