// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/point_to_point.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string_view>

#include "nccl/tuning/chunking.h"
#include "nccl/types/gpu_generation.h"
#include "nccl/types/release.h"
#include "sim/check.h"

namespace trainyard::nccl {
namespace {

constexpr int kPairsPerBatch = 8;  // NCCL_MAX_DEV_WORK_P2P_PER_BATCH
constexpr std::int64_t kPartMultiple = 4096;

int power_of_two_up(int value) {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(value)));
}

// Releases up to 2.28 take two channels, fewer where many peers share them, at least one for each
// NIC.
int network_channels_old(const Communicator& communicator, const PeerPath& peer, int channels) {
  int per_peer = 2;
  while (per_peer > 1 && per_peer * communicator.ranks > 4 * channels) {
    per_peer /= 2;
  }
  return std::max(peer.nics, per_peer);
}

// MI300X and later have more over xGMI than others over NVLink, and twice as many on one node
// (ROCm/rccl, src/graph/paths.cc: ncclTopoComputeP2pChannels).
int xgmi_channels(const Communicator& communicator) {
  const std::string_view gcn = gpu_generation(communicator.min_compute_capability).gcn;
  const bool has_more = gcn == "gfx942" || gcn == "gfx950";
  return !has_more ? 2 : communicator.nodes > 1 ? 4 : 8;
}

int channels_to(const Communicator& communicator, const PeerPath& peer, int channels,
                const Environment& environment) {
  switch (peer.kind) {
    case PeerPath::Kind::NvLink:
      return xgmi_channels(communicator) *
             std::max(1, static_cast<int>(static_cast<float>(peer.bandwidth) /
                                          static_cast<float>(peer.link_bandwidth)));
    case PeerPath::Kind::Pcie:
      return 2;
    case PeerPath::Kind::Network:
      break;
  }
  if (environment.channels_per_net_peer) {
    return *environment.channels_per_net_peer;
  }
  if (communicator.version < Version::V2_29) {
    return network_channels_old(communicator, peer, channels);
  }
  return std::max(peer.nics, divide_up(static_cast<int>(peer.bandwidth),
                                       environment.p2p_per_channel_net_bandwidth));
}

// 0, 1, 3, 6, ... modulo the next power of two: meets each group once.
std::vector<int> group_order(int groups) {
  const int modulus = power_of_two_up(groups);
  std::vector<int> order;
  int delta = 0;
  for (int step = 1; step <= modulus; ++step) {
    if (delta < groups) {
      order.push_back(delta);
    }
    delta = (delta + step) % modulus;
  }
  return order;
}

int reversed_bits(int value, int bits) {
  int result = 0;
  for (int bit = 0; bit < bits; ++bit) {
    result = result * 2 + (value >> bit) % 2;
  }
  return result;
}

// Returns how many channels a send of `bytes` takes, with so many bytes in a step of the buffers.
int parts_for(const Communicator& communicator, std::int64_t bytes, Bytes step_bytes) {
  const int max = communicator.p2p_channels_per_peer;
  int min = max;
  while (min > 1 && std::int64_t{min} * communicator.ranks > communicator.p2p_channels) {
    min /= 2;
  }
  const std::int64_t step = step_bytes.count();
  const bool several = communicator.nodes > 1;
  const std::int64_t min_part = std::max<std::int64_t>(several ? step / 2 : step / 8, 1);
  const std::int64_t max_part = several ? step : 32 * step;
  int parts = static_cast<int>(std::clamp<std::int64_t>(divide_up(bytes, min_part), 1, min));
  while (divide_up(bytes, std::int64_t{parts}) > max_part && parts <= max / 2) {
    parts *= 2;
  }
  return parts;
}

// Returns the size of all parts but the last ones.
Bytes part_of(std::int64_t bytes, int parts) {
  return Bytes(divide_up(divide_up(bytes, std::int64_t{parts}), kPartMultiple) * kPartMultiple);
}

// A step with Simple. `all_nvlink`: all pairs of a single node.
Bytes point_to_point_chunk(const Communicator& communicator, bool all_nvlink,
                           const Environment& environment) {
  Bytes chunk = all_nvlink ? environment.p2p_nvl_chunk : environment.p2p_pci_chunk;
  if (communicator.nodes > 1) {
    const bool large = communicator.version >= Version::V2_28 && communicator.cpu == CpuKind::Arm &&
                       gpu_generation(communicator.min_compute_capability).has_large_network_chunks;
    chunk = environment.p2p_net_chunk.value_or(large ? kib(256) : kib(128));
  }
  return std::min(chunk, Bytes(environment.simple_buffer.count() / kFifoSteps));
}

}  // namespace

