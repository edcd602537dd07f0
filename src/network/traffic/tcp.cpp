// SPDX-License-Identifier: Apache-2.0
// A byte passes the sender's thread, both adapters, PCIe and the network, an interrupt of the
// receiver and its thread. Each takes a time for it, some of it shared with the other bytes of a
// message, segment, packet or page; the resource that is occupied longest sets the rate. A message
// alone passes them one after the other, segment by segment.
//
// The times are from measurements of others, which docs/models/tcp.md goes through; [NAME] below
// names them as that page does.
#include "network/traffic/tcp.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "hw/packet/rdma_packet.h"
#include "network/traffic/host_costs.h"
#include "sim/check.h"

namespace trainyard {
namespace {
using namespace literals;

// The sender's thread spends this on a system call with all that is done once for a message: 419 ns
// of [sockperf] at 1200 B, less its copy (14 %) and the part of a segment below.
constexpr SimTime kCall = 323_ns;
// Both copies take so many nanoseconds for a byte, which is 10.7 GB/s: 85.2 % of the receiver's
// thread at 73.1 Gb/s of [free]. That the sender's is as fast is an estimate.
constexpr double kCopy = 0.0933;
// Instead, a page of 4 KiB is pinned and given back: 55 Gb/s of [huge] less the segment.
constexpr SimTime kPin = 474_ns;
// A segment passes TCP, IP, queue and driver, and is completed and acknowledged: 65 Gb/s of [huge]
// less the copy.
constexpr SimTime kSendSegment = 1950_ns;
// The kernel cuts a packet off a segment and hands it to the driver: measured on one virtual
// machine, as docs/models/tcp.md says.
constexpr SimTime kCut = 330_ns;

// The interrupt takes a packet from the ring and joins it to others: 173 ns of [defer] at an MTU of
// 1500, less the parts of segment and memory below.
constexpr SimTime kReceivePacket = 87_ns;
// A segment passes IP and TCP to the socket, is acknowledged, and recv() finds it: what is not copy
// in the thread of [free], 14.8 % of it.
constexpr SimTime kReceiveSegment = 1060_ns;
// Giving memory back takes so many nanoseconds for a byte: 27.6 % of the thread at 49.7 Gb/s of
// [free], before that patch moved it from there to the interrupt.
constexpr double kFree = 0.0444;

// GSO and GRO build segments of up to 64 KiB (linux, commit 8a29111c7ca6: 45 packets of 1448 B).
constexpr std::int64_t kSegmentBytes = 65'536;
constexpr std::int64_t kPageBytes = 4'096;
// Headers are those of IPv4 and TCP (RFC 791, RFC 9293) with timestamps (RFC 7323), as Linux sends.
constexpr std::int64_t kHeaderBytes = 20 + 20 + 12;
constexpr std::int64_t kFrameBytes = kEthernetHeaderBytes + kFrameCheckBytes;
// Each packet has an entry in a ring or completion queue (mlx5: 64 B).
constexpr double kEntryBytes = 64.0;
// Efficiencies of adapters in the catalogue are for this MTU of RDMA.
constexpr Bytes kRdmaMtu{4096};

double in_nanoseconds(SimTime time) {
  return time.microseconds() * 1e3;
}

double count_of(Bytes size) {
  return static_cast<double>(size.count());
}

// Packets are cut from segments of so much data, or joined to them.
double segment_bytes(const SocketSettings& settings, bool is_joined) {
  const std::int64_t payload = tcp_payload(settings).count();
  const std::int64_t packets = is_joined ? std::max<std::int64_t>(kSegmentBytes / payload, 1) : 1;
  return static_cast<double>(packets * payload);
}

// The sender's thread takes this for a message of `size` in so many segments and packets.
double sender_time(const SocketSettings& settings, double size, double segments, double packets) {
  double data = size * kCopy;
  if (settings.zero_copy != ZeroCopy::Off) {
    const bool is_huge = settings.zero_copy == ZeroCopy::HugePages;
    data =
        in_nanoseconds(kPin) * (is_huge ? std::max(segments, 1.0) : std::ceil(size / kPageBytes));
  }
  return in_nanoseconds(kCall) + data + segments * in_nanoseconds(kSendSegment) +
         (settings.tso ? 0.0 : packets * in_nanoseconds(kCut));
}

// Interrupts take this for so many, until their data are in the socket.
double interrupt_time(double packets, double segments) {
  return packets * in_nanoseconds(kReceivePacket) + segments * in_nanoseconds(kReceiveSegment);
}

struct Stage {
  std::string_view name;
  double nanoseconds = 0.0;  // It is occupied so long by a byte.
};

void add_links(const VerbPath& path, double payload, std::vector<Stage>& stages) {
  const double frame = payload + kHeaderBytes + kFrameBytes;
  const auto add = [&](std::span<const VerbLink> links, auto bytes_of) {
    for (const VerbLink& link : links) {
      const auto [name, bytes] = bytes_of(link);
      stages.push_back({name, bytes / payload / link.bandwidth.gigabytes_per_second()});
    }
  };
  const auto host = [&](const VerbLink& link) {
    return Stage{to_string(link.kind), link.kind == LinkKind::Pcie ? frame + kEntryBytes : payload};
  };
  const auto network = [&](const VerbLink&) {
    // The catalogue's rate is that of data in RDMA packets of 4096 B.
    const double share =
        count_of(kRdmaMtu) / count_of(wire_bytes(RdmaLink::RoceV2, RdmaOpcode::SendOnly, kRdmaMtu));
    return Stage{"wire", (frame + kPreambleBytes + kInterFrameGapBytes) * share};
  };
  add(path.there.source_links, host);
  add(path.there.network_links, network);
  add(path.there.target_links, host);
}

}  // namespace

Bytes tcp_payload(const SocketSettings& settings) {
  CHECK(settings.mtu >= kLeastTcpMtu, "an MTU holds headers");
  return settings.mtu - Bytes(kHeaderBytes);
}

TcpCpu tcp_cpu(const SocketSettings& settings, Bytes size) {
  CHECK(size > Bytes(0), "a message has data");
  const double bytes = count_of(size);
  const double packets = bytes / count_of(tcp_payload(settings));
  return {
      .sender =
          sender_time(settings, bytes, bytes / segment_bytes(settings, true), packets) / bytes,
      .interrupt =
          interrupt_time(packets, bytes / segment_bytes(settings, settings.gro)) / bytes + kFree,
      .thread = kCopy};
}

TcpRate tcp_rate(const VerbPath& path, const SocketSettings& settings, Bytes size) {
  const TcpCpu cpu = tcp_cpu(settings, size);
  const double payload = count_of(tcp_payload(settings));
  const double sockets = settings.sockets;
  const double cores = settings.cores;
  std::vector<Stage> stages{
      {"sender core", cpu.sender / std::min(sockets, cores)},
      // The interrupt and the thread of a socket are two that one core or two can run.
      {"receiver core",
       std::max(std::max(cpu.interrupt, cpu.thread) / sockets, cpu.receiver() / cores)}};
  if (path.adapter_rate) {
    stages.push_back({"adapter", 1e9 / *path.adapter_rate / payload});
  }
  add_links(path, payload, stages);
  const Stage& slowest = *std::ranges::max_element(stages, {}, &Stage::nanoseconds);
  return {1e9 / slowest.nanoseconds, slowest.name};
}

SimTime tcp_latency(const VerbPath& path, const SocketSettings& settings, Bytes size) {
  CHECK(size > Bytes(0), "a message has data");
  const Bytes payload = tcp_payload(settings);
  const double first = std::min(count_of(size), segment_bytes(settings, true));
  const double packets = std::ceil(first / count_of(payload));
  SocketSettings alone = settings;
  alone.sockets = 1;
  const double nanoseconds =
      sender_time(settings, first, 1.0, packets) +
      data_nanoseconds(path.there, payload, Bytes(static_cast<std::int64_t>(first))) +
      interrupt_time(packets, settings.gro ? 1.0 : packets) + first * kCopy +
      (count_of(size) - first) * 1e9 / tcp_rate(path, alone, size).bytes_per_second;
  return path.there.latency + kWake + picoseconds(std::llround(nanoseconds * 1e3));
}

}  // namespace trainyard
