// SPDX-License-Identifier: Apache-2.0
// What a launch costs the host, what a kernel costs a stream that is never empty, how long one
// launch and its end take together; and the same for CUDA graphs by number of nodes.
#include <cstdint>

#include "calibrate/cuda/measurements.h"

namespace trainyard::calibrate {
namespace {

// Counts, where it is asked to; timed runs do not, because an atomic takes longer than the rest.
__global__ void small_kernel(unsigned int* counter) {
  if (counter != nullptr && threadIdx.x == 0) {
    atomicAdd(counter, 1U);
  }
}

struct LargeArguments {
  std::uint32_t words[1000];  // Nearly the 4 KiB that any launch may carry.
};

__global__ void large_kernel(LargeArguments arguments, unsigned int* counter) {
  if (counter != nullptr && threadIdx.x == 0) {
    atomicAdd(counter, arguments.words[blockIdx.x]);
  }
}

class Counter {
 public:
  Counter() { require(cudaMemset(buffer_.as<void>(), 0, sizeof(unsigned int)), "cudaMemset"); }
  [[nodiscard]] unsigned int* get() const { return buffer_.as<unsigned int>(); }
  void require_value(unsigned int expected, const char* what) const {
    unsigned int found = 0;
    require(cudaMemcpy(&found, buffer_.as<void>(), sizeof(found), cudaMemcpyDeviceToHost), what);
    require_right(found == expected ? 0 : 1, what);
  }

 private:
  DeviceBuffer buffer_{sizeof(unsigned int)};
};

// `launch` starts one kernel. A block of a communication kernel has 512 threads or more.
template <typename Launch>
void measure_one(Context& context, const Stream& stream, const std::vector<Parameter>& parameters,
                 const Launch& launch) {
  constexpr int kInARow = 200;  // Fewer than a stream's queue holds.
  std::vector<double> host = time_on_host(context.options, [&](std::int64_t) {
    for (int i = 0; i < kInARow; ++i) {
      launch(nullptr);
    }
  });
  stream.wait();
  for (double& seconds : host) {
    seconds /= kInARow;
  }
  add_times(context.sink, "launch host time", parameters, host);
  std::vector<double> gap = time_on_stream(context.options, stream.get(), [&](std::int64_t) {
    for (int i = 0; i < kInARow; ++i) {
      launch(nullptr);
    }
  });
  for (double& seconds : gap) {
    seconds /= kInARow;
  }
  add_times(context.sink, "kernel interval", parameters, gap);
  add_times(context.sink, "launch round trip", parameters,
            time_on_host(context.options, [&](std::int64_t) {
              launch(nullptr);
              stream.wait();
            }));
}

// A chain of small kernels.
Graph chain_of(int nodes, const Stream& stream, unsigned int* counter) {
  return Graph(stream.get(), [&] {
    for (int i = 0; i < nodes; ++i) {
      small_kernel<<<1, 32, 0, stream.get()>>>(counter);
    }
  });
}

}  // namespace

void measure_launch(Context& context) {
  const Stream stream;
  const Counter counter;
  LargeArguments large{};
  large.words[0] = 1;
  const auto start_small = [&](int blocks, int threads) {
    return [&stream, blocks, threads](unsigned int* target) {
      small_kernel<<<blocks, threads, 0, stream.get()>>>(target);
    };
  };
  const auto start_large = [&](unsigned int* target) {
    large_kernel<<<1, 32, 0, stream.get()>>>(large, target);
  };
  start_small(3, 64)(counter.get());
  start_large(counter.get());
  require_launched("launch");
  stream.wait();
  counter.require_value(4, "launch");
  struct Shape {
    int blocks;
    int threads;
  };
  for (const Shape shape : {Shape{1, 32}, Shape{16, 512}, Shape{context.multiprocessors(), 1024}}) {
    measure_one(context, stream,
                {integer("ctas", shape.blocks), integer("threads", shape.threads),
                 integer("argument_bytes", 8)},
                start_small(shape.blocks, shape.threads));
  }
  measure_one(context, stream,
              {integer("ctas", 1), integer("threads", 32),
               integer("argument_bytes", sizeof(LargeArguments) + 8)},
              start_large);
}

void measure_graph(Context& context) {
  const Stream stream;
  for (const int nodes : {1, 2, 4, 16, 64, 256, 1024}) {
    const Counter counter;
    const Graph counting = chain_of(nodes, stream, counter.get());
    counting.launch(stream.get());
    stream.wait();
    counter.require_value(static_cast<unsigned int>(nodes), "graph");
    const Graph graph = chain_of(nodes, stream, nullptr);
    const std::vector<Parameter> parameters = {integer("nodes", nodes)};
    add_times(context.sink, "graph interval", parameters,
              time_on_stream(context.options, stream.get(),
                             [&](std::int64_t) { graph.launch(stream.get()); }));
    add_times(context.sink, "graph round trip", parameters,
              time_on_host(context.options, [&](std::int64_t) {
                graph.launch(stream.get());
                stream.wait();
              }));
    // The host's part alone: the stream is empty when it begins.
    std::vector<double> host;
    for (int i = 0; i < context.options.repetitions; ++i) {
      const WallClock clock;
      graph.launch(stream.get());
      host.push_back(clock.seconds());
      stream.wait();
    }
    add_times(context.sink, "graph launch host time", parameters, host);
  }
}

}  // namespace trainyard::calibrate
