// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/step/step_html.h"

#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "cli/common/log.h"
#include "cli/step/step_convolutional.h"
#include "cli/step/step_recommender.h"
#include "report/steps/step_report.h"

namespace trainyard {
namespace {

HtmlReport html_of(const std::string& method) {
  const std::vector<std::string> arguments{"--cluster",  "dgx-h100",   "--nodes",  "4",
                                           "--workload", "llama-3-8b", "--method", method};
  const OptionReader reader = parse_options(step_command(), arguments);
  const StepRequest request = read_step_request(reader);
  spdlog::logger log = make_logger(reader);
  const Inputs inputs = load_inputs(request.inputs, log);
  const StepRun run = run_step_inputs(request, inputs);
  StepReport report;
  report.setup.cluster = "C";
  report.setup.workload = "W";
  report.run = &run;
  report.flops_of_token = 1.0;
  return step_html(request, inputs, run, counted_traffic(request, inputs, run),
                   document_of(report));
}

}  // namespace

TEST_CASE("the page of a step has its parts, a timeline, links and tables", "[step-html]") {
  for (const char* const method : {"closed-forms", "graph"}) {
    const HtmlReport html = html_of(method);
    REQUIRE(html.title == "W on C");
    REQUIRE(html.breakdown.size() == kStepParts);
    REQUIRE(!html.timeline.tracks.empty());
    const bool says_so = html.timeline.note.find("by --method graph") != std::string::npos;
    REQUIRE(says_so == (std::string(method) == "closed-forms"));
    REQUIRE(!html.links.units.empty());
    REQUIRE(html.tables.size() == 2);
    REQUIRE(html.tables[0].title == "Collectives and messages");
    REQUIRE(!html.tables[0].table.rows().empty());
  }
}

TEST_CASE("the page of a workload without closed forms has the same", "[step-html]") {
  for (const char* const workload : {"resnet-50", "dlrm-dcnv2"}) {
    INFO(workload);
    const std::vector<std::string> arguments{"--cluster", "dgx-h100",   "--nodes",
                                             "1",         "--workload", workload};
    const OptionReader reader = parse_options(step_command(), arguments);
    const StepRequest request = read_graph_request(reader, "it");
    spdlog::logger log = make_logger(reader);
    const bool has_images = std::string(workload) == "resnet-50";
    const LoweredJob job =
        has_images ? convolutional_job(request, log) : recommender_job(request, log);
    const LoweredRun run = job.run(job.machine);
    const HtmlReport html = lowered_html(request, job, run, {.heading = {"H"}});
    REQUIRE(!html.timeline.tracks.empty());
    REQUIRE(html.timeline.note.find("operations") != std::string::npos);
    REQUIRE(!html.links.units.empty());
    REQUIRE(html.tables[0].title == "Collectives and messages");
    REQUIRE(!html.tables[0].table.rows().empty());
  }
}

}  // namespace trainyard
