// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/nccl_servers.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::string kPlanConfigs = source_dir().string() + "/configs/clusters/";
const std::string kH100 = kPlanConfigs + "dgx-h100.yaml";

// The least server that explains logs that are public: nccl-eBPF by yunwei37, NCCL 2.29.7, two
// processes that take themselves for two hosts of one RTX 5090, sockets.
const std::string kSocketServer = R"(<system version="1">
  <cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="183">
    <pci busid="0000:02:00.0" class="0x030000" link_speed="32.0 GT/s PCIe" link_width="16">
      <gpu dev="0" sm="120" gdr="0"/>
    </pci>
    <nic>
      <net name="eth0" dev="0" speed="10000" port="0" guid="0x0" maxconn="65536" gdr="0"/>
      <net name="eth1" dev="1" speed="10000" port="0" guid="0x1" maxconn="65536" gdr="0"/>
    </nic>
  </cpu>
</system>
)";

std::string run_plan(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  REQUIRE(run_command(plan_command(), arguments, out) == 0);
  return out.str();
}

std::string error(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  try {
    (void)run_command(plan_command(), arguments, out);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

nlohmann::json plan_json(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--format", "json"});
  return nlohmann::json::parse(run_plan(arguments));
}

// The records of one measurement of a measurement set.
using HarnessText = std::map<std::string, std::string>;
HarnessText texts_of(const std::filesystem::path& file, const std::string& id) {
  HarnessText texts;
  const nlohmann::json set = nlohmann::json::parse(std::ifstream(file));
  for (const auto& measurement : set["measurements"]) {
    if (measurement["id"] == id) {
      for (const auto& record : measurement["records"]) {
        texts[record["name"]] = record["text"];
      }
    }
  }
  return texts;
}

}  // namespace

TEST_CASE("a plan of a cluster has its channels, its cost model and a choice by size", "[nccl]") {
  const auto json = plan_json(
      {"all_reduce", "--cluster", kH100, "--nodes", "4", "-b", "1K", "-e", "1G", "-f", "1024"});
  REQUIRE(json["source"] == "cluster DGX H100, rail-optimised NDR");
  REQUIRE(json["ranks"] == 32);
  REQUIRE(json["nodes"] == 4);
  REQUIRE(json["channels"] == 16);
  REQUIRE(json["aligned"]["ring"]["bandwidth_inter_gb_per_s"] == 48.0);
  REQUIRE(json["calls"].size() == 3);
  REQUIRE(json["calls"][0]["algorithm"] == "Tree");
  REQUIRE(json["calls"][0]["protocol"] == "LL");
  REQUIRE(json["calls"][2]["size_bytes"] == 1 << 30);
  REQUIRE(json["calls"][2]["algorithm"] == "Ring");
}

TEST_CASE("all_gather is planned for what one rank gives", "[nccl]") {
  const auto json =
      plan_json({"all_gather", "--cluster", kH100, "--nodes", "1", "-b", "8M", "-e", "8M"});
  REQUIRE(json["calls"][0]["size_bytes"] == 8 << 20);
  REQUIRE(json["calls"][0]["bytes"] == 1 << 20);
  REQUIRE(json["calls"][0]["protocol"] == "LL128");
}

TEST_CASE("a topology file gives what the cluster gives that it was written from", "[nccl]") {
  const ScratchFolder folder;
  const std::string file =
      folder.write("server.xml", write_nccl_xml(plain_server(h100_server()))).string();
  const auto json =
      plan_json({"all_reduce", "--topo-file", file, "--nodes", "2", "-b", "1M", "-e", "1M"});
  REQUIRE(json["ranks"] == 16);
  REQUIRE(json["calls"][0]["algorithm"] == "Tree");
  const auto part = plan_json(
      {"all_reduce", "--topo-file", file, "--nodes", "2", "--ranks", "12", "-b", "1M", "-e", "1M"});
  REQUIRE(part["first_rank"] == std::vector<int>{0, 8, 12});
}

TEST_CASE("variables and a tuner's rows change the choice", "[nccl]") {
  const std::vector<std::string> base = {"all_reduce", "--cluster", kH100, "--nodes", "4",
                                         "-b",         "1M",        "-e",  "1M"};
  std::vector<std::string> forced = base;
  forced.insert(forced.end(), {"--env", "NCCL_ALGO=Ring", "--env", "NCCL_PROTO=Simple"});
  const auto json = plan_json(forced);
  REQUIRE(json["calls"][0]["algorithm"] == "Ring");
  REQUIRE(json["calls"][0]["protocol"] == "Simple");
  const ScratchFolder folder;
  std::vector<std::string> tuned = base;
  tuned.insert(tuned.end(),
               {"--tuner-csv", folder.write("t.csv", "allreduce,0,2000000,ring,ll,-1,-1,-1\n")});
  REQUIRE(plan_json(tuned)["calls"][0]["protocol"] == "LL");
}

TEST_CASE("a graph file that was written is read back", "[nccl]") {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "graph.xml").string();
  const std::vector<std::string> base = {"all_reduce", "--cluster", kH100, "--nodes",  "4",   "-b",
                                         "1M",         "-e",        "1M",  "--format", "info"};
  std::vector<std::string> writing = base;
  writing.insert(writing.end(), {"--graph-out", file});
  const std::string searched = run_plan(writing);
  REQUIRE(read_text_file(file).rfind("<graphs version=\"1\">\n  <graph id=\"0\"", 0) == 0);
  std::vector<std::string> reading = base;
  reading.insert(reading.end(), {"--graph-file", file});
  REQUIRE(run_plan(reading) == searched);
  REQUIRE(searched.rfind("Pattern 4, crossNic 2, nChannels 8, bw 48.000000/48.000000", 0) == 0);
}

