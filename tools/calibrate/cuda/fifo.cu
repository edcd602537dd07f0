// SPDX-License-Identifier: Apache-2.0
// The three protocols by which NCCL's kernels hand on data, written from their rules and run
// between CTAs of one GPU, where the wire is the L2 cache: what is left is the protocol's own cost.
//
//   Simple  A slot is filled with 16-byte stores; then a fence and the new tail, a counter on which
//           the receiver spins; it answers by the head once it has taken the slot.
//   LL      Lines of 16 bytes: 4 data, 4 flag, 4 data, 4 flag, written at once, so that the flag
//           says of each line that its data are there. No fence; half of the bytes are flags.
//   LL128   Lines of 128 bytes written by eight threads at once: 120 data, 8 flag.
//
// A connection has 8 slots and the sender may be 8 steps ahead of the head. Two CTAs make a
// channel: "stream" sends one way; "echo" sends each step back before the next, and half of its
// time is one hop: put, travel, get.
#include <algorithm>
#include <array>
#include <string>

#include "calibrate/cuda/measurements.h"

namespace trainyard::calibrate {
namespace {

constexpr unsigned int kSlots = 8;
// Of one slot on the wire: an eighth of NCCL's default buffers (4 MiB, 512 KiB, 4.69 MiB).
constexpr std::size_t kSimpleSlot = std::size_t{512} << 10;
constexpr std::size_t kLlSlot = std::size_t{64} << 10;
constexpr std::size_t kLl128Slot = 614'400;

// One way of one channel. Head and tail lie in lines of their own.
struct Connection {
  char* slots;
  volatile unsigned long long* tail;
  volatile unsigned long long* head;
};

__device__ void wait_for_slot(const Connection& to, unsigned long long step) {
  if (threadIdx.x == 0) {
    while (*to.head + kSlots <= step) {
    }
  }
  __syncthreads();
}

__device__ void release_slot(const Connection& from, unsigned long long step) {
  __syncthreads();
  if (threadIdx.x == 0) {
    *from.head = step + 1;
  }
}

struct Simple {
  static constexpr std::size_t kSlot = kSimpleSlot;
  static constexpr int kThreads = 512;

  static __device__ void move(uint4* to, const uint4* from, std::size_t bytes) {
    const std::size_t packs = bytes / sizeof(uint4);
    std::size_t i = threadIdx.x;
    for (; i + 7 * kThreads < packs; i += 8 * kThreads) {
      uint4 held[8];
#pragma unroll
      for (int u = 0; u < 8; ++u) {
        held[u] = from[i + u * kThreads];
      }
#pragma unroll
      for (int u = 0; u < 8; ++u) {
        to[i + u * kThreads] = held[u];
      }
    }
    for (; i < packs; i += kThreads) {
      to[i] = from[i];
    }
  }
  static __device__ void put(const Connection& to, const char* data, std::size_t bytes,
                             unsigned long long step) {
    wait_for_slot(to, step);
    move(reinterpret_cast<uint4*>(to.slots + step % kSlots * kSlot),
         reinterpret_cast<const uint4*>(data), bytes);
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence_system();
      *to.tail = step + 1;
    }
  }
  static __device__ void get(const Connection& from, char* data, std::size_t bytes,
                             unsigned long long step) {
    if (threadIdx.x == 0) {
      while (*from.tail <= step) {
      }
      __threadfence_system();
    }
    __syncthreads();
    // Past the first-level cache, which may hold the slot as it was eight steps ago.
    const auto* const slot = reinterpret_cast<const uint4*>(from.slots + step % kSlots * kSlot);
    auto* const to = reinterpret_cast<uint4*>(data);
    const std::size_t packs = bytes / sizeof(uint4);
    std::size_t i = threadIdx.x;
    for (; i + 7 * kThreads < packs; i += 8 * kThreads) {
      uint4 held[8];
#pragma unroll
      for (int u = 0; u < 8; ++u) {
        held[u] = __ldcv(slot + i + u * kThreads);
      }
#pragma unroll
      for (int u = 0; u < 8; ++u) {
        to[i + u * kThreads] = held[u];
      }
    }
    for (; i < packs; i += kThreads) {
      to[i] = __ldcv(slot + i);
    }
    release_slot(from, step);
  }
};

struct Ll {
  static constexpr std::size_t kSlot = kLlSlot;
  static constexpr int kThreads = 512;

