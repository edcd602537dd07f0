// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/results/traffic_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "network/engines/make_network.h"
#include "support/traffic.h"

namespace trainyard {
namespace {

using namespace literals;

const Cluster& three() {
  static const Cluster cluster =
      cluster_of(one_switch(3, fabric_link(gigabits_per_second(100), 1_us)));
  return cluster;
}

const TrafficSpec& two_groups() {
  static const TrafficSpec spec = traffic_of(
      three(),
      "groups:\n  - {name: a, kind: alltoall, endpoints: gpus, size: 1 KB}\n"
      "  - {name: \"b,c\", kind: incast, endpoints: gpus, size: 1 MB, targets: host 0}\n");
  return spec;
}

TrafficRun run() {
  Simulator simulator;
  Routing routing(three().topology, three().routing);
  Routing alone(three().topology, three().routing);
  const auto network = make_network(Fidelity::Flow, simulator, routing);
  return run_traffic(simulator, *network, alone, two_groups(), 8);
}

TrafficReport report_of(const TrafficRun& result) {
  return {.traffic = "two groups",
          .cluster = "three hosts",
          .fidelity = "flow",
          .routing = "ecmp",
          .seed_of_routing = 1,
          .fingerprint = 0xabc,
          .summary = summarise(three().topology, two_groups(), result, 2),
          .notes = {"a note"}};
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST_CASE("the report of traffic has a line for each group and all, in each form", "[traffic]") {
  const TrafficReport report = report_of(run());
  const std::string text = render(document_of(report, three().topology), Format::Table);
  REQUIRE(text.rfind("# Simulated by Trainyard: traffic two groups; cluster three hosts, fidelity "
                     "flow\n# 8 flows, 2006000 bytes, makespan ",
                     0) == 0);
  REQUIRE(text.find("# Slowdown by size of flows\n") != std::string::npos);
  REQUIRE(text.find("\n# Note: a note\n") != std::string::npos);
  REQUIRE(text.find("unfinished") == std::string::npos);
  const std::string csv = render(document_of(report, three().topology), Format::Csv);
  REQUIRE(csv.rfind("group,flows,unfinished,bytes,makespan_us,fct_mean_us,fct_p50_us,fct_p90_us,"
                    "fct_p99_us,fct_p99_9_us,fct_max_us,slowdown_mean,slowdown_p50,slowdown_p90,"
                    "slowdown_p99,slowdown_p99_9,slowdown_max,goodput_least_gbit_per_s,"
                    "goodput_mean_gbit_per_s,goodput_most_gbit_per_s,jain_fairness\n",
                    0) == 0);
  REQUIRE(lines(csv) == 4);
  REQUIRE(csv.find("\n\"b,c\",2,0,2000000,") != std::string::npos);
  const auto json =
      nlohmann::json::parse(render(document_of(report, three().topology), Format::Json));
  REQUIRE(json["groups"].size() == 3);
  REQUIRE(json["groups"][2]["group"] == "all");
  REQUIRE(json["groups"][1]["jain_fairness"] == Approx(1.0));
  REQUIRE(json["groups"][2]["jain_fairness"].is_null());
  REQUIRE(json["sizes"].size() == 4);
  REQUIRE(json["sizes"][1]["from_bytes"] == 1'000'000);
  REQUIRE(json["links"].size() == 2);
  REQUIRE(json["links"][0]["link"] == "switch -> host 0");
  REQUIRE(json["fingerprint"] == "0000000000000abc");
}

TEST_CASE("flows that were never complete have a column and no times", "[traffic]") {
  TrafficRun result = run();
  for (FlowRecord& flow : result.flows) {
    if (flow.group == 1) {
      flow.end.reset();
    }
  }
  const TrafficReport report = report_of(result);
  REQUIRE(render(document_of(report, three().topology), Format::Table).find("unfinished") !=
          std::string::npos);
  const auto json =
      nlohmann::json::parse(render(document_of(report, three().topology), Format::Json));
  REQUIRE(json["groups"][1]["unfinished"] == 2);
  REQUIRE(json["groups"][1]["makespan_us"].is_null());
  REQUIRE(json["groups"][1]["fct_mean_us"].is_null());
  REQUIRE(json["groups"][1]["goodput_mean_gbit_per_s"].is_null());
  const std::string flows = flows_csv(three().topology, two_groups(), result.flows, {});
  REQUIRE(flows.find(",,,") != std::string::npos);
}

TEST_CASE("the file of flows has a line for each, with counters where there are some",
          "[traffic]") {
  const TrafficRun result = run();
  const std::string flows = flows_csv(three().topology, two_groups(), result.flows, {});
  REQUIRE(lines(flows) == 9);
  REQUIRE(flows.rfind("flow,group,source,target,label,bytes,start_us,end_us,fct_us,alone_us,"
                      "slowdown\n0,a,host 0,host 1,",
                      0) == 0);
  std::vector<ConnectionCounters> counters(8);
  counters[7] = {.packets = 300, .retransmitted = 2, .timeouts = 1, .congestion_notifications = 40};
  const std::string more = flows_csv(three().topology, two_groups(), result.flows, counters);
  REQUIRE(more.find(",slowdown,packets,retransmitted,timeouts,cnps\n") != std::string::npos);
  REQUIRE(more.rfind(",300,2,1,40\n") == more.size() - 12);
}

TEST_CASE("a file of many flows has one header", "[traffic]") {
  const std::vector<FlowRecord> flows(10'000, run().flows[0]);
  const std::string text = flows_csv(three().topology, two_groups(), flows, {});
  REQUIRE(lines(text) == 10'001);
  REQUIRE(text.find("flow,", 1) == std::string::npos);
  REQUIRE(text.find("\n9999,a,") != std::string::npos);
}

TEST_CASE("the file of counters has a line for each port", "[traffic]") {
  const std::vector<PortCounters> counters{{.link = LinkId(1),
                                            .packets = 10,
                                            .bytes = Bytes(41'780),
                                            .ecn_marked = 3,
                                            .dropped = 13,
                                            .no_room = 1,
                                            .bit_errors = 2,
                                            .link_down = 3,
                                            .in_storms = 7,
                                            .pause_frames_sent = 4,
                                            .pause_frames_received = 5,
                                            .storms = 8,
                                            .paused = 2_us,
                                            .starved = 3_us,
                                            .queue_max = Bytes(9000)},
                                           {.link = LinkId(0), .queue_p50 = 0_B, .queue_p99 = 7_B}};
  REQUIRE(counters_csv(three().topology, counters) ==
          "port,to,packets,wire_bytes,ecn_marked,dropped,dropped_no_room,dropped_bit_errors,"
          "dropped_link_down,dropped_in_storms,pause_frames_sent,pause_frames_received,"
          "pause_storms,paused_us,starved_us,queue_max_bytes,queue_p50_bytes,queue_p99_bytes\n"
          "switch,host 0,10,41780,3,13,1,2,3,7,4,5,8,2,3,9000,,\n"
          "host 0,switch,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,7\n");
}

TEST_CASE("the file of samples has queues and rates in order of time", "[traffic]") {
  const NodeId host = three().topology.link(LinkId(0)).source;
  const NodeId hub = three().topology.link(LinkId(0)).target;
  const auto rate = [&](SimTime time) {
    return RateSample{.time = time,
                      .connection = ConnectionId(3),
                      .source = host,
                      .target = hub,
                      .limit = gigabits_per_second(100),
                      .sent = gigabits_per_second(25)};
  };
  const auto queue = [&](SimTime time, bool is_paused) {
    return QueueSample{.time = time, .link = LinkId(1), .bytes = 4174_B, .is_paused = is_paused};
  };
  REQUIRE(samples_csv(three().topology, {.queues = {queue(1_us, false), queue(2_us, true)},
                                         .rates = {rate(1_us), rate(3_us)}}) ==
          "time_us,kind,from,to,connection,queue_bytes,paused,limit_gbit_per_s,sent_gbit_per_s\n"
          "1,queue,switch,host 0,,4174,false,,\n"
          "1,rate,host 0,switch,3,,,100,25\n"
          "2,queue,switch,host 0,,4174,true,,\n"
          "3,rate,host 0,switch,3,,,100,25\n");
}

TEST_CASE("samples have windows and round trips where a connection has them", "[traffic]") {
  RateSample rate{.time = 1_us,
                  .connection = ConnectionId(3),
                  .source = three().topology.link(LinkId(0)).source,
                  .target = three().topology.link(LinkId(0)).target,
                  .limit = gigabits_per_second(100),
                  .sent = gigabits_per_second(25),
                  .window_packets = 12.5};
  const QueueSample queue{.time = 2_us, .link = LinkId(1), .bytes = 4174_B, .is_paused = false};
  const std::string header =
      "time_us,kind,from,to,connection,queue_bytes,paused,limit_gbit_per_s,sent_gbit_per_s,"
      "window_packets";
  REQUIRE(samples_csv(three().topology, {.queues = {queue}, .rates = {rate}}) ==
          header +
              "\n1,rate,host 0,switch,3,,,100,25,12.5\n"
              "2,queue,switch,host 0,,4174,false,,,\n");
  rate.smoothed_rtt = 40_us;
  REQUIRE(samples_csv(three().topology, {.queues = {}, .rates = {rate}}) ==
          header + ",smoothed_rtt_us\n1,rate,host 0,switch,3,,,100,25,12.5,40\n");
}

}  // namespace
}  // namespace trainyard
