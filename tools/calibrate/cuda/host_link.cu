// SPDX-License-Identifier: Apache-2.0
// The link between host and GPU: copy engines one way and both ways from pinned and from pageable
// memory, loads and stores of a kernel in pinned memory, and a flag that goes from the CPU to a
// spinning kernel and back, as between NCCL's kernels and its proxy threads.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <stdexcept>
#include <string>

#include "calibrate/cuda/measurements.h"

namespace trainyard::calibrate {
namespace {

__global__ void copy_packs(uint4* to, const uint4* from, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    to[i] = from[i];
  }
}

// One thread answers each number that it sees, `rounds` of them.
__global__ void echo_kernel(volatile unsigned int* in, volatile unsigned int* out,
                            unsigned int first, unsigned int rounds) {
  for (unsigned int i = 0; i < rounds; ++i) {
    while (*in != first + i) {
    }
    *out = first + i;
    __threadfence_system();
  }
}

struct Buffers {
  explicit Buffers(std::size_t bytes)
      : device_in(bytes), device_out(bytes), host_in(bytes), host_out(bytes) {
    for (std::size_t i = 0; i < bytes / sizeof(std::uint32_t); ++i) {
      host_in.as<std::uint32_t>()[i] = static_cast<std::uint32_t>(i) * 2654435761U;
    }
  }
  DeviceBuffer device_in;
  DeviceBuffer device_out;
  PinnedBuffer host_in;
  PinnedBuffer host_out;
  Stream down;
  Stream up;
};

void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
          const Stream& stream) {
  require(cudaMemcpyAsync(to, from, bytes, kind, stream.get()), "cudaMemcpyAsync");
}

std::vector<Parameter> parameters(std::size_t bytes, const char* direction, const char* memory) {
  return {integer("bytes", static_cast<std::int64_t>(bytes)), text("direction", direction),
          text("memory", memory)};
}

void measure_pinned(Context& context, const Buffers& buffers, std::size_t bytes) {
  const auto size = static_cast<double>(bytes);
  const auto down = [&](std::int64_t) {
    copy(buffers.device_in.as<void>(), buffers.host_in.as<void>(), bytes, cudaMemcpyHostToDevice,
         buffers.down);
  };
  const auto up = [&](std::int64_t) {
    copy(buffers.host_out.as<void>(), buffers.device_in.as<void>(), bytes, cudaMemcpyDeviceToHost,
         buffers.up);
  };
  const auto seconds_down = time_on_stream(context.options, buffers.down.get(), down);
  buffers.down.wait();
  const auto seconds_up = time_on_stream(context.options, buffers.up.get(), up);
  buffers.up.wait();
  require_right(std::memcmp(buffers.host_in.as<char>(), buffers.host_out.as<char>(), bytes),
                "copies between host and GPU");
  add_bandwidth(context.sink, "host copy bandwidth", parameters(bytes, "to GPU", "pinned"), size,
                seconds_down);
  add_bandwidth(context.sink, "host copy bandwidth", parameters(bytes, "from GPU", "pinned"), size,
                seconds_up);
  add_times(context.sink, "host copy time", parameters(bytes, "to GPU", "pinned"), seconds_down);
  add_times(context.sink, "host copy time", parameters(bytes, "from GPU", "pinned"), seconds_up);
}

// Both ways at once: `bytes` each; the rate is of both together.
void measure_both_ways(Context& context, const Buffers& buffers, std::size_t bytes) {
  const auto seconds = time_on_host(context.options, [&](std::int64_t) {
    copy(buffers.device_in.as<void>(), buffers.host_in.as<void>(), bytes, cudaMemcpyHostToDevice,
         buffers.down);
    copy(buffers.host_out.as<void>(), buffers.device_out.as<void>(), bytes, cudaMemcpyDeviceToHost,
         buffers.up);
    buffers.down.wait();
    buffers.up.wait();
  });
  add_bandwidth(context.sink, "host copy bandwidth", parameters(bytes, "both ways", "pinned"),
                2.0 * static_cast<double>(bytes), seconds);
}

