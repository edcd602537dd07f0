// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "cli/common/commands.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

const std::string kTrafficConfigs = source_dir().string() + "/configs/";
const std::string kHosts = kTrafficConfigs + "clusters/fat-tree-k8-100g.yaml";

std::string run_traffic(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--cluster", kHosts});
  std::ostringstream out;
  REQUIRE(run_command(traffic_command(), arguments, out) == 0);
  return out.str();
}

std::string error_traffic(std::vector<std::string> arguments) {
  std::ostringstream out;
  try {
    (void)run_command(traffic_command(), arguments, out);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

TEST_CASE("traffic runs flow files of other simulators", "[traffic]") {
  const ScratchFolder folder;
  const std::string matrix =
      folder
          .write("a.cm",
                 "Nodes 16\nConnections 2\n0->9 start 0 size 5000\n1->8 start 0 size 7000\n")
          .string();
  REQUIRE(run_traffic({matrix, "--nodes", "16"}).find("# 2 flows, 12000 bytes, ") !=
          std::string::npos);
  const std::string flows = folder.write("flow.txt", "1\n0 9 3 100 5000 2\n\nremarks\n").string();
  REQUIRE(run_traffic({flows, "--nodes", "16"}).find("# 1 flows, 5000 bytes, ") !=
          std::string::npos);
}

TEST_CASE("traffic runs a shipped file and one of the user", "[traffic]") {
  REQUIRE(run_traffic({"permutation", "--nodes", "16"}).find("# 16 flows, 160000000 bytes, ") !=
          std::string::npos);
  const ScratchFolder folder;
  const auto file =
      folder.write("mine.yaml", "name: mine\ngroups:\n  - {name: g, kind: incast, size: 1 MB}\n");
  const auto json = nlohmann::json::parse(
      run_traffic({file.string(), "--nodes", "16", "--format", "json", "--links", "1"}));
  REQUIRE(json["traffic"] == "mine");
  REQUIRE(json["groups"][0]["flows"] == 15);
  REQUIRE(json["links"].size() == 1);
}

TEST_CASE("a seed changes the flows, and the fingerprint tells", "[traffic]") {
  const auto fingerprint = [](const std::string& seed) -> std::string {
    return nlohmann::json::parse(
        run_traffic({"permutation", "--seed", seed, "--format", "json"}))["fingerprint"];
  };
  REQUIRE(fingerprint("1") == fingerprint("1"));
  REQUIRE(fingerprint("1") != fingerprint("2"));
}

TEST_CASE("a value of the file can be changed for one run", "[traffic]") {
  REQUIRE(run_traffic({"permutation", "--nodes", "16", "--set-traffic", "groups.0.size=1 KB",
                       "--set-traffic", "name=other"})
              .find("traffic other; cluster fat tree k=8, 100G, fidelity flow\n# 16 flows, 16000 "
                    "bytes, ") != std::string::npos);
  REQUIRE(error_traffic({"permutation", "--cluster", kHosts, "--set-traffic", "groups.0.size"}) ==
          "--set-traffic: expected key.path=value, found \"groups.0.size\"");
  REQUIRE(error_traffic({"permutation", "--cluster", kHosts, "--set-traffic", "groups.0.size=1"}) ==
          "--set-traffic groups.0.size=1: groups[0].size: expected a size such as \"25 MiB\", "
          "found \"1\"");
}

TEST_CASE("flows are written to a file of their own", "[traffic]") {
  const ScratchFolder folder;
  const std::string file = (folder.path() / "flows.csv").string();
  (void)run_traffic({"list", "--flows-out", file});
  const std::string text = read_text_file(file);
  REQUIRE(std::count(text.begin(), text.end(), '\n') == 4);
  REQUIRE(text.find("\n2,late,server3/nic0,server2/nic0,") != std::string::npos);
}

TEST_CASE("what did not influence a result of traffic is said", "[traffic]") {
  const ScratchFolder folder;
  const auto file = folder.write(
      "mine.yaml", "name: mine\ngroups:\n  - {name: g, kind: incast, size: 1 MB, priority: 4}\n");
  REQUIRE(
      run_traffic({file.string(), "--nodes", "8"})
          .find(
              "# Note: the priority of group g did not influence the result: flow has one class of "
              "flows\n") != std::string::npos);
  REQUIRE(
      run_traffic({file.string(), "--nodes", "8", "--fidelity", "packet", "--transport", "classes"})
          .find("did not influence") == std::string::npos);
  (void)folder.write("flows.txt", "1\n0 1 3 100 5000 2.0\n");
  const auto trace =
      folder.write("trace.yaml",
                   "name: t\ngroups:\n  - {name: t, kind: trace, file: flows.txt, format: hpcc}\n");
  REQUIRE(run_traffic({trace.string(), "--nodes", "8"})
              .find("# Note: the priority of group t did not ") != std::string::npos);
  REQUIRE(run_traffic({"list", "--fidelity", "analytical"}).find("# Note: analytical: ") !=
          std::string::npos);
}

TEST_CASE("data of a GPU move to the other plane once a cable of its adapter has failed",
          "[traffic]") {
  const ScratchFolder folder;
  const std::string file =
      folder
          .write("flow.yaml",
                 "name: mine\ngroups:\n  - {name: g, kind: flows, flows: [{source: server0/gpu0, "
                 "target: server3/gpu0, size: 64 MB}]}\n")
          .string();
  const auto run = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{file,
                                       "--cluster",
                                       kTrafficConfigs + "clusters/alibaba-hpn.yaml",
                                       "--nodes",
                                       "4",
                                       "--fidelity",
                                       "packet",
                                       "--links",
                                       "1",
                                       "--effects",
                                       "off",
                                       "--format",
                                       "json",
                                       "--retransmission"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::ostringstream out;
    REQUIRE(run_command(traffic_command(), arguments, out) == 0);
    return nlohmann::json::parse(out.str());
  };
  const auto whole = run({"selective"});
  const std::string used = whole["links"][0]["link"];
  const std::string leaf = used.substr(used.find("plane"));  // In the plane that the hash chose.
  REQUIRE((leaf == "plane0-leaf0" || leaf == "plane1-leaf0"));
  const std::string other = leaf == "plane0-leaf0" ? "plane1-leaf0" : "plane0-leaf0";
  const double alone = whole["groups"][0]["fct_max_us"];
  // Convergence, and with selective repeat the timeout of all that was under way.
  for (const auto& [recovery, most_us] : {std::pair("go-back-n", 120.0), {"selective", 420.0}}) {
    for (const char* const adapter : {"server0/nic0", "server3/nic0"}) {
      const std::string failed = adapter + ("," + leaf) + "@500us";
      INFO(recovery << ", " << failed);
      const auto moved = run({recovery, "--fail", failed, "--convergence", "100us"});
      REQUIRE(moved["groups"][0]["unfinished"] == 0);
      REQUIRE(moved["links"][0]["link"] == "server0/nic0 -> " + other);
      const double longer = moved["groups"][0]["fct_max_us"].get<double>() - alone;
      REQUIRE(longer > 100.0);
      REQUIRE(longer < most_us);
    }
  }
}

TEST_CASE("a cable that fails is gone round once switches know it", "[traffic]") {
  // All four hosts of leaf0 send, and all of its cables up but one fail.
  const std::vector<std::string> failing = {"permutation",
                                            "--fidelity",
                                            "packet",
                                            "--nodes",
                                            "16",
                                            "--set-traffic",
                                            "groups.0.size=1 MB",
                                            "--retransmission",
                                            "selective",
                                            "--fail",
                                            "leaf0,spine0@20us",
                                            "--fail",
                                            "leaf0,spine1@20us",
                                            "--fail",
                                            "leaf0,spine2@30us"};
  std::vector<std::string> arguments = failing;
  arguments.insert(arguments.end(), {"--convergence", "200us"});
  const std::string text = run_traffic(arguments);
  REQUIRE(text.find("leaf0,spine2@30us, convergence 200us") != std::string::npos);
  REQUIRE(text.find(" on failed links), ") != std::string::npos);
  REQUIRE(error_traffic({"incast", "--cluster", kHosts, "--convergence", "1ms"}) ==
          "--convergence: expected --fidelity packet beside it, found flow");
  REQUIRE(error_traffic(
              {"incast", "--cluster", kHosts, "--fidelity", "packet", "--convergence", "1ms"}) ==
          "--convergence: expected --fail A,B@TIME beside it, found none");
  REQUIRE(error_traffic({"incast", "--cluster", kHosts, "--fidelity", "packet", "--fail",
                         "leaf0@1ms", "--convergence", "1ms"})
              .find("--convergence: expected --retransmission go-back-n or selective") == 0);
  REQUIRE(error_traffic({"incast", "--cluster", kHosts, "--fidelity", "packet", "--fail",
                         "leaf0@1ms", "--retransmission", "selective", "--convergence", "soon"}) ==
          "--convergence: expected a time such as 50ms, found \"soon\"");
}

TEST_CASE("where switches choose ports a cable that fails is gone round too", "[traffic]") {
  const std::string text = run_traffic({"permutation", "--fidelity", "packet", "--nodes", "16",
                                        "--set", "fabric.routing=adaptive", "--set-traffic",
                                        "groups.0.size=1 MB", "--retransmission", "selective",
                                        "--fail", "leaf0,spine0@20us", "--convergence", "50us"});
  REQUIRE(text.find(" on failed links), ") != std::string::npos);
  REQUIRE(text.find("not complete") == std::string::npos);
}

TEST_CASE("with packets an incast stops senders, marks, and counts at every port", "[traffic]") {
  const ScratchFolder folder;
  const std::filesystem::path counters = folder.path() / "counters.csv";
  const std::string packets =
      run_traffic({"incast", "--fidelity", "packet", "--counters", counters.string()});
  REQUIRE(packets.find("fidelity packet") != std::string::npos);
  REQUIRE(packets.find("congestion control dcqcn-nic, ECN hpcc, PFC on") != std::string::npos);
  REQUIRE(packets.find(" 0 dropped") != std::string::npos);
  REQUIRE(packets.find(" 0 pause frames") == std::string::npos);
  REQUIRE(read_text_file(counters).find("port,to,packets,wire_bytes,ecn_marked") == 0);
  REQUIRE(run_traffic({"incast", "--fidelity", "packet", "--threads", "3"}) == packets);
  const std::filesystem::path samples = folder.path() / "samples.csv";
  REQUIRE(run_traffic({"incast", "--fidelity", "packet", "--samples", samples.string(),
                       "--sample-every", "20us"}) == packets);
  const std::string text = read_text_file(samples);
  REQUIRE(text.find("time_us,kind,from,to,connection,queue_bytes,paused,limit_gbit_per_s,") == 0);
  REQUIRE(text.find(",queue,leaf") != std::string::npos);
  REQUIRE(text.find(",rate,server") != std::string::npos);
  const std::string bare =
      run_traffic({"incast", "--fidelity", "packet", "--control", "none", "--ecn", "off"});
  REQUIRE(bare.find(" 0 marked, 0 CNPs") != std::string::npos);
}

// Returns the cells of a line between its commas.
std::vector<std::string> cells_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> cells;
  for (std::string cell; std::getline(stream, cell, ',');) {
    cells.push_back(cell);
  }
  return cells;
}

// docs/accuracy/box.md has the table.
TEST_CASE("the window of a transfer over TCP is sampled beside what ss said of a real one",
          "[traffic]") {
  const std::string box = (source_dir() / "validation/box").string() + "/";
  const ScratchFolder folder;
  const auto file = folder.write("one.yaml",
                                 "name: one\ngroups:\n  - name: g\n    kind: flows\n    flows: "
                                 "[{source: server0/nic0, target: server1/nic0, size: 32 MB}]\n");
  const std::string samples = (folder.path() / "samples.csv").string();
  std::ostringstream out;
  const std::vector<std::string> arguments{
      file.string(),    "--cluster", box + "star.yaml", "--fidelity",     "packet", "--transport",
      box + "tcp.yaml", "--samples", samples,           "--sample-every", "10ms"};
  REQUIRE(run_command(traffic_command(), arguments, out) == 0);
  std::istringstream sampled(read_text_file(samples));
  std::string line;
  std::getline(sampled, line);
  REQUIRE(line ==
          "time_us,kind,from,to,connection,queue_bytes,paused,limit_gbit_per_s,sent_gbit_per_s,"
          "window_packets,smoothed_rtt_us");
  double end_us = 0.0;
  while (std::getline(sampled, line)) {
    const auto cells = cells_of(line);
    INFO(line);
    if (cells[1] == "rate") {
      end_us = std::stod(cells[0]);
      if (end_us >= 20'000.0) {
        REQUIRE(cells[9] == "28");
        REQUIRE(std::stod(cells[10]) == Approx(4'200.0).epsilon(0.1));
      }
    }
  }
  std::istringstream measured(read_text_file(box + "star-cwnd.csv"));
  std::getline(measured, line);
  REQUIRE(line == "control,run,bytes,seconds,cwnd,rtt_ms,ssthresh,retrans");
  std::vector<std::string> first;
  std::vector<std::string> last;
  while (std::getline(measured, line)) {
    last = cells_of(line);
    first = first.empty() ? last : first;
    REQUIRE(last[6].empty());  // Nothing was cut.
    REQUIRE(last[7] == "0");
  }
  REQUIRE(first[4] == "10");
  REQUIRE(last[4] == "71");
  REQUIRE(end_us / 1e6 == Approx(std::stod(last[3])).epsilon(0.01));
}

TEST_CASE("with HPCC an incast is neither marked nor stopped", "[traffic]") {
  const std::string hpcc = run_traffic({"incast", "--fidelity", "packet", "--control", "hpcc"});
  REQUIRE(hpcc.find("congestion control hpcc, ECN off, PFC on") != std::string::npos);
  REQUIRE(hpcc.find(" 0 marked, 0 CNPs, 0 pause frames") != std::string::npos);
}

TEST_CASE("credits are InfiniBand's, with its headers", "[traffic]") {
  const ScratchFolder folder;
  const auto file = folder.write("one.yaml",
                                 "name: one\ngroups:\n  - name: g\n    kind: flows\n    flows: "
                                 "[{source: server0/nic0, target: server1/nic0, size: 10 MB}]\n");
  const std::string counters = (folder.path() / "counters.csv").string();
  const std::string text = run_traffic({file.string(), "--fidelity", "packet", "--credits", "128K",
                                        "--mtu", "256", "--counters", counters});
  // 39,063 packets of 26 B more, the first of 16 more; on a line for full packets of 4,096 B.
  REQUIRE(read_text_file(counters).find("server0/nic0,leaf0,39063,11015654,") != std::string::npos);
  const double rate = 100e9 * 4096 / 4178 * 4122 / 4096;
  const auto makespan = std::stod(text.substr(text.find("makespan ") + 9));
  REQUIRE(makespan == Approx(8 * 11'015'654 / rate * 1e6).epsilon(0.01));
}

TEST_CASE("data staged in host memory waits for no credits there", "[traffic]") {
  std::ostringstream out;
  REQUIRE(run_command(
              traffic_command(),
              std::vector<std::string>{
                  "permutation", "--cluster", kTrafficConfigs + "clusters/rtx2080ti-ib.yaml",
                  "--set-traffic", "groups.0.endpoints=gpus", "--set-traffic", "groups.0.size=2 MB",
                  "--fidelity", "packet", "--credits", "128K", "--server-credits", "64K"},
              out) == 0);
}

TEST_CASE("a fabric with more virtual channels than packets have is noted", "[traffic]") {
  const ScratchFolder folder;
  const auto cluster = folder.write(
      "torus.yaml",
      "name: torus\nsource: mine\nnodes: 4\nserver: {template: pcie, gpu: L40S, gpus: 1, nic: "
      "Ideal-100G, nics: 1, cpu: EPYC-Milan, pcie_switches: 1}\nfabric: {template: torus, shape: "
      "[4], switch: Ideal-64x100G, cable: 180 m, routing: ecmp}\n");
  std::ostringstream out;
  REQUIRE(run_command(traffic_command(),
                      std::vector<std::string>{"permutation", "--cluster", cluster.string(),
                                               "--fidelity", "packet"},
                      out) == 0);
  REQUIRE(out.str().find("# Note: packets: the 2 virtual channels of the fabric did not") !=
          std::string::npos);
}

TEST_CASE("mistakes on the command line of traffic are one line", "[traffic]") {
  REQUIRE(error_traffic({"--cluster", kHosts}) ==
          "traffic: expected a file of flows, found none; see trainyard traffic --help");
  REQUIRE(error_traffic({"incast"}) ==
          "traffic: expected --cluster, found none; see trainyard traffic --help");
  REQUIRE(error_traffic({"incasts", "--cluster", kHosts}).find("did you mean \"incast\"?") !=
          std::string::npos);
  REQUIRE(error_traffic({"incast", "--cluster", kHosts, "--fidelity", "packets"})
              .find("--fidelity: expected flow, analytical, packet or mixed") == 0);
  REQUIRE(error_traffic({"incast", "--cluster", kHosts, "--counters", "c.csv"}) ==
          "--counters: expected --fidelity packet or mixed beside it, found flow");
  REQUIRE(error_traffic({"incast", "--cluster", kHosts, "--fidelity", "packet", "--counters",
                         "c.csv", "--flows-out", "c.csv"}) ==
          "--counters: expected another file than that of --flows-out, found \"c.csv\"");
  REQUIRE(error_traffic({"incast", "--cluster", kHosts, "--nodes", "16"}) ==
          kTrafficConfigs +
              "traffic/incast.yaml:10:14: groups[0].senders: expected a whole number from 1 to 15, "
              "found \"16\"");
  REQUIRE(error_traffic({"incast", "alltoall", "--cluster", kHosts}).find("alltoall") !=
          std::string::npos);
}

// The simulations of Mittal et al., SIGCOMM 2018, for a tenth of the time that
// docs/accuracy/packet-validation.md has them.
nlohmann::json run_irn(const std::string& transport, const std::string& recovery) {
  const std::string folder = source_dir().string() + "/validation/packets/";
  std::ostringstream out;
  REQUIRE(run_command(traffic_command(),
                      std::vector<std::string>{
                          folder + "irn-load.yaml", "--cluster", folder + "irn-fat-tree.yaml",
                          "--fidelity", "packet", "--transport", folder + transport + ".yaml",
                          "--retransmission", recovery, "--set-traffic", "groups.0.duration=2ms",
                          "--effects", "off", "--format", "json"},
                      out) == 0);
  nlohmann::json json = nlohmann::json::parse(out.str());
  REQUIRE(json["groups"].back()["flows"] == 1368);
  REQUIRE(json["groups"].back()["unfinished"] == 0);
  return json["groups"].back();
}

TEST_CASE("selective repeat without PFC beats go-back-N with it, as IRN's authors found",
          "[traffic][published][long]") {
  const nlohmann::json roce = run_irn("irn-pfc", "go-back-n");
  const nlohmann::json irn = run_irn("irn", "selective");
  const nlohmann::json paused = run_irn("irn-pfc", "selective");
  const auto ratio = [](const nlohmann::json& a, const nlohmann::json& b, const char* what) {
    return a[what].get<double>() / b[what].get<double>();
  };
  // The bounds are ours, with room around 2.79, 1.54 and 1.31.
  REQUIRE(ratio(roce, irn, "slowdown_mean") > 2.3);
  REQUIRE(ratio(roce, irn, "fct_mean_us") > 1.35);
  REQUIRE(ratio(roce, irn, "fct_p99_us") > 1.15);
  REQUIRE(ratio(paused, irn, "slowdown_mean") > 1.0);
}

TEST_CASE("the help of traffic has an example", "[traffic]") {
  std::ostringstream out;
  REQUIRE(run_command(traffic_command(), std::vector<std::string>{"--help"}, out) == 0);
  REQUIRE(out.str().find("trainyard traffic permutation --cluster fat-tree-k8-100g") !=
          std::string::npos);
}

}  // namespace
}  // namespace trainyard