void set_up_point_to_point(Communicator& communicator, const std::vector<PeerPath>& peers,
                           const Environment& environment) {
  CHECK(!peers.empty(), "a communicator without peers");
  const int channels = power_of_two_up(std::max(
      std::min(communicator.channels, environment.max_p2p_channels), environment.min_p2p_channels));
  bool all_nvlink = true;
  int per_peer = std::numeric_limits<int>::max();
  for (const PeerPath& peer : peers) {
    per_peer = std::min(per_peer, channels_to(communicator, peer, channels, environment));
    all_nvlink = all_nvlink && peer.kind == PeerPath::Kind::NvLink;
  }
  per_peer = std::min(power_of_two_up(std::min(per_peer, channels)), channels);
  if (communicator.nodes > 1 && communicator.version >= Version::V2_29 &&
      !environment.channels_per_net_peer) {
    const int max_peers = environment.p2p_max_peers.value_or(communicator.ranks);
    while (per_peer > 1 &&
           std::int64_t{per_peer} * divide_up(max_peers, kPairsPerBatch) > channels) {
      per_peer /= 2;
    }
  }
  communicator.p2p_channels = channels;
  communicator.p2p_channels_per_peer = per_peer;
  communicator.p2p_chunk = point_to_point_chunk(communicator, all_nvlink, environment);
}

int schedule_group_size(const std::vector<int>& first_rank, const Environment& environment) {
  CHECK(first_rank.size() >= 2, "a communicator without nodes");
  if (first_rank.size() == 2) {
    return first_rank.back();
  }
  int size = environment.p2p_schedule_group_size;
  for (std::size_t node = 0; node + 1 < first_rank.size(); ++node) {
    size = std::gcd(size, first_rank[node + 1] - first_rank[node]);
  }
  return size;
}

std::vector<PointToPointRound> point_to_point_schedule(int rank, int ranks, int group_size) {
  CHECK(group_size > 0 && ranks % group_size == 0, "groups of unequal size");
  const int groups = ranks / group_size;
  const int group = rank / group_size;
  const int local = rank % group_size;
  std::vector<PointToPointRound> rounds;
  rounds.reserve(static_cast<std::size_t>(ranks));
  for (const int delta : group_order(groups)) {
    const int send_group = (group + delta) % groups;
    const int receive_group = (group - delta + groups) % groups;
    for (int step = 0; step < group_size; ++step) {
      rounds.push_back(
          {.send_to = send_group * group_size + (local + step) % group_size,
           .receive_from = receive_group * group_size + (local - step + group_size) % group_size});
    }
  }
  return rounds;
}

int channel_of_part(int round, int part, int channels, int nodes, int group_size) {
  const int base = nodes > 1 ? round / group_size * divide_up(group_size, kPairsPerBatch) +
                                   round % group_size / kPairsPerBatch
                             : round;
  const int bits = static_cast<int>(std::bit_width(static_cast<unsigned>(channels))) - 1;
  return (reversed_bits(base, bits) + part) % channels;
}

Bytes PointToPointPlan::bytes_of_part(int index, Bytes bytes) const {
  const std::int64_t begin = std::min(index * part.count(), bytes.count());
  return Bytes(std::min(part.count(), bytes.count() - begin));
}

PointToPointPlan plan_point_to_point(const Communicator& communicator,
                                     const Environment& environment, Bytes bytes, bool network) {
  PointToPointPlan plan;
  const std::int64_t size = bytes.count();
  plan.parts = parts_for(communicator, size, communicator.p2p_chunk);
  const LlSends ll_sends = release(communicator.version).ll_sends;
  const bool up_to_most = ll_sends == LlSends::UpToMostChannels;
  const int channels = up_to_most ? communicator.p2p_channels_per_peer : plan.parts;
  const bool has_ll_buffers = !network || environment.allocate_p2p_net_ll_buffers;
  if (ll_sends != LlSends::None && has_ll_buffers &&
      size <= channels * environment.p2p_ll_threshold.count()) {
    const Bytes step(environment.ll_buffer.count() / kFifoSteps);
    if (up_to_most) {
      plan.parts = parts_for(communicator, size, step);
    }
    plan.part = part_of(size, plan.parts);
    plan.protocol = Protocol::LL;
    plan.chunk = Bytes(environment.p2p_chunk.value_or(step).count() / 2);
    return plan;
  }
  plan.part = part_of(size, plan.parts);
  const std::int64_t step = communicator.p2p_chunk.count();
  // Short messages over the network are cut finer, to fill the pipeline.
  const std::int64_t finer = !network ? 1 : size < step ? 4 : size < 8 * step ? 2 : 1;
  plan.chunk = environment.p2p_chunk.value_or(Bytes(step / finer));
  return plan;
}

std::vector<std::vector<PointToPointBatch>> point_to_point_batches(const std::vector<int>& parts,
                                                                   int channels, int nodes,
                                                                   int group_size,
                                                                   const Environment& environment) {
  std::vector<std::vector<PointToPointBatch>> batches(static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int round = static_cast<int>(i);
    for (int part = 0; part < parts[i]; ++part) {
      auto& of_channel = batches[static_cast<std::size_t>(
          channel_of_part(round, part, channels, nodes, group_size))];
      const bool opens = of_channel.empty() || of_channel.back().size() == kPairsPerBatch ||
                         (environment.p2p_epoch_enable &&
                          of_channel.back().back() / kPairsPerBatch != round / kPairsPerBatch);
      if (opens) {
        of_channel.emplace_back();
      }
      of_channel.back().push_back(round);
    }
  }
  return batches;
}

}  // namespace trainyard::nccl
