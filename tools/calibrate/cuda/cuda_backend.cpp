// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cuda/cuda_backend.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "calibrate/catalogue.h"
#include "calibrate/cuda/gemm.h"
#include "calibrate/cuda/measurements.h"
#include "calibrate/cuda/nccl_library.h"
#include "calibrate/cuda/nccl_measurement.h"
#include "calibrate/cuda/nvml.h"

namespace trainyard::calibrate {
namespace {

std::string cpu_name() {
  std::ifstream stream("/proc/cpuinfo");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "";
}

// 13000 is 13.0.
std::string cuda_version(int code) {
  return fmt::format("{}.{}", code / 1000, code % 1000 / 10);
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                        static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

Gpu describe(int index, const Nvml& nvml) {
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  std::array<char, 32> bus{};
  require(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), index),
          "cudaDeviceGetPCIBusId");
  Gpu gpu;
  gpu.name = properties.name;
  gpu.uuid = uuid_text(properties.uuid);
  gpu.pci_bus_id = bus.data();
  gpu.compute_capability = fmt::format("{}.{}", properties.major, properties.minor);
  gpu.multiprocessors = properties.multiProcessorCount;
  gpu.memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem);
  gpu.l2_bytes = properties.l2CacheSize;
  gpu.memory_bus_bits = properties.memoryBusWidth;
  gpu.copy_engines = properties.asyncEngineCount;
  nvml.describe(gpu);
  return gpu;
}

struct Entry {
  std::string_view id;
  void (*measure)(Context& context);
};

constexpr std::array<Entry, 19> kEntries = {{
    {"gpu.memory", measure_memory},
    {"gpu.launch", measure_launch},
    {"gpu.graph", measure_graph},
    {"gpu.host-link", measure_host_link},
    {"gpu.host-flag", measure_host_flag},
    {"gpu.elementwise", measure_elementwise},
    {"gpu.attention", measure_attention},
    {"gpu.gemm.bf16", measure_gemm},
    {"gpu.gemm.fp16", measure_gemm},
    {"gpu.gemm.fp8", measure_gemm},
    {"gpu.gemm.tf32", measure_gemm},
    {"gpu.contention", measure_contention},
    {"gpu.fifo.simple", measure_fifo_simple},
    {"gpu.fifo.ll", measure_fifo_ll},
    {"gpu.fifo.ll128", measure_fifo_ll128},
    {"peer.copy-engine", measure_peer_copies},
    {"peer.kernel", measure_peer_kernels},
    {"peer.latency", measure_peer_latency},
    {"peer.contention", measure_peer_contention},
}};

void measure_on_gpu(const Entry& entry, const Options& options, SampleSink& sink) {
  if (entry.id.starts_with("peer.")) {
    // A kernel that is loaded at its first launch would wait for one that waits for it.
    (void)::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  }
  require(cudaSetDevice(0), "cudaSetDevice");
  Context context{.options = options, .id = std::string(entry.id), .device = {}, .sink = sink};
  require(cudaGetDeviceProperties(&context.device, 0), "cudaGetDeviceProperties");
  std::array<char, 32> bus{};
  require(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), 0),
          "cudaDeviceGetPCIBusId");
  StateWatch watch(bus.data());
  entry.measure(context);
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  watch.finish(sink);
}

}  // namespace

Machine CudaBackend::machine(const Options& options) {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  if (found != cudaSuccess || count == 0) {
    throw std::runtime_error(
        fmt::format("expected an NVIDIA GPU, found none: {}",
                    found == cudaSuccess ? "no device" : cudaGetErrorString(found)));
  }
  int driver = 0;
  int runtime = 0;
  require(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  require(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  const Nvml nvml;
  std::array<char, 256> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  Machine machine;
  machine.hostname = host.data();
  machine.cpu = cpu_name();
  machine.cpus = static_cast<int>(std::thread::hardware_concurrency());
  machine.driver = nvml.driver();
  machine.cuda_driver = cuda_version(driver);
  machine.cuda_runtime = cuda_version(runtime);
  machine.nccl = nccl_version(options);
  machine.cublaslt = cublaslt_version(options);
  for (int i = 0; i < count; ++i) {
    machine.gpus.push_back(describe(i, nvml));
  }
  return machine;
}

void CudaBackend::measure(const std::string& id, const Options& options, SampleSink& sink) {
  const auto* const entry = std::find_if(kEntries.begin(), kEntries.end(),
                                         [&id](const Entry& each) { return each.id == id; });
  if (entry != kEntries.end()) {
    measure_on_gpu(*entry, options, sink);
    return;
  }
  const auto is_it = [&id](const Measurement& each) { return each.id == id; };
  const auto found = std::find_if(catalogue().begin(), catalogue().end(), is_it);
  if (found == catalogue().end() || !found->nccl) {
    throw std::runtime_error(fmt::format("{}: no such measurement", id));
  }
  measure_nccl(id, *found->nccl, options, sink);
}

}  // namespace trainyard::calibrate
