// SPDX-License-Identifier: Apache-2.0
// The closed forms in support/ against the golden tables, so that an engine may be held to either.
#include "support/catch.h"

#include "support/transport_formulas.h"
#include "support/transport_goldens.h"

namespace trainyard {

TEST_CASE("the closed forms of latency give the golden times of one and of two flows",
          "[transport]") {
  const ConfigNode section = transport_goldens("hop_latency");
  const GoldenParams params(section);
  const GoldenTable table(section);
  REQUIRE(table.rows() == 30);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    HopTerms terms{.rate = gigabits_per_second(table.integer(row, "Gbps")),
                   .packet = Bytes(params.integer("wire_bytes_per_packet")),
                   .link_delay = SimTime(params.integer("link_delay_ps")),
                   .switch_latency = SimTime(params.integer("switch_latency_ps")),
                   .switches = table.integer(row, "switches"),
                   .packets = table.integer(row, "packets")};
    const auto require = [&](const std::string& mode) {
      const auto golden = [&](const std::string& flow) {
        return SimTime(table.integer(row, mode + flow));
      };
      REQUIRE(one_flow_arrival(terms) == golden("_one_flow_ps"));
      REQUIRE(first_of_two_arrival(terms) == golden("_two_flows_A_ps"));
      REQUIRE(second_of_two_arrival(terms) == golden("_two_flows_B_ps"));
    };
    require("sf");
    terms.lookahead = Bytes(params.integer("cut_through_lookahead_bytes"));
    require("ct");
  }
}

TEST_CASE("the closed forms of incast give the golden times and peaks", "[transport]") {
  const ConfigNode section = transport_goldens("incast_drain");
  const GoldenParams params(section);
  const GoldenTable table(section);
  REQUIRE(table.rows() == 16);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const IncastTerms terms{.rate = gigabits_per_second(table.integer(row, "Gbps")),
                            .packet = Bytes(params.integer("wire_bytes_per_packet")),
                            .link_delay = SimTime(params.integer("host_link_delay_ps")),
                            .switch_latency = SimTime(params.integer("switch_latency_ps")),
                            .senders = table.integer(row, "N"),
                            .packets = table.integer(row, "packets_per_sender")};
    REQUIRE(transfer_time(terms.packet, terms.rate).picoseconds() == table.integer(row, "ser_ps"));
    REQUIRE(incast_completion(terms).picoseconds() == table.integer(row, "completion_ps"));
    REQUIRE(incast_peak(terms) == table.integer(row, "peak_packets"));
    REQUIRE((terms.packet * incast_peak(terms)).count() == table.integer(row, "peak_wire_bytes"));
  }
}

}  // namespace trainyard
