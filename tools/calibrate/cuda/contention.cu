// SPDX-License-Identifier: Apache-2.0
// A matrix product beside k CTAs that copy without end, shaped as NCCL's: 640 threads, and so much
// shared memory that a multiprocessor runs one of them and no tile of the product beside it.
#include <array>
#include <atomic>
#include <stdexcept>

#include "calibrate/cuda/gemm.h"
#include "calibrate/cuda/measurements.h"

namespace trainyard::calibrate {
namespace {

// NVIDIA/nccl, src/device: 20 warps, 4112 bytes of shared memory each on sm_80 to sm_100.
constexpr int kThreads = 640;
constexpr int kSharedBytes = 82'240;

// Each CTA goes round its own part of the buffers until it is told to stop, and counts its rounds.
__global__ void __launch_bounds__(kThreads, 1)
    endless_copy(uint4* __restrict__ to, const uint4* __restrict__ from, std::size_t packs_per_cta,
                 volatile unsigned int* stop, volatile unsigned int* running,
                 unsigned long long* rounds) {
  extern __shared__ uint4 occupied[];
  const std::size_t first = blockIdx.x * packs_per_cta;
  occupied[threadIdx.x] = from[first];
  __shared__ unsigned int stopped;
  if (threadIdx.x == 0) {
    stopped = 0;
    running[blockIdx.x] = 1;
    __threadfence_system();
  }
  unsigned long long mine = 0;
  while (true) {
    __syncthreads();
    if (threadIdx.x == 0) {
      stopped = *stop;
    }
    __syncthreads();
    if (stopped != 0) {
      break;
    }
#pragma unroll 8
    for (std::size_t i = threadIdx.x; i < packs_per_cta; i += kThreads) {
      to[first + i] = from[first + i];
    }
    ++mine;
  }
  if (threadIdx.x == 0) {
    rounds[blockIdx.x] = mine;
  }
}

class Copiers {
 public:
  explicit Copiers(int max)
      : from_(static_cast<std::size_t>(max) * kBytes),
        to_(static_cast<std::size_t>(max) * kBytes),
        rounds_(static_cast<std::size_t>(max) * sizeof(unsigned long long)),
        stop_(sizeof(unsigned int)),
        running_(static_cast<std::size_t>(max) * sizeof(unsigned int)) {
    require(cudaFuncSetAttribute(endless_copy, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 kSharedBytes),
            "cudaFuncSetAttribute");
    require(cudaMemset(from_.as<void>(), 1, from_.bytes()), "cudaMemset");
  }

  // Returns when all run.
  void start(int ctas) {
    ctas_ = ctas;
    *stop_.as<unsigned int>() = 0;
    for (int i = 0; i < ctas; ++i) {
      running_.as<unsigned int>()[i] = 0;
    }
    if (ctas == 0) {
      return;
    }
    endless_copy<<<ctas, kThreads, kSharedBytes, stream_.get()>>>(
        to_.as<uint4>(), from_.as<uint4>(), kBytes / sizeof(uint4), stop_.as<unsigned int>(),
        running_.as<unsigned int>(), rounds_.as<unsigned long long>());
    require_launched("endless_copy");
    for (int i = 0; i < ctas; ++i) {
      const std::atomic_ref<unsigned int> flag(running_.as<unsigned int>()[i]);
      while (flag.load(std::memory_order_acquire) == 0) {
      }
    }
    clock_ = WallClock();
  }
  // GB/s that one CTA copied on average.
  double stop() {
    std::atomic_ref<unsigned int>(*stop_.as<unsigned int>()).store(1, std::memory_order_release);
    const double seconds = clock_.seconds();
    stream_.wait();
    std::vector<unsigned long long> rounds(static_cast<std::size_t>(ctas_));
    if (ctas_ == 0) {
      return 0.0;
    }
    require(cudaMemcpy(rounds.data(), rounds_.as<void>(), rounds.size() * sizeof(rounds[0]),
                       cudaMemcpyDeviceToHost),
            "cudaMemcpy");
    double all = 0.0;
    for (const unsigned long long each : rounds) {
      all += static_cast<double>(each);
    }
    require_right(all > 0.0 ? 0 : 1, "copies beside the product");
    return all * static_cast<double>(kBytes) / 1e9 / seconds / ctas_;
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{8} << 20;  // Of a CTA.
  DeviceBuffer from_;
  DeviceBuffer to_;
  DeviceBuffer rounds_;
  PinnedBuffer stop_;
  PinnedBuffer running_;
  Stream stream_;
  WallClock clock_;
  int ctas_ = 0;
};

}  // namespace

void measure_contention(Context& context) {
  constexpr int kMax = 32;
  constexpr std::array<GemmShape, 2> kShapes = {{{8192, 8192, 8192}, {4096, 6144, 4096}}};
  const Stream stream;
  for (const GemmShape& shape : kShapes) {
    Copiers copiers(kMax);
    const Gemm gemm(context, GemmType::Bf16, shape);
    for (const int ctas : {0, 1, 2, 4, 8, 16, 24, kMax}) {
      copiers.start(ctas);
      const auto seconds = time_on_stream(context.options, stream.get(),
                                          [&](std::int64_t i) { gemm.start(i, stream.get()); });
      const double copied = copiers.stop();
      const std::vector<Parameter> parameters = {
          text("type", "bf16"),  integer("m", shape.m), integer("n", shape.n),
          integer("k", shape.k), integer("ctas", ctas), integer("threads", kThreads)};
      add_times(context.sink, "matrix product time beside copies", parameters, seconds);
      if (ctas > 0) {
        context.sink.add(Sample{.quantity = "copy bandwidth of a CTA beside a product",
                                .unit = "GB/s",
                                .parameters = parameters,
                                .summary = summarise({copied})});
      }
    }
    gemm.check(stream.get());
  }
}

}  // namespace trainyard::calibrate
