// SPDX-License-Identifier: Apache-2.0
// What all measurements on a GPU share: errors, memory, streams, and how time is taken.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/options.h"
#include "calibrate/samples.h"

namespace trainyard::calibrate {

// Throws std::runtime_error with the text of CUDA's error.
void require(cudaError_t error, const char* what);
// The error of the last launch, which a launch itself does not return.
void require_launched(const char* kernel);

class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer();

  template <typename T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(memory_);
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

// Pinned, and mapped where the GPU sees it at the same address.
class PinnedBuffer {
 public:
  explicit PinnedBuffer(std::size_t bytes);
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;
  ~PinnedBuffer();

  template <typename T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  void* memory_ = nullptr;
};

class Stream {
 public:
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();
  [[nodiscard]] cudaStream_t get() const { return stream_; }
  void wait() const;

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();
  [[nodiscard]] cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// What `work` starts on the stream while it is captured.
class Graph {
 public:
  Graph(cudaStream_t stream, const std::function<void()>& work);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();
  void launch(cudaStream_t stream) const;

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

class WallClock {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// What each measurement gets.
struct Context {
  const Options& options;
  std::string id;
  cudaDeviceProp device;
  SampleSink& sink;

  [[nodiscard]] int multiprocessors() const { return device.multiProcessorCount; }
  // So large that what is read was not left in the L2 cache by what came before.
  [[nodiscard]] std::size_t beyond_l2() const;
};

// Seconds of `work` on the stream, which it is to fill and not to wait for: after the warm-up, each
// repetition is a batch of it between two events, long enough (200 us) for their resolution of half
// a microsecond to be of no matter. `work` gets its number, counted over all repetitions.
using Work = std::function<void(std::int64_t number)>;
[[nodiscard]] std::vector<double> time_on_stream(const Options& options, cudaStream_t stream,
                                                 const Work& work);
// The same of work that is kernels alone. Where one is so short that the host would be late with
// the next, a batch is a graph, which holds the kernels of the first numbers.
[[nodiscard]] std::vector<double> time_kernels(const Options& options, cudaStream_t stream,
                                               const Work& work);
// Seconds of `work` by the clock of the host; it waits for what it started.
[[nodiscard]] std::vector<double> time_on_host(const Options& options, const Work& work);

// Words that differ between neighbours: word i is i times an odd constant.
void fill_pattern(std::uint32_t* words, std::size_t count, cudaStream_t stream);
// How many of the words are not those of the pattern, begun at word `first`.
[[nodiscard]] std::int64_t count_wrong_words(const std::uint32_t* words, std::size_t count,
                                             std::size_t first, cudaStream_t stream);
void fill_floats(float* values, std::size_t count, float value, cudaStream_t stream);
[[nodiscard]] std::int64_t count_wrong_floats(const float* values, std::size_t count,
                                              float expected, cudaStream_t stream);
// Throws if any is wrong.
void require_right(std::int64_t wrong, const std::string& what);

[[nodiscard]] inline Parameter integer(const char* name, std::int64_t value) {
  return {.name = name, .value = value};
}
[[nodiscard]] inline Parameter text(const char* name, std::string value) {
  return {.name = name, .value = std::move(value)};
}

}  // namespace trainyard::calibrate
