// SPDX-License-Identifier: Apache-2.0
#include "network/engines/packet_profile.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "hw/transport/transport_profile.h"
#include "sim/config.h"

namespace trainyard {
namespace {

// Fails at a value of a section that has a source beside it, unless the condition holds.
void require(bool holds, const ConfigNode& section, std::string_view key,
             std::string_view expected) {
  if (!holds) {
    const ConfigNode value = section.required(key).required("value");
    value.fail(expected, value.found());
  }
}

// Runs a check whose errors belong to this place of the file.
void check_at(const ConfigNode& node, void (*check)(const PacketOptions&),
              const PacketOptions& options) {
  try {
    check(options);
  } catch (const ConfigError& error) {
    node.fail(error.what());
  }
}

void check_flow_control(const TransportProfile& transport, const ConfigNode& root) {
  const PfcProfile& pfc = transport.pfc;
  const RdmaProfile& rdma = transport.rdma;
  const ConfigNode section = root.required("pfc");
  const bool is_lossless = pfc.is_lossless(rdma.data_priority);
  require(transport.queues || pfc.priorities.size() == (is_lossless ? 1 : 0), section, "priorities",
          "[], or rdma.data_priority alone: without queues there is one class of data");
  require(pfc.quanta == kMaxQuanta, section, "quanta",
          "65535: in the packet engine no pause ends by its timer");
  require(!pfc.watchdog || !pfc.priorities.empty(), section, "watchdog",
          "off where no priority is lossless");
  require(!pfc.watchdog || !transport.queues, section, "watchdog",
          "off with queues, since watchdogs of the packet engine know one class of data");
  require(transport.buffer.cell == Bytes(1), root.required("buffer"), "cell",
          "1 B, since switches of the packet engine count bytes");
  require(transport.tcp || rdma.control_priority > rdma.data_priority, root.required("rdma"),
          "control_priority",
          "one above data_priority: in the packet engine ACKs and CNPs of RDMA go before data");
}

LaneOptions lanes_of(const TransportProfile& transport) {
  LaneOptions lanes{.usual = static_cast<std::uint8_t>(transport.rdma.data_priority)};
  const auto bits = [](const std::vector<int>& priorities) {
    unsigned all = 0;
    for (const int priority : priorities) {
      all |= 1U << priority;
    }
    return static_cast<std::uint8_t>(all);
  };
  lanes.lossless = bits(transport.pfc.priorities);
  lanes.strict = bits(transport.queues->strict);
  std::copy_n(transport.queues->weights.begin(), lanes.weights.size(), lanes.weights.begin());
  return lanes;
}

}  // namespace

PacketOptions load_packet_options(const std::filesystem::path& file,
                                  const std::filesystem::path& folder) {
  ConfigDocument document = ConfigDocument::load(file);
  const TransportProfile transport = TransportProfile::read(document, file.parent_path(), folder);
  const ConfigNode root = document.root();
  check_flow_control(transport, root);
  if (transport.ecn && transport.ecn->mark_at != MarkAt::Dequeue) {
    const ConfigNode ecn = root.required("ecn");
    ecn.fail("a preset that marks packets when they leave, as the packet engine does", ecn.found());
  }

  PacketOptions options;
  options.mtu = transport.rdma.path_mtu;
  options.marking = transport.ecn;
  options.pfc = transport.queues ? !transport.pfc.priorities.empty()
                                 : transport.pfc.is_lossless(transport.rdma.data_priority);
  if (transport.queues) {
    options.lanes = lanes_of(transport);
  }
  options.adaptive = transport.adaptive;
  options.headroom = transport.pfc.headroom;
  options.pipeline = transport.pfc.pipeline;
  options.watchdog = transport.pfc.watchdog;
  options.buffer = transport.buffer.size;
  options.admission = transport.buffer.admission;
  options.reserve = transport.buffer.reserve;
  options.resume_offset = transport.buffer.resume_offset;
  options.alpha_exponent = transport.buffer.lossless_alpha;
  options.lossy_alpha_exponent = transport.buffer.lossy_alpha;
  options.trims = transport.buffer.trims;
  if (transport.buffer.queue > Bytes(0)) {
    options.port_queue = transport.buffer.queue;
    options.buffer = Bytes(0);
  }
  options.burst = transport.buffer.burst;
  // Without a number only the last packet of a message is answered.
  constexpr auto kEndsOnly = std::numeric_limits<int>::max();
  options.packets_per_ack =
      transport.rdma.ack_every > 0 ? static_cast<int>(transport.rdma.ack_every) : kEndsOnly;
  options.retransmission = transport.rdma.recovery;
  options.retry = transport.rdma.retry;
  options.selective = transport.rdma.selective;
  options.selective.window = 0;  // Sized by the path of each connection.
  if (transport.tcp) {
    options.framing = RdmaLink::Tcp;
    options.retransmission = Retransmission::Tcp;
    options.mtu = tcp_payload(transport.tcp->mtu);
    options.tcp = transport.tcp->settings;
  }
  const ConfigNode control = root.required("control");
  if (const auto built_in = built_in_control(control.as_string())) {
    options.control = *built_in;
  } else {
    options.control = CongestionControl::Profile;
    options.profile = transport.control;
  }
  check_at(control, check_control, options);
  if (options.trims) {
    check_at(root.required("buffer").required("trim"), check_trimming, options);
  }
  if (transport.tcp) {
    check_at(root.required("tcp"), check_tcp, options);
  }
  if (transport.adaptive) {
    check_at(root.required("adaptive"), check_adaptive, options);
  }
  return options;
}

}  // namespace trainyard