  static __device__ void put(const Connection& to, const char* data, std::size_t bytes,
                             unsigned long long step) {
    wait_for_slot(to, step);
    auto* const lines = reinterpret_cast<uint4*>(to.slots + step % kSlots * kSlot);
    const auto flag = static_cast<unsigned int>(step + 1);
    for (std::size_t i = threadIdx.x; i < bytes / 8; i += kThreads) {
      const uint2 half = reinterpret_cast<const uint2*>(data)[i];
      asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(lines + i),
                   "r"(half.x), "r"(flag), "r"(half.y), "r"(flag)
                   : "memory");
    }
  }
  static __device__ void get(const Connection& from, char* data, std::size_t bytes,
                             unsigned long long step) {
    const auto* const lines = reinterpret_cast<const uint4*>(from.slots + step % kSlots * kSlot);
    const auto flag = static_cast<unsigned int>(step + 1);
    for (std::size_t i = threadIdx.x; i < bytes / 8; i += kThreads) {
      uint4 line;
      do {
        asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(line.x), "=r"(line.y), "=r"(line.z), "=r"(line.w)
                     : "l"(lines + i)
                     : "memory");
      } while (line.y != flag || line.w != flag);
      reinterpret_cast<uint2*>(data)[i] = make_uint2(line.x, line.z);
    }
    release_slot(from, step);
  }
};

// Data move in units of 8 bytes: lane 7 of each eight carries one and the flag, the others two.
// NCCL loads through shared memory to have 16-byte loads; these are of 8.
struct Ll128 {
  static constexpr std::size_t kSlot = kLl128Slot;
  static constexpr int kThreads = 640;
  static constexpr std::size_t kLineData = 120;

  static __device__ void put(const Connection& to, const char* data, std::size_t bytes,
                             unsigned long long step) {
    wait_for_slot(to, step);
    char* const slot = to.slots + step % kSlots * kSlot;
    const unsigned int part = threadIdx.x % 8;
    for (std::size_t line = threadIdx.x / 8; line < bytes / kLineData; line += kThreads / 8) {
      const auto* const source =
          reinterpret_cast<const unsigned long long*>(data + line * kLineData + part * 16);
      const unsigned long long first = source[0];
      const unsigned long long second = part == 7 ? step + 1 : source[1];
      asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(slot + line * 128 + part * 16),
                   "l"(first), "l"(second)
                   : "memory");
    }
  }
  static __device__ void get(const Connection& from, char* data, std::size_t bytes,
                             unsigned long long step) {
    const char* const slot = from.slots + step % kSlots * kSlot;
    const unsigned int part = threadIdx.x % 8;
    // The eight lanes of a line wait together; lines of a warp that has none left are masked out.
    for (std::size_t line = threadIdx.x / 8; line < bytes / kLineData; line += kThreads / 8) {
      const std::size_t left = bytes / kLineData - (line - threadIdx.x % 32 / 8);
      const unsigned int mask =
          left >= 4 ? 0xFFFFFFFFU : (1U << (8 * static_cast<unsigned int>(left))) - 1U;
      unsigned long long first = 0;
      unsigned long long second = 0;
      bool late = true;
      do {
        asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(first), "=l"(second)
                     : "l"(slot + line * 128 + part * 16)
                     : "memory");
        late = part == 7 && second != step + 1;
      } while (__any_sync(mask, late) != 0);
      auto* const target =
          reinterpret_cast<unsigned long long*>(data + line * kLineData + part * 16);
      target[0] = first;
      if (part != 7) {
        target[1] = second;
      }
    }
    release_slot(from, step);
  }
};

// CTA 2c and CTA 2c + 1 are channel c. `data` of a channel is `rounds` steps long, of which step s
// takes the part s modulo rounds.
template <typename Protocol>
__global__ void __launch_bounds__(Protocol::kThreads, 1)
    channel_kernel(const Connection* there, const Connection* back, const char* source,
                   char* target, char* scratch, std::size_t bytes, unsigned int steps,
                   unsigned int rounds, unsigned long long first_step, bool echo) {
  const unsigned int channel = blockIdx.x / 2;
  const bool begins = blockIdx.x % 2 == 0;
  const std::size_t offset = static_cast<std::size_t>(channel) * rounds * bytes;
  for (unsigned int i = 0; i < steps; ++i) {
    const unsigned long long step = first_step + i;
    const std::size_t place = offset + i % rounds * bytes;
    if (begins) {
      Protocol::put(there[channel], source + place, bytes, step);
      if (echo) {
        Protocol::get(back[channel], target + place, bytes, step);
      }
    } else if (echo) {
      char* const held = scratch + channel * bytes;
      Protocol::get(there[channel], held, bytes, step);
      __syncthreads();
      Protocol::put(back[channel], held, bytes, step);
    } else {
      Protocol::get(there[channel], target + place, bytes, step);
    }
  }
}

