// SPDX-License-Identifier: Apache-2.0
// Transports from files, as the packet engine runs them, and the places of what it cannot do.
#include "support/catch.h"

#include "network/engines/packet_profile.h"

#include <string>

#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

using namespace literals;

const std::filesystem::path kFolder = source_dir() / "configs/transport";

// The shipped file with one text in it replaced.
std::string changed(const std::string& what, const std::string& by) {
  std::string text = read_text_file(kFolder / "default.yaml");
  const std::size_t place = text.find(what);
  REQUIRE(place != std::string::npos);
  return text.replace(place, what.size(), by);
}

PacketOptions load_changed(const std::string& what, const std::string& by) {
  const ScratchFolder folder;
  return load_packet_options(folder.write("mine.yaml", changed(what, by)), kFolder);
}

// Without the folder.
std::string error_of(const std::string& what, const std::string& by) {
  try {
    static_cast<void>(load_changed(what, by));
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    return text.substr(text.find("mine.yaml"));
  }
  return "no error";
}

}  // namespace

TEST_CASE("the shipped transport is what the packet engine runs anyway, with buffer and recovery",
          "[transport]") {
  const PacketOptions file = load_packet_options(kFolder / "default.yaml", kFolder);
  const PacketOptions usual = roce_options();
  REQUIRE(file.mtu == usual.mtu);
  REQUIRE(file.control == usual.control);
  REQUIRE(file.pfc == usual.pfc);
  REQUIRE(file.headroom == usual.headroom);
  REQUIRE(file.pipeline == usual.pipeline);
  REQUIRE(file.admission == usual.admission);
  REQUIRE(file.reserve == usual.reserve);
  REQUIRE(file.resume_offset == usual.resume_offset);
  REQUIRE(file.alpha_exponent == usual.alpha_exponent);
  REQUIRE(file.lossy_alpha_exponent == usual.lossy_alpha_exponent);
  REQUIRE(file.packets_per_ack == usual.packets_per_ack);
  REQUIRE(file.retransmission == Retransmission::GoBackN);
  REQUIRE(file.retry.timeout == retransmission_timeout(20));
  REQUIRE(file.buffer == Bytes(32'000'000));
  REQUIRE(file.marking->name == "hpcc");
  for (const std::int64_t rate : {25, 100, 400}) {
    const RedProfile marks = red_profile(file, gigabits_per_second(rate)).value();
    const RedProfile usual_marks = red_profile(usual, gigabits_per_second(rate)).value();
    REQUIRE(marks.kmin == usual_marks.kmin);
    REQUIRE(marks.kmax == usual_marks.kmax);
    REQUIRE(marks.pmax == usual_marks.pmax);
  }
}

TEST_CASE("what a file says of buffers, marks, flow control and packets is taken", "[transport]") {
  REQUIRE(load_changed("value: 32 MB", "value: 1 MiB").buffer == 1_MiB);
  REQUIRE(load_changed("value: guaranteed", "value: ns3").admission == AdmissionRule::Ns3);
  REQUIRE(load_changed("value: 4 KiB", "value: 8 KiB").reserve == 8_KiB);
  REQUIRE(load_changed("value: 3 KiB", "value: 2 KiB").resume_offset == 2_KiB);
  REQUIRE(load_changed("value: 0.125", "value: 0.5").alpha_exponent == -1);
  REQUIRE(load_changed("value: 1.0", "value: 8").lossy_alpha_exponent == 3);
  REQUIRE(load_changed("value: [3]", "value: []").pfc == false);
  REQUIRE(load_changed("value: standard", "value: sonic").headroom == HeadroomRule::Sonic);
  REQUIRE(load_changed("value: 0 ns", "value: 40 ns").pipeline == 40_ns);
  REQUIRE(load_changed("ecn: hpcc", "ecn: simai").marking->name == "simai");
  REQUIRE(!red_profile(load_changed("ecn: hpcc", "ecn: off"), gigabits_per_second(100)));
  REQUIRE(load_changed("value: 4096 B", "value: 1024 B").mtu == 1_KiB);
  REQUIRE(load_changed("value: 16,", "value: 4,").packets_per_ack == 4);
  REQUIRE(load_changed("value: 16,", "value: 0,").packets_per_ack > 1'000'000);
  REQUIRE(load_changed("control: dcqcn-nic", "control: none").control == CongestionControl::None);
  const PacketOptions selective = load_changed("value: go-back-n", "value: selective");
  REQUIRE(selective.retransmission == Retransmission::SelectiveRepeat);
  REQUIRE(selective.selective.window == 0);
  REQUIRE(selective.selective.long_timeout == 320_us);
  REQUIRE(load_changed("value: go-back-n", "value: none").retransmission == Retransmission::None);
  REQUIRE(load_changed("value: 20,", "value: 14,").retry.timeout == retransmission_timeout(14));
}