TEST_CASE("a plan has the lines of a real log", "[nccl]") {
  const ScratchFolder folder;
  const std::string file = folder.write("server.xml", kSocketServer).string();
  const std::string plan =
      run_plan({"broadcast", "--topo-file", file, "--nodes", "2", "--nccl-version", "2.29.7", "-b",
                "1K", "-e", "128M", "--format", "info"});
  // What is not available is left out; NCCL prints latencies there too.
  for (const char* const cells :
       {"\n Max NThreads |            512 |            640 |            512 |            512 |"
        "            640 |            256 |              0 |              0 |            640 |\n",
        "\n    Broadcast |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |     9.3/   1.2 |",
        "|    11.6/   2.4 |", "|    22.4/   4.8 |", "\n    AllReduce |    16.8/   0.5 |",
        "|    36.4/   1.9 |    16.6/   1.2 |", "|    36.4/   2.4 |",
        "\n    AllGather |     0.0/   0.0 |     0.0/   0.0 |    17.6/   3.6 |\n"}) {
    INFO(cells);
    REQUIRE(plan.find(cells) != std::string::npos);
  }
  const std::size_t calls = plan.find("Broadcast: 1024 Bytes");
  REQUIRE(plan.substr(calls, plan.find("Broadcast: 262144 Bytes") - calls) ==
          "Broadcast: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n"
          "Broadcast: 2048 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n"
          "Broadcast: 4096 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n"
          "Broadcast: 8192 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..0}\n"
          "Broadcast: 16384 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n"
          "Broadcast: 32768 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..0}\n"
          "Broadcast: 65536 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}\n"
          "Broadcast: 131072 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..3}\n");
}

TEST_CASE("a plan chooses as the same machine's logs of other operations say", "[nccl]") {
  const ScratchFolder folder;
  const std::string file = folder.write("server.xml", kSocketServer).string();
  const auto plan = [&](const std::string& operation) {
    return run_plan({operation, "--topo-file", file, "--nodes", "2", "--nccl-version", "2.29.7",
                     "-b", "16K", "-e", "128K", "--format", "info"});
  };
  const std::string all_reduce = plan("all_reduce");
  REQUIRE(all_reduce.substr(all_reduce.find("AllReduce: "))
              .rfind("AllReduce: 16384 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n"
                     "AllReduce: 32768 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}\n"
                     "AllReduce: 65536 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}\n"
                     "AllReduce: 131072 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..3}\n",
                     0) == 0);
  const std::string all_gather = plan("all_gather");
  REQUIRE(all_gather.substr(all_gather.find("AllGather: "))
              .rfind("AllGather: 8192 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n"
                     "AllGather: 16384 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}\n"
                     "AllGather: 32768 Bytes -> Algo PAT proto SIMPLE channel{Lo..Hi}={0..1}\n"
                     "AllGather: 65536 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..3}\n",
                     0) == 0);
}

TEST_CASE("a plan has the lines that NCCL logged on the machine of the harness", "[nccl]") {
  struct Log {
    const char* file;
    const char* id;
    const char* nodes;
  };
  const auto [file, id, nodes] = GENERATE(Log{"h200-two-hosts.json", "nccl.hosts.log", "2"},
                                          Log{"h200-4-hosts.json", "network.log", "4"},
                                          Log{"h200-8-hosts.json", "network.log", "8"},
                                          Log{"h200-16-hosts.json", "network.log", "16"});
  const HarnessText records = texts_of(source_dir() / "validation/harness" / file, id);
  const ScratchFolder folder;
  const std::string topology = folder.write("server.xml", records.at("NCCL topology")).string();
  std::size_t lines = 0;
  for (const char* const operation :
       {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce"}) {
    std::istringstream plan(run_plan({operation, "--topo-file", topology, "--nodes", nodes,
                                      "--nccl-version", "2.28.9", "--env", "NCCL_NVLS_ENABLE=0",
                                      "-b", "8", "-e", "128M", "-f", "4", "--format", "info"}));
    for (std::string line; std::getline(plan, line); ++lines) {
      if (line.starts_with("#")) {
        continue;
      }
      INFO(operation << ": " << line);
      REQUIRE(records.at("NCCL log").find("NCCL INFO " + line + "\n") != std::string::npos);
    }
  }
  REQUIRE(lines > 200);
}

TEST_CASE("mistakes in a plan's input are one line", "[nccl]") {
  REQUIRE(error({"--topo-file", "missing.xml"}) ==
          "missing.xml: cannot be read: No such file or directory");
  REQUIRE(error({"--cluster", kH100, "--nodes", "1", "--env", "NCCL_ALGO=Rong"}).find('\n') ==
          std::string::npos);
  REQUIRE(error({"--cluster", kH100, "--nodes", "1", "--ranks", "9"}).rfind("--ranks: ", 0) == 0);
  REQUIRE(error({"--cluster", kPlanConfigs + "ascend-910b.yaml"}) != "no error");
}

TEST_CASE("help names the command", "[nccl]") {
  REQUIRE(run_plan({"--help"}).rfind("trainyard plan [OP] --cluster NAME|FILE [options]\n", 0) ==
          0);
}

}  // namespace trainyard
