// SPDX-License-Identifier: Apache-2.0
#include "cli/common/commands.h"

#include <optional>
#include <string_view>
#include <vector>

#include "cli/collective/collective_inputs.h"
#include "cli/commands/plan_request.h"
#include "cli/common/common.h"
#include "cli/common/effects.h"
#include "cli/common/html_output.h"
#include "cli/common/options.h"
#include "nccl/machine/job_nodes.h"
#include "nccl/tuning/choice.h"
#include "nccl/tuning/graph_xml.h"
#include "nccl/tuning/init.h"
#include "nccl/tuning/tuner_csv.h"
#include "report/formats/output.h"
#include "report/results/plan_report.h"
#include "sim/check.h"
#include "sim/printable.h"
#include "topology/exchange/nccl_xml.h"

namespace trainyard {
namespace {

// The size limit of a topology file.
constexpr std::size_t kMaxPlanBytes = std::size_t{4} << 20;

constexpr std::string_view kPlanExample = R"(
OP is all_reduce, all_gather, reduce_scatter, broadcast, reduce, or all (the default). NCCL's
estimates are for choosing between algorithms, no predictions of time (docs/commands/plan.md).

Examples:
  trainyard plan --cluster dgx-h100 --nodes 4
  trainyard plan all_reduce --topo-file machine.xml --nodes 2 --env NCCL_ALGO=Ring
  trainyard plan all_reduce --cluster dgx-h100 --nodes 4 --format info
  trainyard plan --cluster dgx-h100 --nodes 4 --graph-out graph.xml
)";

struct Machine {
  std::string source;
  nccl::JobNodes nodes;
};

Machine load_machine(PlanRequest& request) {
  if (request.topology_file) {
    const std::string& file = *request.topology_file;
    return {.source = file,
            .nodes = nccl::job_nodes(read_nccl_xml(read_file(file, kMaxPlanBytes), file),
                                     {.nodes = request.overrides.nodes.value_or(1),
                                      .gpus_per_node = request.overrides.gpus_per_node,
                                      .ranks = request.ranks})};
  }
  const Catalogue& catalogue = load_default_catalogue();
  Cluster cluster =
      load_cluster(find_config("clusters", *request.cluster), catalogue, request.overrides);
  if (request.ranks) {
    keep_first_ranks(cluster, *request.ranks);
  }
  for (const std::string& setting : request.overrides.settings) {
    request.nccl.notes.push_back("changed in the cluster: " + escaped(setting));
  }
  request.nccl.notes.insert(request.nccl.notes.end(), cluster.warnings.begin(),
                            cluster.warnings.end());
  return {.source = "cluster " + cluster.name,
          .nodes = nccl::job_nodes(cluster, request.nccl.domains())};
}

std::vector<PlannedCall> plan_calls(const PlanRequest& request,
                                    const nccl::Communicator& communicator,
                                    std::vector<std::string>& notes) {
  const std::optional<nccl::TunerTable> tuner = request.nccl.tuner();
  const nccl::CallOptions call_options{.tuner = tuner ? &*tuner : nullptr};
  std::vector<PlannedCall> calls;
  for (const Operation operation : request.operations) {
    CollectiveRequest sizes;
    sizes.operation = operation;
    sizes.min_size = request.min_size;
    sizes.greatest_size = request.greatest_size;
    sizes.factor = request.factor;
    const auto function = nccl::function_of(operation);
    CHECK(function.has_value(), "only operations with an algorithm are planned");
    for (const Bytes size : message_sizes(sizes, communicator.ranks, std::nullopt, notes)) {
      calls.push_back({.operation = operation,
                       .size = size,
                       .plan = nccl::plan_call(
                           communicator, request.nccl.environment, *function,
                           nccl::call_bytes(*function, size, communicator.ranks), call_options)});
    }
  }
  return calls;
}

int run_plan(const OptionReader& reader, std::ostream& out) {
  PlanRequest request = read_plan_request(reader);
  const Machine machine = load_machine(request);
  const nccl::InitResult made = nccl::make_communicator(machine.nodes, request.nccl.init_options());
  PlanReport report{.source = machine.source, .communicator = made.communicator};
  std::vector<std::string> notes = request.nccl.notes;
  report.calls = plan_calls(request, made.communicator, notes);
  append_once(notes, report.notes);
  append_once(made.communicator.remarks, report.notes);
  if (request.graph_output) {
    const auto kind = static_cast<std::size_t>(made.communicator.node_kind.front());
    write_file(*request.graph_output,
               nccl::write_graph_xml(made.communicator.graphs[kind], made.names));
  }
  if (request.format == "info") {
    write_output(request.output, render_plan_info(report), out);
    return 0;
  }
  const Document document = with_effects(
      reader, document_of(report),
      RunCounts{.gpus = static_cast<std::size_t>(made.communicator.ranks), .communicators = 1});
  keep_result(reader.kept(), document);
  write_output(request.output, render(document, *parse_format(request.format)), out);
  return 0;
}

}  // namespace

Command plan_command() {
  return {.name = "plan",
          .form = "plan [OP]",
          .summary = "what NCCL would choose there, and why: rings, trees, algorithm by size",
          .usage = "plan [OP] --cluster NAME|FILE [options]",
          .arguments = {{.name = "operation"}},
          .options = plan_options(),
          .example = kPlanExample,
          .run = run_plan};
}

}  // namespace trainyard