TEST_CASE("controls that ACKs drive and receivers' credits are taken beside any recovery",
          "[transport]") {
  const PacketOptions credits = load_packet_options(kFolder / "credits.yaml", kFolder);
  REQUIRE(credits.profile->traits().is_receiver_driven);
  REQUIRE(credits.retransmission == Retransmission::SelectiveRepeat);
  REQUIRE(!credits.marking);
  REQUIRE(credits.pfc);
  const std::string text = changed("control: dcqcn-nic", "control: swift");
  const ScratchFolder folder;
  const PacketOptions options = load_packet_options(folder.write("mine.yaml", text), kFolder);
  REQUIRE(options.control == CongestionControl::Profile);
  REQUIRE(options.profile->name == "swift");
  REQUIRE(options.retransmission == Retransmission::GoBackN);
  REQUIRE(options.marking->name == "hpcc");
}

TEST_CASE("transports for adaptive fabrics say for what switches choose", "[transport]") {
  const PacketOptions packets = load_packet_options(kFolder / "adaptive.yaml", kFolder);
  REQUIRE(packets.adaptive->unit == AdaptiveOptions::Unit::Packet);
  REQUIRE(packets.retransmission == Retransmission::None);
  const PacketOptions flowlets = load_packet_options(kFolder / "flowlets.yaml", kFolder);
  const AdaptiveOptions usual;
  REQUIRE(flowlets.adaptive->unit == AdaptiveOptions::Unit::Flowlet);
  REQUIRE(flowlets.adaptive->gap == usual.gap);
  REQUIRE(flowlets.adaptive->entries == usual.entries);
  REQUIRE(flowlets.adaptive->grades.step == usual.grades.step);
  REQUIRE(flowlets.adaptive->grades.grades == usual.grades.grades);
  REQUIRE(flowlets.adaptive->grades.slack == usual.grades.slack);
  REQUIRE(flowlets.retransmission == Retransmission::GoBackN);

  const ScratchFolder folder;
  const auto error_with = [&](const std::string& what, const std::string& by) {
    std::string text = read_text_file(kFolder / "flowlets.yaml");
    text.replace(text.find(what), what.size(), by);
    try {
      static_cast<void>(load_packet_options(folder.write("mine.yaml", text), kFolder));
    } catch (const ConfigError& error) {
      const std::string message = error.what();
      return message.substr(message.find("mine.yaml"));
    }
    return std::string("no error");
  };
  REQUIRE(error_with("32768", "32769") ==
          "mine.yaml:13:20: adaptive.entries.value: expected a power of two, found \"32769\"");
  REQUIRE(error_with("value: flowlet", "value: packet").find("expected no go-back-N") !=
          std::string::npos);
  REQUIRE(error_with("value: flowlet", "value: rock") ==
          "mine.yaml:8:17: adaptive.unit.value: expected one of connection, flowlet, packet, found "
          "\"rock\"");
}

