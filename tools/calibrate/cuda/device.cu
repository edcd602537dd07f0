// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cuda/device.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace trainyard::calibrate {
namespace {

constexpr std::uint32_t kOdd = 2654435761U;  // The golden ratio in 32 bits, Knuth's multiplier.
constexpr int kThreads = 512;
constexpr int kBlocks = 512;

__global__ void fill_pattern_kernel(std::uint32_t* words, std::size_t count) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    words[i] = static_cast<std::uint32_t>(i) * kOdd;
  }
}

__global__ void check_pattern_kernel(const std::uint32_t* words, std::size_t count,
                                     std::size_t first, unsigned long long* wrong) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    if (words[i] != static_cast<std::uint32_t>(first + i) * kOdd) {
      atomicAdd(wrong, 1ULL);
    }
  }
}

__global__ void fill_floats_kernel(float* values, std::size_t count, float value) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    values[i] = value;
  }
}

__global__ void check_floats_kernel(const float* values, std::size_t count, float expected,
                                    unsigned long long* wrong) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    if (values[i] != expected) {
      atomicAdd(wrong, 1ULL);
    }
  }
}

template <typename Launch>
std::int64_t counted(cudaStream_t stream, const Launch& launch) {
  const DeviceBuffer wrong(sizeof(unsigned long long));
  unsigned long long found = 0;
  require(cudaMemsetAsync(wrong.as<void>(), 0, sizeof(found), stream), "cudaMemsetAsync");
  launch(wrong.as<unsigned long long>());
  require_launched("a check of results");
  require(cudaMemcpyAsync(&found, wrong.as<void>(), sizeof(found), cudaMemcpyDeviceToHost, stream),
          "cudaMemcpyAsync");
  require(cudaStreamSynchronize(stream), "a check of results");
  return static_cast<std::int64_t>(found);
}

double batch_seconds(cudaStream_t stream, const Event& begin, const Event& end, std::int64_t batch,
                     const Work& work, std::int64_t& number) {
  require(cudaEventRecord(begin.get(), stream), "cudaEventRecord");
  for (std::int64_t i = 0; i < batch; ++i) {
    work(number++);
  }
  require(cudaEventRecord(end.get(), stream), "cudaEventRecord");
  require(cudaEventSynchronize(end.get()), "a measured kernel");
  float milliseconds = 0.0F;
  require(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e-3 / static_cast<double>(batch);
}

// Returns the shortest of the repetitions that do not count.
double warm_up(const Options& options, cudaStream_t stream, const Event& begin, const Event& end,
               const Work& work, std::int64_t& number) {
  double shortest = 1e9;
  for (int i = 0; i < options.warmup; ++i) {
    shortest = std::min(shortest, batch_seconds(stream, begin, end, 1, work, number));
  }
  return shortest;
}

}  // namespace

void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
  }
}

void require_launched(const char* kernel) {
  require(cudaGetLastError(), kernel);
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
  require(cudaMalloc(&memory_, std::max<std::size_t>(bytes, 1)), "cudaMalloc");
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}

DeviceBuffer::~DeviceBuffer() {
  (void)cudaFree(memory_);
}

PinnedBuffer::PinnedBuffer(std::size_t bytes) {
  require(cudaHostAlloc(&memory_, bytes, cudaHostAllocMapped | cudaHostAllocPortable),
          "cudaHostAlloc");
}

PinnedBuffer::~PinnedBuffer() {
  (void)cudaFreeHost(memory_);
}

Stream::Stream() {
  require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
}

Stream::~Stream() {
  (void)cudaStreamDestroy(stream_);
}

