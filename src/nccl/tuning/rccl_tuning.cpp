// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/rccl_tuning.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/ids.h"

namespace trainyard::nccl {
namespace {

constexpr std::size_t kSizes = 27;
using Factors = std::array<std::array<std::uint8_t, kSizes>, 3>;  // Tenths, [protocol][log size].
using TreeAndRing = std::array<ByProtocol, 2>;

struct TuningModel {
  TreeAndRing xgmi_latency;  // Microseconds.
  TreeAndRing net_latency;
  std::array<TreeAndRing, 2> share;  // Up to two nodes, and more.
  std::array<Factors, 2> factors;    // Trees, rings; rings on several nodes alone.
};

// tuning_model_0: what RCCL does not know.
constexpr TuningModel kDefault{
    .xgmi_latency = {{{0.8, 1.4, 2.5}, {0.8, 2.2, 3.6}}},
    .net_latency = {{{11.8, 18.2, 20.8}, {9.5, 19.8, 15.1}}},
    .share = {{{{{0.04, 0.22, 0.91}, {0.04, 0.34, 1.0}}},
               {{{0.04, 0.22, 0.95}, {0.04, 0.34, 1.0}}}}},
    .factors = {
        {{{{1, 2, 1, 1, 9, 3, 4, 1, 2, 4, 2, 1, 3, 3, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
           {1, 3, 10, 1, 5, 10, 9, 10, 10, 10, 3, 1, 4, 5, 5, 4, 4, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2},
           {2, 10, 1, 1, 7, 2, 4, 1, 1, 3, 4, 3, 6, 8, 10, 10, 10, 10, 9, 8, 8, 8, 8, 8, 9, 9, 9}}},
         {{{1, 1, 1, 1, 1, 2, 4, 2, 3, 5, 3, 1, 5, 5, 3, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
           {1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 10, 10, 10, 10, 10, 10, 8, 7, 5, 4, 4, 3, 3, 3, 3, 3, 3},
           {10, 8, 2,  10, 10, 3,  10, 1,  1,  2,  2,  1,  5, 10,
            8,  8, 10, 9,  10, 10, 10, 10, 10, 10, 10, 10, 10}}}}}};

// tuning_model_3: MI250X with four NICs.
constexpr TuningModel kBlade{
    .xgmi_latency = {{{0.8, 0.0, 2.5}, {0.8, 0.0, 3.6}}},
    .net_latency = {{{12.5, 0.0, 22.4}, {9.5, 0.0, 19.8}}},
    .share = {{{{{0.2, 0.0, 1.75}, {0.2, 0.0, 1.0}}}, {{{0.2, 0.0, 0.96}, {0.2, 0.0, 1.0}}}}},
    .factors = {
        {{{{1, 1, 1, 1, 1, 1, 10, 10, 2, 10, 9, 10, 6, 4, 6, 4, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2},
           {},
           {10, 10, 10, 10, 10, 10, 1,  1, 1, 2, 10, 8, 10, 10,
            10, 10, 10, 10, 10, 10, 10, 8, 7, 8, 9,  7, 7}}},
         {{{1, 1, 1, 1, 1, 3, 1, 2, 1, 4, 4, 2, 2, 3, 7, 5, 4, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2},
           {},
           {1, 1, 1, 1, 1, 1, 1,  5,  10, 1,  3,  1,  1, 1,
            2, 2, 2, 3, 4, 7, 10, 10, 10, 10, 10, 10, 10}}}}}};

// Trees and rings with LL of the models 5 and 6.
constexpr std::array<std::uint8_t, kSizes> kMeshTree{
    1, 1, 1, 1, 1, 1, 10, 10, 10, 10, 10, 6, 10, 9, 10, 10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
constexpr std::array<std::uint8_t, kSizes> kMeshRing{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 10, 2, 10,
                                                     4, 4, 1, 2, 2, 1, 1, 1, 1, 1, 1, 1,  1};

// tuning_model_5: MI300X.
constexpr TuningModel kMesh{
    .xgmi_latency = {{{0.9, 0.9, 2.3}, {0.8, 0.8, 2.1}}},
    .net_latency = {{{10.5, 10.5, 25.0}, {9.5, 9.5, 320.0}}},
    .share = {{{{{0.06, 0.06, 0.11}, {0.08, 0.08, 1.0}}},
               {{{0.06, 0.06, 0.59}, {0.08, 0.08, 1.0}}}}},
    .factors = {{{{kMeshTree, kMeshTree, {1, 1, 1,  1,  1,  1,  1,  1, 1, 1, 1, 1, 1, 1,
                                          1, 7, 10, 10, 10, 10, 10, 7, 7, 5, 6, 6, 6}}},
                 {{kMeshRing, kMeshRing, {1, 1, 1, 1, 1, 1, 1, 1, 1,  1, 1,  1,  1, 1,
                                          1, 1, 1, 1, 1, 1, 1, 1, 10, 8, 10, 10, 10}}}}}};

// tuning_model_6: MI350X and MI355X.
constexpr TuningModel mesh_of_cdna4() {
  TuningModel model = kMesh;
  model.factors[0][1] = {1,  1,  1,  1,  1,  1,  10, 10, 10, 10, 10, 6, 10, 9,
                         10, 10, 10, 10, 10, 20, 1,  1,  1,  1,  1,  1, 1};
  model.factors[0][2] = {1, 1, 1,  1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                         1, 7, 10, 1, 1, 1, 9, 9, 7, 8, 6, 6, 6};
  model.factors[1][1] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 10, 2, 10,
                         4, 4, 1, 2, 1, 1, 1, 1, 1, 1, 1, 1,  1};
  model.factors[1][2] = {1, 1, 1, 1, 1, 1, 1, 1, 1,  1, 1, 1,  1, 1,
                         1, 1, 1, 1, 1, 1, 1, 1, 10, 8, 8, 10, 10};
  return model;
}
constexpr TuningModel kMeshOfCdna4 = mesh_of_cdna4();

constexpr const TuningModel& model_of(int number) {
  return number == 3 ? kBlade : number == 5 ? kMesh : number == 6 ? kMeshOfCdna4 : kDefault;
}

constexpr TuningConstants constants_of(int number) {
  const TuningModel& model = model_of(number);
  TuningConstants constants;
  for (std::size_t i = 0; i < 2; ++i) {
    constants.base_latency[i] = {12.0, 12.0, 17.0};
    constants.nvlink_latency[i] = model.xgmi_latency[i];
    constants.pci_latency[i] = {2.2, 2.2, 5.7};
    constants.net_latency[i] = model.net_latency[i];
  }
  return constants;
}

constexpr std::array kConstants{constants_of(0), constants_of(3), constants_of(5), constants_of(6)};

const GpuGeneration& generation_of(const Communicator& communicator) {
  return gpu_generation(communicator.min_compute_capability);
}

bool is_one_of(const Communicator& communicator, std::string_view gcn) {
  return generation_of(communicator).gcn == gcn;
}

// MI300X and later.
bool is_mi300(const Communicator& communicator) {
  return is_one_of(communicator, "gfx942") || is_one_of(communicator, "gfx950");
}

// Payloads up to `ll` go by LL, then up to `ll128` by LL128 where there is LL128, else by Simple
// (llProtoRanges of the tuning models 5 and 6).
struct Ranges {
  Function function;
  std::int64_t ll;
  std::int64_t min_ll128;
  std::int64_t ll128;
};
constexpr std::array kRangesOfModel5{Ranges{Function::ReduceScatter, 655'360, 131'072, 3'211'264},
                                     Ranges{Function::AllGather, 98'304, 98'304, 5'046'272},
                                     Ranges{Function::AllReduce, 1'048'576, 1'048'576, 9'437'184}};
constexpr std::array kRangesOfModel6{Ranges{Function::ReduceScatter, 131'071, 131'071, 4'194'304},
                                     Ranges{Function::AllGather, 7, 7, 8'388'608},
                                     Ranges{Function::AllReduce, 131'071, 131'071, 17'660'227},
                                     Ranges{Function::Reduce, 16'383, 16'383, 16'777'216},
                                     Ranges{Function::Broadcast, 2'048, 2'048, 16'777'216}};

// One node: the largest payload of a rank that goes by LL (rcclUpdateCollectiveProtocol).
struct LlLimit {
  std::string_view gcn;
  Function function;
  std::int64_t bytes;
};
constexpr std::array kLlLimits{LlLimit{"gfx950", Function::AllGather, 88'448},
                               LlLimit{"gfx950", Function::ReduceScatter, 175'488},
                               LlLimit{"gfx942", Function::ReduceScatter, 352'128}};

std::optional<Protocol> protocol_of_ranges(const Communicator& communicator,
                                           const Environment& environment, Function function,
                                           Bytes bytes) {
  const int model = communicator.aligned.rccl_model;
  const std::span<const Ranges> all = model == 5   ? std::span<const Ranges>(kRangesOfModel5)
                                      : model == 6 ? std::span<const Ranges>(kRangesOfModel6)
                                                   : std::span<const Ranges>();
  const auto ranges = std::ranges::find(all, function, &Ranges::function);
  if (ranges == all.end()) {
    return std::nullopt;
  }
  const std::int64_t of_rank =
      function == Function::Broadcast ? bytes.count() / communicator.ranks : bytes.count();
  // Trees are better on more than two nodes.
  const double more = function == Function::AllReduce && communicator.nodes > 2 ? 3.8 : 1.0;
  if (rccl_has_ll128(generation_of(communicator), communicator.aligned.ring, environment) &&
      of_rank > ranges->min_ll128 &&
      static_cast<double>(of_rank) <= static_cast<double>(ranges->ll128) * more) {
    return Protocol::LL128;
  }
  return of_rank <= ranges->ll ? Protocol::LL : Protocol::Simple;
}

// MSCCL's schedules for AllReduce of eight ranks (tools/msccl-algorithms): to this size, which must
// be so many whole elements, taken as of four bytes.
struct Schedule {
  std::int64_t max;
  std::int64_t multiple;
  Protocol protocol;
  int channels;
  std::string_view reason;
};
constexpr std::array kSchedules{
    Schedule{65'536, 1'024, Protocol::LL, 4, "MSCCL's schedule up to 64 KiB"},
    Schedule{524'287, 2'048, Protocol::LL, 8, "MSCCL's schedule from 64 to 512 KiB"},
    Schedule{16'777'216, 2'048, Protocol::Simple, 8, "MSCCL's schedule from 512 KiB to 16 MiB"}};

// Payload of all ranks up to which AllGather is sends to all others (rcclUseAllGatherDirect).
std::int64_t direct_limit(const Communicator& communicator) {
  constexpr std::int64_t kOfMi300 = 4 << 20;
  constexpr std::int64_t kOfMi350 = 8 << 20;
  constexpr std::int64_t kOfNode = 2 << 20;
  constexpr std::int64_t kOfMany = 75'497'472;
  return is_one_of(communicator, "gfx942")    ? kOfMi300
         : !is_one_of(communicator, "gfx950") ? 0
         : communicator.nodes == 1            ? kOfMi350
         : communicator.nodes < 64            ? kOfNode * communicator.nodes
                                              : kOfMany;
}

}  // namespace

int rccl_copies(const Communicator& communicator) {
  const int searched = communicator.aligned.ring.channel_count;
  if (is_one_of(communicator, "gfx90a")) {
    return std::max(communicator.nodes == 1 ? 4 : 2, 4 / searched);
  }
  if (communicator.ranks == 2 || communicator.ranks == 4) {
    return communicator.ranks == 2 ? 16 : 4;
  }
  // Release 2.25: 112 channels for eight MI350X or MI355X.
  return communicator.aligned.rccl_model == 6 && communicator.nodes == 1 ? 4 : 2;
}

int rccl_max_channels(const Communicator& communicator) {
  constexpr int kMost = 128;
  constexpr int kOfSeveralNodes = 64;
  constexpr int kOfMi200 = 32;
  return !is_mi300(communicator) ? kOfMi200 : communicator.nodes > 1 ? kOfSeveralNodes : kMost;
}

const TuningConstants& rccl_constants(int model) {
  return kConstants[model == 3 ? 1 : model == 5 ? 2 : model == 6 ? 3 : 0];
}

float rccl_share(const Communicator& communicator, Function function, Algorithm algorithm,
                 Protocol protocol) {
  const bool is_tree = algorithm == Algorithm::Tree;
  if (!is_tree && algorithm != Algorithm::Ring) {
    return 0.0F;
  }
  const bool is_one_mi300 = communicator.nodes == 1 && is_mi300(communicator);
  if (is_tree && protocol == Protocol::Simple && is_one_mi300) {
    return 0.0F;
  }
  const TuningModel& model = model_of(communicator.aligned.rccl_model);
  const double share = model.share[communicator.nodes <= 2 ? 0 : 1][is_tree ? 0 : 1]
                                  [static_cast<std::size_t>(protocol)];
  const bool is_raised = protocol == Protocol::LL && is_rooted(function) && is_one_mi300;
  return static_cast<float>(share * (is_raised ? 1.65 : 1.0));
}

bool rccl_has_ll128(const GpuGeneration& generation, const Graph& graph,
                    const Environment& environment) {
  return graph.type_inter <= PathType::Pxb && graph.type_intra <= PathType::Nvl &&
         (generation.gcn != "gfx90a" || environment.rccl_ll128_force_enable);
}

float rccl_factor(const Communicator& communicator, Algorithm algorithm, Protocol protocol,
                  int log_size) {
  const bool is_tree = algorithm == Algorithm::Tree;
  if (!is_tree && communicator.nodes == 1) {
    return 1.0F;
  }
  const TuningModel& model = model_of(communicator.aligned.rccl_model);
  const auto index = std::min(static_cast<std::size_t>(std::max(log_size, 0)), kSizes - 1);
  const int tenths = model.factors[is_tree ? 0 : 1][static_cast<std::size_t>(protocol)][index];
  return static_cast<float>(tenths) / 10.0F;
}

std::optional<Protocol> rccl_protocol(const Communicator& communicator,
                                      const Environment& environment, Function function,
                                      Bytes bytes) {
  // The user's list of protocols stands.
  if (std::ranges::any_of(kProtocols, [&](Protocol protocol) {
        return environment.selection.forces(function, protocol);
      })) {
    return std::nullopt;
  }
  if (communicator.nodes > 1) {
    return protocol_of_ranges(communicator, environment, function, bytes);
  }
  const bool is_short = std::ranges::any_of(kLlLimits, [&](const LlLimit& limit) {
    return limit.function == function && is_one_of(communicator, limit.gcn) &&
           bytes.count() <= limit.bytes;
  });
  return is_short ? std::optional(Protocol::LL) : std::nullopt;
}

std::optional<AllPairsCall> rccl_all_pairs(const Communicator& communicator,
                                           const Environment& environment, Function function,
                                           Bytes bytes) {
  if (!environment.selection.text().empty() || bytes == Bytes(0)) {
    return std::nullopt;
  }
  if (function == Function::AllGather && communicator.ranks % 8 == 0 &&
      bytes.count() * communicator.ranks <= direct_limit(communicator)) {
    return AllPairsCall{.channels = communicator.p2p_channels,
                        .reason = "RCCL's direct AllGather of short messages"};
  }
  if (function != Function::AllReduce || !communicator.aligned.has_msccl ||
      !environment.rccl_msccl_enable) {
    return std::nullopt;
  }
  const auto* const schedule = std::ranges::find_if(
      kSchedules, [&](const Schedule& one) { return bytes.count() <= one.max; });
  if (schedule == kSchedules.end() || bytes.count() % schedule->multiple != 0) {
    return std::nullopt;
  }
  return AllPairsCall{
      .protocol = schedule->protocol, .channels = schedule->channels, .reason = schedule->reason};
}

}  // namespace trainyard::nccl
