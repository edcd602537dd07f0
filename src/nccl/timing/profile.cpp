// SPDX-License-Identifier: Apache-2.0
#include "nccl/timing/profile.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "sim/fields.h"

namespace trainyard::nccl {
namespace {

// `trainyard calibrate` writes a report of its fit beside a value.
template <typename Kind>
constexpr Cited<Kind> fitted(Kind kind) {
  return {.of = kind, .may_have_fit = true};
}

constexpr auto kTime = fitted(Duration{});
constexpr auto kRate = fitted(Rate{});
constexpr auto kShare = fitted(Number{0.01, 2.0});

// [LL, LL128, Simple]
ProtocolTimes read_times(const ConfigNode& list) {
  const std::vector<ConfigNode> items = list.items();
  if (items.size() != 3) {
    list.fail("three times, of LL, LL128 and Simple", std::to_string(items.size()));
  }
  return {.ll = items[0].as_time(), .ll128 = items[1].as_time(), .simple = items[2].as_time()};
}

constexpr auto kTimes = fitted(Via{List{Duration{}}, read_times});

void kernel_fields(Fields& fields, Profile& profile) {
  fields.required("ring_base", profile.ring_base, kTimes, "Start and end of a kernel, rings.");
  fields.required("tree_base", profile.tree_base, kTimes, "The same of trees.");
  fields.required("per_channel", profile.per_channel, kTime, "Later start for each channel.");
  fields.required("pat_base", profile.pat_base, kTime, "Start and end of PAT.");
  fields.required("tree_network_extra", profile.tree_network_extra, kTimes,
                  "A tree's hop over the network, above a ring's.");
  fields.required("collnet_extra", profile.collnet_extra, kTime,
                  "A path through switches that reduce, above a ring's hop.");
  fields.required("nvls_tree_sync", profile.nvls_tree_sync, kTime,
                  "Synchronisation of NVLS trees.");
}

void nvls_fields(Fields& fields, NvlsProfile& nvls) {
  fields.required("link", nvls.link, kShare, "Share of the rate of Simple on the links.");
  fields.required("head_cost", nvls.head_cost, kTime, "Cost of each head in a loop.");
  fields.required("symmetric_base", nvls.symmetric_base, kTime, "Time in symmetric memory.");
}

void rccl_fields(Fields& fields, RcclProfile& rccl) {
  fields.required("base", rccl.base, kTimes, "Start and end of a kernel.");
  fields.required("pairs_base", rccl.pairs_base, kTimes, "Start and end where all meet all.");
  fields.required("pairs_ll_link", rccl.pairs_ll_link, kShare, "Share of a link there, LL.");
  fields.required("pairs_link", rccl.pairs_link, kShare, "The same, Simple.");
}

void gpu_fields(Fields& fields, GpuProfile& gpu) {
  fields.required("link_latency", gpu.link_latency, kTimes, "Over NVLink or xGMI.");
  fields.required("simple_rate", gpu.simple_rate, kRate, "Rate of a block, Simple.");
  fields.required("simple_cost", gpu.simple_cost, kTime, "Cost of each slice.");
  fields.required("ll128_rate", gpu.ll128_rate, kRate, "Rate of a block, LL128.");
  fields.required("ll128_cost", gpu.ll128_cost, kTime, "Cost of each chunk.");
  fields.required("ll_cost", gpu.ll_cost, kTime, "Cost of each pass.");
  fields.required("ll_busy", gpu.ll_busy, kTime, "Further cost of a chunk over NVLink or xGMI.");
  fields.required("ll_pass", gpu.ll_pass, kTime, "Further cost of a full pass.");
  fields.required("ll128_link", gpu.ll128_link, kShare, "Share of the rate of Simple on links.");
  fields.required("point_to_point_link", gpu.point_to_point_link, kShare, "The same of SendRecv.");
  fields.optional("nvls", gpu.nvls, Group{nvls_fields}, "NVLS.");
  fields.optional("rccl", gpu.rccl, Group{rccl_fields}, "RCCL.");
}

void network_fields(Fields& fields, NetworkProfile& network) {
  fields.required("latency", network.latency, kTimes, "From block to block, without the wire.");
  fields.required("host_cost", network.host_cost, kTime, "Cost of a message for its thread.");
  fields.required("rate", network.rate, kShare, "Share of the payload rate of a NIC.");
  fields.optional("connection_rate", network.connection_rate, kRate, "Rate of a channel.");
  fields.optional("long_above", network.long_above, fitted(Amount{}),
                  "Bytes on the wire, of which more are agreed on before they are sent.");
  fields.optional("long_cost", network.long_cost, kTime, "Further cost of such a message.");
  fields.optional("staged_latency", network.staged_latency, kTime,
                  "From block to block without GPUDirect, Simple.");
  fields.optional("staged_rate", network.staged_rate, kRate,
                  "Rate of a thread that copies what it receives, without GPUDirect.");
}

void nvlink_fields(Fields& fields, Profile& profile) {
  fields.required("switch_latency", profile.nvswitch, kTime, "Latency of an NVSwitch.");
  fields.required("units_in_step", profile.units_in_step, fitted(Whole{0, 1'000'000}),
                  "Until blocks that read have come apart.");
}

void pcie_fields(Fields& fields, Profile& profile) {
  fields.required("latency", profile.pcie, kTimes, "From block to block.");
  fields.required("rate", profile.pcie_rate, kShare, "Share of a link with both ways in use.");
  fields.required("ll_rate", profile.pcie_ll_rate, kShare, "Data of LL over the rate of a link.");
}

void host_fields(Fields& fields, Profile& profile) {
  fields.required("latency", profile.host, kTimes, "From block to block.");
  fields.required("ll_check_rate", profile.ll_check_rate, kRate,
                  "Data of LL that a thread of Grace looks at before it sends.");
  fields.required("ll_pass_extra", profile.staged_ll_pass, kTime, "Further time of a pass of LL.");
  fields.required("rate", profile.staging_rate, kShare, "Share that copies get.");
}

void transport_fields(Fields& fields, Profile& profile) {
  fields.required("nvlink", profile, Group{nvlink_fields}, "NVLink.");
  fields.required("pcie", profile, Group{pcie_fields}, "PCIe between GPUs.");
  fields.required("host", profile, Group{host_fields}, "Through host memory.");
  fields.required("host_bridge_rate", profile.host_bridge_rate, kShare,
                  "Share of a path from GPU to NIC across a host bridge.");
}

void launch_fields(Fields& fields, LaunchProfile& launch) {
  fields.required("process_per_gpu", launch.process_per_gpu, kTime, "Time between calls.");
  fields.required("shared_process", launch.shared_process, kTime, "With several GPUs, plus");
  fields.required("per_gpu", launch.per_gpu, kTime, "this for each of them, and");
  fields.required("per_channel", launch.per_channel, kTime, "this for each of their channels.");
  fields.required("per_send", launch.per_send, kTime, "For each send or receive of a call.");
  fields.required("graph", launch.graph, kShare, "Share that CUDA graphs take.");
  fields.required("together", launch.together, kTime, "For each GPU, before NCCL 2.9.");
}

Operation read_operation(const ConfigNode& node) {
  const std::string name = node.as_string();
  const std::optional<Operation> operation = parse_operation(name);
  if (!operation) {
    node.fail(operation_names(), node.found());
  }
  return *operation;
}

void row_fields(Fields& fields, ProfileBasis::Rows& rows) {
  constexpr Whole kCount{1, std::numeric_limits<int>::max()};
  fields.required("operation", rows.operation, Via{Text{}, read_operation}, "Collective.");
  fields.required("ranks", rows.ranks, kCount, "Ranks.");
  fields.required("from", rows.min, Amount{}, "Least message.");
  fields.required("to", rows.max, Amount{}, "Largest message.");
  fields.required("count", rows.count, kCount, "Rows of tables.");
  fields.check([&](const ConfigNode& node) {
    if (rows.max < rows.min) {
      node.required("to").fail("at least the size of `from`", node.required("to").found());
    }
  });
}

void machine_fields(Fields& fields, MachineKind& machine) {
  fields.required("gpu", machine.gpu, Text{}, "Part.");
  fields.required("scale_up", machine.scale_up, Text{}, "What joins the GPUs of a host.");
  fields.required("network", machine.network, Text{}, "What joins hosts.");
}

}  // namespace

void basis_fields(Fields& fields, ProfileBasis& basis) {
  fields.required("cluster", std::ignore, Unread{}, "The cluster file.");
  fields.required("files", std::ignore, Unread{}, "The measured tables.");
  fields.required("machine", basis.machine, Group{machine_fields}, "The machine.");
  fields.required("rows", basis.rows, List{Group{row_fields}}, "What was measured.");
  fields.check([&](const ConfigNode& node) {
    if (basis.rows.empty()) {
      node.required("rows").fail("at least one entry", "none");
    }
  });
}

std::optional<std::string> ProfileBasis::beyond(const MachineKind& of, Operation operation,
                                                int ranks, Bytes size) const {
  if (of != machine) {
    return fmt::format("measured was {}, not {}", to_string(machine), to_string(of));
  }
  std::vector<int> others;
  for (const Rows& one : rows) {
    if (one.operation != operation) {
      continue;
    }
    if (one.ranks != ranks) {
      others.push_back(one.ranks);
      continue;
    }
    if (one.min <= size && size <= one.max) {
      return std::nullopt;
    }
    return fmt::format("rows of {} from {} to {}", to_string(operation), to_string(one.min),
                       to_string(one.max));
  }
  if (others.empty()) {
    return fmt::format("no row of {}", to_string(operation));
  }
  std::sort(others.begin(), others.end());
  return fmt::format("rows of {} with {} ranks, not {}", to_string(operation),
                     fmt::join(others, ", "), ranks);
}

void profile_fields(Fields& fields, Profile& profile) {
  fields.cite_sources();
  fields.required("kernel", profile, Group{kernel_fields}, "Kernels.");
  fields.required("gpus", profile.gpus, Named{Group{gpu_fields}}, "GPUs by architecture.");
  fields.required("transports", profile, Group{transport_fields}, "Ways between GPUs of a host.");
  fields.required("networks", profile.networks, Named{Group{network_fields}}, "Networks.");
  std::vector<std::string_view> names;
  for (const auto& [name, network] : profile.networks) {
    names.push_back(name);
  }
  const auto network = [&](const ConfigNode& node) { return names[node.as_choice(names)]; };
  fields.required("nics", profile.network_of_nic, Named{Via{Text{}, network}},
                  "NICs of the catalogue, each with a key of `networks`.");
  fields.required("launch", profile.launch, Group{launch_fields}, "Launches of kernels.");
  fields.optional("calibration", profile.basis, Group{basis_fields}, "What it was fitted to.");
}

std::string to_string(const MachineKind& kind) {
  return kind.gpu + ", " + kind.scale_up + ", " + kind.network;
}

Profile Profile::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  return read(document);
}

Profile Profile::read(ConfigDocument& document) {
  Profile profile;
  read_fields(document.root(), profile, profile_fields);
  document.finish();
  return profile;
}

}  // namespace trainyard::nccl
