// SPDX-License-Identifier: Apache-2.0
// The machine that was measured: what a reader needs to know which part the numbers belong to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainyard::calibrate {

// 0 or empty where the driver does not say.
struct Gpu {
  std::string name;
  std::string uuid;
  std::string pci_bus_id;
  std::string compute_capability;  // "9.0".
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t l2_bytes = 0;
  int sm_clock_mhz = 0;  // Greatest.
  int memory_clock_mhz = 0;
  int memory_bus_bits = 0;
  int power_limit_w = 0;
  int pcie_generation = 0;  // Of the link as it is, not of the part.
  int pcie_width = 0;
  int copy_engines = 0;
};

struct Machine {
  std::string hostname;
  std::string cpu;
  int cpus = 0;
  std::string driver;
  std::string cuda_driver;
  std::string cuda_runtime;
  std::string nccl;      // Version; empty where no library was found.
  std::string cublaslt;  // As nccl.
  std::vector<Gpu> gpus;
};

}  // namespace trainyard::calibrate