void measure_pageable(Context& context, const Buffers& buffers, std::size_t bytes) {
  std::vector<char> memory(bytes);
  std::memcpy(memory.data(), buffers.host_in.as<char>(), bytes);
  add_bandwidth(context.sink, "host copy bandwidth", parameters(bytes, "to GPU", "pageable"),
                static_cast<double>(bytes), time_on_host(context.options, [&](std::int64_t) {
                  require(cudaMemcpy(buffers.device_in.as<void>(), memory.data(), bytes,
                                     cudaMemcpyHostToDevice),
                          "cudaMemcpy");
                }));
  std::vector<char> back(bytes);
  add_bandwidth(context.sink, "host copy bandwidth", parameters(bytes, "from GPU", "pageable"),
                static_cast<double>(bytes), time_on_host(context.options, [&](std::int64_t) {
                  require(cudaMemcpy(back.data(), buffers.device_in.as<void>(), bytes,
                                     cudaMemcpyDeviceToHost),
                          "cudaMemcpy");
                }));
  require_right(std::memcmp(memory.data(), back.data(), bytes), "copies of pageable memory");
}

void measure_kernel_access(Context& context, const Buffers& buffers, std::size_t bytes) {
  const std::size_t packs = bytes / sizeof(uint4);
  for (const int ctas : {1, 4, 16, 32}) {
    const auto run = [&](uint4* to, const uint4* from) {
      return time_on_stream(context.options, buffers.down.get(), [&, to, from](std::int64_t) {
        copy_packs<<<ctas, 512, 0, buffers.down.get()>>>(to, from, packs);
      });
    };
    const auto report = [&](const char* direction, const std::vector<double>& seconds) {
      add_bandwidth(context.sink, "host access bandwidth",
                    {integer("bytes", static_cast<std::int64_t>(bytes)),
                     text("direction", direction), integer("ctas", ctas), integer("threads", 512)},
                    static_cast<double>(bytes), seconds);
    };
    require(cudaMemset(buffers.device_in.as<void>(), 0, bytes), "cudaMemset");
    report("loads of GPU", run(buffers.device_in.as<uint4>(), buffers.host_in.as<uint4>()));
    std::memset(buffers.host_out.as<char>(), 0, bytes);
    report("stores of GPU", run(buffers.host_out.as<uint4>(), buffers.device_in.as<uint4>()));
    require_launched("host access");
    buffers.down.wait();
    require_right(std::memcmp(buffers.host_in.as<char>(), buffers.host_out.as<char>(), bytes),
                  "loads and stores of host memory");
  }
}

}  // namespace

void measure_host_link(Context& context) {
  const std::size_t max = std::size_t{256} << 20;
  const Buffers buffers(max);
  for (std::size_t bytes = 4; bytes <= max; bytes *= 8) {
    measure_pinned(context, buffers, bytes);
  }
  for (std::size_t bytes = std::size_t{1} << 20; bytes <= max; bytes *= 16) {
    measure_both_ways(context, buffers, bytes);
    measure_pageable(context, buffers, std::min(bytes, std::size_t{64} << 20));
  }
  measure_kernel_access(context, buffers, std::size_t{16} << 20);
}

void measure_host_flag(Context& context) {
  constexpr unsigned int kRounds = 1000;
  const PinnedBuffer in(64);
  const PinnedBuffer out(64);
  auto* const sent = in.as<unsigned int>();
  auto* const answered = out.as<unsigned int>();
  *sent = 0;
  *answered = 0;
  const Stream stream;
  unsigned int first = 1;
  std::vector<double> seconds;
  for (int i = -context.options.warmup; i < context.options.repetitions; ++i) {
    echo_kernel<<<1, 1, 0, stream.get()>>>(sent, answered, first, kRounds);
    require_launched("echo");
    const auto round = [&](unsigned int number) {
      std::atomic_ref<unsigned int>(*sent).store(number, std::memory_order_release);
      while (std::atomic_ref<unsigned int>(*answered).load(std::memory_order_acquire) != number) {
      }
    };
    round(first);  // Until then the kernel may not have begun.
    const WallClock clock;
    for (unsigned int number = first + 1; number < first + kRounds; ++number) {
      round(number);
    }
    const double each = clock.seconds() / (kRounds - 1);
    stream.wait();
    first += kRounds;
    if (i >= 0) {
      seconds.push_back(each);
    }
  }
  add_times(context.sink, "CPU-GPU-CPU flag round trip", {}, seconds);
}

}  // namespace trainyard::calibrate
