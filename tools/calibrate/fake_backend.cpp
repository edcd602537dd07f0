// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fake_backend.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <stdexcept>
#include <thread>

#include "calibrate/rendezvous.h"

namespace trainyard::calibrate {
namespace {

std::string setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : otherwise;
}

// FNV-1a: the same on every machine, unlike std::hash.
std::uint64_t hash_of(const std::string& text) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  }
  return hash;
}

Gpu fake_gpu(int index) {
  return {.name = "Fake GPU",
          .uuid = fmt::format("GPU-fake-{}-{}", setting("TRAINYARD_FAKE_NAME", "a"), index),
          .pci_bus_id = fmt::format("0000:{:02x}:00.0", index + 1),
          .compute_capability = "9.0",
          .multiprocessors = 132,
          .memory_bytes = std::int64_t{80} << 30,
          .l2_bytes = 50 << 20,
          .sm_clock_mhz = 1980,
          .memory_clock_mhz = 2619,
          .memory_bus_bits = 5120,
          .power_limit_w = 700,
          .pcie_generation = 5,
          .pcie_width = 16,
          .copy_engines = 3};
}

// Ranks of a launcher wait for each other, as NCCL would.
void meet(const Options& options) {
  if (options.ranks == 1) {
    return;
  }
  const Rendezvous folder{options.rendezvous};
  folder.publish(fmt::format("{}.rank.{}", options.token, options.rank), "here");
  for (int rank = 0; rank < options.ranks; ++rank) {
    if (!folder.await(fmt::format("{}.rank.{}", options.token, rank), std::chrono::hours(1))) {
      throw std::runtime_error("a rank is missing");
    }
  }
}

void misbehave(const std::string& id) {
  if (setting("TRAINYARD_FAKE_HANG", "") == id) {
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
  if (setting("TRAINYARD_FAKE_FAIL", "") == id) {
    throw std::runtime_error("the device said\nno");
  }
  if (setting("TRAINYARD_FAKE_CRASH", "") == id) {
    std::abort();
  }
  if (setting("TRAINYARD_FAKE_NONSENSE", "") == id) {
    std::cout << "NCCL INFO something\n";
  }
  if (setting("TRAINYARD_FAKE_SKIP", "") == id) {
    throw NotMeasured("this device has no such part");
  }
}

}  // namespace

Machine FakeBackend::machine(const Options& options) {
  const int gpus = std::atoi(setting("TRAINYARD_FAKE_GPUS", "1").c_str());
  if (gpus < 1) {
    throw std::runtime_error("no CUDA device was found");
  }
  Machine machine = {.hostname = "fake-host",
                     .cpu = "Fake CPU",
                     .cpus = 16,
                     .driver = "580.0",
                     .cuda_driver = "13.0",
                     .cuda_runtime = "13.0",
                     .nccl = setting("TRAINYARD_FAKE_NCCL", "2.28.9"),
                     .cublaslt = options.cublaslt == "none" ? "" : "13.1.0",
                     .gpus = {}};
  for (int index = 0; index < gpus; ++index) {
    machine.gpus.push_back(fake_gpu(index));
  }
  return machine;
}

double fake_rate(const std::string& id) {
  return 100.0 + static_cast<double>(hash_of(id) % 900);
}

void FakeBackend::measure(const std::string& id, const Options& options, SampleSink& sink) {
  meet(options);
  std::this_thread::sleep_for(
      std::chrono::milliseconds(std::atoi(setting("TRAINYARD_FAKE_SLEEP", "0").c_str())));
  if (setting("TRAINYARD_FAKE_EMPTY", "") == id) {
    return;
  }
  const auto seed = std::strtoull(setting("TRAINYARD_FAKE_SEED", "1").c_str(), nullptr, 10);
  std::mt19937_64 engine(seed ^ hash_of(id));
  for (std::int64_t bytes = 1 << 20; bytes <= 16 << 20; bytes *= 4) {
    std::vector<double> seconds;
    const double ideal = static_cast<double>(bytes) / (fake_rate(id) * 1e9);
    for (int i = 0; i < options.repetitions; ++i) {
      // A few per cent of noise, upwards alone, as interference is.
      seconds.push_back(ideal * (1.0 + 0.05 * static_cast<double>(engine() >> 11) * 0x1p-53));
    }
    add_bandwidth(sink, "bandwidth", {{"bytes", bytes}}, static_cast<double>(bytes), seconds);
    if (bytes == 1 << 20) {
      misbehave(id);  // With a sample behind it.
    }
  }
  sink.add(Record{.name = "remark", .text = "nothing was measured: the machine is a fake"});
}

}  // namespace trainyard::calibrate
