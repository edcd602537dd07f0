// SPDX-License-Identifier: Apache-2.0
// The runtime nccl from arguments to output, in this process.
#include "support/catch.h"

#include "cli/collective/collective_nccl.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/common/commands.h"
#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

using Catch::Matchers::Equals;
using Json = nlohmann::json;

std::string run(const std::string& operation, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{operation, "--runtime", "nccl", "--cluster", "dgx-h100"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  std::ostringstream out;
  const int status = run_command(collective_command(), arguments, out);  // Its errors pass through.
  REQUIRE(status == 0);
  return out.str();
}

Json json_of(const std::string& operation, std::vector<std::string> more) {
  more.insert(more.end(), {"--format", "json"});
  return Json::parse(run(operation, more));
}

Json one_row(const std::string& operation, std::vector<std::string> more) {
  if (std::ranges::find(more, "-b") == more.end()) {
    more.insert(more.end(), {"-b", "1M", "-e", "1M"});
  }
  const Json rows = json_of(operation, more)["rows"];
  REQUIRE(rows.size() == 1);
  return rows[0];
}

}  // namespace

TEST_CASE("every operation of nccl-tests has a time, on one node and on several", "[nccl]") {
  for (const std::string operation : {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                      "reduce", "alltoall", "sendrecv", "scatter", "gather"}) {
    for (const std::string nodes : {"1", "3"}) {
      INFO(operation << " on " << nodes);
      const Json row = one_row(operation, {"--nodes", nodes});
      REQUIRE(row["time_us"] > 0.0);
      REQUIRE(row["device_us"] > 0.0);
      REQUIRE(row["device_us"] <= row["time_us"]);
      REQUIRE(row["host_us"] > 0.0);
      REQUIRE(row["channels"] >= 1);
      REQUIRE(row["chunk_bytes"] > 0);
      REQUIRE_FALSE(row["reason"].get<std::string>().empty());
      REQUIRE_FALSE(row.contains("transfers"));
      const bool exchanged = row["algorithm"] == "SendRecv";
      REQUIRE(row["threads"].is_null() == exchanged);
      REQUIRE(row["nccl_estimate_us"].is_null() == exchanged);
    }
  }
}

TEST_CASE("a comparison shows NCCL's choice first, then each algorithm that it has", "[nccl]") {
  const std::vector<std::string> size{"--nodes", "2", "-b", "64M", "-e", "64M", "--compare"};
  const Json rows = json_of("all_reduce", size)["rows"];
  REQUIRE(rows.size() == 3);
  const Json chosen = one_row("all_reduce", {"--nodes", "2", "-b", "64M", "-e", "64M"});
  REQUIRE(rows[0]["algorithm"] == "NVLSTree");
  REQUIRE(chosen["algorithm"] == "NVLSTree");
  REQUIRE(rows[0]["time_us"] == chosen["time_us"]);
  REQUIRE(rows[1]["algorithm"] == "Tree");
  REQUIRE(rows[2]["algorithm"] == "Ring");
  for (const Json& row : rows) {
    REQUIRE(row["bound_us"] > 0.0);
    REQUIRE(row["bound_us"] < row["time_us"]);
  }
  // Nothing to choose from: one line.
  REQUIRE(json_of("alltoall", size)["rows"].size() == 1);
}

TEST_CASE("what is forced gives a row each, and the fastest is marked", "[nccl]") {
  const Json report = json_of("all_reduce", {"--nodes", "2", "-b", "64K", "-e", "64M", "-f", "1024",
                                             "--algo", "ring,nvlstree", "--proto", "ll,simple"});
  const Json& rows = report["rows"];
  REQUIRE(rows.size() == 6);  // NVLSTree has no LL.
  for (std::size_t first = 0; first < rows.size(); first += 3) {
    REQUIRE(rows[first]["algorithm"] == "Ring");
    REQUIRE(rows[first]["protocol"] == "LL");
    REQUIRE(rows[first + 1]["protocol"] == "Simple");
    REQUIRE(rows[first + 2]["algorithm"] == "NVLSTree");
    int best = 0;
    for (std::size_t row = first; row < first + 3; ++row) {
      best += rows[row]["best"] ? 1 : 0;
    }
    REQUIRE(best == 1);
  }
  const auto& notes = report["notes"];
  REQUIRE(std::ranges::find(notes,
                            "left out: NCCL_ALGO=NVLSTree NCCL_PROTO=LL, which NCCL does not have "
                            "for AllReduce here") != notes.end());
  REQUIRE_THROWS_WITH(json_of("all_gather", {"--algo", "ring,tree"}),
                      Equals("--algo: expected what NCCL has for AllGather on this cluster, found "
                             "\"Tree\""));
}

