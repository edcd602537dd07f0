// SPDX-License-Identifier: Apache-2.0
// The report letter by letter, and that load_measurement reads back what the text form says.
#include "support/catch.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/results/collective_report.h"

namespace trainyard {
namespace {

using namespace literals;

CollectiveRow row(Bytes size, const std::string& algorithm, SimTime time) {
  CollectiveRow result;
  result.size = size;
  result.algorithm = algorithm;
  result.channels = 24;
  result.protocol = "simple";
  result.time = time;
  result.algbw_gbps = static_cast<double>(size.count()) / time.seconds() / 1e9;
  result.busbw_gbps = result.algbw_gbps * 1.75;
  result.transfers = 336;
  result.fingerprint = 0xabcULL;
  return result;
}

CollectiveReport sample() {
  CollectiveReport report;
  report.operation = Operation::AllReduce;
  report.cluster = "dgx-h100";
  report.runtime = "plain";
  report.fidelity = "flow";
  report.ranks = 8;
  report.node_gpus = {8};
  report.rows = {row(1_KiB, "ring", 28_us), row(64_MiB, "ring", 280_us),
                 row(1_GiB, "ring", 4100_us)};
  return report;
}

CollectiveReport sample_with_two_algorithms() {
  CollectiveReport report = sample();
  report.rows.insert(report.rows.begin() + 1, row(1_KiB, "tree", 12345678_ps));
  mark_best(report.rows);
  return report;
}

MeasuredRow measured(Bytes size, SimTime time, double busbw) {
  MeasuredRow result;
  result.size = size;
  result.time = time;
  result.busbw_gbps = busbw;
  return result;
}

TEST_CASE("numbers are printed as nccl-tests prints them") {
  REQUIRE(nccl_number(0.0, 7) == "0.00");
  REQUIRE(nccl_number(12.904, 7) == "12.90");
  REQUIRE(nccl_number(1511.21, 7) == "1511.21");
  REQUIRE(nccl_number(10920.94, 7) == "10920.9");
  REQUIRE(nccl_number(378756.4, 7) == "378756");
  REQUIRE(nccl_number(123456789.0, 7) == "123456789");
  REQUIRE(nccl_number(482.274, 6) == "482.27");
  REQUIRE(nccl_number(1234.56, 6) == "1234.6");
}

TEST_CASE("the root stands in its column where the operation has one") {
  CollectiveReport report = sample();
  report.root = 3;
  REQUIRE(render(report, Format::Csv).find(",sum,-1,") != std::string::npos);
  report.operation = Operation::Reduce;
  REQUIRE(render(report, Format::Csv).find(",sum,3,") != std::string::npos);
}

TEST_CASE("crossovers are the sizes from which another algorithm is the fastest") {
  CollectiveReport report = sample_with_two_algorithms();  // Tree is faster at 1 KiB alone.
  const std::vector<Crossover> found = crossovers(report.rows);
  REQUIRE(found.size() == 2);
  REQUIRE(found[0].size == 1_KiB);
  REQUIRE(found[0].algorithm == "tree");
  REQUIRE(found[1].size == 64_MiB);
  REQUIRE(found[1].algorithm == "ring");
  const nlohmann::json json = nlohmann::json::parse(render(report, Format::Json));
  REQUIRE(json["crossovers"][1]["from_bytes"] == 64 << 20);
  REQUIRE(json["crossovers"][1]["algorithm"] == "ring");
  REQUIRE_FALSE(nlohmann::json::parse(render(sample(), Format::Json)).contains("crossovers"));
}

TEST_CASE("bounds are shown with how close a row comes") {
  CollectiveReport report = sample();
  REQUIRE(render(report, Format::Csv).find("bound_us") == std::string::npos);
  report.show_bounds = true;
  report.rows[0].bound = 7_us;
  const nlohmann::json rows = nlohmann::json::parse(render(report, Format::Json))["rows"];
  REQUIRE(rows[0]["bound_us"] == 7.0);
  REQUIRE(rows[0]["efficiency"] == 0.25);
  REQUIRE(rows[1]["efficiency"].is_null());
}

TEST_CASE("nodes with different numbers of ranks are listed as runs") {
  const auto line_of = [](const std::vector<int>& node_gpus) {
    CollectiveReport report = sample();
    report.node_gpus = node_gpus;
    const std::string text = render(report, Format::Table);
    const std::size_t start = text.find("# ranks");
    return text.substr(start, text.find('\n', start) - start);
  };
  REQUIRE(line_of({4, 4}) == "# ranks 8 nodes 2 gpus_per_node 4");
  REQUIRE(line_of({2, 6}) == "# ranks 8 nodes 2 gpus_per_node 2,6");
  REQUIRE(line_of({2, 2, 3, 1}) == "# ranks 8 nodes 4 gpus_per_node 2(x2),3,1");
  CollectiveReport report = sample();
  report.node_gpus = {2, 2, 3, 1};
  const auto json = nlohmann::json::parse(render(report, Format::Json));
  REQUIRE(json["nodes"] == 4);
  REQUIRE(json["gpus_per_node"].dump() ==
          R"([{"gpus_per_node":2,"nodes":2},{"gpus_per_node":3,"nodes":1},)"
          R"({"gpus_per_node":1,"nodes":1}])");
  const MeasuredTable table = parse_measurement(render(report, Format::Table), "ours.txt");
  REQUIRE(table.ranks == 8);
  REQUIRE(table.nodes == 4);
  REQUIRE_FALSE(table.gpus_per_node.has_value());
}

TEST_CASE("the text form has nccl-tests' lines and columns") {
  CollectiveReport report = sample();
  report.notes = {"a\nnote"};
  REQUIRE(render(report, Format::Table) ==
          "# Collective test starting: all_reduce_perf\n"
          "# Simulated by Trainyard: cluster dgx-h100, runtime plain, fidelity flow\n"
          "# ranks 8 nodes 1 gpus_per_node 8\n"
          "#\n"
          "#       size         count      type   redop    root     time   algbw   busbw"
          "  algorithm  protocol  channels  transfers\n"
          "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
          "        1024           256     float     sum      -1    28.00    0.04    0.06"
          "       ring    simple        24        336\n"
          "    67108864      16777216     float     sum      -1   280.00  239.67  419.43"
          "       ring    simple        24        336\n"
          "  1073741824     268435456     float     sum      -1  4100.00  261.89  458.30"
          "       ring    simple        24        336\n"
          "# Avg bus bandwidth    : 292.6\n"
          "# Note: a note\n");
}

TEST_CASE("with several algorithms the best of each size is marked") {
  const CollectiveReport report = sample_with_two_algorithms();
  const std::string text = render(report, Format::Table);
  REQUIRE(text.find("       ring    simple        24        336     -\n") != std::string::npos);
  REQUIRE(text.find("   12.35    0.08    0.15       tree    simple        24        336     *\n") !=
          std::string::npos);
  REQUIRE_FALSE(report.rows[0].best);
  REQUIRE(report.rows[1].best);
  REQUIRE(report.rows[2].best);
}

TEST_CASE("of equally fast rows the first is best") {
  std::vector<CollectiveRow> rows = {row(1_KiB, "ring", 2_us), row(1_KiB, "tree", 2_us)};
  mark_best(rows);
  REQUIRE(rows[0].best);
  REQUIRE_FALSE(rows[1].best);
}

TEST_CASE("measured times add their columns and an error summary") {
  CollectiveReport report = sample();
  report.measured_name = "h100";
  report.measured_source = "a log";
  report.rows[0].measured = measured(1_KiB, 20_us, 0.09);
  report.rows[2].measured = measured(1_GiB, 4_ms, 469.76);
  const std::string text = render(report, Format::Table);
  REQUIRE(text.find("# Measured: h100 (a log)\n") != std::string::npos);
  REQUIRE(text.find("  measured_time  measured_busbw  error\n") != std::string::npos);
  REQUIRE(text.find("          20.00            0.09  +40.0\n") != std::string::npos);
  REQUIRE(text.find("              -               -      -\n") != std::string::npos);
  REQUIRE(text.find("        4000.00          469.76   +2.5\n") != std::string::npos);
  REQUIRE(text.find("# Error of the predicted time against the measured:\n"
                    "#   below 64 KiB: median 40.0 %, 90th percentile 40.0 % (1 rows)\n"
                    "#   64 KiB and more: median 2.5 %, 90th percentile 2.5 % (1 rows)\n"
                    "#   largest size, 1GiB: +2.5 %\n") != std::string::npos);
}

TEST_CASE("a measured table without a common size is said to be so") {
  CollectiveReport report = sample();
  report.measured_name = "h100";
  REQUIRE(render(report, Format::Table)
              .find("# Error: no size of the measured table was simulated\n") != std::string::npos);
}

TEST_CASE("load_measurement reads the text form back") {
  const auto reread = [](const CollectiveReport& report) {
    return parse_measurement(render(report, Format::Table), "ours.txt");
  };
  SECTION("one algorithm") {
    const MeasuredTable table = reread(sample());
    REQUIRE(table.operation == Operation::AllReduce);
    REQUIRE(table.ranks == 8);
    REQUIRE(table.nodes == 1);
    REQUIRE(table.gpus_per_node == 8);
    REQUIRE(table.rows.size() == 3);
    REQUIRE(table.rows[1].size == 64_MiB);
    REQUIRE(table.rows[1].time == 280_us);
    REQUIRE(table.rows[1].busbw_gbps == 419.43);
    REQUIRE(table.remarks == std::vector<std::string>{"the file is output of this program: "
                                                      "simulated, not measured"});
  }
  SECTION("several algorithms: the best rows") {
    const MeasuredTable table = reread(sample_with_two_algorithms());
    REQUIRE(table.rows.size() == 3);
    REQUIRE(table.rows[0].time == 12350_ns);
  }
  SECTION("with measured columns, names with blanks and a fingerprint") {
    CollectiveReport report = sample_with_two_algorithms();
    report.rows[1].algorithm = "double tree";
    report.rows[1].protocol = "";
    report.rows[1].measured = measured(1_KiB, 20_us, 0.09);
    report.measured_name = "alltoall_perf";
    report.show_fingerprint = true;
    const MeasuredTable table = reread(report);
    REQUIRE(table.operation == Operation::AllReduce);
    REQUIRE(table.rows.size() == 3);
    REQUIRE_FALSE(table.rows[0].in_place.has_value());
  }
}

TEST_CASE("CSV has units in its keys and all digits in its values") {
  CollectiveReport report = sample();
  report.rows.resize(1);
  report.measured_name = "h100";
  report.rows[0].measured = measured(1_KiB, 16_us, 0.125);
  report.show_fingerprint = true;
  REQUIRE(render(report, Format::Csv) ==
          "size_bytes,count_elements,type,reduction,root,time_us,algbw_gb_per_s,busbw_gb_per_s,"
          "algorithm,protocol,channels,transfers,measured_time_us,measured_busbw_gb_per_s,"
          "error_percent,volumes_bytes,fingerprint\n"
          "1024,256,float,sum,-1,28,0.036571428571428574,0.064,ring,simple,24,336,16,0.125,75,,"
          "0000000000000abc\n");
}

TEST_CASE("JSON describes the run and holds the rows") {
  CollectiveReport report = sample_with_two_algorithms();
  report.measured_name = "h100";
  report.rows[3].measured = measured(1_GiB, 4_ms, 469.76);
  report.notes = {"a note"};
  const nlohmann::json json = nlohmann::json::parse(render(report, Format::Json));
  REQUIRE(json["operation"] == "all_reduce");
  REQUIRE(json["ranks"] == 8);
  REQUIRE(json["rows"].size() == 4);
  REQUIRE(json["rows"][0]["best"] == false);
  REQUIRE(json["rows"][1]["time_us"] == 12.345678);
  REQUIRE(json["rows"][1]["measured_time_us"].is_null());
  REQUIRE(json["rows"][3]["error_percent"].get<double>() == Approx(2.5));
  REQUIRE(json["measured"]["name"] == "h100");
  REQUIRE(json["measured"]["source"].is_null());
  REQUIRE(json["measured"]["below_64_kib"]["rows"] == 0);
  REQUIRE(json["measured"]["from_64_kib"]["median_error_percent"].get<double>() == Approx(2.5));
  REQUIRE(json["measured"]["largest_size"]["size_bytes"] == 1073741824);
  REQUIRE(json["notes"][0] == "a note");
}

TEST_CASE("count, redop and root follow the operation as in nccl-tests") {
  CollectiveReport report = sample();
  report.rows.resize(1);
  report.operation = Operation::AllGather;
  REQUIRE(render(report, Format::Csv).find("\n1024,32,float,none,-1,") != std::string::npos);
  report.operation = Operation::Broadcast;
  REQUIRE(render(report, Format::Csv).find("\n1024,256,float,none,0,") != std::string::npos);
  report.operation = Operation::ReduceScatter;
  REQUIRE(render(report, Format::Csv).find("\n1024,32,float,sum,-1,") != std::string::npos);
}

}  // namespace
}  // namespace trainyard