TEST_CASE("a transport with queues has lanes, and says which may lose packets", "[transport]") {
  const PacketOptions options = load_packet_options(kFolder / "classes.yaml", kFolder);
  REQUIRE(options.pfc);
  REQUIRE(options.lanes);
  REQUIRE(options.lanes->usual == 3);
  REQUIRE(options.lanes->lossless == 0b0001'1000);
  REQUIRE(options.lanes->strict == 0b0010'0000);
  const std::string queues =
      "queues:\n  strict: {value: [], evidence: estimate, source: trainyard}\n"
      "  weights: {value: [1, 2, 3, 4, 5, 6, 7, 8], evidence: estimate, source: "
      "trainyard}\nbuffer:";
  const PacketOptions mine = load_changed("buffer:", queues);
  REQUIRE(mine.lanes->weights[6] == 7);
  REQUIRE(mine.lanes->lossless == 0b1000);
  REQUIRE(error_of("buffer:",
                   "queues:\n  strict: {value: [], evidence: estimate, source: "
                   "trainyard}\n  weights: {value: [1, 2], evidence: estimate, source: "
                   "trainyard}\nbuffer:") ==
          "mine.yaml:35:20: queues.weights.value: expected a weight for each of eight priorities, "
          "found 2");
}

TEST_CASE("the shipped transport of TCP has its frames and ports with a bound", "[transport]") {
  const PacketOptions tcp = load_packet_options(kFolder / "tcp.yaml", kFolder);
  REQUIRE(tcp.framing == RdmaLink::Tcp);
  REQUIRE(tcp.retransmission == Retransmission::Tcp);
  REQUIRE(tcp.mtu == Bytes(1448));
  REQUIRE(tcp.port_queue == Bytes(131'072));
  REQUIRE(tcp.buffer == Bytes(0));
  REQUIRE_FALSE(tcp.pfc);
  REQUIRE(tcp.tcp.min_timeout == 200_ms);
  REQUIRE_NOTHROW(check_options(tcp));
}

TEST_CASE("only links that carry TCP are shaped by buckets", "[transport]") {
  const PacketOptions rdma = load_changed(
      "buffer:", "buffer:\n  burst: {value: 5 KB, evidence: estimate, source: trainyard}");
  REQUIRE_THROWS_AS(check_options(rdma), ConfigError);
  const auto box = source_dir() / "validation/box/tcp.yaml";
  REQUIRE(load_packet_options(box, kFolder).burst == Bytes(3028));
}

TEST_CASE("the shipped transport that trims needs what it has", "[transport]") {
  const PacketOptions trimming = load_packet_options(kFolder / "trimming.yaml", kFolder);
  REQUIRE(trimming.trims);
  REQUIRE(!trimming.pfc);
  REQUIRE(trimming.retransmission == Retransmission::SelectiveRepeat);
  check_options(trimming);
  REQUIRE(error_of("buffer:", "buffer:\n  trim: {value: on, evidence: estimate, source: trainyard}")
              .find("buffer.trim: packet engine: expected selective repeat where switches trim "
                    "packets, found "
                    "none") != std::string::npos);
}

TEST_CASE("what the packet engine does not have is refused at its place", "[transport]") {
  REQUIRE(error_of("value: [3]", "value: [3, 4]") ==
          "mine.yaml:23:23: pfc.priorities.value: expected [], or rdma.data_priority alone: "
          "without queues there is one class of data, found a sequence");
  REQUIRE(
      error_of("value: 65535", "value: 1000") ==
      "mine.yaml:24:19: pfc.quanta.value: expected 65535: in the packet engine no pause ends by "
      "its timer, found \"1000\"");
  REQUIRE(load_changed("value: off", "value: on").watchdog->detection == 200_ms);
  REQUIRE(load_changed("value: off", "value: on").watchdog->action == StormAction::Drop);
  REQUIRE(error_of("value: 1 B", "value: 256 B").find("buffer.cell.value: expected 1 B") !=
          std::string::npos);
  REQUIRE(
      error_of("value: 6,", "value: 3,").find("rdma.control_priority.value: expected one above") !=
      std::string::npos);
}

}  // namespace trainyard