// The memory of `channels` channels whose steps are of at most one slot.
template <typename Protocol>
class Channels {
 public:
  explicit Channels(int channels)
      : channels_(channels),
        slots_(static_cast<std::size_t>(channels) * 2 * kSlots * Protocol::kSlot),
        counters_(static_cast<std::size_t>(channels) * 2 * kCounterBytes),
        connections_(static_cast<std::size_t>(channels) * 2 * sizeof(Connection)),
        scratch_(static_cast<std::size_t>(channels) * Protocol::kSlot) {
    require(cudaMemset(slots_.as<void>(), 0, slots_.bytes()), "cudaMemset");
    require(cudaMemset(counters_.as<void>(), 0, counters_.bytes()), "cudaMemset");
    std::vector<Connection> all;
    for (int i = 0; i < 2 * channels; ++i) {
      char* const counters = counters_.as<char>() + static_cast<std::size_t>(i) * kCounterBytes;
      all.push_back({slots_.as<char>() + static_cast<std::size_t>(i) * kSlots * Protocol::kSlot,
                     reinterpret_cast<unsigned long long*>(counters),
                     reinterpret_cast<unsigned long long*>(counters + kCounterBytes / 2)});
    }
    require(cudaMemcpy(connections_.as<void>(), all.data(), all.size() * sizeof(Connection),
                       cudaMemcpyHostToDevice),
            "cudaMemcpy");
  }

  // Seconds of each step.
  std::vector<double> measure(const Context& context, std::size_t bytes, bool echo) {
    constexpr unsigned int kRounds = 8;
    const unsigned int steps = std::clamp<unsigned int>(
        static_cast<unsigned int>((std::size_t{32} << 20) / bytes), 64, 2000);
    const std::size_t size = static_cast<std::size_t>(channels_) * kRounds * bytes;
    const std::size_t words = size / sizeof(std::uint32_t);
    const DeviceBuffer source(size);
    const DeviceBuffer target(size);
    fill_pattern(source.as<std::uint32_t>(), words, stream_.get());
    require(cudaMemsetAsync(target.as<void>(), 0xEE, size, stream_.get()), "cudaMemsetAsync");
    auto seconds = time_on_stream(context.options, stream_.get(), [&](std::int64_t) {
      channel_kernel<Protocol><<<2 * channels_, Protocol::kThreads, 0, stream_.get()>>>(
          connections_.as<Connection>(), connections_.as<Connection>() + channels_,
          source.as<char>(), target.as<char>(), scratch_.as<char>(), bytes, steps, kRounds,
          next_step_, echo);
      next_step_ += steps;
    });
    require_launched("protocol");
    // An echo leaves both ways at the same step; a stream leaves the way back behind.
    if (!echo) {
      catch_up();
    }
    require_right(count_wrong_words(target.as<std::uint32_t>(), words, 0, stream_.get()),
                  "protocol");
    for (double& each : seconds) {
      each /= steps;
    }
    return seconds;
  }

 private:
  static constexpr std::size_t kCounterBytes = 512;

  // Head and tail of all ways as after `next_step_`.
  void catch_up() const {
    std::vector<unsigned long long> counters(counters_.bytes() / sizeof(unsigned long long),
                                             next_step_);
    require(cudaStreamSynchronize(stream_.get()), "protocol");
    require(cudaMemcpy(counters_.as<void>(), counters.data(), counters_.bytes(),
                       cudaMemcpyHostToDevice),
            "cudaMemcpy");
  }

  int channels_;
  DeviceBuffer slots_;
  DeviceBuffer counters_;
  DeviceBuffer connections_;
  DeviceBuffer scratch_;
  Stream stream_;
  // Flags are steps and never come back; those of LL have 32 bits.
  unsigned long long next_step_ = 0;
};

template <typename Protocol>
void measure_protocol(Context& context, const char* name, const std::vector<std::size_t>& sizes) {
  const int max = context.multiprocessors() / 2;
  for (const int count : {1, 2, 4, 8, 16, 32, 64}) {
    if (count > max) {  // All CTAs must run at once.
      continue;
    }
    Channels<Protocol> channels(count);
    for (const std::size_t bytes : sizes) {
      const std::vector<Parameter> parameters = {text("protocol", name), integer("channels", count),
                                                 integer("bytes", static_cast<std::int64_t>(bytes)),
                                                 integer("threads", Protocol::kThreads)};
      const auto stream = channels.measure(context, bytes, false);
      add_times(context.sink, "step time", parameters, stream);
      // Of all channels together.
      add_bandwidth(context.sink, "stream bandwidth", parameters,
                    static_cast<double>(bytes) * count, stream);
      if (count <= 2) {
        std::vector<double> hop = channels.measure(context, bytes, true);
        for (double& each : hop) {
          each /= 2.0;
        }
        add_times(context.sink, "hop time", parameters, hop);
      }
    }
  }
}

}  // namespace

void measure_fifo_simple(Context& context) {
  measure_protocol<Simple>(context, "Simple",
                           {16, 4096, 16'384, 65'536, 131'072, 262'144, 524'288});
}

// One pass is 8 bytes of each of the 512 threads, 4 KiB.
void measure_fifo_ll(Context& context) {
  measure_protocol<Ll>(context, "LL", {8, 1024, 4096, 8192, 16'384, 32'768});
}

// One pass is 120 bytes of each of the 80 groups of eight threads, 9600.
void measure_fifo_ll128(Context& context) {
  measure_protocol<Ll128>(context, "LL128", {120, 1920, 9600, 19'200, 38'400, 153'600, 576'000});
}

}  // namespace trainyard::calibrate
