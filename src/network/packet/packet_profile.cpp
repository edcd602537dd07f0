// SPDX-License-Identifier: Apache-2.0
#include "network/packet/packet_profile.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "hw/transport/transport_profile.h"
#include "sim/config.h"

namespace trainyard {
namespace {

// The values of a section that have a source beside them.
class Section {
 public:
  Section(const ConfigNode& root, std::string_view name) : node_(root.required(name)) {}

  void require(bool holds, std::string_view key, std::string_view expected) const {
    if (!holds) {
      const ConfigNode value = node_.required(key).required("value");
      value.fail(expected, value.found());
    }
  }

 private:
  ConfigNode node_;
};

// Takes a control that is built in by its name, or that of the profile.
void take_control(const ControlProfile& control, const ConfigNode& node, PacketOptions& options) {
  if (const auto built_in = built_in_control(node.as_string())) {
    options.control = *built_in;
  } else {
    options.control = CongestionControl::Profile;
    options.profile = control;
  }
  try {
    check_control(options);
  } catch (const ConfigError& error) {
    node.fail(error.what());
  }
}

void check_flow_control(const TransportProfile& transport, const ConfigNode& root) {
  const PfcProfile& pfc = transport.pfc;
  const RdmaProfile& rdma = transport.rdma;
  const Section section(root, "pfc");
  const bool is_lossless = pfc.is_lossless(rdma.data_priority);
  section.require(transport.queues || pfc.priorities.size() == (is_lossless ? 1 : 0), "priorities",
                  "[], or rdma.data_priority alone: without queues there is one class of data");
  section.require(pfc.quanta == kMaxQuanta, "quanta",
                  "65535: in the packet engine no pause ends by its timer");
  section.require(!pfc.watchdog || !pfc.priorities.empty(), "watchdog",
                  "off where no priority is lossless");
  section.require(!pfc.watchdog || !transport.queues, "watchdog",
                  "off with queues, since watchdogs of the packet engine know one class of data");
  Section(root, "buffer")
      .require(transport.buffer.cell == Bytes(1), "cell",
               "1 B, since switches of the packet engine count bytes");
  Section(root, "rdma")
      .require(rdma.control_priority > rdma.data_priority, "control_priority",
               "one above data_priority: in the packet engine ACKs and CNPs go before data");
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
  // Without a number only the last packet of a message is answered.
  constexpr auto kEndsOnly = std::numeric_limits<int>::max();
  options.packets_per_ack =
      transport.rdma.ack_every > 0 ? static_cast<int>(transport.rdma.ack_every) : kEndsOnly;
  options.retransmission = transport.rdma.recovery;
  options.retry = transport.rdma.retry;
  options.selective = transport.rdma.selective;
  options.selective.window = 0;  // Sized by the path of each connection.
  take_control(transport.control, root.required("control"), options);
  if (transport.adaptive) {
    try {
      check_adaptive(options);
    } catch (const ConfigError& error) {
      root.required("adaptive").fail(error.what());
    }
  }
  return options;
}

}  // namespace trainyard