TEST_CASE("forcing what NCCL chooses changes nothing but the reason", "[nccl]") {
  Json free = one_row("all_reduce", {"--nodes", "2"});
  Json forced = one_row("all_reduce",
                        {"--nodes", "2", "--algo", free["algorithm"], "--proto", free["protocol"]});
  free.erase("reason");
  forced.erase("reason");
  REQUIRE(free == forced);
}

TEST_CASE("variables, channels and the way of calling count", "[nccl]") {
  REQUIRE(one_row("all_reduce", {"--algo", "ring", "--channels", "4"})["channels"] == 4);
  REQUIRE(one_row("all_reduce", {"--env", "NCCL_ALGO=Ring"})["algorithm"] == "Ring");
  const Json together = one_row("all_reduce", {"--nodes", "1"});
  const Json alone = one_row("all_reduce", {"--nodes", "1", "--isolated"});
  REQUIRE(alone["time_us"].get<double>() ==
          Approx(alone["device_us"].get<double>() + alone["host_us"].get<double>()));
  REQUIRE(alone["time_us"] > together["time_us"]);
  REQUIRE(one_row("all_reduce", {"--nodes", "1", "--cuda-graph"})["host_us"] !=
          together["host_us"]);
  REQUIRE(one_row("all_reduce", {"--nodes", "1", "--gpus-per-process", "8"})["host_us"] >
          together["host_us"]);
  REQUIRE_THROWS_WITH(
      json_of("all_reduce", {"--nodes", "1", "--gpus-per-process", "9"}),
      Equals("--gpus-per-process: expected a number that divides the 8 GPUs of a node, found "
             "\"9\""));
  REQUIRE_THROWS_WITH(
      json_of("all_reduce", {"--nodes", "1", "--gpus-per-process", "3"}),
      Equals("--gpus-per-process: expected a number that divides the 8 GPUs of a node, found "
             "\"3\""));
}

TEST_CASE("the number of threads never changes a result of NCCL's model", "[nccl]") {
  for (const std::string operation : {"all_reduce", "broadcast", "all_gather", "alltoall"}) {
    const std::vector<std::string> sizes{"--nodes", "3", "-b", "4K", "-e", "256M", "-f", "16"};
    std::vector<std::string> one = sizes;
    one.insert(one.end(), {"--threads", "1"});
    std::vector<std::string> three = sizes;
    three.insert(three.end(), {"--threads", "3"});
    REQUIRE(run(operation, one) == run(operation, three));
  }
}

TEST_CASE("NICs that only some NICs reach are refused with what to do", "[nccl]") {
  const ScratchFolder folder;
  const std::string file = folder.write(
      "cabled.yaml",
      "name: c\nsource: s\nnodes: 3\nserver: {template: pcie, gpu: L40S, gpus: 1, nic: "
      "ConnectX-7-200G, nics: 2, cpu: EPYC-Rome}\nfabric: {template: graph, cable: 3 m, links: ["
      "{from: server0/nic0, to: server1/nic1}, {from: server1/nic0, to: server2/nic1}, "
      "{from: server2/nic0, to: server0/nic1}]}\n");
  std::ostringstream out;
  const std::vector<std::string> arguments{"all_reduce", "--runtime", "nccl", "--cluster", file};
  REQUIRE_THROWS_WITH(run_command(collective_command(), arguments, out),
                      Catch::Matchers::Contains("between which NCCL has a channel") &&
                          Catch::Matchers::EndsWith("or use --runtime plain"));
}

TEST_CASE("clusters that NCCL's model cannot take are refused in one line", "[nccl]") {
  REQUIRE_THROWS_WITH(json_of("all_reduce", {"--ranks", "1"}),
                      Equals("a communicator: expected at least two ranks, found 1"));
  for (const std::string cluster : {"tpu-v4", "ascend-910b"}) {
    INFO(cluster);
    std::ostringstream out;
    const std::vector<std::string> arguments{"all_reduce", "--runtime", "nccl", "--cluster",
                                             cluster};
    REQUIRE_THROWS_AS(run_command(collective_command(), arguments, out), ConfigError);
  }
}

