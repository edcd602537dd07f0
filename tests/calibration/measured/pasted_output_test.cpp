// SPDX-License-Identifier: Apache-2.0
// Texts in the formats of nvbandwidth 0.8 to 0.10, CUDA's samples and perftest 6.
#include "support/catch.h"

#include "calibration/measured/pasted_output.h"

#include <algorithm>
#include <random>
#include <string>

#include "sim/config_error.h"
#include "support/damage.h"
#include "support/effort.h"

namespace trainyard {
namespace {

const std::string kNvBandwidth =
    "nvbandwidth Version: v0.10.0\nDriver Version: 595.71.05\n\n"
    "Running host_to_device_memcpy_ce.\n"
    "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n"
    "           0         1\n"
    " 0     55.37     55.36\n\n"
    "SUM host_to_device_memcpy_ce 110.73\n"
    "COEFFICIENT_OF_VARIATION host_to_device_memcpy_ce 0.00\n\n"
    "Waived:\n"
    "Running device_to_device_memcpy_write_ce.\n"
    "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n"
    "           0         1\n"
    " 0       N/A    393.27\n"
    " 1    393.10       N/A\n\n"
    "Running host_device_latency_sm.\n"
    "memory latency SM CPU(row) <-> GPU(column) (ns)\n"
    "           0\n"
    " 0    642.10\n";

const std::string kPeerTest =
    "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n"
    "P2P Connectivity Matrix\n"
    "     D\\D     0     1\n"
    "     0       1     0\n"
    "     1       0     1\n"
    "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n"
    "   D\\D     0      1 \n"
    "     0 902.14  20.91 \n"
    "     1  22.36 922.92 \n"
    "P2P=Enabled Latency (P2P Writes) Matrix (us)\n"
    "   GPU     0      1 \n"
    "     0   1.33  13.10 \n"
    "     1  11.59   1.30 \n\n"
    "   CPU     0      1 \n"
    "     0   2.53   7.94 \n"
    "     1   7.94   2.45 \n";

const std::string kWriteBandwidth =
    "---------------------------------------------------------------------------------------\n"
    "                    RDMA_Write BW Test\n"
    " Dual-port       : OFF          Device         : mlx5_0\n"
    " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
    "Conflicting CPU frequency values detected: 2400.000000 != 1873.463000.\n"
    " 65536      5000             11703.71             11690.04              0.187041\n";

const std::string kWriteLatency =
    "                    RDMA_Write Latency Test\n"
    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    "
    "t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec]\n"
    " 2       1000          1.76           6.12         1.79                1.80             0.06  "
    " "
    "         1.88                    6.12\n";

PastedOutput pasted(const std::string& text) {
  return parse_pasted(text, pasted_tool(text).value(), "a.txt");
}

}  // namespace

TEST_CASE("matrices of nvbandwidth are read with their devices") {
  const PastedOutput output = pasted(kNvBandwidth);
  REQUIRE(output.tool == PastedTool::NvBandwidth);
  REQUIRE(output.warnings.empty());
  REQUIRE(output.values.size() == 4);
  REQUIRE(output.values[1].test == "host_to_device_memcpy_ce");
  REQUIRE(output.values[1].column == 1);
  REQUIRE(output.values[1].value == 55.36);
  REQUIRE(output.values[1].line == 7);
  REQUIRE(output.values[3].test == "device_to_device_memcpy_write_ce");
  REQUIRE(output.values[3].row == 1);
  REQUIRE(output.values[3].column == 0);
}

TEST_CASE("matrices of p2pBandwidthLatencyTest are read, but for times of the host") {
  const PastedOutput output = pasted(kPeerTest);
  REQUIRE(output.tool == PastedTool::PeerToPeerTest);
  REQUIRE(output.warnings.empty());
  REQUIRE(output.values.size() == 8);
  REQUIRE(output.values[1].test == "Unidirectional P2P=Enabled Bandwidth (P2P Writes)");
  REQUIRE(output.values[1].value == 20.91);
  REQUIRE(!output.values[3].is_latency);
  REQUIRE(output.values[5].is_latency);
  REQUIRE(output.values[5].value == 13.10);
}

TEST_CASE("rates and times of perftest are read in its units") {
  const PastedOutput rates = pasted(kWriteBandwidth);
  REQUIRE(rates.values.size() == 1);
  REQUIRE(rates.values[0].test == "RDMA_Write BW");
  REQUIRE(rates.values[0].size == kib(64));
  REQUIRE(rates.values[0].value == Approx(11690.04 * 1.048576 / 1e3));
  const PastedOutput times = pasted(kWriteLatency);
  REQUIRE(times.values[0].is_latency);
  REQUIRE(times.values[0].value == 1.79);
}

TEST_CASE("a damaged row of a tool is left out by its line") {
  std::string text = kNvBandwidth;
  text.replace(text.find("    393.10"), 10, "");
  const PastedOutput output = pasted(text);
  REQUIRE(output.values.size() == 3);
  REQUIRE(output.warnings.size() == 1);
  REQUIRE(output.warnings[0].find("a.txt:17: left out: expected 2 values of "
                                  "device_to_device_memcpy_write_ce, found ") == 0);
  REQUIRE_THROWS_WITH(parse_pasted("nvbandwidth Version\n", PastedTool::NvBandwidth, "a.txt"),
                      "a.txt: expected values of nvbandwidth, found none");
  REQUIRE(!pasted_tool("hello").has_value());
}

TEST_CASE("damaged output of tools is read or refused, never more", "[damage]") {
  std::mt19937_64 engine(17);
  for (std::uint64_t trial = 0; trial < cases(300); ++trial) {
    for (const std::string& text : {kNvBandwidth, kPeerTest, kWriteBandwidth, kWriteLatency}) {
      const PastedTool tool = pasted_tool(text).value();
      const std::string broken = damaged(text, "0123456789. \n", engine);
      try {
        const PastedOutput output = parse_pasted(broken, tool, "a.txt");
        REQUIRE(std::all_of(output.values.begin(), output.values.end(),
                            [](const PastedValue& one) { return one.value > 0.0; }));
      } catch (const ConfigError& error) {
        REQUIRE(std::string(error.what()).find('\n') == std::string::npos);
      }
    }
  }
}

TEST_CASE("the tests of two ranks of OSU are rates of 1e6 bytes or times") {
  const std::string rates =
      "# OSU MPI-CUDA Bandwidth Test v7.2\n"
      "# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n"
      "# Size      Bandwidth (MB/s)\n# Datatype: MPI_CHAR.\n"
      "1                       1.01\n4194304             87543.13\n8388608\n";
  REQUIRE(pasted_tool(rates) == PastedTool::Osu);
  const PastedOutput output = parse_pasted(rates, PastedTool::Osu, "osu.log");
  REQUIRE(output.values.size() == 2);
  REQUIRE(output.values[1].test == "OSU MPI-CUDA Bandwidth, D to D");
  REQUIRE(output.values[1].size == mib(4));
  REQUIRE(output.values[1].value == Approx(87.54313));
  REQUIRE(output.warnings.size() == 1);
  REQUIRE(output.warnings[0].starts_with("osu.log:7: left out: expected a size and a value"));
  const std::string times =
      "# OSU MPI Latency Test v7.2\n# Size          Latency (us)\n8                   1.52\n";
  const PastedOutput latency = parse_pasted(times, pasted_tool(times).value(), "osu.log");
  REQUIRE(latency.values[0].is_latency);
  REQUIRE(latency.values[0].value == 1.52);
}

}  // namespace trainyard
