// SPDX-License-Identifier: Apache-2.0
// Reads what tools that measure links print, however it was pasted: nvbandwidth, CUDA's sample
// p2pBandwidthLatencyTest, perftest (ib_write_bw, ib_write_lat, ib_read_*, ib_send_*), and the
// tests of two ranks of the OSU Micro-Benchmarks (osu_bw, osu_bibw, osu_latency: a title "OSU
// MPI-CUDA Bandwidth Test", a header "Size  Bandwidth (MB/s)" or "Size  Latency (us)", rows of two
// values).
//
//   nvbandwidth                    p2pBandwidthLatencyTest        perftest
//   Running NAME.                  ... Matrix (GB/s)              RDMA_Write BW Test
//   memcpy CE A(row) -> B(col) ..     D\D     0      1            #bytes #iterations BW peak[...
//            0         1              0 909.49  21.73             65536  5000  ...
//    0     55.37     55.36            1  22.61 921.83
//
// GB/s are 1e9 bytes in a second, but perftest's MB/sec are 2^20 (its src/perftest_resources.c,
// print_report_bw) and Gb/sec 1e9 bits, and OSU's MB/s 1e6 bytes (its osu_bw.c).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/units.h"

namespace trainyard {

enum class PastedTool { NvBandwidth, PeerToPeerTest, Perftest, Osu };
// "nvbandwidth", "p2pBandwidthLatencyTest", "perftest", "osu".
[[nodiscard]] std::string_view to_string(PastedTool tool);

struct PastedValue {
  std::string test;      // "host_to_device_memcpy_ce"; "Unidirectional P2P=Enabled Bandwidth
                         // (P2P Writes)"; "RDMA_Write BW"; "OSU MPI-CUDA Bandwidth, D to D".
  std::size_t line = 0;  // Line of the file.
  int row = 0;           // Row of a matrix.
  int column = 0;
  Bytes size;               // Size, for perftest and OSU.
  bool is_latency = false;  // `value` is in us, otherwise in GB/s.
  double value = 0.0;
};

struct PastedOutput {
  PastedTool tool = PastedTool::NvBandwidth;
  std::vector<PastedValue> values;
  std::vector<std::string> warnings;  // Lines that are wrong, "NAME:LINE: ...".
};

// Returns which tool the text is of, by its headers.
[[nodiscard]] std::optional<PastedTool> pasted_tool(std::string_view text);

// `name` represents the file. Throws ConfigError where no value is left.
[[nodiscard]] PastedOutput parse_pasted(std::string_view text, PastedTool tool,
                                        const std::string& name);

}  // namespace trainyard
