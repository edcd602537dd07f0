// SPDX-License-Identifier: Apache-2.0
#include "cli/collective/collective_inputs.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "calibration/measured/bus_ratio.h"
#include "calibration/measured/comparison.h"
#include "calibration/measured/osu_log.h"
#include "cli/collective/groups_file.h"
#include "cli/common/common.h"
#include "collectives/msccl/msccl_schedule.h"
#include "collectives/msccl/mscclpp_schedule.h"
#include "collectives/placement/aggregation.h"
#include "collectives/schedule/message_file.h"
#include "sim/config_error.h"
#include "sim/printable.h"
#include "topology/cluster/reach.h"

namespace trainyard {
namespace {

void check_table(const CollectiveRequest& request, const Cluster& cluster, MeasuredTable& table,
                 std::vector<std::string>& notes) {
  const auto ranks = static_cast<int>(cluster.gpus.size());
  take_whole_sizes(table, table.ranks.value_or(ranks));
  if (table.operation && *table.operation != request.operation) {
    throw ConfigError(fmt::format("--against: expected a table of {}, found {} of {}",
                                  to_string(request.operation), *request.against,
                                  to_string(*table.operation)));
  }
  if (std::min(ranks, table.ranks.value_or(ranks)) == 1) {
    throw ConfigError(fmt::format(
        "--against: expected at least two ranks to compare, found {} of {} and {} simulated",
        *request.against, table.ranks ? std::to_string(*table.ranks) : "unknown", ranks));
  }
  if (const auto other = table.bus_ratio ? ratio_says_otherwise(*table.bus_ratio, request.operation,
                                                                table.ranks.value_or(ranks))
                                         : std::nullopt) {
    throw ConfigError(fmt::format("--against: expected {} of {} ranks, found {} of {}",
                                  to_string(request.operation), table.ranks.value_or(ranks),
                                  *request.against, *other));
  }
  if (!table.ranks) {
    notes.push_back(fmt::format("taken to be measured with {} ranks, as simulated", ranks));
  } else if (*table.ranks != ranks) {
    if (!request.against_other_ranks) {
      throw ConfigError(
          fmt::format("--against: expected a table of {} ranks, found {} of {}; choose --nodes or "
                      "--ranks to match, or compare bus bandwidth with --against-other-ranks",
                      ranks, *request.against, *table.ranks));
    }
    notes.push_back(
        fmt::format("measured with {} ranks: only bus bandwidth is comparable; the measured times "
                    "are those that it would give for {} ranks",
                    *table.ranks, ranks));
    rescale(table, request.operation, ranks);
  } else if (table.nodes && *table.nodes != cluster.nodes) {
    notes.push_back(fmt::format("measured on {}, simulated on {}: other links between the ranks",
                                counted(*table.nodes, "node"), counted(cluster.nodes, "node")));
  }
}

std::optional<MeasuredTable> load_table(const CollectiveRequest& request, const Cluster& cluster,
                                        std::vector<std::string>& notes) {
  if (!request.against) {
    return std::nullopt;
  }
  MeasuredTable table = load_measurement(*request.against);
  check_table(request, cluster, table, notes);
  for (const std::string& remark : table.remarks) {
    notes.push_back("measured table: " + remark);
  }
  return table;
}

// An algorithm that works in place is held against times in place, where the table has them.
void take_in_place(MeasuredTable& table, std::vector<std::string>& notes) {
  std::size_t rows = 0;
  for (MeasuredRow& row : table.rows) {
    if (row.in_place) {
      row.time = row.in_place->time;
      row.algbw_gbps = row.in_place->algbw_gbps;
      row.busbw_gbps = row.in_place->busbw_gbps;
      ++rows;
    }
  }
  notes.push_back(
      rows == table.rows.size()
          ? "the algorithm works in place: compared with the in-place times"
          : fmt::format("the algorithm works in place: {} of {} rows have in-place times, the "
                        "others are compared out of place",
                        rows, table.rows.size()));
}

// As the user asks for them, not yet rounded.
std::vector<Bytes> wanted_sizes(const CollectiveRequest& request,
                                const std::optional<MeasuredTable>& measured) {
  const bool sweep = request.min_size || request.greatest_size || request.factor;
  std::vector<Bytes> sizes;
  if (measured) {
    for (const MeasuredRow& row : measured->rows) {
      sizes.push_back(row.size);
    }
  }
  if (measured && !sweep) {
    return sizes;
  }
  const Bytes min = request.min_size.value_or(measured ? std::ranges::min(sizes) : Bytes(8));
  const Bytes greatest =
      request.greatest_size.value_or(std::max(min, measured ? std::ranges::max(sizes) : gib(1)));
  if (min > greatest) {
    fail_option("maxbytes", fmt::format("at least the least size, {}", to_string(min)),
                to_string(greatest));
  }
  sizes.clear();
  for (Bytes size = min; size <= greatest; size = size * request.factor.value_or(2)) {
    sizes.push_back(size);
  }
  return sizes;
}

std::optional<TrafficMatrix> load_matrix(const CollectiveRequest& request, int ranks,
                                         std::vector<std::string>& notes) {
  if (!request.matrix) {
    return std::nullopt;
  }
  constexpr std::size_t kMaxMatrixBytes = std::size_t{256} << 20;
  TrafficMatrix matrix =
      read_traffic_matrix(read_file(*request.matrix, kMaxMatrixBytes), *request.matrix);
  if (matrix.ranks != ranks) {
    throw ConfigError(
        fmt::format("--matrix: expected a line for each of the {} ranks, found {} of {}", ranks,
                    *request.matrix, matrix.ranks));
  }
  int sender = 0;
  int receiver = 0;
  Bytes sum;
  for (int rank = 0; rank < ranks; ++rank) {
    sender = matrix.sent(rank) > matrix.sent(sender) ? rank : sender;
    receiver = matrix.received(rank) > matrix.received(receiver) ? rank : receiver;
    sum += matrix.sent(rank);
  }
  if (sum == Bytes(0)) {
    throw ConfigError(
        fmt::format("--matrix: expected bytes to exchange, found {} of zeros", *request.matrix));
  }
  notes.push_back(fmt::format(
      "matrix: rank {} sends most, {}, rank {} receives most, {}; the mean is {}; the size is the "
      "most of all",
      sender, to_string(matrix.sent(sender)), receiver, to_string(matrix.received(receiver)),
      to_string(Bytes(sum.count() / ranks))));
  return matrix;
}

struct FileAlgorithm {
  std::unique_ptr<Schedule> schedule = {};
  bool is_in_place = false;
};

// Throws unless the algorithm of the file does what the request asks for.
void check_algorithm(const CollectiveRequest& request, int ranks, Operation operation, int gpus,
                     int root) {
  const std::string& file = *request.algorithm_file;
  if (operation != request.operation) {
    throw ConfigError(fmt::format("--algo-file: expected an algorithm for {}, found {} for {}",
                                  to_string(request.operation), file, to_string(operation)));
  }
  if (gpus != ranks) {
    throw ConfigError(fmt::format(
        "--algo-file: expected an algorithm for {} ranks, found {} for {}", ranks, file, gpus));
  }
  if (root != request.root) {
    throw ConfigError(fmt::format("--algo-file: expected an algorithm for root {}, found {} for {}",
                                  request.root, file, root));
  }
}

FileAlgorithm load_msccl(const CollectiveRequest& request, int ranks, const std::string& text,
                         std::vector<std::string>& notes) {
  const std::string& file = *request.algorithm_file;
  std::optional<MscclppPlan> plan;
  if (const std::size_t first = text.find_first_not_of(" \t\r\n");
      first != std::string::npos && text[first] == '{') {
    plan = read_mscclpp_plan(text, file);
  }
  MscclAlgorithm algorithm = plan ? plan->algorithm : read_msccl_xml(text, file);
  if (algorithm.is_custom) {
    algorithm.operation = request.operation;
    notes.push_back(fmt::format("{}: a custom collective, proved to be {}", file,
                                to_string(request.operation)));
  }
  check_algorithm(request, ranks, algorithm.operation, static_cast<int>(algorithm.gpus.size()),
                  algorithm.root);
  notes.push_back(fmt::format(
      "{}: proved; its protocol{} and its loops over long messages are not in this runtime", file,
      algorithm.protocol.empty() ? "" : ", " + escaped(algorithm.protocol) + ","));
  if (algorithm.max_bytes > 0) {
    notes.push_back(fmt::format("{}: MSCCL would take it for {} to {} bytes only", file,
                                algorithm.min_bytes, algorithm.max_bytes));
  }
  return {.schedule = plan ? mscclpp_schedule(*plan, file) : msccl_schedule(algorithm, file),
          .is_in_place = algorithm.in_place};
}

FileAlgorithm load_algorithm(const CollectiveRequest& request, int ranks,
                             std::vector<std::string>& notes) {
  if (!request.algorithm_file) {
    return {};
  }
  constexpr std::size_t kMaxAlgorithmBytes = std::size_t{16} << 20;
  const std::string text = read_file(*request.algorithm_file, kMaxAlgorithmBytes);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] == '<' || text[first] == '{') {
    return load_msccl(request, ranks, text, notes);
  }
  FileAlgorithm algorithm{.schedule = read_message_file(text, *request.algorithm_file)};
  const ScheduleShape& shape = algorithm.schedule->shape();
  check_algorithm(request, ranks, shape.operation, shape.ranks,
                  static_cast<int>(shape.root.value()));
  notes.push_back(fmt::format("{}: proved before it was timed", escaped(shape.algorithm)));
  return algorithm;
}

