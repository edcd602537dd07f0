// SPDX-License-Identifier: Apache-2.0
// Bytes of RDMA packets against the golden tables, and what holds for any message.
#include "support/catch.h"

#include <cmath>

#include "hw/packet/rdma_packet.h"
#include "sim/random.h"
#include "support/transport_goldens.h"

namespace trainyard {
namespace {

constexpr RdmaFraming kRoce{};
constexpr RdmaFraming kInfiniBand{.link = RdmaLink::InfiniBand};

// The goldens print efficiencies with six digits.
bool near_share(double value, double golden) {
  return std::abs(value - golden) <= 0.51e-6;
}

double share(Bytes payload, Bytes wire) {
  return static_cast<double>(payload.count()) / static_cast<double>(wire.count());
}

MessagePackets write_of(const RdmaFraming& framing, const GoldenTable& table, std::size_t row) {
  return {framing, RdmaVerb::Write, Bytes(table.integer(row, "message_bytes")),
          Bytes(table.integer(row, "path_mtu"))};
}

std::int64_t blocks_of(const MessagePackets& message) {
  std::int64_t blocks = 0;
  for (std::int64_t i = 0; i < message.count(); ++i) {
    blocks += credit_blocks(frame_bytes(kInfiniBand, message.opcode(i), message.payload(i)));
  }
  return blocks;
}

}  // namespace

TEST_CASE("RoCEv2 messages take the golden packets and bytes", "[transport]") {
  const GoldenTable table(transport_goldens("packets"), "roce_columns", "roce_rows");
  REQUIRE(table.rows() == 56);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const MessagePackets write = write_of(kRoce, table, row);
    const MessagePackets send(kRoce, RdmaVerb::Send, write.size(),
                              Bytes(table.integer(row, "path_mtu")));
    REQUIRE(write.count() == table.integer(row, "packets"));
    REQUIRE(write.wire_bytes().count() == table.integer(row, "write_wire_bytes"));
    REQUIRE(send.wire_bytes().count() == table.integer(row, "send_wire_bytes"));
    REQUIRE(
        near_share(share(write.size(), write.wire_bytes()), table.number(row, "write_efficiency")));
    REQUIRE(
        near_share(share(send.size(), send.wire_bytes()), table.number(row, "send_efficiency")));
  }
}

TEST_CASE("InfiniBand messages take the golden packets, bytes and credits", "[transport]") {
  const GoldenTable table(transport_goldens("packets"), "ib_columns", "ib_rows");
  REQUIRE(table.rows() == 40);
  const RdmaFraming delimited{.link = RdmaLink::InfiniBand, .delimiters = true};
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const MessagePackets write = write_of(kInfiniBand, table, row);
    REQUIRE(write.count() == table.integer(row, "packets"));
    REQUIRE(write.wire_bytes().count() == table.integer(row, "write_bytes_lrh_to_vcrc"));
    REQUIRE(near_share(share(write.size(), write.wire_bytes()), table.number(row, "efficiency")));
    REQUIRE(write_of(delimited, table, row).wire_bytes().count() ==
            table.integer(row, "with_delimiters"));
    REQUIRE(blocks_of(write) == table.integer(row, "credit_blocks_64B"));
  }
}

TEST_CASE("full packets reach the golden efficiency and goodput", "[transport]") {
  const ConfigNode packets = transport_goldens("packets");
  const GoldenTable single(packets, "single_columns", "single_packet_steady_state");
  for (std::size_t row = 0; row < single.rows(); ++row) {
    const Bytes mtu(single.integer(row, "path_mtu"));
    const Bytes roce = wire_bytes(kRoce, RdmaOpcode::WriteMiddle, mtu);
    const Bytes infiniband = wire_bytes(kInfiniBand, RdmaOpcode::WriteMiddle, mtu);
    REQUIRE(roce.count() == single.integer(row, "roce_wire_bytes"));
    REQUIRE(infiniband.count() == single.integer(row, "ib_bytes"));
    REQUIRE(near_share(share(mtu, roce), single.number(row, "roce_efficiency")));
    REQUIRE(near_share(share(mtu, infiniband), single.number(row, "ib_efficiency")));
  }
  const GoldenTable goodput(packets.required("goodput_gbps"));
  for (std::size_t row = 0; row < goodput.rows(); ++row) {
    for (const std::int64_t mtu : {1024, 2048, 4096}) {
      const double rate = goodput.number(row, "line_gbps") *
                          share(Bytes(mtu), wire_bytes(kRoce, RdmaOpcode::WriteMiddle, Bytes(mtu)));
      REQUIRE(rate == Approx(goodput.number(row, "mtu" + std::to_string(mtu))).margin(0.51e-4));
    }
  }
}

