// SPDX-License-Identifier: Apache-2.0
// Times of collectives and transfers that many plans ask for, from several threads at once: each is
// computed once, whoever asks first, and is the same whoever that is.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "parallelism/traffic/group_times.h"

namespace trainyard {

class SharedTimes final : public GroupTimes {
 public:
  using Maker = std::function<std::unique_ptr<GroupTimes>()>;
  // `make` gives times for one thread, as many as threads ask at once; equal questions must have
  // equal answers from all of them.
  explicit SharedTimes(Maker make) : make_(std::move(make)) {}

  // Any thread may call these. Two that ask for the same at once may both work it out.
  [[nodiscard]] SimTime collective(Operation operation, const std::vector<int>& ranks,
                                   Bytes size) override;
  [[nodiscard]] SimTime transfer(int from, int to, Bytes size) override;

  // Runs `ask` with times for the calling thread alone, which may use a plan. Any thread may call
  // it.
  void lend(const std::function<void(GroupTimes&)>& ask);

 private:
  // One of those, or a new one. Throws what `make` throws.
  [[nodiscard]] std::unique_ptr<GroupTimes> take(std::vector<std::unique_ptr<GroupTimes>>& from);
  template <typename Key, typename Ask>
  SimTime remembered(std::map<Key, SimTime>& known, const Key& key, const Ask& ask);

  Maker make_;
  std::mutex mutex_;  // Guards everything below.
  std::vector<std::unique_ptr<GroupTimes>> idle_;
  std::vector<std::unique_ptr<GroupTimes>> returned_;  // Were lent, and may have a plan.
  std::map<std::tuple<Operation, std::vector<int>, Bytes>, SimTime> collectives_;
  std::map<std::tuple<int, int, Bytes>, SimTime> transfers_;
};

}  // namespace trainyard
