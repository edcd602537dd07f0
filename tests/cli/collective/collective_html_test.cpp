// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/collective/collective_html.h"

#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "support/built_clusters.h"
#include "support/program.h"

namespace trainyard {
namespace {

CollectiveRow curve_row(Bytes size, const std::string& algorithm, SimTime time) {
  CollectiveRow row;
  row.size = size;
  row.algorithm = algorithm;
  row.protocol = "-";
  row.time = time;
  row.busbw_gbps = 10.0;
  return row;
}

}  // namespace

TEST_CASE("the page of a collective has a curve for each algorithm, or for NCCL's choice",
          "[collective-html]") {
  const Cluster cluster = shipped_cluster("dgx-h100", {.nodes = 2});
  CollectiveReport report;
  report.cluster = cluster.name;
  report.runtime = "plain";
  report.ranks = 16;
  report.rows = {
      curve_row(mib(1), "ring", microseconds(10)), curve_row(mib(1), "tree", microseconds(20)),
      curve_row(mib(2), "ring", microseconds(20)), curve_row(mib(2), "tree", microseconds(30))};
  const auto shown = [&](TraceRecorder& recorder) {
    recorder.add_span(recorder.add_track("rank 0", "lane 0"), "receive", {}, microseconds(1));
    return ShownRun{.what = "ring of 2M",
                    .time = microseconds(20),
                    .traffic = {{.link = LinkId(0), .parts = {{"ring", mib(1)}}}}};
  };
  const HtmlReport plain = collective_html(document_of(report), report, cluster, shown);
  REQUIRE(plain.curves.size() == 2);
  REQUIRE(plain.curves[0].points.size() == 2);
  REQUIRE(!plain.timeline.tracks.empty());
  REQUIRE(plain.timeline.note == "ring of 2M.");
  REQUIRE(!plain.links.units.empty());
  report.runtime = "nccl";
  report.rows = {curve_row(mib(1), "Ring", microseconds(10)),
                 curve_row(mib(2), "Tree", microseconds(20))};
  report.rows[1].interval = TimeInterval{.low = microseconds(10), .high = microseconds(40)};
  const HtmlReport nccl = collective_html(document_of(report), report, cluster, shown);
  REQUIRE(nccl.curves.size() == 1);
  REQUIRE(nccl.curves[0].name == "NCCL's choice");
  REQUIRE(nccl.curves[0].points[1].band->first == Approx(5.0));
  REQUIRE(nccl.curves[0].points[1].band->second == Approx(20.0));
  report.runtime = "mpi";
  REQUIRE(collective_html(document_of(report), report, cluster, shown).curves[0].name ==
          "choice of mpi");
}

TEST_CASE("pages of every runtime and of groups have a timeline and links", "[collective-html]") {
  const ScratchFolder folder;
  const std::string page = (folder.path() / "page.html").string();
  const auto require_shown = [&](const std::vector<std::string>& words, const std::string& group) {
    std::vector<std::string> all{"all_reduce", "-b", "1M", "-e", "1M", "--report", page};
    all.insert(all.end(), words.begin(), words.end());
    std::ostringstream out;
    REQUIRE(run_command(collective_command(), all, out) == 0);
    const std::string text = read_text_file(page);
    INFO(words[3]);
    REQUIRE(text.find("\"group\":\"" + group + "\"") != std::string::npos);
    REQUIRE(text.find("share of its time in which links are busy") != std::string::npos);
  };
  require_shown({"--cluster", "ascend-910b", "--runtime", "hccl"}, "rank 0");
  require_shown({"--cluster", "dgx-a100", "--runtime", "mpi"}, "rank 0");
  require_shown({"--cluster", "dgx-a100", "--runtime", "gloo"}, "rank 0");
  require_shown({"--cluster", "dgx-a100", "--runtime", "plain", "--groups", "8"}, "0, rank 0");
}

}  // namespace trainyard