TEST_CASE("control packets take the golden bytes", "[transport]") {
  const GoldenParams golden(transport_goldens("packets"), "roce_control_wire_bytes");
  const auto empty = [](RdmaOpcode opcode) { return wire_bytes(kRoce, opcode, Bytes(0)).count(); };
  REQUIRE(empty(RdmaOpcode::Acknowledge) == golden.integer("ack"));
  REQUIRE(empty(RdmaOpcode::Cnp) == golden.integer("cnp"));
  REQUIRE(empty(RdmaOpcode::ReadRequest) == golden.integer("read_request"));
  REQUIRE(empty(RdmaOpcode::WriteOnly) == golden.integer("write_only_payload0"));
  REQUIRE(empty(RdmaOpcode::SendOnly) == golden.integer("send_only_payload0"));
}

TEST_CASE("tags, IPv6, global routes and immediate data add their bytes", "[transport]") {
  const auto wire = [](const RdmaFraming& framing) {
    return wire_bytes(framing, RdmaOpcode::WriteMiddle, Bytes(1024)).count();
  };
  REQUIRE(wire({.vlan = true}) - wire(kRoce) == 4);
  REQUIRE(wire({.ipv6 = true}) - wire(kRoce) == 20);
  REQUIRE(wire({.link = RdmaLink::InfiniBand, .global = true}) - wire(kInfiniBand) == 40);
  REQUIRE(extension_bytes(RdmaOpcode::WriteOnlyImmediate) == 20);
  REQUIRE(extension_bytes(RdmaOpcode::WriteLastImmediate) == 4);
  REQUIRE(extension_bytes(RdmaOpcode::FetchAdd) == 28);
  REQUIRE(extension_bytes(RdmaOpcode::AtomicAcknowledge) == 12);
}

TEST_CASE("packets of a message carry its bytes, under the opcodes of its verb", "[transport]") {
  const MessagePackets read(kRoce, RdmaVerb::Read, Bytes(10000), Bytes(4096));
  REQUIRE(read.opcode(0) == RdmaOpcode::ReadResponseFirst);
  REQUIRE(read.opcode(1) == RdmaOpcode::ReadResponseMiddle);
  REQUIRE(read.opcode(2) == RdmaOpcode::ReadResponseLast);
  const MessagePackets empty(kRoce, RdmaVerb::WriteImmediate, Bytes(0), Bytes(4096));
  REQUIRE(empty.count() == 1);
  REQUIRE(empty.opcode(0) == RdmaOpcode::WriteOnlyImmediate);
  REQUIRE(empty.payload(0) == Bytes(0));

  RandomStream random(1, "messages");
  for (int round = 0; round < 200; ++round) {
    const auto mtu = static_cast<std::int64_t>(256) << random.below(5);
    const auto size = static_cast<std::int64_t>(random.below(100'000));
    const auto verb = static_cast<RdmaVerb>(random.below(5));
    const MessagePackets message(kRoce, verb, Bytes(size), Bytes(mtu));
    Bytes payload;
    Bytes wire;
    for (std::int64_t i = 0; i < message.count(); ++i) {
      REQUIRE(message.payload(i) <= Bytes(mtu));
      REQUIRE(message.wire_bytes(i) == wire_bytes(kRoce, message.opcode(i), message.payload(i)));
      payload += message.payload(i);
      wire += message.wire_bytes(i);
    }
    REQUIRE(payload == Bytes(size));
    REQUIRE(wire == message.wire_bytes());
  }
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
