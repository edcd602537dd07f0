// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/commands/plan_request.h"

#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"

namespace trainyard {
namespace {

using Catch::Matchers::Equals;

PlanRequest read(const std::vector<std::string>& arguments) {
  return read_plan_request(parse_options(plan_command(), arguments));
}

void require_refused(const std::vector<std::string>& arguments, const std::string& message) {
  REQUIRE_THROWS_WITH(read(arguments), Equals(message));
}

}  // namespace

TEST_CASE("a plan is of all collectives with an algorithm, or of one", "[nccl]") {
  REQUIRE(read({"--cluster", "dgx-h100"}).operations.size() == 5);
  REQUIRE(read({"all", "--cluster", "dgx-h100"}).operations.size() == 5);
  REQUIRE(read({"broadcast", "--cluster", "dgx-h100"}).operations ==
          std::vector<Operation>{Operation::Broadcast});
  require_refused({"alltoall", "--cluster", "dgx-h100"},
                  "plan: expected one of all, all_reduce, all_gather, reduce_scatter, broadcast, "
                  "reduce, found alltoall, which is made of sends and receives: NCCL chooses no "
                  "algorithm for it");
  require_refused({"all_redcue", "--cluster", "dgx-h100"},
                  "plan: expected one of all, all_reduce, all_gather, reduce_scatter, broadcast, "
                  "reduce, found \"all_redcue\"; did you mean \"all_reduce\"?");
}

TEST_CASE("a plan is of a cluster or of a topology file", "[nccl]") {
  REQUIRE(read({"--topo-file", "a.xml", "--nodes", "2"}).overrides.nodes == 2);
  require_refused({},
                  "plan: expected --cluster NAME|FILE or --topo-file FILE, found neither; see "
                  "trainyard plan --help");
  require_refused({"--topo-file", "a.xml", "--cluster", "b"},
                  "--topo-file: expected without --cluster, found both");
  require_refused({"--topo-file", "a.xml", "--set", "a=b"},
                  "--topo-file: expected without --set, found both");
}

TEST_CASE("a release that is not known represents its nearest one, and a note says so", "[nccl]") {
  REQUIRE(read({"--topo-file", "a.xml", "--nccl-version", "2.27.7"}).nccl.version ==
          nccl::Version::V2_27);
  const PlanRequest near = read({"--topo-file", "a.xml", "--nccl-version", "2.31.1"});
  REQUIRE(near.nccl.version == nccl::Version::V2_30);
  REQUIRE(near.nccl.notes ==
          std::vector<std::string>{
              "NCCL 2.31.1 is planned as 2.30.7, the nearest release whose rules are known"});
  require_refused({"--topo-file", "a.xml", "--nccl-version", "new"},
                  "--nccl-version: expected a release such as 2.30.7 or 2.18.5, found \"new\"");
}

TEST_CASE("variables that name files are options too", "[nccl]") {
  REQUIRE(read({"--topo-file", "a.xml", "--env", "NCCL_GRAPH_FILE=g.xml"}).nccl.graph_file ==
          "g.xml");
  require_refused(
      {"--topo-file", "a.xml", "--env", "NCCL_GRAPH_FILE=g.xml", "--graph-file", "h.xml"},
      "--graph-file: expected without --env NCCL_GRAPH_FILE, found both");
  require_refused({"--cluster", "a", "--env", "NCCL_TOPO_FILE=a.xml"},
                  "--env: expected --topo-file FILE, found NCCL_TOPO_FILE");
  REQUIRE(read({"--topo-file", "a.xml", "--env", "NCCL_MAX_NCHANNELS=4"})
              .nccl.environment.max_channels == 4);
}

TEST_CASE("what cannot be written is refused at once", "[nccl]") {
  require_refused({"--topo-file", "a.xml", "--format", "csv"},
                  "--format: expected table, json or info, found \"csv\"");
  require_refused({"--topo-file", "a.xml", "--graph-out", "/no/such/folder/g.xml"},
                  "--graph-out: expected a file in a folder that exists, found "
                  "\"/no/such/folder/g.xml\"");
  require_refused({"--topo-file", "a.xml", "--graph-out", "g.xml", "--output", "g.xml"},
                  "--graph-out: expected another file than that of --output, found \"g.xml\"");
}

}  // namespace trainyard
