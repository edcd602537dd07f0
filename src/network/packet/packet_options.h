// SPDX-License-Identifier: Apache-2.0
// Holds the settings of the packet engine beside the topology.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "hw/control/control_profile.h"
#include "hw/control/dcqcn.h"
#include "hw/packet/rdma_packet.h"
#include "hw/switch/ecn.h"
#include "hw/switch/pfc.h"
#include "hw/switch/port_chooser.h"
#include "hw/switch/priority_scheduler.h"
#include "hw/switch/shared_buffer.h"
#include "hw/switch/slow_receiver.h"
#include "hw/transport/go_back_n.h"
#include "hw/transport/retransmission.h"
#include "hw/transport/selective_repeat.h"
#include "hw/transport/tcp.h"
#include "hw/transport/transport_profile.h"
#include "sim/ids.h"
#include "sim/units.h"

namespace trainyard {

class PacketTeam;

// The moment at which a switch of the fabric hands a packet to its next port: once it has all of
// it, or once it has the header and the next port cannot run out of bytes.
enum class Forwarding : std::uint8_t { StoreAndForward, CutThrough };

// The meaning of a link's bandwidth in the topology: the rate of a long transfer of full packets,
// as LinkSpec says it, or the rate of the line, of which headers take their part.
enum class RateMeaning : std::uint8_t { Payload, Line };

// Built in, or as a file states it (PacketOptions::profile).
enum class CongestionControl : std::uint8_t { None, DcqcnNic, DcqcnPaper, Profile };

// Thresholds of marking.
enum class EcnPreset : std::uint8_t {
  Off,
  Hpcc,   // alibaba-edu/High-Precision-Congestion-Control: 100 and 400 kB at 25 Gb/s, 20 %.
  Dcqcn,  // Zhu et al., SIGCOMM 2015: 5 and 200 kB, 1 %.
  Sonic,  // sonic-buildimage, AZURE_LOSSLESS: 1 and 2 MiB, 5 %.
  Dctcp,  // The same as Hpcc, for DCTCP: all above 30 kB at 10 Gb/s.
  Nscc,   // ultraethernet/uet-htsim: 30 and 120 kB at 100 Gb/s, 100 %.
};

// Whether what is known to repeat is simulated again (packet_phases.h); bounded, also what goes on
// at rates that are the same up to this part of them.
enum class FastForward : std::uint8_t { Off, Exact, Bounded };
inline constexpr double kFastForwardBound = 0.01;

// A cable that fails in the middle of the run, known by one of its links.
struct LinkFailure {
  LinkId link;
  SimTime time;
};

// A host that takes data slower than its links bring them, and stops the switches that send it
// (hw/switch/slow_receiver.h): what arrives at its adapter from `from` on and before `until`. From
// then on it has room for everything again.
struct SlowHost {
  NodeId node;  // Node that links of the fabric lead to.
  SlowReceiverSettings receiver;
  SimTime from{};
  SimTime until = SimTime::max();
};

// Classes of data on the links of the fabric (packet_lanes.h).
struct LaneOptions {
  static constexpr std::size_t kLanes = kPriorities;

  std::uint8_t usual = 3;     // The class of connections that name none.
  std::uint8_t lossless = 0;  // Bit i: PFC, where it is on, stops class i. Others may lose packets.
  std::uint8_t strict = 0;    // Bit i: class i goes before all that are not strict.
  // Weights of the other lanes: full packets that they may send in a turn. At least 1.
  std::array<int, kLanes> weights{1, 1, 1, 1, 1, 1, 1, 1};

  [[nodiscard]] bool is_lossless(std::uint32_t lane) const { return (lossless >> lane & 1U) != 0; }
  // `largest`: bytes on the line of the largest packet.
  [[nodiscard]] PriorityScheduler::Sizes quanta(std::int64_t largest) const {
    PriorityScheduler::Sizes sizes{};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sizes[lane] = weights[lane] * largest;
    }
    return sizes;
  }
};

struct PacketOptions {
  Bytes mtu{4096};  // Payload of a full packet.
  RdmaLink framing = RdmaLink::RoceV2;
  RdmaVerb verb = RdmaVerb::Write;
  RateMeaning rates = RateMeaning::Payload;
  Forwarding forwarding = Forwarding::StoreAndForward;