TEST_CASE("AMD's GPUs run RCCL, by themselves and if told", "[nccl][rccl]") {
  const auto run = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"all_reduce", "--nodes", "1", "--format", "json"});
    std::ostringstream out;
    run_command(collective_command(), arguments, out);
    return Json::parse(out.str());
  };
  const Json own = run({"--cluster", "mi300x", "-b", "1M", "-e", "64M", "-f", "64"});
  REQUIRE(own["runtime"] == "rccl");
  REQUIRE(own["rows"][0]["algorithm"] == "AllPairs");
  REQUIRE(own["rows"][1]["algorithm"] == "Ring");
  const Json told =
      run({"--cluster", "mi300x", "-b", "1M", "-e", "64M", "-f", "64", "--runtime", "rccl"});
  REQUIRE(told["rows"] == own["rows"]);
  REQUIRE_THROWS_WITH(run({"--cluster", "mi300x", "--runtime", "nccl"}),
                      Equals("--runtime: expected rccl or plain for AMD Instinct MI300X 192 GB, "
                             "found \"nccl\""));
  REQUIRE_THROWS_WITH(run({"--cluster", "dgx-h100", "--runtime", "rccl"}),
                      Catch::Matchers::StartsWith("--runtime: expected nccl or plain for NVIDIA"));
}

TEST_CASE("with an engine between nodes NCCL's runtime has what engines tell", "[nccl][engine]") {
  const std::vector<std::string> ring{"--nodes", "2", "-b", "1M", "-e", "1M", "--algo", "ring"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), ring.begin(), ring.end());
    return json_of("all_reduce", more);
  };
  const Json ports = with({});
  REQUIRE(ports["fidelity"] == "ports");
  const Json flow = with({"--fidelity", "flow", "--fingerprint"});
  REQUIRE(flow["fidelity"] == "flow");
  REQUIRE(flow["rows"][0]["fingerprint"] ==
          with({"--fidelity", "flow", "--fingerprint"})["rows"][0]["fingerprint"]);
  REQUIRE(flow["rows"][0]["time_us"].get<double>() ==
          Approx(ports["rows"][0]["time_us"].get<double>()).epsilon(0.01));
  const ScratchFolder folder;
  const std::string counters = (folder.path() / "counters.csv").string();
  const Json packet = with({"--fidelity", "packet", "--control", "none", "--counters", counters});
  REQUIRE(std::filesystem::file_size(counters) > 0);
  const std::string notes = packet["notes"].dump();
  REQUIRE(notes.find("congestion control none") != std::string::npos);
  REQUIRE(notes.find(" at 1MiB: packets: ") != std::string::npos);
}

TEST_CASE("an engine has nothing to do on one node, and no counters", "[nccl][engine]") {
  const std::vector<std::string> one{"--nodes", "1", "-b", "1M", "-e", "1M", "--fidelity"};
  std::vector<std::string> flow = one;
  flow.push_back("flow");
  REQUIRE(json_of("all_reduce", flow)["notes"].dump().find(
              "--fidelity flow did not influence the result") != std::string::npos);
  std::vector<std::string> packet = one;
  packet.insert(packet.end(), {"packet", "--counters", "never.csv"});
  REQUIRE_THROWS_WITH(json_of("all_reduce", packet),
                      Equals("--counters: expected several nodes, found one, without a fabric"));
}

TEST_CASE("a measured table gives the sizes and the errors", "[nccl]") {
  const Json report = json_of(
      "all_reduce", {"--nodes", "1", "--against",
                     source_dir().string() + "/validation/nccl/h100-1x8-nvswitch-allreduce.yaml"});
  REQUIRE(report["measured"]["from_64_kib"]["rows"] > 0);
  REQUIRE(report["rows"][0].contains("error_percent"));
}

TEST_CASE("the trace of a call of NCCL has its kernel and its thread blocks within it") {
  const ScratchFolder folder;
  const std::string file = folder.path() / "trace.json";
  const Json report = json_of(
      "all_reduce", {"--nodes", "2", "--algo", "tree", "-b", "1M", "-e", "1M", "--trace", file});
  const Json trace = Json::parse(read_text_file(file));
  const double device_us = report["rows"][0]["device_us"];
  std::set<std::string> tracks;
  std::size_t units = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name") {
      tracks.insert(event["args"]["name"].get<std::string>());
    } else if (event["ph"] == "X") {
      REQUIRE(event["ts"].get<double>() + event["dur"].get<double>() <= device_us * (1 + 1e-9));
      REQUIRE(event["args"]["algorithm"].get<std::string>().starts_with("Tree "));
      units += event["cat"] == "unit" ? 1 : 0;
    }
  }
  REQUIRE(units > 0);
  REQUIRE(tracks.contains("kernel"));
  REQUIRE(tracks.contains("channel 0 reduces"));
  REQUIRE(tracks.contains("channel 0 broadcasts"));
}

}  // namespace trainyard
