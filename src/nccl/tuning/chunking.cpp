// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/chunking.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "nccl/types/release.h"
#include "sim/check.h"

namespace trainyard::nccl {
namespace {

constexpr std::int64_t kKib = 1024;

std::int64_t align_up(std::int64_t value, std::int64_t multiple) {
  return divide_up(value, multiple) * multiple;
}

// Returns how often a byte passes a wire of a channel, roughly (ncclFuncTrafficPerByte).
std::int64_t traffic_per_byte(Function function, Protocol protocol, int ranks,
                              const Release& rules) {
  const std::int64_t passes = function == Function::AllReduce ? 2
                              : gathers_or_scatters(function) ? ranks
                                                              : 1;
  return passes * (protocol == Protocol::LL ? rules.ll_traffic : 1);
}

// Halves `chunk` while `units` chunks of work are not reached, down to `least`.
template <typename TooLarge>
void halve(std::int64_t& chunk, std::int64_t min, TooLarge too_large) {
  while (chunk > min && too_large()) {
    chunk /= 2;
  }
}

// `bytes` of the whole payload. `lanes` work on chunks at once: channels, of CollNetDirect times
// heads. 32 KiB are for less than depth * `last` chunks of each.
void shrink_collnet(std::int64_t& chunk, std::int64_t bytes, std::int64_t lanes, std::int64_t depth,
                    std::int64_t last) {
  halve(chunk, 128 * kKib, [&] { return bytes / (lanes * chunk) < depth * 64; });
  halve(chunk, 64 * kKib, [&] { return bytes / (lanes * chunk) < depth * 8; });
  halve(chunk, 32 * kKib, [&] { return bytes / (lanes * chunk) < depth * last; });
}

struct ChunkStep {
  std::int64_t loops;  // Fewer of them, and the chunk is at most `most`.
  std::int64_t max;
};

void shrink_in_steps(std::int64_t& chunk, std::int64_t bytes, std::int64_t lanes,
                     std::initializer_list<ChunkStep> steps) {
  for (const ChunkStep& step : steps) {
    if (chunk > step.max && bytes < step.loops * lanes * chunk) {
      chunk = step.max;
    }
  }
}

void shrink_nvls(std::int64_t& chunk, std::int64_t bytes, std::int64_t lanes,
                 const Communicator& communicator) {
  std::int64_t max = communicator.nvls_chunk.count();
  constexpr double kSlowNetwork = 150.0;  // GB/s of the model.
  if (communicator.nodes > 1 &&
      communicator.tuning.cell(Function::AllReduce, Algorithm::Nvls, Protocol::Simple).bandwidth <
          kSlowNetwork) {
    max = 32 * kKib;
  }
  chunk = std::min(chunk, max);
  shrink_in_steps(chunk, bytes, lanes, {{64, 64 * kKib}, {8, 32 * kKib}, {2, 16 * kKib}});
}

void shrink_nvls_tree(std::int64_t& chunk, std::int64_t bytes, std::int64_t lanes,
                      const Communicator& communicator) {
  chunk = std::min(chunk, communicator.nvls_tree_chunk.count());
  if (communicator.version >= Version::V2_21) {
    chunk = std::min(chunk, communicator.nvls_chunk.count());
  }
  shrink_in_steps(chunk, bytes, lanes,
                  {{32, 256 * kKib}, {16, 128 * kKib}, {4, 64 * kKib}, {1, 32 * kKib}});
}

// Up to 2.19 (computeColl): `depth` is the number of ranks from a leaf to the root.
void shrink_tree_simple(std::int64_t& chunk, std::int64_t bytes, std::int64_t channels,
                        const Communicator& communicator) {
  const int levels =
      static_cast<int>(std::bit_width(static_cast<unsigned>(communicator.nodes))) - 1;
  const std::int64_t depth = communicator.ranks / communicator.nodes - 1 + levels;
  halve(chunk, 128 * kKib, [&] { return bytes / (channels * chunk) < depth * 8; });
  halve(chunk, 64 * kKib, [&] { return bytes / (channels * chunk) < depth * 4; });
  halve(chunk, 32 * kKib, [&] { return bytes / (channels * chunk) < depth; });
}

void shrink_tree_ll128(std::int64_t& chunk, std::int64_t bytes, std::int64_t channels,
                       const Communicator& communicator) {
  const float ppn = static_cast<float>(communicator.ranks) / static_cast<float>(communicator.nodes);
  const int levels =
      static_cast<int>(std::bit_width(static_cast<unsigned>(communicator.nodes))) - 1;
  const auto steps = static_cast<float>(1.0 + levels + 0.1 * static_cast<double>(ppn));
  const auto chunks = [&] {
    const auto whole = bytes / (channels * chunk);  // In whole numbers, as NCCL does.
    return static_cast<float>(whole);
  };
  halve(chunk, 128 * kKib, [&] { return chunks() < steps * 64.0F / ppn; });
  halve(chunk, 32 * kKib, [&] { return chunks() < steps * 16.0F / ppn; });
}

const Release& rules_of(const Communicator& communicator) {
  return release(communicator.version, communicator.min_compute_capability);
}

// ROCm/rccl, src/enqueue.cc: computeCollChunkInfo, with the depth of src/graph/connect.cc.
void shrink_rccl_tree(std::int64_t& chunk, std::int64_t bytes, std::int64_t channels,
                      const Communicator& communicator) {
  const auto levels =
      static_cast<int>(std::bit_width(static_cast<unsigned>(communicator.nodes))) - 1;
  const std::int64_t depth = communicator.ranks / communicator.nodes - 1 + levels;
  halve(chunk, 128 * kKib, [&] { return bytes / (channels * chunk) < depth * 8; });
  halve(chunk, 64 * kKib, [&] { return bytes / (channels * chunk) < depth * 4; });
  halve(chunk, 32 * kKib, [&] { return bytes / (channels * chunk) < depth; });
}

void shrink_tree(std::int64_t& chunk, std::int64_t bytes, std::int64_t channels,
                 const Communicator& communicator) {
  switch (rules_of(communicator).tree_chunks) {
    case TreeChunks::Whole:
      break;
    case TreeChunks::ByNodes:
      shrink_tree_simple(chunk, bytes, channels, communicator);
      break;
    case TreeChunks::ByDepth:
      shrink_rccl_tree(chunk, bytes, channels, communicator);
      break;
  }
}

}  // namespace

Bytes grain(Protocol protocol) {
  constexpr std::array kGrains{Bytes(16), Bytes(1920), Bytes(512)};
  return kGrains[static_cast<std::size_t>(protocol)];
}

Bytes step_bytes(Algorithm algorithm, Protocol protocol, const Communicator& communicator,
                 const Environment& environment) {
  const bool is_small = rules_of(communicator).has_small_lines;
  switch (protocol) {
    case Protocol::LL:  // Half of it are flags. RCCL's default is for half as many threads.
      return Bytes(environment.ll_buffer.count() / kFifoSteps / 2 /
                   (is_small && environment.ll_buffer == Environment().ll_buffer ? 2 : 1));
    case Protocol::LL128:  // 120 of 128 bytes are data, with RCCL 56 of 64 (28 words of a thread).
      if (is_small && environment.ll128_buffer == Environment().ll128_buffer) {
        return Bytes(28 * 256 * 8 / 64 * 56);
      }
      return Bytes(environment.ll128_buffer.count() / kFifoSteps / 16 * 15);
    case Protocol::Simple:
      break;
  }
  return uses_nvls(algorithm) && communicator.version >= Version::V2_21
             ? communicator.nvls_chunk
             : Bytes(communicator.simple_buffer.value_or(environment.simple_buffer).count() /
                     kFifoSteps);
}

ChunkShape chunk_shape(Function function, Algorithm algorithm, Protocol protocol) {
  const bool whole =
      algorithm == Algorithm::Ring && protocol == Protocol::Simple && !is_rooted(function);
  return whole ? ChunkShape{.steps = 4, .slices = 2} : ChunkShape{};
}

std::vector<ChannelPart> split_over_channels(Function function, Protocol protocol, Bytes bytes,
                                             int channels, const Communicator& communicator) {
  CHECK(bytes > Bytes(0) && channels > 0, "nothing to split, or nothing to split it over");
  constexpr std::int64_t kMinTraffic = 512;  // A channel has no less; cells do from 2.23 on.
  const Release& rules = rules_of(communicator);
  const std::int64_t passes = traffic_per_byte(function, protocol, communicator.ranks, rules);
  const std::int64_t cell =
      std::max<std::int64_t>(16, align_up(divide_up(rules.cell_traffic, passes), 16));
  const std::int64_t cells = divide_up(bytes.count(), cell);
  const std::int64_t traffic =
      align_up(std::max(kMinTraffic, divide_up(std::max(rules.cell_traffic, bytes.count() * passes),
                                               std::int64_t{channels})),
               16);
  const std::int64_t each = std::min(cells, divide_up(traffic, cell * passes));
  const std::int64_t full = cells / each;  // Channels with `each` cells; then one with the rest.
  const std::int64_t rest = cells % each;
  CHECK(full + (rest > 0 ? 1 : 0) <= channels, "more parts than channels");
  const std::int64_t missing = cells * cell - bytes.count();  // In the last cell.
  const std::int64_t last = (rest > 0 ? rest : each) * cell - missing;
  const std::int64_t before = full - (rest > 0 ? 0 : 1);
  std::vector<ChannelPart> parts;
  if (before > 0) {
    parts.push_back({.channels = 1, .bytes = Bytes(each * cell), .chunk = Bytes(0)});
  }
  if (before > 1) {
    parts.push_back(
        {.channels = static_cast<int>(before - 1), .bytes = Bytes(each * cell), .chunk = Bytes(0)});
  }
  parts.push_back({.channels = 1, .bytes = Bytes(last), .chunk = Bytes(0)});
  return parts;
}

Bytes chunk_bytes(Function function, Algorithm algorithm, Protocol protocol, Bytes bytes,
                  int channels, const Communicator& communicator, const Environment& environment) {
  std::int64_t chunk = step_bytes(uses_nvls(algorithm) ? Algorithm::Ring : algorithm, protocol,
                                  communicator, environment)
                           .count() *
                       chunk_shape(function, algorithm, protocol).steps;
  const std::int64_t total =
      bytes.count() * (gathers_or_scatters(function) ? communicator.ranks : 1);
  const std::int64_t lanes = std::int64_t{channels} * std::max(communicator.nvls_heads, 1);
  const int depth = communicator.max_ranks_per_node();
  switch (algorithm) {
    case Algorithm::CollNetDirect:
      shrink_collnet(chunk, total, lanes, depth, 8);
      break;
    case Algorithm::CollNetChain:
      chunk = std::min(256 * kKib, chunk);
      shrink_collnet(chunk, total, channels, depth, 1);
      break;
    case Algorithm::Nvls:
      shrink_nvls(chunk, total, lanes, communicator);
      break;
    case Algorithm::NvlsTree:
      shrink_nvls_tree(chunk, total, lanes, communicator);
      break;
    case Algorithm::Pat: {
      const int factor = function == Function::AllGather ? 32 : 16;
      halve(chunk, 64 * kKib, [&] { return chunk * channels * factor > total; });
      break;
    }
    case Algorithm::Tree:
      if (protocol == Protocol::LL128) {
        shrink_tree_ll128(chunk, total, channels, communicator);
      } else if (protocol == Protocol::Simple) {
        shrink_tree(chunk, total, channels, communicator);
      }
      break;
    case Algorithm::Ring:
    case Algorithm::AllPairs:
      break;
  }
  const std::int64_t multiple = grain(protocol).count();
  return Bytes(std::max(chunk / multiple, std::int64_t{1}) * multiple);
}

}  // namespace trainyard::nccl
