// SPDX-License-Identifier: Apache-2.0
// Bytes of RDMA packets against the golden tables, and what holds for any message.
#include "support/catch.h"

#include <algorithm>
#include <cmath>

#include "hw/packet/rdma_packet.h"
#include "support/transport_goldens.h"

namespace trainyard {
namespace {

constexpr RdmaLink kRoce = RdmaLink::RoceV2;
constexpr RdmaLink kInfiniBand = RdmaLink::InfiniBand;

// The goldens print efficiencies with six digits.
bool near_share(double value, double golden) {
  return std::abs(value - golden) <= 0.51e-6;
}

double share(Bytes payload, Bytes wire) {
  return static_cast<double>(payload.count()) / static_cast<double>(wire.count());
}

struct MessageSizes {
  std::int64_t packets = 0;
  Bytes wire;
  std::int64_t credit_blocks = 0;
};

// A message of a row, cut into packets of one path MTU, of which all but the last are full.
MessageSizes sizes_of(RdmaLink link, RdmaVerb verb, const GoldenTable& table, std::size_t row) {
  MessageSizes sizes;
  Bytes left(table.integer(row, "message_bytes"));
  do {
    const Bytes payload = std::min(left, Bytes(table.integer(row, "path_mtu")));
    const bool names_memory = verb == RdmaVerb::Write && sizes.packets == 0;
    const RdmaOpcode opcode = names_memory ? RdmaOpcode::WriteOnly : RdmaOpcode::SendOnly;
    ++sizes.packets;
    sizes.wire += wire_bytes(link, opcode, payload);
    sizes.credit_blocks += credit_blocks(frame_bytes(link, opcode, payload));
    left = left - payload;
  } while (left > Bytes(0));
  return sizes;
}

}  // namespace

TEST_CASE("segments of TCP fill the MTU of Ethernet, and an ACK has its smallest frame but six") {
  const auto wire = [](Bytes payload) {
    return wire_bytes(RdmaLink::Tcp, RdmaOpcode::SendOnly, payload);
  };
  REQUIRE(tcp_payload(Bytes(1500)) == Bytes(1448));
  REQUIRE(wire(tcp_payload(Bytes(1500))) == Bytes(1538));
  REQUIRE(wire(tcp_payload(Bytes(9000))) == Bytes(9038));
  REQUIRE(wire(Bytes(1)) == Bytes(91));
  REQUIRE(wire_bytes(RdmaLink::Tcp, RdmaOpcode::Acknowledge, Bytes(0)) == Bytes(90));
}

TEST_CASE("RoCEv2 messages take the golden packets and bytes", "[transport]") {
  const GoldenTable table(transport_goldens("packets"), "roce_columns", "roce_rows");
  REQUIRE(table.rows() == 56);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const Bytes size(table.integer(row, "message_bytes"));
    const MessageSizes write = sizes_of(kRoce, RdmaVerb::Write, table, row);
    const MessageSizes send = sizes_of(kRoce, RdmaVerb::Send, table, row);
    REQUIRE(write.packets == table.integer(row, "packets"));
    REQUIRE(write.wire.count() == table.integer(row, "write_wire_bytes"));
    REQUIRE(send.wire.count() == table.integer(row, "send_wire_bytes"));
    REQUIRE(near_share(share(size, write.wire), table.number(row, "write_efficiency")));
    REQUIRE(near_share(share(size, send.wire), table.number(row, "send_efficiency")));
  }
}

TEST_CASE("InfiniBand messages take the golden packets, bytes and credits", "[transport]") {
  const GoldenTable table(transport_goldens("packets"), "ib_columns", "ib_rows");
  REQUIRE(table.rows() == 40);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const Bytes size(table.integer(row, "message_bytes"));
    const MessageSizes write = sizes_of(kInfiniBand, RdmaVerb::Write, table, row);
    REQUIRE(write.packets == table.integer(row, "packets"));
    REQUIRE(write.wire.count() == table.integer(row, "write_bytes_lrh_to_vcrc"));
    REQUIRE(near_share(share(size, write.wire), table.number(row, "efficiency")));
    REQUIRE(write.credit_blocks == table.integer(row, "credit_blocks_64B"));
  }
}

TEST_CASE("full packets reach the golden efficiency and goodput", "[transport]") {
  const ConfigNode packets = transport_goldens("packets");
  const GoldenTable single(packets, "single_columns", "single_packet_steady_state");
  for (std::size_t row = 0; row < single.rows(); ++row) {
    const Bytes mtu(single.integer(row, "path_mtu"));
    const Bytes roce = wire_bytes(kRoce, RdmaOpcode::SendOnly, mtu);
    const Bytes infiniband = wire_bytes(kInfiniBand, RdmaOpcode::SendOnly, mtu);
    REQUIRE(roce.count() == single.integer(row, "roce_wire_bytes"));
    REQUIRE(infiniband.count() == single.integer(row, "ib_bytes"));
    REQUIRE(near_share(share(mtu, roce), single.number(row, "roce_efficiency")));
    REQUIRE(near_share(share(mtu, infiniband), single.number(row, "ib_efficiency")));
  }
  const GoldenTable goodput(packets.required("goodput_gbps"));
  for (std::size_t row = 0; row < goodput.rows(); ++row) {
    for (const std::int64_t mtu : {1024, 2048, 4096}) {
      const double rate = goodput.number(row, "line_gbps") *
                          share(Bytes(mtu), wire_bytes(kRoce, RdmaOpcode::SendOnly, Bytes(mtu)));
      REQUIRE(rate == Approx(goodput.number(row, "mtu" + std::to_string(mtu))).margin(0.51e-4));
    }
  }
}

TEST_CASE("control packets take the golden bytes", "[transport]") {
  const GoldenParams golden(transport_goldens("packets"), "roce_control_wire_bytes");
  const auto empty = [](RdmaOpcode opcode) { return wire_bytes(kRoce, opcode, Bytes(0)).count(); };
  REQUIRE(empty(RdmaOpcode::Acknowledge) == golden.integer("ack"));
  REQUIRE(empty(RdmaOpcode::Cnp) == golden.integer("cnp"));
  REQUIRE(empty(RdmaOpcode::WriteOnly) == golden.integer("write_only_payload0"));
  REQUIRE(empty(RdmaOpcode::SendOnly) == golden.integer("send_only_payload0"));
}

TEST_CASE("a buffer for the full rate is a round trip and two packets", "[transport]") {
  // 400 Gb/s over 100 m: 50 kB, and what updates and packets add.
  const std::int64_t blocks =
      credit_buffer(gigabits_per_second(400), nanoseconds(500), nanoseconds(200), Bytes(4122));
  REQUIRE(blocks == (50'000 + 10'000 + 2 * 4122 + 63) / 64);
}

TEST_CASE("only the five sizes of InfiniBand are path MTUs", "[transport]") {
  for (const std::int64_t legal : {256, 512, 1024, 2048, 4096}) {
    REQUIRE(is_path_mtu(Bytes(legal)));
  }
  for (const std::int64_t other : {0, 128, 1500, 4095, 8192, 9000}) {
    REQUIRE(!is_path_mtu(Bytes(other)));
  }
}

}  // namespace trainyard
