// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "network/traffic/traffic_trace.h"

#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/built_clusters.h"
#include "support/program.h"

namespace trainyard {
namespace {

using namespace literals;

class Traces {
 public:
  std::vector<FlowStart> read(const std::string& text, TraceFormat format = TraceFormat::Csv) {
    return read_trace(folder_.write("trace", text), format, devices_, devices_.nics());
  }
  // Without the folder.
  std::string error(const std::string& text, TraceFormat format = TraceFormat::Csv) {
    try {
      (void)read(text, format);
    } catch (const ConfigError& problem) {
      const std::string what = problem.what();
      return what.substr(what.rfind("trace:"));
    }
    return "no error";
  }
  [[nodiscard]] std::string name(NodeId id) const { return cluster_.topology.node(id).name; }
  [[nodiscard]] const TrafficDevices& devices() const { return devices_; }
  [[nodiscard]] const ScratchFolder& folder() const { return folder_; }

 private:
  ScratchFolder folder_;
  Cluster cluster_ = shipped_cluster("h100-1gpu-400g", {.nodes = 4});
  TrafficDevices devices_{cluster_};
};

TEST_CASE("a trace in CSV has its columns in any order and its flows in that of their starts") {
  Traces traces;
  const std::vector<FlowStart> flows = traces.read(
      "# written by hand\n\nbytes, start_us ,source,target,priority\r\n"
      "1000,2.5,0,server3/nic0,4\n"
      "2000,0,server1/nic0,2,0\n"
      "  # and a remark\n"
      "3000,2.5,server2/gpu0,1,7");
  REQUIRE(flows.size() == 3);
  REQUIRE(flows[0].time == 0_us);
  REQUIRE(flows[0].size == Bytes(2000));
  REQUIRE(traces.name(flows[0].target) == "server2/nic0");
  REQUIRE(flows[0].priority == 0);
  REQUIRE(flows[1].time == 2500_ns);
  REQUIRE(flows[1].size == Bytes(1000));
  REQUIRE(traces.name(flows[1].source) == "server0/nic0");
  REQUIRE(traces.name(flows[1].target) == "server3/nic0");
  REQUIRE(flows[2].size == Bytes(3000));
  REQUIRE(traces.name(flows[2].source) == "server2/gpu0");
  REQUIRE(!traces.read("start_us,source,target,bytes\n0,0,1,1\n")[0].priority);
}

TEST_CASE("a flow file of the HPCC simulation begins with its first flow") {
  Traces traces;
  const std::vector<FlowStart> flows =
      traces.read("2\n0 3 3 100 5000 2.000001500\n1 2 4 100 6000 2.000000\n", TraceFormat::Hpcc);
  REQUIRE(flows.size() == 2);
  REQUIRE(flows[0].time == 0_us);
  REQUIRE(flows[0].size == Bytes(6000));
  REQUIRE(flows[0].priority == 4);
  REQUIRE(traces.name(flows[0].source) == "server1/nic0");
  REQUIRE(flows[1].time == 1500_ns);
  REQUIRE(traces.name(flows[1].target) == "server3/nic0");
}

TEST_CASE("a flow file of the HPCC simulation has as many flows as its first line says") {
  Traces traces;
  REQUIRE(
      traces.read("1\n0 3 3 100 5000 2\n1 2 4 100 6000 2\n\nsrc dst pg dport\n", TraceFormat::Hpcc)
          .size() == 1);
}

TEST_CASE("a connection matrix of htsim has starts in picoseconds") {
  Traces traces;
  const std::vector<FlowStart> flows = traces.read(
      "Nodes 4\nConnections 2\n# a remark\n3->0 id 1 start 2500000 size 2000\n"
      "1->2 start 0 size 1000 prio 3\n",
      TraceFormat::Htsim);
  REQUIRE(flows.size() == 2);
  REQUIRE(flows[0].time == 0_us);
  REQUIRE(flows[0].size == Bytes(1000));
  REQUIRE(traces.name(flows[0].source) == "server1/nic0");
  REQUIRE(flows[1].time == 2500_ns);
  REQUIRE(traces.name(flows[1].target) == "server0/nic0");
  const auto error = [&](const std::string& text) {
    return traces.error(text, TraceFormat::Htsim);
  };
  REQUIRE(error("Nodes 5\nConnections 1\n0->1 start 0 size 1\n") ==
          "trace:3: Nodes: expected at most 4, the endpoints, found \"5\"");
  REQUIRE(error("Nodes 4\nConnections 2\n0->1 start 0 size 1\n") ==
          "trace:3: expected 2 flows as the second line says, found 1");
  REQUIRE(error("Nodes 4\nConnections 1\n0->1 start 0 size 0\n")
              .find("trace:3: size: expected a whole number from 1 to ") == 0);
  REQUIRE(error("Nodes 4\nConnections 1\n0->1 start 0\n") ==
          "trace:3: expected start and size, found no size");
  REQUIRE(error("Nodes 4\nConnections 1\nTriggers 1\n") ==
          "trace:3: expected Nodes, Connections or a connection, found \"Triggers\" (triggers and "
          "failures are not modelled)");
  REQUIRE(error("Nodes 4\nConnections 1\n0->1 trigger 1 size 1\n") ==
          "trace:3: expected start, size, id or prio, found \"trigger\" (triggers are not "
          "modelled)");
}

TEST_CASE("mistakes in traces are one line with file and line") {
  Traces traces;
  const std::string header = "start_us,source,target,bytes\n";
  REQUIRE(traces.error("") == "trace:1: expected a first line, found an empty file");
  REQUIRE(traces.error(header) == "trace:1: expected a flow on each line, found none");
  REQUIRE(traces.error("start_us,from\n") ==
          "trace:1: expected a header of start_us, source, target, bytes, priority, found "
          "\"from\"");
  REQUIRE(traces.error("start_us,source,source\n") ==
          "trace:1: expected source once, found it twice");
  REQUIRE(traces.error("start_us,source,target\n") ==
          "trace:1: expected the column bytes, found none");
  REQUIRE(traces.error(header + "0,0,1\n") == "trace:2: expected 4 fields, found 3");
  REQUIRE(traces.error(header + "0,0,1,1\n\n-1,0,1,1\n") ==
          "trace:4: start: expected a number from 0 to 1000000000000, found \"-1\"");
  REQUIRE(traces.error(header + "nan,0,1,1\n").find("found \"nan\"") != std::string::npos);
  REQUIRE(traces.error(header + "0,0,1,0\n") ==
          "trace:2: bytes: expected a whole number from 1 to 4398046511104, found \"0\"");
  REQUIRE(traces.error(header + "0,0,1,1.5\n").find("found \"1.5\"") != std::string::npos);
  REQUIRE(traces.error(header + "0,0,4,1\n") ==
          "trace:2: target: expected a number below 4, that of the endpoints, found \"4\"");
  REQUIRE(traces.error(header + "0,2,2,1\n") ==
          "trace:2: target: expected another device than the source, found \"2\"");
  REQUIRE(traces.error(header + "0,0,server1/nik0,1\n") ==
          "trace:2: target: expected the name of a NIC or GPU or its number, found "
          "\"server1/nik0\"; did you mean \"server1/nic0\"?");
  REQUIRE(traces.error("start_us,source,target,bytes,priority\n0,0,1,1,8\n") ==
          "trace:2: priority: expected a whole number from 0 to 7, found \"8\"");
  REQUIRE(traces.error("0 1 3 100 5 2\n", TraceFormat::Hpcc) ==
          "trace:1: expected the number of flows, found 6 fields");
  REQUIRE(traces.error("2\n0 1 3 100 5 2\n", TraceFormat::Hpcc) ==
          "trace:2: expected 2 flows as the first line says, found 1");
}

TEST_CASE("a trace that cannot be read is said by name") {
  const Traces traces;
  const auto error = [&](const std::filesystem::path& file) -> std::string {
    try {
      (void)read_trace(file, TraceFormat::Csv, traces.devices(), {});
    } catch (const ConfigError& problem) {
      return problem.what();
    }
    return "no error";
  };
  REQUIRE(error("missing.csv") == "missing.csv: cannot be read: No such file or directory");
  REQUIRE(error("/dev/zero") == "/dev/zero: expected a file, found a device");
  REQUIRE(error(traces.folder().path()).find(": expected a file, found a directory") !=
          std::string::npos);
}

}  // namespace
}  // namespace trainyard