// Throws where the request names an algorithm that the cluster cannot run, and where it can run
// none. Notes which ones of `auto` have partners without a path.
std::vector<Algorithm> runnable_algorithms(const CollectiveRequest& request, const Cluster& cluster,
                                           std::vector<std::string>& notes) {
  if (request.algorithms.empty()) {
    return {};  // NCCL chooses.
  }
  const Routing routing(cluster.topology, cluster.routing);
  const std::optional<std::string> unreachable = describe_unreachable(cluster);
  std::vector<Algorithm> runnable;
  for (const Algorithm algorithm : request.algorithms) {
    std::optional<std::string> error = placement_error(cluster, routing, algorithm);
    if (!error && unreachable) {
      error = path_error(cluster, {.operation = request.operation,
                                   .algorithm = algorithm,
                                   .root = RankId(static_cast<std::uint32_t>(request.root)),
                                   .channels = request.channels});
      if (error) {
        notes.push_back(fmt::format("{} left out: {}", to_string(algorithm), *error));
      }
    }
    if (error && !request.auto_algorithms) {
      throw ConfigError(
          fmt::format("--algo: expected an algorithm that the cluster can run, found \"{}\": {}",
                      to_string(algorithm), *error));
    }
    if (!error) {
      runnable.push_back(algorithm);
    }
  }
  if (runnable.empty() && unreachable) {
    throw ConfigError(
        fmt::format("--algo: expected a cluster that can run one of them, found {}: {}",
                    cluster.name, *unreachable));
  }
  return runnable;
}

