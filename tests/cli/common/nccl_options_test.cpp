// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/nccl_options.h"

#include <string>
#include <vector>

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
  const std::vector<std::string> arguments{"--nccl-version", "2.29.3"};
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

}  // namespace trainyard