  CongestionControl control = CongestionControl::None;
  std::optional<ControlProfile> profile{};  // Set for CongestionControl::Profile, and for no other.
  EcnPreset ecn = EcnPreset::Off;
  std::optional<MarkingPreset> marking = {};  // Preset of a file, instead of `ecn`.
  bool pfc = false;
  // Several classes of data, each with queues and pauses of its own; without them there is one.
  std::optional<LaneOptions> lanes = {};
  // Switches of the fabric choose the ports of data. PacketNetwork has them do so where the routing
  // is adaptive, and refuses this where it is not.
  std::optional<AdaptiveOptions> adaptive = {};
  // Buffer of each switch of the fabric. 0: with PFC that of the part, and where it is not known 32
  // MiB, or four times what its ports reserve where that is more; without PFC queues have no limit.
  Bytes buffer{};
  // Credits from hop to hop: a link's sender sends no more than its far end has room for. The
  // credits of each link of the fabric, as InfiniBand has them (0: none; not with PFC), with
  // `lanes` of each lane, and of each one inside servers, where it comes on top of what keeps the
  // link busy (0: adapters take everything).
  Bytes fabric_credits{};
  Bytes server_credits{};
  // Threshold of an ingress group with PFC: 2^this of what is free; and without PFC of an egress
  // queue.
  int alpha_exponent = -3;
  int lossy_alpha_exponent = 0;
  AdmissionRule admission = AdmissionRule::Guaranteed;
  // A port of a switch of the fabric holds so many bytes of frames that wait, control packets of
  // TCP among them, and loses what comes beyond them; 0: no such bound. Not with PFC or a buffer.
  Bytes port_queue{};
  // Links of the network are shaped by a bucket of so many bytes, empty at first, which fills at
  // their rate: a packet for which there are enough takes no time on the line; 0: lines. Only with
  // Tcp, and for a full packet at least.
  Bytes burst{};
  // A switch without room for a packet sends on its headers, instead of losing it; only with
  // SelectiveRepeat, a buffer, and neither PFC nor credits.
  bool trims = false;
  // Bytes that a group owns with PFC beside the shared part and its headroom, and how far below its
  // threshold it must be to let the sender go on. Source:
  // alibaba-edu/High-Precision-Congestion-Control, switch-mmu.cc.
  Bytes reserve{4096};
  Bytes resume_offset{3072};
  HeadroomRule headroom = HeadroomRule::Standard;
  SimTime pipeline{};  // One way, beside cable and switch, for which the standard rule has room.
  // Packets that one ACK answers; the last of a message is always answered. 0: no ACKs. Controls
  // that wait for ACKs say themselves how many they need.
  int packets_per_ack = 0;

  Retransmission retransmission = Retransmission::None;
  [[nodiscard]] bool sends_again() const { return row_of(retransmission).sends_again; }
  RetrySettings retry = {};  // For GoBackN.
  // For SelectiveRepeat. Window 0: as many packets as the path holds, its rate times the time of a
  // full packet to the target and of its ACK back on idle links.
  SelectiveSettings selective = {.window = 0};
  TcpSettings tcp = {};  // For Tcp, whose window of packets follows from the MTU.
  // Returns whether ACKs wait in the queues of data, and are lost there.
  [[nodiscard]] bool acks_wait() const { return retransmission == Retransmission::Tcp; }
  // Whether connections hand packets to the queue of their host, as far as small queues let them.
  [[nodiscard]] bool has_sockets() const { return acks_wait() && profile.has_value(); }
  // Bit error rate of links of the fabric: a packet of n bits is lost with 1 - (1 - rate)^n.
  double bit_error_rate = 0.0;
  // The share of packets that a link of the fabric loses beside, whatever their size.
  double loss = 0.0;
  [[nodiscard]] bool draws_losses() const { return bit_error_rate > 0.0 || loss > 0.0; }
  std::vector<SlowHost> slow_hosts{};  // With PFC only.
  std::optional<WatchdogSettings> watchdog =
      {};                               // Watchdog of the ports of switches; with PFC only.
  std::vector<LinkFailure> failures{};  // PacketEngine::fail_link() for each.
  // Time after a failure at which connections over it take another one of the paths that are left.
  // Only with retransmission; without a time they stay where they are.
  std::optional<SimTime> convergence = {};
  FastForward fast_forward = FastForward::Off;
  std::uint64_t seed = 1;
  // The fabric is cut into as many parts, which are worked through side by side. From 1 to
  // kMaxPacketThreads. Results are the same with any number.
  int threads = 1;
  // The processes among which the fabric is shared out, `threads` parts to each; nothing: this one
  // alone. It must outlive the engine.
  PacketTeam* team = nullptr;
  // A window in which fewer packets and ports have work is not worth waking the others for: one
  // thread works through all parts.
  int min_shared = 48;

