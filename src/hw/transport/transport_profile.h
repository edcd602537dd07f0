// SPDX-License-Identifier: Apache-2.0
// Describes how RDMA runs over a fabric, as configs/transport/default.yaml and files like it state
// it: congestion control, marking, flow control, buffers of switches, recovery from loss.
// docs/models/transport.md explains the keys.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hw/control/control_profile.h"
#include "hw/switch/ecn.h"
#include "hw/switch/pfc.h"
#include "hw/switch/port_chooser.h"
#include "hw/switch/shared_buffer.h"
#include "hw/transport/go_back_n.h"
#include "hw/transport/retransmission.h"
#include "hw/transport/selective_repeat.h"
#include "hw/transport/tcp.h"
#include "sim/config.h"
#include "sim/units.h"

namespace trainyard {

class Fields;

enum class EcnScaling : std::uint8_t { Linear, Fixed, Table };

struct MarkingPreset {
  struct Row {
    Bandwidth rate{};  // Absent (0) for Fixed.
    RedProfile red{};
  };
  std::string name;
  EcnScaling scaling = EcnScaling::Linear;
  MarkAt mark_at = MarkAt::Dequeue;
  std::vector<Row> rows;

  // Loads a preset of the file of presets. Throws ConfigError; an unknown name is one at `name`.
  [[nodiscard]] static MarkingPreset load(const std::filesystem::path& file,
                                          const ConfigNode& name);
  // Returns the profile for a port of this rate; absent if a table has no row within a millionth of
  // it, which is what rates without and with headers lose by rounding.
  [[nodiscard]] std::optional<RedProfile> at(Bandwidth rate) const;
};

using MarkingPresets = std::map<std::string, MarkingPreset>;

struct PfcProfile {
  std::vector<int> priorities;  // Lossless ones; none: no PFC.
  std::uint16_t quanta = kMaxQuanta;
  HeadroomRule headroom = HeadroomRule::Standard;
  SimTime pipeline{};
  std::optional<WatchdogSettings> watchdog;  // Absent: off.

  [[nodiscard]] bool is_lossless(int priority) const;
};

struct BufferProfile {
  Bytes size{};
  Bytes cell{};
  AdmissionRule admission = AdmissionRule::Guaranteed;
  Bytes reserve{};  // Reserve of a lossless group.
  Bytes resume_offset{};
  int lossless_alpha = 0;  // Exponents of 2.
  int lossy_alpha = 0;
  bool trims = false;  // Packets without room go on as headers.
  Bytes queue{};       // Bound of each port, instead of memory that ports share; 0: none.
  Bytes burst{};       // A link shaped by a bucket sends it at once after a pause; 0: a line.
};

// Settings of ports with a queue for each priority.
struct QueueProfile {
  std::vector<int> strict;   // Priorities that go before all others, the highest first.
  std::vector<int> weights;  // Weights by priority: full packets that the others send in a turn.
};

struct RdmaProfile {
  Bytes path_mtu{};
  bool is_what_if = false;  // A path MTU that RDMA does not know.
  int data_priority = 0;
  int control_priority = 0;
  std::int64_t ack_every = 0;  // 0: at the end of messages only.
  Retransmission recovery = Retransmission::GoBackN;
  RetrySettings retry{};
  SelectiveSettings selective{};  // Its window is that of the engine: line rate x base RTT.
};

// Settings of TCP, instead of those of RDMA.
struct TcpProfile {
  Bytes mtu{};  // Payload of an Ethernet frame.
  TcpSettings settings{};
};

struct TransportProfile {
  ControlProfile control;
  std::optional<MarkingPreset> ecn;  // Absent: nothing is marked.
  PfcProfile pfc;
  BufferProfile buffer;
  RdmaProfile rdma;
  std::optional<QueueProfile> queues = {};
  std::optional<AdaptiveOptions> adaptive = {};
  std::optional<TcpProfile> tcp = {};

  // Reads a document such as configs/transport/default.yaml, which it may have as its `base`. Names
  // of controls and presets are those of `folder`, configs/transport; a control that ends in
  // ".yaml" is a file of the folder `beside`. Throws ConfigError.
  [[nodiscard]] static TransportProfile read(ConfigDocument& document,
                                             const std::filesystem::path& beside,
                                             const std::filesystem::path& folder);
};

// The keys of such a file, and of configs/transport/ecn.yaml. `folder` and `beside` are those of
// TransportProfile::read.
void transport_fields(Fields& fields, TransportProfile& profile,
                      const std::filesystem::path& folder, const std::filesystem::path& beside);
void marking_fields(Fields& fields, MarkingPresets& presets);

}  // namespace trainyard
