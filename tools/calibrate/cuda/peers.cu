// SPDX-License-Identifier: Apache-2.0
// Links between GPUs: bandwidth between each two by copy engines and by kernels that write into or
// read from the other's memory, latency by a flag that goes back and forth, and what is left of it
// when all GPUs copy at once.
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <system_error>

#include "calibrate/backend.h"
#include "calibrate/cuda/measurements.h"

namespace trainyard::calibrate {
namespace {

constexpr std::size_t kBytes = std::size_t{128} << 20;
constexpr int kThreads = 512;

__global__ void peer_copy_kernel(uint4* to, const uint4* from, std::size_t count) {
  constexpr int kUnroll = 8;
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + (kUnroll - 1) * stride < count; i += kUnroll * stride) {
    uint4 packs[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      packs[u] = from[i + u * stride];
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      to[i + u * stride] = packs[u];
    }
  }
  for (; i < count; i += stride) {
    to[i] = from[i];
  }
}

// Answers each number in `in`, or sends each and waits for the answer.
__global__ void flag_kernel(volatile unsigned int* in, volatile unsigned int* out,
                            unsigned int first, unsigned int rounds, bool begins) {
  for (unsigned int i = 0; i < rounds; ++i) {
    if (begins) {
      *out = first + i;
    }
    while (*in != first + i) {
    }
    if (!begins) {
      *out = first + i;
    }
  }
}

void use(int device) {
  require(cudaSetDevice(device), "cudaSetDevice");
}

// What lives on one GPU.
struct Place {
  explicit Place(int index) : device(index) {
    use(index);
    source = std::make_unique<DeviceBuffer>(kBytes);
    target = std::make_unique<DeviceBuffer>(kBytes);
    flags = std::make_unique<DeviceBuffer>(4096);
    stream = std::make_unique<Stream>();
    require(cudaMemset(flags->as<void>(), 0, 4096), "cudaMemset");
    fill_pattern(source->as<std::uint32_t>(), kBytes / 4, stream->get());
    stream->wait();
  }
  int device;
  std::unique_ptr<DeviceBuffer> source;
  std::unique_ptr<DeviceBuffer> target;
  std::unique_ptr<DeviceBuffer> flags;
  std::unique_ptr<Stream> stream;
};

class Places {
 public:
  Places() {
    int count = 0;
    require(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    for (int i = 0; i < count; ++i) {
      places_.push_back(std::make_unique<Place>(i));
    }
    for (int from = 0; from < count; ++from) {
      for (int to = 0; to < count; ++to) {
        if (from != to && reaches(from, to)) {
          use(from);
          require(cudaDeviceEnablePeerAccess(to, 0), "cudaDeviceEnablePeerAccess");
        }
      }
    }
  }
  [[nodiscard]] int count() const { return static_cast<int>(places_.size()); }
  [[nodiscard]] const Place& operator[](int i) const {
    return *places_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] static bool reaches(int from, int to) {
    int can = 0;
    require(cudaDeviceCanAccessPeer(&can, from, to), "cudaDeviceCanAccessPeer");
    return can != 0;
  }

 private:
  std::vector<std::unique_ptr<Place>> places_;
};

std::vector<Parameter> parameters(int from, int to, const char* how) {
  return {integer("from", from), integer("to", to),
          text("peer_access", Places::reaches(from, to) ? "yes" : "no"), text("how", how)};
}

void clear(const Place& place) {
  use(place.device);
  require(cudaMemset(place.target->as<void>(), 0xEE, kBytes), "cudaMemset");
}

void require_arrived(const Place& place, const char* what) {
  use(place.device);
  require_right(
      count_wrong_words(place.target->as<std::uint32_t>(), kBytes / 4, 0, place.stream->get()),
      what);
}

void copy_to(const Place& from, const Place& to, const Stream& stream, std::size_t bytes) {
  require(cudaMemcpyPeerAsync(to.target->as<void>(), to.device, from.source->as<void>(),
                              from.device, bytes, stream.get()),
          "cudaMemcpyPeerAsync");
}

void measure_copies(Context& context, const Place& a, const Place& b) {
  clear(b);
  use(a.device);
  add_bandwidth(context.sink, "peer bandwidth", parameters(a.device, b.device, "copy engine"),
                static_cast<double>(kBytes),
                time_on_stream(context.options, a.stream->get(),
                               [&](std::int64_t) { copy_to(a, b, *a.stream, kBytes); }));
  add_times(context.sink, "peer copy time", parameters(a.device, b.device, "copy engine, 4 bytes"),
            time_on_stream(context.options, a.stream->get(),
                           [&](std::int64_t) { copy_to(a, b, *a.stream, 4); }));
  require_arrived(b, "peer copy");
  if (a.device < b.device) {  // Both directions are one case.
    const auto seconds = time_on_host(context.options, [&](std::int64_t) {
      use(a.device);
      copy_to(a, b, *a.stream, kBytes);
      use(b.device);
      copy_to(b, a, *b.stream, kBytes);
      a.stream->wait();
      b.stream->wait();
    });
    add_bandwidth(context.sink, "peer bandwidth both ways",
                  parameters(a.device, b.device, "copy engine"), 2.0 * static_cast<double>(kBytes),
                  seconds);
  }
}

// The kernel runs on `a` and writes into, or reads from, the memory of `b`.
void measure_kernel(Context& context, const Place& a, const Place& b, bool writes, int ctas) {
  const Place& from = writes ? a : b;
  const Place& to = writes ? b : a;
  clear(to);
  use(a.device);
  const auto seconds = time_on_stream(context.options, a.stream->get(), [&](std::int64_t) {
    peer_copy_kernel<<<ctas, kThreads, 0, a.stream->get()>>>(
        to.target->as<uint4>(), from.source->as<uint4>(), kBytes / sizeof(uint4));
  });
  require_launched("peer copy");
  require_arrived(to, "peer copy");
  auto all = parameters(a.device, b.device, writes ? "kernel writes" : "kernel reads");
  all.push_back(integer("ctas", ctas));
  all.push_back(integer("threads", kThreads));
  add_bandwidth(context.sink, "peer bandwidth", all, static_cast<double>(kBytes), seconds);
}

// Half of a round trip. The first round waits for both kernels to run and is not counted: it is a
// launch of its own.
std::vector<double> flag_seconds(const Context& context, const Place& a, const Place& b,
                                 unsigned int& first) {
  constexpr unsigned int kRounds = 1000;
  std::vector<double> seconds;
  auto* const at_a = a.flags->as<unsigned int>();
  auto* const at_b = b.flags->as<unsigned int>() + 512;
  use(a.device);
  const Event begin;
  const Event end;
  const auto run = [&](unsigned int rounds) {
    use(b.device);
    flag_kernel<<<1, 1, 0, b.stream->get()>>>(at_b, at_a, first, rounds, false);
    use(a.device);
    require(cudaEventRecord(begin.get(), a.stream->get()), "cudaEventRecord");
    flag_kernel<<<1, 1, 0, a.stream->get()>>>(at_a, at_b, first, rounds, true);
    require(cudaEventRecord(end.get(), a.stream->get()), "cudaEventRecord");
    require_launched("flags between GPUs");
    a.stream->wait();
    b.stream->wait();
    first += rounds;
    float milliseconds = 0.0F;
    require(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3;
  };
  for (int i = -context.options.warmup; i < context.options.repetitions; ++i) {
    const double few = run(1);
    const double many = run(kRounds + 1);
    if (i >= 0) {
      seconds.push_back(std::max(many - few, 1e-9) / (2.0 * kRounds));
    }
  }
  return seconds;
}

// All of these copies at once, `bytes` each; the rate is of all together.
struct Copy {
  int from;
  int to;
};
void measure_group(Context& context, const Places& places, const std::string& name,
                   const std::vector<Copy>& copies) {
  std::vector<std::unique_ptr<Stream>> streams;
  for (const Copy& copy : copies) {
    use(copy.from);
    streams.push_back(std::make_unique<Stream>());
  }
  const auto seconds = time_on_host(context.options, [&](std::int64_t) {
    for (std::size_t i = 0; i < copies.size(); ++i) {
      copy_to(places[copies[i].from], places[copies[i].to], *streams[i], kBytes);
    }
    for (const auto& stream : streams) {
      stream->wait();
    }
  });
  add_bandwidth(context.sink, "bandwidth of peers at once",
                {text("group", name), integer("copies", static_cast<std::int64_t>(copies.size()))},
                static_cast<double>(kBytes) * static_cast<double>(copies.size()), seconds);
}

// These GPUs and the host at once: what shares a switch or a socket shows.
void measure_host_group(Context& context, const Places& places, const std::string& name,
                        const std::vector<int>& gpus, bool down) {
  const PinnedBuffer host(gpus.size() * kBytes);
  const auto seconds = time_on_host(context.options, [&](std::int64_t) {
    char* memory = host.as<char>();
    for (const int gpu : gpus) {
      use(gpu);
      require(cudaMemcpyAsync(down ? places[gpu].target->as<void>() : memory,
                              down ? memory : places[gpu].source->as<void>(), kBytes,
                              cudaMemcpyDefault, places[gpu].stream->get()),
              "cudaMemcpyAsync");
      memory += kBytes;
    }
    for (const int gpu : gpus) {
      places[gpu].stream->wait();
    }
  });
  add_bandwidth(context.sink, "bandwidth of peers at once",
                {text("group", (down ? "host to " : "host from ") + name),
                 integer("copies", static_cast<std::int64_t>(gpus.size()))},
                static_cast<double>(kBytes) * static_cast<double>(gpus.size()), seconds);
}

// What Linux says of the GPU's place: the socket, and the upstream end of the PCIe switch, which is
// the host bridge where there is no switch. Empty where it says nothing.
struct PciPlace {
  std::string socket;
  std::string above;
};
PciPlace pci_place(int gpu) {
  std::array<char, 32> bus{};
  require(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), gpu),
          "cudaDeviceGetPCIBusId");
  std::string name(bus.data());
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  const std::filesystem::path device = std::filesystem::path("/sys/bus/pci/devices") / name;
  PciPlace place;
  std::ifstream(device / "numa_node") >> place.socket;
  std::error_code error;
  const auto real = std::filesystem::canonical(device, error);
  place.above = error ? "" : real.parent_path().parent_path().filename().string();
  return place;
}

// All GPUs of each socket, below each switch, and the first ones by number.
void measure_host_groups(Context& context, const Places& places) {
  std::map<std::string, std::vector<int>> groups;
  std::vector<int> first;
  for (int gpu = 0; gpu < places.count(); ++gpu) {
    const PciPlace place = pci_place(gpu);
    if (!place.socket.empty()) {
      groups["GPUs of socket " + place.socket].push_back(gpu);
    }
    if (!place.above.empty()) {
      groups["GPUs below " + place.above].push_back(gpu);
    }
    first.push_back(gpu);
    groups["the first " + std::to_string(gpu + 1)] = first;
  }
  for (const auto& [name, gpus] : groups) {
    measure_host_group(context, places, name, gpus, true);
    measure_host_group(context, places, name, gpus, false);
  }
}

template <typename Visit>
void for_pairs(const Places& places, const Visit& visit) {
  for (int from = 0; from < places.count(); ++from) {
    for (int to = 0; to < places.count(); ++to) {
      if (from != to) {
        visit(places[from], places[to]);
      }
    }
  }
}

}  // namespace