  // Instead of what the profiles, the preset and 802.1Qbb say, where they are given: for studies of
  // parameters. The line rate of `dcqcn` is not looked at.
  std::optional<DcqcnSettings> dcqcn = {};
  std::optional<RedProfile> red = {};  // Profile of all ports, whatever `ecn` and `marking` say.
  std::optional<Bytes> fixed_headroom = {};  // Headroom of an ingress group.
  // Observations beside counters, which cost time and memory and change nothing: for how long
  // queues had how many bytes; queues and rates at multiples of an interval, never if it is 0.
  bool queue_times = false;
  SimTime sample_every{};

  // Settings of tests that neither changes anything: every switch is worked through event by event,
  // also where nothing can reach a threshold; and windows are no longer than this (0: as the links
  // allow).
  bool always_exact = false;
  SimTime longest_window{};
};

// Returns the options of a RoCE fabric that is set up as vendors advise: DCQCN as NICs do it,
// marking, PFC.
[[nodiscard]] PacketOptions roce_options();

// The control of this name that is built in, if there is one: the others are files.
[[nodiscard]] std::optional<CongestionControl> built_in_control(std::string_view name);
[[nodiscard]] std::string_view control_name(const PacketOptions& options);
// Returns the needs of the control from receivers and switches.
[[nodiscard]] ControlTraits control_traits(const PacketOptions& options);
// Sets the control, and the marking that it is meant for: none for those that do not look at marks.
void set_control(PacketOptions& options, ControlProfile profile);
void set_control(PacketOptions& options, CongestionControl built_in);
[[nodiscard]] bool uses_marks(const PacketOptions& options);

[[nodiscard]] DcqcnSettings dcqcn_settings(CongestionControl control, Bandwidth line);
// The least time between two CNPs of a flow.
[[nodiscard]] SimTime cnp_interval(CongestionControl control);
// Throws ConfigError for options that make no sense, or do not go together: all, those of the
// control, those of switches that choose ports or trim packets, those of TCP, what needs every
// packet beside fast-forward, and what several processes cannot do.
void check_options(const PacketOptions& options);
void check_control(const PacketOptions& options);
void check_adaptive(const PacketOptions& options);
void check_trimming(const PacketOptions& options);
void check_tcp(const PacketOptions& options);
void check_fast_forward(const PacketOptions& options);
void check_team(const PacketOptions& options);
// The names of EcnPreset, in its order.
[[nodiscard]] std::vector<std::string_view> ecn_names();
// The thresholds of a preset that marks, at a port of this rate.
[[nodiscard]] RedProfile red_profile(EcnPreset preset, Bandwidth rate);
// Returns the profile that marks at a port of this rate, if any does. Throws ConfigError if the
// marking is a table without this rate.
[[nodiscard]] std::optional<RedProfile> red_profile(const PacketOptions& options, Bandwidth rate);

// Bytes that a switch or adapter reads of a packet before it can send it on.
inline constexpr std::int64_t kCutThroughBytes = 72;
// A trimmed packet, from Ethernet header to FCS: ultraethernet/uet-htsim, ACKSIZE of uecpacket.h.
inline constexpr Bytes kTrimmedFrame{64};
inline constexpr int kMaxPacketThreads = 256;

}  // namespace trainyard