void Stream::wait() const {
  require(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

Event::Event() {
  require(cudaEventCreate(&event_), "cudaEventCreate");
}

Event::~Event() {
  (void)cudaEventDestroy(event_);
}

Graph::Graph(cudaStream_t stream, const std::function<void()>& work) {
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  work();
  require(cudaStreamEndCapture(stream, &graph_), "capture");
  require(cudaGraphInstantiate(&executable_, graph_, 0), "cudaGraphInstantiate");
}

Graph::~Graph() {
  (void)cudaGraphExecDestroy(executable_);
  (void)cudaGraphDestroy(graph_);
}

void Graph::launch(cudaStream_t stream) const {
  require(cudaGraphLaunch(executable_, stream), "cudaGraphLaunch");
}

std::size_t Context::beyond_l2() const {
  constexpr std::size_t kMin = std::size_t{256} << 20;
  return std::max(kMin, 8 * static_cast<std::size_t>(device.l2CacheSize));
}

std::vector<double> time_on_stream(const Options& options, cudaStream_t stream, const Work& work) {
  constexpr double kMinBatch = 200e-6;
  constexpr std::int64_t kMaxBatch = 256;  // The queue of a stream holds about a thousand.
  const Event begin;
  const Event end;
  std::int64_t number = 0;
  const double shortest = warm_up(options, stream, begin, end, work, number);
  const auto batch = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(kMinBatch / std::max(shortest, 1e-7)) + 1, 1, kMaxBatch);
  (void)batch_seconds(stream, begin, end, batch, work, number);
  std::vector<double> seconds;
  for (int i = 0; i < options.repetitions; ++i) {
    seconds.push_back(batch_seconds(stream, begin, end, batch, work, number));
  }
  return seconds;
}

std::vector<double> time_kernels(const Options& options, cudaStream_t stream, const Work& work) {
  constexpr double kLate = 50e-6;  // Libraries take up to 10 us of the host for a kernel.
  constexpr std::int64_t kNodes = 128;
  const Event begin;
  const Event end;
  std::int64_t number = 0;
  const double shortest = warm_up(options, stream, begin, end, work, number);
  if (shortest > kLate) {
    return time_on_stream(options, stream, work);
  }
  const Graph graph(stream, [&] {
    for (std::int64_t i = 0; i < kNodes; ++i) {
      work(i);
    }
  });
  std::vector<double> seconds =
      time_on_stream(options, stream, [&](std::int64_t) { graph.launch(stream); });
  for (double& each : seconds) {
    each /= kNodes;
  }
  return seconds;
}

std::vector<double> time_on_host(const Options& options, const Work& work) {
  std::vector<double> seconds;
  for (int i = -options.warmup; i < options.repetitions; ++i) {
    const WallClock clock;
    work(i + options.warmup);
    if (i >= 0) {
      seconds.push_back(clock.seconds());
    }
  }
  return seconds;
}

void fill_pattern(std::uint32_t* words, std::size_t count, cudaStream_t stream) {
  fill_pattern_kernel<<<kBlocks, kThreads, 0, stream>>>(words, count);
  require_launched("fill_pattern");
}

std::int64_t count_wrong_words(const std::uint32_t* words, std::size_t count, std::size_t first,
                               cudaStream_t stream) {
  return counted(stream, [&](unsigned long long* wrong) {
    check_pattern_kernel<<<kBlocks, kThreads, 0, stream>>>(words, count, first, wrong);
  });
}

void fill_floats(float* values, std::size_t count, float value, cudaStream_t stream) {
  fill_floats_kernel<<<kBlocks, kThreads, 0, stream>>>(values, count, value);
  require_launched("fill_floats");
}

std::int64_t count_wrong_floats(const float* values, std::size_t count, float expected,
                                cudaStream_t stream) {
  return counted(stream, [&](unsigned long long* wrong) {
    check_floats_kernel<<<kBlocks, kThreads, 0, stream>>>(values, count, expected, wrong);
  });
}

void require_right(std::int64_t wrong, const std::string& what) {
  if (wrong != 0) {
    throw std::runtime_error(what + ": expected right results, found " + std::to_string(wrong) +
                             " wrong");
  }
}

}  // namespace trainyard::calibrate
