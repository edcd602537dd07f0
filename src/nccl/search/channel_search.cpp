// SPDX-License-Identifier: Apache-2.0
#include "nccl/search/channel_search.h"

#include <algorithm>
#include <utility>

#include "nccl/search/search_order.h"
#include "nccl/types/release.h"
#include "sim/check.h"
#include "sim/ids.h"

namespace trainyard::nccl {

ChannelSearch::ChannelSearch(const Machine& machine)
    : machine_(machine),
      system_(machine.system()),
      gpus_(machine.gpu_count()),
      rules_(release(machine.options().version, machine.system().oldest())),
      ledger_(machine.system()),
      used_(machine.system().gpus.size(), 0) {
  for (const SystemNet& net : system_.nets) {
    net_free_.push_back(net.bandwidth);
  }
  for (int net = 0; net < machine.net_count(); ++net) {
    gpu_of_net_.push_back(machine.gpu_of(net));
  }
}

int ChannelSearch::run(const Candidate& attempt, Candidate& best, int budget) {
  now_ = attempt;
  now_.channels = 0;
  now_.gpus.assign(as_index(now_.max_channels) * as_index(gpus_), 0);
  now_.nets.assign(as_index(now_.max_channels), {0, 0});
  best_ = &best;
  budget_ = budget;
  start_channel();
  return budget_;
}

// --- Bandwidth ---------------------------------------------------------------------------------

bool ChannelSearch::is_tree() const {
  return now_.pattern == GraphPattern::BalancedTree || now_.pattern == GraphPattern::Tree ||
         now_.pattern == GraphPattern::SplitTree;
}

// Paths as far as the search allows; a negative share undoes.
bool ChannelSearch::take(const Path& path, const Path& back, bool is_intra, float share,
                         bool from_gpu) {
  const PathType farthest = is_intra ? now_.type_intra : now_.type_inter;
  const float bandwidth = (is_intra ? now_.bw_intra : now_.bw_inter) * share;
  if (path.type >= PathType::Dis) {
    return false;
  }
  if (share < 0.0F) {
    ledger_.give_back(path, -bandwidth, from_gpu);
  } else {
    // NCCL asks for the type only where a whole share is taken.
    const bool is_far = path.type > farthest ||
                        (rules_.tree_asks_for_way_back && is_tree() && back.type > farthest);
    if ((share == 1.0F && is_far) || !ledger_.take(path, bandwidth, from_gpu)) {
      return false;
    }
  }
  const auto hops = static_cast<float>(count_hops(path));
  now_.hops = static_cast<int>(static_cast<float>(now_.hops) + share * hops);
  return true;
}

// Ranks and their devices are one before 2.30, and so are the steps between them none. Only ways
// through another GPU (PXN) have more of these than others.
int ChannelSearch::count_hops(const Path& path) const {
  if (machine_.options().version >= Version::V2_30) {
    return static_cast<int>(path.edges.size());
  }
  return static_cast<int>(std::count_if(path.edges.begin(), path.edges.end(), [&](int index) {
    const Edge& edge = system_.edges[as_index(index)];
    const auto is_rank = [&](int vertex) {
      return system_.vertices[as_index(vertex)].kind == VertexKind::Gpu;
    };
    return !is_rank(edge.from) && !is_rank(edge.to);
  }));
}

bool ChannelSearch::take_between(int from, int to, float share) {
  const PathTable& table = machine_.paths().gpu_gpu;
  return take(table.at(from, to), table.at(to, from), true, share, true);
}

bool ChannelSearch::take_from_net(int net, int gpu, float share) {
  return take(machine_.paths().net_gpu.at(net, gpu), machine_.paths().gpu_net.at(gpu, net), false,
              share, false);
}

bool ChannelSearch::take_to_net(int gpu, int net, float share) {
  return take(machine_.paths().gpu_net.at(gpu, net), machine_.paths().net_gpu.at(net, gpu), false,
              share, true);
}

// --- The first GPU of a channel ----------------------------------------------------------------

std::size_t ChannelSearch::slot(int position) const {
  return as_index(now_.channels) * as_index(gpus_) + as_index(position);
}

// Returns the GPU at a position of the previous channel.
int ChannelSearch::previous_gpu(int position) const {
  CHECK(now_.channels > 0, "there is a channel to repeat");
  return now_.gpus[slot(position) - as_index(gpus_)];
}

const std::vector<int>& ChannelSearch::nets_for(std::optional<int> gpu) {
  const std::pair key(now_.type_inter, gpu.value_or(-1));
  const auto found = selected_nets_.find(key);
  if (found != selected_nets_.end()) {
    return found->second;
  }
  return selected_nets_.emplace(key, select_nets(machine_, now_.type_inter, gpu)).first->second;
}

void ChannelSearch::start_channel() {
  if (machine_.net_count() > 0) {
    start_at_nets();
  } else {
    start_inside();
  }
}

void ChannelSearch::start_inside() {
  if (now_.pattern == GraphPattern::Nvls) {
    try_first(std::nullopt, now_.channels, Order::Free);
    return;
  }
  if (now_.channels == 0) {
    try_first(std::nullopt, 0, Order::Pci);
  } else {
    try_first(std::nullopt, previous_gpu(0), Order::Replay);
  }
  if (!now_.same_channels || now_.channels == 0) {
    for (int gpu = 0; gpu < gpus_; ++gpu) {
      try_first(std::nullopt, gpu, Order::Free);
    }
  }
}

void ChannelSearch::start_at_nets() {
  const std::vector<int>& nets = nets_for(std::nullopt);
  const int count = static_cast<int>(nets.size());
  // NCCL keeps this sum in an integer.
  const int bandwidth = static_cast<int>(now_.bw_inter);
  for (int turn = 0; turn < count; ++turn) {
    const int first = rules_.rotates_nics ? now_.channels : 0;
    const int index = nets[as_index((first + turn) % count)];
    const SystemNet& net = system_.nets[as_index(index)];
    if (now_.collnet && !net.collnet) {
      continue;
    }
    if (net_free_[as_index(index)] < static_cast<float>(bandwidth)) {
      continue;
    }
    const auto channel = as_index(now_.channels);
    if (now_.pattern == GraphPattern::Ring && now_.cross_nic == 2 && now_.channels % 2 == 1 &&
        index != now_.nets[channel - 1][1]) {
      continue;
    }
    now_.nets[channel][0] = index;
    now_.latency_inter = net.latency;
    const auto debit = [&](float amount) {
      for (std::size_t other = 0; other < net_free_.size(); ++other) {
        const SystemNet& same = system_.nets[other];
        if (same.host == net.host && same.asic == net.asic && same.port == net.port) {
          net_free_[other] -= amount;
        }
      }
    };
    debit(static_cast<float>(bandwidth));
    const bool is_done = start_at(index);
    debit(-static_cast<float>(bandwidth));
    if (is_done) {
      break;
    }
  }
}

// Returns whether no other NIC needs to be tried: heads are not searched for, the first that goes
// is taken.
bool ChannelSearch::start_at(int net) {
  if (now_.pattern == GraphPattern::Nvls || now_.pattern == GraphPattern::CollNetDirect) {
    // A GPU is head of one channel.
    const std::optional<int> head = gpu_of_net_[as_index(net)];
    if (!head || now_.channels >= static_cast<int>(nets_for(std::nullopt).size())) {
      return false;
    }
    for (int channel = 0; channel < now_.channels; ++channel) {
      if (now_.gpus[as_index(channel) * as_index(gpus_)] == *head) {
        return false;
      }
    }
    try_first(net, *head, Order::Free);
    return true;
  }
  const bool is_first = now_.channels == 0;
  if (!is_first && (now_.same_channels || rules_.first_gpus != FirstGpus::OwnFirst)) {
    try_first(net, previous_gpu(0), Order::Replay);
  }
  if (is_first || !now_.same_channels) {
    enter_from(net);
  }
  return false;
}

void ChannelSearch::enter_from(int net) {
  if (now_.channels == 0 && (!system_.nvswitch || rules_.first_gpus == FirstGpus::Nearest)) {
    // The order of the file sets a mark to beat, on a budget of its own.
    const int saved = std::exchange(budget_, 1 << 10);
    try_first(net, 0, Order::Pci);
    budget_ = budget_ == -1 ? -1 : saved;
  }
  std::vector<int> gpus = machine_.nearest_gpus(net);
  if (rules_.first_gpus == FirstGpus::FromTurn) {
    std::rotate(gpus.begin(), std::lower_bound(gpus.begin(), gpus.end(), now_.channels % gpus_),
                gpus.end());
  }
  std::optional<int> own;
  if (rules_.first_gpus == FirstGpus::OwnFirst) {
    own = gpu_of_net_[as_index(net)];
  }
  if (own) {
    try_first(net, *own, Order::Free);
  }
  for (const int gpu : gpus) {
    if (gpu != own && machine_.paths().net_gpu.at(net, gpu).type != PathType::Dis) {
      try_first(net, gpu, Order::Free);
    }
  }
}

void ChannelSearch::try_first(std::optional<int> net, int gpu, Order order) {
  if (net && !take_from_net(*net, gpu, 1.0F)) {
    return;
  }
  Place place{.gpu = gpu, .position = 0, .order = order};
  const bool is_ring = now_.pattern == GraphPattern::Ring;
  if (machine_.net_count() > 0) {
    place.exit = is_ring ? gpus_ - 1 : now_.pattern == GraphPattern::SplitTree ? 1 : 0;
  } else if (is_ring) {
    place.close = gpus_ - 1;
  }
  const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(now_.channels);
  used_[as_index(gpu)] ^= bit;
  visit(place);
  used_[as_index(gpu)] ^= bit;
  if (net) {
    (void)take_from_net(*net, gpu, -1.0F);
  }
}

// --- From GPU to GPU ---------------------------------------------------------------------------

void ChannelSearch::visit(const Place& place) {
  if (budget_ <= 0) {
    return;
  }
  --budget_;
  if (place.position == gpus_) {
    complete_channel();
    return;
  }
  now_.gpus[slot(place.position)] = place.gpu;
  if (place.position == place.exit) {
    leave(place);
  } else if (now_.pattern == GraphPattern::Nvls) {
    try_nvls(place.gpu);
  } else if (now_.pattern == GraphPattern::CollNetDirect) {
    try_collnet_direct(place.gpu);
  } else if (place.position < gpus_ - 1) {
    go_on(place);
  } else if (place.position == place.close) {
    close_ring(place);
  } else {
    visit({.gpu = place.gpu, .position = gpus_, .order = place.order});
  }
}

void ChannelSearch::complete_channel() {
  ++now_.channels;
  if (is_better()) {
    *best_ = now_;
    if (now_.channels == now_.max_channels) {
      budget_ = -1;
    }
  }
  if (now_.channels < now_.max_channels) {
    start_channel();
  }
  --now_.channels;
}

// search.cc: ncclTopoCompareGraphs.
bool ChannelSearch::is_better() const {
  const auto total = [](const Candidate& graph, float bandwidth) {
    return static_cast<float>(graph.channels) * bandwidth;
  };
  if (now_.channels < now_.min_channels) {
    return false;
  }
  if (now_.pattern == GraphPattern::Nvls) {
    return (now_.channels > best_->channels && now_.channels <= gpus_) ||
           total(now_, now_.bw_inter) > total(*best_, best_->bw_inter);
  }
  const float ours = total(now_, now_.bw_intra);
  const double worth = 1.0 - (best_->cross_nic - now_.cross_nic) * rules_.crossing_penalty;
  const auto theirs = static_cast<float>(total(*best_, best_->bw_intra) * worth);
  if (ours != theirs) {
    return ours > theirs;
  }
  return now_.pattern == best_->pattern && now_.cross_nic == best_->cross_nic &&
         now_.hops < best_->hops;
}

// Returns whether a channel that entered by NIC `first` may leave by `net`.
bool ChannelSearch::may_leave(int net, int first) const {
  const SystemNet& in = system_.nets[as_index(first)];
  const SystemNet& out = system_.nets[as_index(net)];
  if (in.plane && out.plane && *in.plane != *out.plane) {
    return false;
  }
  if (now_.pattern == GraphPattern::Tree && net != first) {
    return false;
  }
  if (now_.pattern == GraphPattern::Ring && now_.cross_nic == 2) {
    // Rings come in pairs, of which the second returns to where the first began.
    return now_.channels % 2 == 0 || net == now_.nets[as_index(now_.channels) - 1][0];
  }
  if (now_.cross_nic != 0) {
    return true;
  }
  if (in.rail && out.rail) {
    return *in.rail == *out.rail;
  }
  return in.host == out.host && in.asic == out.asic && in.port == out.port;
}

void ChannelSearch::leave(const Place& place) {
  const auto channel = as_index(now_.channels);
  const bool is_balanced = now_.pattern == GraphPattern::BalancedTree;
  // A copy: the search below may add lists.
  const std::vector<int> nets = nets_for(place.gpu);
  for (const int net : nets) {
    if (!may_leave(net, now_.nets[channel][0])) {
      continue;
    }
    Place next = place;
    next.exit = std::nullopt;
    if (is_balanced && place.position == 0) {
      next.exit = 1;
    } else if (is_balanced && net != now_.nets[channel][1]) {
      continue;
    }
    // A balanced tree has a child on each of its first two GPUs, with half of the data.
    const float whole = now_.bw_inter;
    const float part = is_balanced ? whole / 2 : whole;
    now_.bw_inter = part;
    const bool is_taken = take_to_net(place.gpu, net, 1.0F);
    now_.bw_inter = whole;
    if (is_taken) {
      now_.nets[channel][1] = net;
      visit(next);
      now_.bw_inter = part;
      (void)take_to_net(place.gpu, net, -1.0F);
      now_.bw_inter = whole;
    }
  }
}

void ChannelSearch::go_on(const Place& place) {
  const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(now_.channels);
  for (const int gpu : next_gpus(place)) {
    if (!take_between(place.gpu, gpu, 1.0F)) {
      continue;
    }
    Place next = place;
    next.gpu = gpu;
    ++next.position;
    used_[as_index(gpu)] ^= bit;
    visit(next);
    used_[as_index(gpu)] ^= bit;
    (void)take_between(place.gpu, gpu, -1.0F);
  }
}

void ChannelSearch::close_ring(const Place& place) {
  const int first = now_.gpus[slot(0)];
  if (take_between(place.gpu, first, 1.0F)) {
    visit({.gpu = first, .position = place.position + 1, .order = place.order});
    (void)take_between(place.gpu, first, -1.0F);
  }
}

std::vector<int> ChannelSearch::next_gpus(const Place& place) const {
  if (place.order == Order::Pci) {
    return {place.position + 1};
  }
  if (place.order == Order::Replay) {
    return {previous_gpu(place.position + 1)};
  }
  const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(now_.channels);
  const auto is_open = [&](int gpu) {
    return (used_[as_index(gpu)] & bit) == 0 &&
           !machine_.paths().gpu_gpu.at(place.gpu, gpu).edges.empty();
  };
  std::vector<int> beside;
  if (system_.nvswitch && rules_.next_gpus != NextGpus::ByScore) {
    for (const int gpu : neighbours(place.gpu, gpus_, now_.pattern)) {
      if (is_open(gpu)) {
        beside.push_back(gpu);
      }
    }
    if (rules_.next_gpus == NextGpus::Neighbours) {
      return beside;
    }
  }
  std::vector<int> open;
  for (int gpu = 0; gpu < gpus_; ++gpu) {
    if (gpu != place.gpu && is_open(gpu)) {
      open.push_back(gpu);
    }
  }
  NetPreference preference{.ledger = &ledger_};
  if (place.exit) {
    preference.net = now_.nets[as_index(now_.channels)][0];
    preference.is_last = *place.exit == place.position + 1;
  }
  std::vector<int> next = sort_gpus(machine_, place.gpu, open, preference);
  std::erase_if(next, [&](int gpu) { return std::ranges::find(beside, gpu) != beside.end(); });
  next.insert(next.begin(), beside.begin(), beside.end());
  return next;
}

// --- Heads -------------------------------------------------------------------------------------

// Takes what each GPU needs in turn, goes on if all of them get it, and gives it back.
template <typename Take, typename Continue>
void ChannelSearch::with_all_gpus(const Take& take_for, const Continue& go_on_with) {
  int taken = 0;
  while (taken < gpus_ && take_for(taken, 1.0F)) {
    ++taken;
  }
  if (taken == gpus_) {
    go_on_with();
  }
  while (taken > 0) {
    (void)take_for(--taken, -1.0F);
  }
}

// Every GPU sends its data to the switch and gets the sum; the head besides what leaves the node,
// or, inside, its own share of the reduction.
void ChannelSearch::try_nvls(int head) {
  const Paths& paths = machine_.paths();
  const auto share = [&](int gpu, float sign) { return (gpu == head ? 2.0F : 1.0F) * sign; };
  const auto down = [&](int gpu, float sign) {
    return take(paths.nvs_gpu.at(0, gpu), paths.gpu_nvs.at(gpu, 0), true, share(gpu, sign), false);
  };
  const auto up = [&](int gpu, float sign) {
    return take(paths.gpu_nvs.at(gpu, 0), paths.nvs_gpu.at(0, gpu), true, share(gpu, sign), true);
  };
  with_all_gpus(down, [&] { with_all_gpus(up, [&] { complete_head(head); }); });
}

// The head exchanges an equal part with every other GPU.
void ChannelSearch::try_collnet_direct(int head) {
  const float share = 1.0F / static_cast<float>(gpus_ - 1);
  const auto out = [&](int gpu, float sign) { return take_between(head, gpu, share * sign); };
  const auto in = [&](int gpu, float sign) { return take_between(gpu, head, share * sign); };
  with_all_gpus(out, [&] { with_all_gpus(in, [&] { complete_head(head); }); });
}

void ChannelSearch::complete_head(int head) {
  int position = 1;
  for (int gpu = 0; gpu < gpus_; ++gpu) {
    if (gpu != head) {
      now_.gpus[slot(position++)] = gpu;
    }
  }
  visit({.gpu = head, .position = gpus_});
}

}  // namespace trainyard::nccl
