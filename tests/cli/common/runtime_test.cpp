// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/runtime.h"

#include <string>
#include <vector>

#include "sim/config_error.h"

namespace trainyard {
namespace {

Runtime runtime(const std::vector<std::string>& arguments) {
  const Command command{
      .name = "step",
      .options = joined({runtime_options(),
                         Options{{"traffic", "NAME", "", {.choices = "alone|shared"}},
                                 packet_threads_option("traffic=shared")},
                         sending_options("traffic=shared fidelity=packet")})};
  return read_runtime(parse_options(command, arguments));
}

}  // namespace

TEST_CASE("collectives run as the newest NCCL would unless another runtime is named", "[cli]") {
  const Runtime usual = runtime({});
  REQUIRE(usual.nccl == nccl::kNewestVersion);
  REQUIRE(usual.name() == "nccl");
  REQUIRE(usual.how() == "as NCCL 2.30.7 would by its event model");
  REQUIRE_FALSE(usual.engine.has_value());
  REQUIRE(usual.engine_name().empty());
  REQUIRE(runtime({"--nccl-version", "2.28.9"}).nccl == nccl::Version::V2_28);
  REQUIRE(runtime({"--nccl-version", "2.28.9"}).notes.empty());
  REQUIRE(runtime({"--nccl-version", "2.31.1"}).notes.size() == 1);
  const Runtime plain = runtime({"--runtime", "plain"});
  REQUIRE_FALSE(plain.nccl.has_value());
  REQUIRE(plain.name() == "plain");
  REQUIRE(plain.how() == "as plain rings");
  REQUIRE(plain.engine == Fidelity::Flow);
}

TEST_CASE("where NCCL does not run the runtime is plain, unless an option says otherwise",
          "[cli]") {
  const auto assumed = [](const std::string& cluster, std::vector<std::string> more) {
    more.insert(more.end(), {"--cluster", cluster});
    OptionReader reader = parse_options(
        {.name = "step", .options = joined({runtime_options(), cluster_options()})}, more);
    assume_runtime(reader);
    return reader;
  };
  const Runtime plain = read_runtime(assumed("tpu-v4", {}));
  REQUIRE(plain.name() == "plain");
  REQUIRE(plain.notes.size() == 1);
  REQUIRE(plain.notes.front().find("NCCL does not run on Google TPU v4") != std::string::npos);
  REQUIRE(read_runtime(assumed("dgx-h100", {})).name() == "nccl");
  REQUIRE(read_runtime(assumed("tpu-v4", {"--runtime", "nccl"})).name() == "nccl");
  REQUIRE(read_runtime(assumed("tpu-v4", {"--nccl-version", "2.28.9"})).name() == "nccl");
  REQUIRE(read_runtime(assumed("no-such-cluster", {})).name() == "nccl");
}

TEST_CASE("what is NCCL's needs NCCL, and one network needs the plain runtime", "[cli]") {
  REQUIRE_THROWS_WITH(runtime({"--runtime", "plain", "--nccl-version", "2.28.9"}),
                      "--nccl-version: expected --runtime nccl beside it, found plain");
  REQUIRE_THROWS_WITH(runtime({"--runtime", "plain", "--profile", "my.yaml"}),
                      "--profile: expected --runtime nccl or rccl beside it, found plain");
  REQUIRE_THROWS_WITH(runtime({"--nccl-version", "new"}),
                      "--nccl-version: expected a release such as 2.30.7 or 2.18.5, found "
                      "\"new\"");
  REQUIRE_THROWS_WITH(runtime({"--traffic", "shared"}),
                      "--traffic shared: expected --runtime plain with --fidelity flow or packet, "
                      "found nccl");
  REQUIRE(runtime({"--traffic", "shared", "--runtime", "plain"}).shares_network);
}

TEST_CASE("HCCL is a runtime of its own, for which one must ask", "[cli][hccl]") {
  const Runtime hccl = runtime({"--runtime", "hccl"});
  REQUIRE_FALSE(hccl.nccl.has_value());
  REQUIRE(hccl.name() == "hccl");
  REQUIRE(hccl.how() == "as HCCL would");
  REQUIRE(hccl.engine == Fidelity::Flow);
  const GpuRates rates;
  StepTables tables{.rates = rates};
  hccl.apply(nccl::Profile(), tables);
  REQUIRE(tables.hccl == &*hccl.hccl);
  REQUIRE(tables.nccl == nullptr);
  REQUIRE_THROWS_WITH(runtime({"--runtime", "hccl", "--traffic", "shared"}),
                      "--traffic shared: expected --runtime plain with --fidelity flow or packet, "
                      "found hccl");
  const std::vector<std::string> ascend{"--cluster", "ascend-910b"};
  OptionReader reader = parse_options(
      {.name = "step", .options = joined({runtime_options(), cluster_options()})}, ascend);
  assume_runtime(reader);
  REQUIRE(read_runtime(reader).name() == "plain");
  REQUIRE(read_runtime(reader).notes.front().find("--runtime hccl has what does") !=
          std::string::npos);
}

TEST_CASE("the tables of a step have the runtime", "[cli]") {
  const nccl::Profile profile;
  const Catalogue catalogue;
  const GpuRates rates;
  StepTables tables{.rates = rates};
  runtime({"--fidelity", "packet"}).apply(profile, tables);
  REQUIRE(tables.nccl == &profile);
  REQUIRE(tables.engine == Fidelity::Packet);
  runtime({"--runtime", "plain", "--fidelity", "analytical"}).apply(profile, tables);
  REQUIRE(tables.nccl == nullptr);
  REQUIRE(tables.fidelity == Fidelity::Analytical);
  REQUIRE_FALSE(tables.engine.has_value());
}

TEST_CASE("packets of all traffic on one network are sent as options say", "[cli]") {
  const Runtime shared = runtime({"--runtime", "plain", "--traffic", "shared", "--fidelity",
                                  "packet", "--control", "hpcc", "--pfc", "off", "--threads", "3"});
  REQUIRE(control_name(shared.packet.options) == "hpcc");
  REQUIRE(shared.packet.options.threads == 3);
  REQUIRE_FALSE(shared.packet.options.pfc);
  const nccl::Profile profile;
  const GpuRates rates;
  StepTables tables{.rates = rates};
  shared.apply(profile, tables);
  REQUIRE(tables.packets.threads == 3);
  REQUIRE_THROWS_WITH(runtime({"--fidelity", "packet", "--control", "hpcc"}),
                      Catch::Contains("--control"));
}

}  // namespace trainyard
