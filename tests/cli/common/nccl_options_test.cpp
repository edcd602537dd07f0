// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/nccl_options.h"

#include <string>
#include <vector>

#include "cli/collective/collective_request.h"
#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/program.h"

namespace trainyard {
namespace {

using Catch::Matchers::Equals;

NcclOptions read(const std::vector<std::string>& arguments,
                 const std::vector<std::string>& more = {}) {
  const Command command{.name = "test", .options = nccl_options()};
  return read_nccl_variables(parse_options(command, arguments), "--topo-file FILE", more);
}

using Catch::Matchers::Equals;

CollectiveRequest read_any(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--cluster", "c"});
  return read_collective_request(parse_options(collective_command(), arguments));
}

NcclRequest read_request(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--runtime", "nccl"});
  return read_any(std::move(arguments)).nccl.value();
}

void require_refused(const std::vector<std::string>& arguments, const std::string& message) {
  REQUIRE_THROWS_WITH(read_request(arguments), Equals(message));
}

}  // namespace

TEST_CASE("variables come from --env and from options that stand for them, but not from both",
          "[nccl]") {
  const NcclOptions options = read({"--env", "NCCL_CROSS_NIC=0"}, {"NCCL_MAX_NCHANNELS=4"});
  REQUIRE(options.environment.cross_nic == 0);
  REQUIRE(options.environment.max_channels == 4);
  REQUIRE_THROWS_WITH(read({"--env", "NCCL_ALGO=Ring"}, {"NCCL_ALGO=Tree"}),
                      Equals("NCCL_ALGO: given twice"));
  REQUIRE_THROWS_WITH(read({"--env", "NCCL_TOPO_FILE=a.xml"}),
                      Equals("--env: expected --topo-file FILE, found NCCL_TOPO_FILE"));
}

TEST_CASE("commands without a runtime name the release", "[nccl]") {
  const Command command{.name = "test", .options = nccl_options()};
  const std::vector<std::string> arguments{"--nccl-version", "2.31.1"};
  const NcclOptions options = read_nccl_options(parse_options(command, arguments), "");
  REQUIRE(options.version == nccl::Version::V2_30);
  REQUIRE(options.notes.size() == 1);
}

TEST_CASE("a graph file is read with its name, one that is not there is an error", "[nccl]") {
  const ScratchFolder folder;
  const std::string file = folder.write("g.xml", "<graphs/>").string();
  const nccl::InitOptions init = read({"--graph-file", file}).init_options();
  REQUIRE(init.graph_text == "<graphs/>");
  REQUIRE(init.graph_name == file);
  REQUIRE_FALSE(read({}).init_options().graph_text.has_value());
  REQUIRE_THROWS_AS(read({"--graph-file", file + "x"}).init_options(), ConfigError);
}

TEST_CASE("NCCL chooses by itself unless algorithms or protocols are named", "[nccl]") {
  const NcclRequest automatic = read_request({"all_reduce"});
  REQUIRE(automatic.choices.size() == 1);
  REQUIRE_FALSE(automatic.choices[0].algorithm.has_value());
  REQUIRE(automatic.choices[0].options.environment.selection.text().empty());
  const NcclRequest forced =
      read_request({"all_reduce", "--algo", "ring,NVLSTree", "--proto", "ll,simple"});
  REQUIRE(forced.choices.size() == 4);
  REQUIRE(forced.choices[1].algorithm == nccl::Algorithm::Ring);
  REQUIRE(forced.choices[1].protocol == nccl::Protocol::Simple);
  REQUIRE(forced.choices[2].options.environment.selection.text() ==
          "NCCL_ALGO=NVLSTree NCCL_PROTO=LL");
  require_refused({"all_reduce", "--algo", "rnig"},
                  "--algo: expected auto alone, or some of ring, tree, nvls, nvlstree, pat, "
                  "collnetdirect, collnetchain, found \"rnig\"; did you mean \"ring\"?");
  require_refused({"all_reduce", "--algo", "ring,swing"},
                  "--algo: expected --runtime plain beside it, or some of ring, tree, nvls, "
                  "nvlstree, pat, collnetdirect, collnetchain, found \"swing\"");
  REQUIRE(read_request({"all_reduce", "--algo", "CollNetChain"}).choices[0].algorithm ==
          nccl::Algorithm::CollNetChain);
  require_refused({"all_reduce", "--proto", "ll,ll"},
                  "--proto: expected every name once, found \"ll,ll\"");
  require_refused({"all_reduce", "--algo", "ring", "--env", "NCCL_ALGO=Ring"},
                  "NCCL_ALGO: given twice");
  require_refused({"alltoall", "--algo", "ring"},
                  "--algo: expected an operation for which NCCL chooses an algorithm, found "
                  "alltoall, which is made of sends and receives");
}

TEST_CASE("how NCCL is called is that of nccl-tests unless options say otherwise", "[nccl]") {
  const NcclRequest plain = read_request({"all_reduce"});
  REQUIRE(plain.mode.gpus_per_process == 1);
  REQUIRE(plain.mode.back_to_back);
  REQUIRE_FALSE(plain.mode.cuda_graph);
  const NcclRequest other = read_request(
      {"all_reduce", "--gpus-per-process", "8", "--cuda-graph", "--isolated", "--channels", "4"});
  REQUIRE(other.mode.gpus_per_process == 8);
  REQUIRE_FALSE(other.mode.back_to_back);
  REQUIRE(other.mode.cuda_graph);
  REQUIRE(other.choices[0].options.environment.min_channels == 4);
  REQUIRE(other.choices[0].options.environment.max_channels == 4);
}

TEST_CASE("an engine stands between nodes if it is named", "[nccl]") {
  const auto engine = [](std::vector<std::string> more) {
    more.insert(more.begin(), "all_reduce");
    return read_any(more).runtime.engine;
  };
  REQUIRE_FALSE(engine({}).has_value());
  REQUIRE_FALSE(engine({"--fidelity", "ports"}).has_value());
  REQUIRE(engine({"--fidelity", "packet", "--mtu", "1024"}) == Fidelity::Packet);
  REQUIRE(engine({"--fidelity", "analytical"}) == Fidelity::Analytical);
  require_refused(
      {"all_reduce", "--fidelity", "events"},
      "--fidelity: expected ports, flow, analytical, packet or mixed, found \"events\"");
  REQUIRE_THROWS_AS(engine({"--runtime", "plain", "--fidelity", "ports"}), ConfigError);
}

TEST_CASE("options of one runtime are refused with the other", "[nccl]") {
  require_refused({"all_reduce", "--chunk", "4K"},
                  "--chunk: expected --runtime plain beside it, found nccl");
  require_refused({"all_reduce", "--mtu", "1024"},
                  "--mtu: expected --fidelity packet or mixed beside it, found ports");
  require_refused({"all_reduce", "--fidelity", "flow", "--mtu", "1024"},
                  "--mtu: expected --fidelity packet or mixed beside it, found flow");
  require_refused({"all_reduce", "--fingerprint"},
                  "--fingerprint: expected --fidelity flow, analytical, packet or mixed beside it, "
                  "found ports");
  require_refused({"broadcast", "--root", "1"},
                  "--root: expected 0 with --runtime nccl, whose event model starts or ends at "
                  "rank 0 alone, found \"1\"");
  REQUIRE_THROWS_WITH(
      read_any({"all_reduce", "--runtime", "plain", "--env", "NCCL_ALGO=Ring"}),
      Equals("--env: expected --runtime nccl, rccl or hccl beside it, found plain"));
}

}  // namespace trainyard