// Whether losses and marks of packets are drawn.
bool draws_packets(const CollectiveRequest& request) {
  const PacketOptions& options = request.packet.options;
  return request.runtime.fidelity() == Fidelity::Packet &&
         (options.draws_losses() || uses_marks(options));
}

}  // namespace

Cluster load_ranks(const CollectiveRequest& request, std::vector<std::string>& notes,
                   spdlog::logger& log) {
  Cluster cluster = load_cluster_inputs(request.inputs, log);
  if (request.seed) {
    cluster.routing.seed = *request.seed;
  }
  for (const std::string& setting : request.inputs.overrides.settings) {
    notes.push_back("changed in the cluster: " + escaped(setting));
  }
  if (request.ranks) {
    const std::size_t all = cluster.gpus.size();
    keep_first_ranks(cluster, *request.ranks);
    if (cluster.gpus.size() < all) {
      notes.push_back(fmt::format("the first {} of the {} GPUs of the cluster take part",
                                  cluster.gpus.size(), all));
    }
  }
  if (!request.rank_list.empty()) {
    const std::size_t all = cluster.gpus.size();
    if (static_cast<std::size_t>(request.rank_list.back()) >= all) {
      fail_option("ranks", fmt::format("ranks from 0 to {}", all - 1),
                  std::to_string(request.rank_list.back()));
    }
    keep_ranks(std::vector(cluster.gpus), request.rank_list, cluster);
    notes.push_back(fmt::format("{} of the {} GPUs of the cluster take part, gpus {}, on {}",
                                cluster.gpus.size(), all, ranks_text(request.rank_list),
                                counted(cluster.nodes, "server")));
  }
  const bool is_used = !request.seed || draws_packets(request);
  if (!is_used && cluster.nodes == 1) {
    notes.push_back("--seed did not influence the result: one node does not use the fabric");
  } else if (const auto why = traits(cluster.routing.policy).seedless; !is_used && !why.empty()) {
    notes.push_back(fmt::format("--seed did not influence the result: {}", why));
  }
  const auto ranks = static_cast<int>(cluster.gpus.size());
  if (request.root >= ranks) {
    fail_option("root", fmt::format("a rank from 0 to {}", ranks - 1),
                std::to_string(request.root));
  }
  return cluster;
}

void keep_first_ranks(Cluster& cluster, int ranks) {
  const auto all = static_cast<int>(cluster.gpus.size());
  if (ranks > all) {
    const bool alike = all == cluster.nodes * cluster.gpus_per_node;
    fail_option(
        "ranks",
        alike ? fmt::format("at most {} ({} of {}; --nodes gives more)", all,
                            counted(cluster.nodes, "node"), counted(cluster.gpus_per_node, "GPU"))
              : fmt::format("at most {} (the GPUs of {})", all, counted(cluster.nodes, "node")),
        std::to_string(ranks));
  }
  std::vector<int> first(static_cast<std::size_t>(ranks));
  std::iota(first.begin(), first.end(), 0);
  keep_ranks(std::vector(cluster.gpus), std::move(first), cluster);
}

