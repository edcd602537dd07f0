// SPDX-License-Identifier: Apache-2.0
// The rules of network plugins that decide beside NCCL: the latency that they state for their NICs,
// which the tuner adds to its own, and the variables that they set where the user does not.
//
// Sources: aws/aws-ofi-nccl, src/platform-aws.cpp (platform_data_map) and, up to 1.13,
// src/platform-aws.c; Google's benchmark scripts for a3-mega (variables of all_reduce_perf), whose
// guest configuration enforces the same.
#pragma once

#include <optional>
#include <string_view>

#include "nccl/types/environment.h"
#include "sim/units.h"

namespace trainyard::nccl {

struct NetworkSoftware {
  std::string_view nic;      // A part of the catalogue.
  std::string_view network;  // Its name in NCCL_NET.
  double latency_us = 0.0;
  // NCCL_ALGO, NCCL_PROTO. EFA of p4d and GPUDirect-TCPXO give no order within 128 bytes, which LL
  // and LL128 need.
  std::string_view algorithms = {};
  std::string_view protocols = {};
  std::optional<bool> nvls_enable = {};  // NCCL_NVLS_ENABLE
  std::optional<int> cross_nic = {};     // NCCL_CROSS_NIC
  int min_channels = 0;                  // NCCL_MIN_NCHANNELS
  std::optional<Bytes> buffer = {};      // NCCL_BUFFSIZE
  std::optional<Bytes> p2p_chunk = {};   // NCCL_P2P_NET_CHUNKSIZE
  std::optional<Bytes> nvls_chunk = {};  // NCCL_NVLS_CHUNKSIZE and NCCL_NVLSTREE_MAX_CHUNKSIZE
  // Sets what is at NCCL's default, if NCCL_NET does not name another plugin.
  void apply(Environment& environment) const;
};

// Returns the rules for a NIC; null where NCCL's own plugin for InfiniBand, RoCE or sockets, or one
// without rules of its own, drives it.
[[nodiscard]] const NetworkSoftware* network_software(std::string_view nic_part);

// Returns whether NCCL's own plugin for InfiniBand and RoCE drives the NIC: its variables
// (NCCL_IB_...) then have their effect.
[[nodiscard]] bool is_driven_by_verbs(std::string_view nic_part, const Environment& environment);

}  // namespace trainyard::nccl
