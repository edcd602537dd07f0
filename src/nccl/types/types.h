// SPDX-License-Identifier: Apache-2.0
// The vocabulary of NCCL: versions, functions, algorithms, protocols, path types, graph patterns.
// Numbers and order are NCCL's own, because it compares and indexes by them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "collectives/schedule/operation.h"

namespace trainyard::nccl {

// The releases whose constants and rules are known (release.h, tuning_constants.h). Others are
// refused or mapped by parse_version().
enum class Version : std::uint8_t {
  V2_4,
  V2_5,
  V2_6,
  V2_7,
  V2_8,
  V2_10,
  V2_12,
  V2_14,
  V2_15,
  V2_16,
  V2_17,
  V2_18,
  V2_19,
  V2_20,
  V2_21,
  V2_23,
  V2_24,
  V2_25,
  V2_26,
  V2_27,
  V2_28,
  V2_29,
  V2_30
};

inline constexpr int kMaxChannels = 64;  // src/include/device.h: MAXCHANNELS, from 2.25 on.
inline constexpr Version kNewestVersion = Version::V2_30;

// Collectives that NCCL's tuner chooses for. Everything else is sends and receives.
enum class Function : std::uint8_t { Broadcast, Reduce, AllGather, ReduceScatter, AllReduce };
inline constexpr std::array kFunctions{Function::Broadcast, Function::Reduce, Function::AllGather,
                                       Function::ReduceScatter, Function::AllReduce};

// AllGather and ReduceScatter, whose sizes are of one rank.
[[nodiscard]] constexpr bool gathers_or_scatters(Function function) {
  return function == Function::AllGather || function == Function::ReduceScatter;
}

[[nodiscard]] constexpr bool is_rooted(Function function) {
  return function == Function::Broadcast || function == Function::Reduce;
}

// Order as in NCCL: of equal times the first one is chosen.
enum class Algorithm : std::uint8_t {
  Tree,
  Ring,
  CollNetDirect,
  CollNetChain,
  Nvls,
  NvlsTree,
  Pat,
  AllPairs  // RCCL: all ranks exchange with all others at once. It is chosen before NCCL's tuner,
            // which does not know it.
};
inline constexpr std::array kAlgorithms{
    Algorithm::Tree,         Algorithm::Ring, Algorithm::CollNetDirect,
    Algorithm::CollNetChain, Algorithm::Nvls, Algorithm::NvlsTree,
    Algorithm::Pat};

[[nodiscard]] constexpr bool uses_nvls(Algorithm algorithm) {
  return algorithm == Algorithm::Nvls || algorithm == Algorithm::NvlsTree;
}

[[nodiscard]] constexpr bool uses_collnet(Algorithm algorithm) {
  return algorithm == Algorithm::CollNetDirect || algorithm == Algorithm::CollNetChain;
}

enum class Protocol : std::uint8_t { LL, LL128, Simple };
inline constexpr std::array kProtocols{Protocol::LL, Protocol::LL128, Protocol::Simple};

// The connection of two devices, from near to far (NCCL 2.27 and later, include/graph.h).
enum class PathType : std::uint8_t {
  Loc,  // The same device.
  Nvl,  // NVLink, directly or through NVSwitch.
  Nvb,  // NVLink through another GPU.
  C2c,  // Chip to chip.
  Pix,  // At most one PCIe bridge.
  Pxb,  // Several PCIe bridges, no host bridge.
  P2c,  // C2C to the CPU, then PCIe to the NIC.
  Pxn,  // NVLink to another GPU, then PCIe to the NIC.
  Phb,  // Through a PCIe host bridge.
  Sys,  // Between sockets.
  Net,
  Dis,  // Not at all.
};

enum class GraphPattern : std::uint8_t {
  BalancedTree = 1,
  SplitTree = 2,
  Tree = 3,
  Ring = 4,
  Nvls = 5,
  CollNetDirect = 6
};

// The CPUs of all nodes; Mixed where vendors of x86 differ.
enum class CpuKind : std::uint8_t { Intel, Amd, Zhaoxin, Mixed, Arm, Power };

// "2.30.7", "2.28.9", "2.4.7": the release that represents the version.
[[nodiscard]] std::string_view to_string(Version version);
// "AllReduce", "Ring", "LL128", "PXN": NCCL's spelling.
[[nodiscard]] std::string_view to_string(Function function);
[[nodiscard]] std::string_view to_string(Algorithm algorithm);
[[nodiscard]] std::string_view to_string(Protocol protocol);
[[nodiscard]] std::string_view to_string(PathType type);

// Parses names in any case of letters, as NCCL reads them.
[[nodiscard]] std::optional<Algorithm> parse_algorithm(std::string_view name);
[[nodiscard]] std::optional<Protocol> parse_protocol(std::string_view name);
[[nodiscard]] std::optional<Function> parse_function(std::string_view name);
[[nodiscard]] std::optional<PathType> parse_path_type(std::string_view name);

// A release number, "2.27.7" or "2.29". `known` is the newest known version that is not newer (the
// oldest for older ones); `exact` is false where it represents another minor release with rules of
// its own.
struct ParsedVersion {
  Version known = kNewestVersion;
  bool exact = true;
};
[[nodiscard]] std::optional<ParsedVersion> parse_version(std::string_view text);

// The function of an operation; nothing for those that are sends and receives.
[[nodiscard]] std::optional<Function> function_of(Operation operation);

}  // namespace trainyard::nccl