void rescale(MeasuredTable& table, Operation operation, int ranks) {
  const double factor = bus_factor(operation, ranks) / bus_factor(operation, *table.ranks);
  for (MeasuredRow& row : table.rows) {
    // Not from the printed bandwidth, of which a small size has no digits left.
    row.time = SimTime(std::llround(static_cast<double>(row.time.picoseconds()) * factor));
    row.algbw_gbps /= factor;
  }
}

std::vector<Bytes> message_sizes(const CollectiveRequest& request, int ranks,
                                 const std::optional<MeasuredTable>& measured,
                                 std::vector<std::string>& notes) {
  if (request.operation == Operation::Barrier) {
    return {Bytes(0)};
  }
  const std::vector<Bytes> wanted = wanted_sizes(request, measured);
  // The size of a float, the type of nccl-tests. It prints a row of count 0 for less; NCCL sends
  // nothing then.
  constexpr Bytes kElement{4};
  const bool has_parts = aligned_size(request.operation, kElement, 2) == Bytes(0);
  std::vector<Bytes> sizes;
  int too_small = 0;
  for (const Bytes size : wanted) {
    const bool is_measured = measured && find_row(*measured, size) != nullptr;
    const Bytes aligned = is_measured ? size : aligned_size(request.operation, size, ranks);
    if (aligned < kElement) {
      ++too_small;
    } else {
      sizes.push_back(aligned);
    }
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.empty()) {
    fail_option("maxbytes",
                has_parts ? fmt::format("at least {} bytes, 16 for each rank", 16 * ranks)
                          : "at least 4 bytes, an element",
                to_string(wanted.back()));
  }
  if (too_small > 0) {
    notes.push_back(fmt::format(
        "{} left out: less than {}", counted(too_small, "size"),
        has_parts ? fmt::format("16 bytes for each of {} ranks", ranks) : "4 bytes, an element"));
  }
  return sizes;
}

CollectiveInputs load_collective_inputs(const CollectiveRequest& request, spdlog::logger& log) {
  std::vector<std::string> notes;
  CollectiveInputs inputs{.cluster = load_ranks(request, notes, log)};
  inputs.algorithms = runnable_algorithms(request, inputs.cluster, notes);
  inputs.measured = load_table(request, inputs.cluster, notes);
  inputs.matrix = load_matrix(request, inputs.ranks(), notes);
  FileAlgorithm algorithm = load_algorithm(request, inputs.ranks(), notes);
  inputs.imported = std::move(algorithm.schedule);
  if (algorithm.is_in_place && inputs.measured) {
    take_in_place(*inputs.measured, notes);
  }
  inputs.sizes = inputs.matrix ? std::vector{inputs.matrix->largest()}
                               : message_sizes(request, inputs.ranks(), inputs.measured, notes);
  inputs.notes = std::move(notes);
  return inputs;
}

CollectiveJob plain_job(const CollectiveRequest& request, const CollectiveInputs& inputs,
                        Bytes size) {
  return {.operation = request.operation,
          .size = size,
          .root = RankId(static_cast<std::uint32_t>(request.root)),
          .channels = request.channels,
          .piece = request.piece,
          .fidelity = request.runtime.fidelity(),
          .packet = request.packet.options,
          .matrix = inputs.matrix ? &*inputs.matrix : nullptr,
          .extras = request.runtime.extras};
}

std::string_view algorithm_name(const CollectiveJob& job) {
  return job.schedule != nullptr ? job.schedule->shape().algorithm : to_string(job.algorithm);
}

CollectiveReport empty_report(const CollectiveRequest& request, const CollectiveInputs& inputs) {
  CollectiveReport report;
  report.operation = request.operation;
  report.cluster = inputs.cluster.name;
  report.ranks = inputs.ranks();
  report.node_gpus = inputs.cluster.server_gpus;
  report.root = request.root;
  report.inputs = inputs_of_run(inputs.cluster, request.inputs);
  report.estimates = inputs.cluster.estimates;
  if (inputs.measured) {
    report.measured_name = inputs.measured->name;
    report.measured_source = inputs.measured->source;
  }
  return report;
}

CollectiveRow timed_row(Operation operation, Bytes size, SimTime time,
                        const CollectiveInputs& inputs) {
  CollectiveRow row;
  row.size = size;
  row.time = time;
  if (time > SimTime()) {
    row.algbw_gbps = static_cast<double>(size.count()) / time.seconds() / 1e9;
    row.busbw_gbps = row.algbw_gbps * bus_factor(operation, inputs.ranks());
  }
  if (inputs.measured) {
    if (const MeasuredRow* found = find_row(*inputs.measured, size)) {
      row.measured = *found;
    }
  }
  return row;
}

}  // namespace trainyard