void measure_peer_copies(Context& context) {
  const Places places;
  for_pairs(places, [&](const Place& a, const Place& b) { measure_copies(context, a, b); });
}

void measure_peer_kernels(Context& context) {
  const Places places;
  bool any = false;
  for_pairs(places, [&](const Place& a, const Place& b) {
    if (!Places::reaches(a.device, b.device)) {
      return;
    }
    any = true;
    // By number of CTAs for one pair; all others at the two ends of it.
    const bool is_first = a.device == 0 && b.device == 1;
    for (const int ctas : {1, 2, 4, 8, 16, 32, 64}) {
      if (is_first || ctas == 1 || ctas == 32) {
        measure_kernel(context, a, b, true, ctas);
        measure_kernel(context, a, b, false, ctas);
      }
    }
  });
  if (!any) {
    throw NotMeasured("no two GPUs have peer access");
  }
}

void measure_peer_latency(Context& context) {
  const Places places;
  unsigned int first = 1;
  bool any = false;
  for_pairs(places, [&](const Place& a, const Place& b) {
    if (a.device > b.device || !Places::reaches(a.device, b.device) ||
        !Places::reaches(b.device, a.device)) {
      return;
    }
    any = true;
    add_times(context.sink, "peer flag time", parameters(a.device, b.device, "kernel"),
              flag_seconds(context, a, b, first));
  });
  if (!any) {
    throw NotMeasured("no two GPUs have peer access");
  }
}

void measure_peer_contention(Context& context) {
  const Places places;
  const int count = places.count();
  std::vector<Copy> ring;
  std::vector<Copy> pairs;
  std::vector<Copy> to_first;
  std::vector<Copy> all;
  for (int i = 0; i < count; ++i) {
    ring.push_back({i, (i + 1) % count});
    pairs.push_back({i, (i + count / 2) % count});
    for (int j = 0; j < count; ++j) {
      if (i != j) {
        all.push_back({i, j});
      }
    }
    if (i > 0) {
      to_first.push_back({i, 0});
    }
  }
  measure_group(context, places, "ring", ring);
  measure_group(context, places, "opposite pairs", pairs);
  measure_group(context, places, "all to the first", to_first);
  measure_group(context, places, "all pairs", all);
  measure_host_groups(context, places);
}

}  // namespace trainyard::calibrate
