// SPDX-License-Identifier: Apache-2.0
#include "calibrate/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "calibrate/text.h"
#include "sim/config_error.h"

namespace trainyard::calibrate {
namespace {

void add_one_gpu(std::vector<Measurement>& all) {
  const auto add = [&all](std::string id, std::string what, int seconds) {
    all.push_back({.id = std::move(id), .what = std::move(what), .seconds = seconds});
  };
  add("gpu.memory", "copy, read, write and reduction in GPU memory by number of CTAs", 15);
  add("gpu.launch", "kernel launch: host time, gap between kernels, whole round trip", 4);
  add("gpu.graph", "CUDA graphs: launch, and cost of a node", 5);
  add("gpu.host-link", "copies between host and GPU: pinned, pageable, both ways, latency", 15);
  add("gpu.host-flag", "flag from CPU to GPU and back through pinned memory", 4);
  add("gpu.elementwise", "memory-bound kernels of a training step: add, SwiGLU, RMSNorm, Adam", 6);
  for (const std::string_view type : {"bf16", "fp16", "fp8", "tf32"}) {
    all.push_back({.id = fmt::format("gpu.gemm.{}", type),
                   .what = fmt::format("matrix products in {} over a grid of shapes", type),
                   .with_cublaslt = true,
                   .seconds = 15});
  }
  add("gpu.attention", "attention forward and backward in bf16 (cuDNN)", 12);
  all.push_back({.id = "gpu.contention",
                 .what = "a matrix product beside CTAs that copy as NCCL's do",
                 .with_cublaslt = true,
                 .seconds = 10});
  add("gpu.fifo.simple", "emulated Simple protocol between CTAs: 8 slots, credits, fences", 10);
  add("gpu.fifo.ll", "emulated LL protocol between CTAs: flags within 16-byte lines", 6);
  add("gpu.fifo.ll128", "emulated LL128 protocol between CTAs: flags within 128-byte lines", 6);
}

void add_several_gpus(std::vector<Measurement>& all) {
  const auto add = [&all](std::string id, std::string what, int seconds) {
    all.push_back(
        {.id = std::move(id), .what = std::move(what), .min_gpus = 2, .seconds = seconds});
  };
  add("peer.copy-engine", "bandwidth between each two GPUs by copy engines", 20);
  add("peer.kernel", "bandwidth between each two GPUs by a kernel that writes, and that reads", 30);
  add("peer.latency", "flag from GPU to GPU and back, each two", 15);
  add("peer.contention", "copies of all GPUs at once: ring, pairs, all to one", 15);
}

constexpr std::array<int, 5> kChannels = {1, 2, 4, 8, 16};

struct ModeName {
  NcclMode mode;
  std::string_view id;
  std::string_view what;
  int seconds;
  int max_channels;  // Forced.
};
constexpr std::array<ModeName, 5> kModes = {{
    {NcclMode::Processes, "nccl.processes", "a process for each GPU", 10, 16},
    {NcclMode::OneProcess, "nccl.one-process", "one process for all GPUs", 10, 0},
    {NcclMode::MultiRankGpu, "nccl.multi-rank", "two ranks on one GPU, peer access", 8, 16},
    {NcclMode::FakeHosts, "nccl.hosts", "two ranks on one GPU as two hosts, sockets", 15, 2},
    {NcclMode::Network, "network", "ranks of a launcher", 12, 16},
}};

void add_nccl(std::vector<Measurement>& all, const ModeName& mode) {
  const auto add = [&](const std::string& algorithm, const std::string& protocol, int channels) {
    std::string id(mode.id);
    std::string what = fmt::format("NCCL, {}", mode.what);
    const bool log = algorithm == "log";
    if (log) {
      id += ".log";
      what += ": its topology, graphs and choices, as it logs them";
    } else if (algorithm.empty()) {
      id += ".default";
      what += ": its own choice";
    } else {
      id += fmt::format(".{}.{}", algorithm, protocol);
      what += fmt::format(": {} {}", algorithm, protocol);
    }
    if (channels > 0) {
      id += fmt::format(".c{}", channels);
      what += fmt::format(", {} channel{}", channels, channels == 1 ? "" : "s");
    }
    all.push_back({.id = std::move(id),
                   .what = std::move(what),
                   .min_gpus = shares_a_gpu(mode.mode) || mode.mode == NcclMode::Network ? 1 : 2,
                   .nccl = NcclSetting{.mode = mode.mode,
                                       .algorithm = log ? "" : algorithm,
                                       .protocol = protocol,
                                       .channels = channels,
                                       .log = log},
                   .seconds = mode.seconds});
  };
  add("", "", 0);
  if (mode.mode == NcclMode::OneProcess) {
    return;  // It differs by what the host does, whatever the algorithm.
  }
  add("log", "", 0);
  for (const std::string algorithm : {"Ring", "Tree"}) {
    for (const std::string protocol : {"LL", "LL128", "Simple"}) {
      if (mode.mode != NcclMode::FakeHosts) {  // There it chooses two channels.
        add(algorithm, protocol, 0);
      }
      for (const int channels : kChannels) {
        if (channels <= mode.max_channels && (algorithm == "Ring" || channels == 1)) {
          add(algorithm, protocol, channels);
        }
      }
    }
  }
  if (!shares_a_gpu(mode.mode)) {
    add(mode.mode == NcclMode::Network ? "NVLSTree" : "NVLS", "Simple", 0);
  }
}

std::vector<Measurement> make_catalogue() {
  std::vector<Measurement> all;
  add_one_gpu(all);
  add_several_gpus(all);
  for (const ModeName& mode : kModes) {
    add_nccl(all, mode);
  }
  return all;
}

bool is_network(const Measurement& measurement) {
  return measurement.nccl && measurement.nccl->mode == NcclMode::Network;
}

}  // namespace

const std::vector<Measurement>& catalogue() {
  static const std::vector<Measurement> all = make_catalogue();
  return all;
}

std::vector<Measurement> planned(const Options& options) {
  for (const std::string& pattern : options.only) {
    const auto is_meant = [&](const Measurement& each) { return matches(pattern, each.id); };
    if (std::none_of(catalogue().begin(), catalogue().end(), is_meant)) {
      throw ConfigError(fmt::format("--only: expected identifiers that --list shows, found {}",
                                    in_quotes(pattern)));
    }
  }
  std::vector<Measurement> plan;
  for (const Measurement& each : catalogue()) {
    // What belongs to one node is measured there by a run of its own.
    if (is_selected(options, each.id) && is_network(each) == (options.ranks > 1)) {
      plan.push_back(each);
    }
  }
  if (plan.empty()) {
    throw ConfigError(options.ranks > 1
                          ? "--only: expected network.* on several ranks, found none of them"
                          : "--only: expected --ranks above 1 for network.*, found 1");
  }
  return plan;
}

std::string why_not(const Measurement& measurement, const Machine& machine) {
  const auto gpus = static_cast<int>(machine.gpus.size());
  if (gpus < measurement.min_gpus) {
    return fmt::format("needs {} GPUs, found {}", measurement.min_gpus, gpus);
  }
  if (measurement.with_cublaslt && machine.cublaslt.empty()) {
    return "no cuBLASLt library was found; --cublaslt names one";
  }
  // FP8 came with compute capability 8.9.
  if (measurement.id == "gpu.gemm.fp8" &&
      std::atof(machine.gpus[0].compute_capability.c_str()) < 8.9) {
    return fmt::format("needs compute capability 8.9, found {}",
                       machine.gpus[0].compute_capability);
  }
  if (!measurement.nccl) {
    return "";
  }
  if (machine.nccl.empty()) {
    return "no NCCL library was found; --nccl names one";
  }
  // Added in NCCL 2.30.3; earlier ones refuse two ranks on a GPU of a host (NVIDIA/nccl,
  // src/init.cc: initTransportsRank).
  if (measurement.nccl->mode == NcclMode::MultiRankGpu &&
      nccl_version_code(machine.nccl) < 23'003) {
    return fmt::format("needs NCCL 2.30.3, found {}", machine.nccl);
  }
  return "";
}

std::string first_of_mode(NcclMode mode) {
  const auto* const found = std::find_if(
      kModes.begin(), kModes.end(), [mode](const ModeName& each) { return each.mode == mode; });
  return fmt::format("{}.default", found->id);
}

int timeout_of(const Measurement& measurement, const Options& options) {
  return options.timeout_seconds.value_or(3 * measurement.seconds + 30);
}

int nccl_version_code(const std::string& version) {
  std::array<int, 3> parts{};
  const char* next = version.data();
  const char* end = next + version.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [rest, error] = std::from_chars(next, end, parts[i]);
    if (error != std::errc() || (i < 2 && (rest == end || *rest != '.'))) {
      return 0;
    }
    next = rest == end ? rest : rest + 1;
  }
  return 10'000 * parts[0] + 100 * parts[1] + parts[2];
}

}  // namespace trainyard::calibrate
