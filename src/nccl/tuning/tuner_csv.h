// SPDX-License-Identifier: Apache-2.0
// The configuration of NCCL's example tuner plugin (NVIDIA/nccl, plugins/tuner/example): rows that
// say which algorithm, protocol and number of channels to take for a range of sizes.
//
//   collective,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff
//   allreduce,0,65536,tree,ll,-1,-1,-1,-1,-1
//
// -1 represents any, and for NCCL's own number of channels. "#" starts a comment. The last two
// columns may be missing. The first row that fits is taken.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nccl/tuning/communicator.h"
#include "nccl/types/types.h"
#include "sim/units.h"

namespace trainyard::nccl {

struct TunerRow {
  Function function = Function::AllReduce;
  std::int64_t min_bytes = 0;
  std::int64_t max_bytes = 0;
  Algorithm algorithm = Algorithm::Ring;
  Protocol protocol = Protocol::Simple;
  // Nothing means any, and for `channels` as NCCL would take.
  std::optional<int> channels = {};
  std::optional<int> nodes = {};
  std::optional<int> ranks = {};
  std::optional<int> operations = {};
  std::optional<bool> registered = {};
  std::string place = {};  // "FILE:LINE"
};

class TunerTable {
 public:
  // Throw ConfigError with "FILE:LINE: COLUMN: expected EXPECTED, found FOUND".
  [[nodiscard]] static TunerTable load(const std::filesystem::path& file);
  [[nodiscard]] static TunerTable parse(std::string_view text, const std::string& name);

  [[nodiscard]] const std::vector<TunerRow>& rows() const { return rows_; }
  // The first row that fits; buffers count as not registered. Null where none does. `bytes` of all
  // ranks together, as NCCL's model counts.
  [[nodiscard]] const TunerRow* find(const Communicator& communicator, Function function,
                                     Bytes bytes, int operations) const;

 private:
  std::vector<TunerRow> rows_;
};

}  // namespace trainyard::nccl
