// SPDX-License-Identifier: Apache-2.0
// One try of the graph search: with given speeds and types of paths, as many channels as fit, by
// depth-first search with a budget. search.h varies speeds and types around it.
//
// A channel is an order of all GPUs, on several nodes with a NIC before and a NIC after it. Every
// link that it crosses gives it its bandwidth and has that much less for the next channel, until
// the search goes back. Results depend on the order of trial and on where the budget ends, so both
// are NCCL's to the step. NVIDIA/nccl, src/graph/search.cc: ncclTopoSearchRec and what it calls.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "nccl/machine/bandwidth_ledger.h"
#include "nccl/machine/machine.h"
#include "nccl/types/types.h"

namespace trainyard::nccl {

struct Release;

// The settings that are tried, and what was found with them (struct ncclTopoGraph). Bandwidths are
// GB/s of one channel.
struct Candidate {
  GraphPattern pattern = GraphPattern::Ring;
  bool collnet = false;
  int cross_nic = 0;
  int min_channels = 1;
  int max_channels = 1;
  float bw_intra = 0.0F;
  float bw_inter = 0.0F;
  float latency_inter = 0.0F;
  PathType type_intra = PathType::Loc;  // The farthest that a path may be.
  PathType type_inter = PathType::Loc;
  bool same_channels = true;  // Each channel repeats the order of the first.
  int channels = 0;
  int hops = 0;
  std::vector<int> gpus = {};                 // [channel * GPUs + position], indices.
  std::vector<std::array<int, 2>> nets = {};  // NICs by channel, as indices; in and out.
};

class ChannelSearch {
 public:
  explicit ChannelSearch(const Machine& machine);

  // Replaces `best` by what is better. Returns what is left of the budget, which counts visits of
  // GPUs: -1 if the most channels were found, 0 if it ran out.
  int run(const Candidate& attempt, Candidate& best, int budget);

 private:
  enum class Order : std::uint8_t { Free, Pci, Replay };
  // `exit` is the position from which the channel leaves to its NIC, `close` the one from which a
  // ring goes back to its first GPU; nothing if that is done or never.
  struct Place {
    int gpu = 0;
    int position = 0;
    std::optional<int> exit = {};
    std::optional<int> close = {};
    Order order = Order::Free;
  };

  [[nodiscard]] bool is_tree() const;
  [[nodiscard]] std::size_t slot(int position) const;
  [[nodiscard]] int previous_gpu(int position) const;
  bool take(const Path& path, const Path& back, bool is_intra, float share, bool from_gpu);
  [[nodiscard]] int count_hops(const Path& path) const;
  bool take_between(int from, int to, float share);
  bool take_from_net(int net, int gpu, float share);
  bool take_to_net(int gpu, int net, float share);
  [[nodiscard]] const std::vector<int>& nets_for(std::optional<int> gpu);
  [[nodiscard]] std::vector<int> next_gpus(const Place& place) const;
  [[nodiscard]] bool may_leave(int net, int first) const;

  void start_channel();
  void start_inside();
  void start_at_nets();
  bool start_at(int net);
  void enter_from(int net);
  void try_first(std::optional<int> net, int gpu, Order order);
  void visit(const Place& place);
  void complete_channel();
  void leave(const Place& place);
  void go_on(const Place& place);
  void close_ring(const Place& place);
  template <typename Take, typename Continue>
  void with_all_gpus(const Take& take_for, const Continue& go_on_with);
  void try_nvls(int head);
  void try_collnet_direct(int head);
  void complete_head(int head);
  [[nodiscard]] bool is_better() const;

  const Machine& machine_;
  const System& system_;
  int gpus_;
  const Release& rules_;
  BandwidthLedger ledger_;
  std::vector<float> net_free_;      // Indexed by NIC.
  std::vector<std::uint64_t> used_;  // Indexed by GPU: a bit for each channel that it is in.
  std::map<std::pair<PathType, int>, std::vector<int>> selected_nets_;
  std::vector<std::optional<int>> gpu_of_net_;
  Candidate now_;
  Candidate* best_ = nullptr;
  int budget_ = 0;
};

}  // namespace trainyard::nccl
