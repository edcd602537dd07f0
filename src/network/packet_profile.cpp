// SPDX-License-Identifier: Apache-2.0
#include "network/packet_profile.h"

#include <limits>
#include <string>
#include <string_view>

#include "hw/transport_profile.h"
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

// Three are built in.
void read_control(const ConfigNode& root, const ControlProfile& control, PacketOptions& options) {
  const ConfigNode node = root.required("control");
  const std::string name = node.as_string();
  if (name == "none") {
    options.control = CongestionControl::None;
  } else if (name == "dcqcn-nic") {
    options.control = CongestionControl::DcqcnNic;
  } else if (name == "dcqcn-paper") {
    options.control = CongestionControl::DcqcnPaper;
  } else {
    if (std::holds_alternative<CreditProfile>(control.rules)) {
      node.fail("a control that acts at the sender, as the packet engine has them", node.found());
    }
    const DcqcnProfile* const dcqcn = control.dcqcn();
    if (dcqcn != nullptr && dcqcn->cnp_rule == CnpRule::Deferred) {
      node.fail("a control whose cnp_rule is immediate, as in the packet engine", node.found());
    }
    options.control = CongestionControl::Profile;
    options.profile = control;
  }
}

void check_flow_control(const TransportProfile& transport, const ConfigNode& root) {
  const PfcProfile& pfc = transport.pfc;
  const RdmaProfile& rdma = transport.rdma;
  const Section section(root, "pfc");
  const bool is_lossless = pfc.is_lossless(rdma.data_priority);
  section.require(pfc.priorities.size() == (is_lossless ? 1 : 0), "priorities",
                  "[], or rdma.data_priority alone: the packet engine has one class of data");
  section.require(pfc.quanta == kMaxQuanta, "quanta",
                  "65535: in the packet engine no pause ends by its timer");
  section.require(!pfc.watchdog, "watchdog", "off, since the packet engine has none");
  Section(root, "buffer")
      .require(transport.buffer.cell == Bytes(1), "cell",
               "1 B, since switches of the packet engine count bytes");
  Section(root, "rdma")
      .require(rdma.control_priority > rdma.data_priority, "control_priority",
               "one above data_priority: in the packet engine ACKs and CNPs go before data");
}

// Nothing is sent again, so that nothing but what is shipped could be meant.
void check_recovery(const RdmaProfile& rdma, const RdmaProfile& shipped, const ConfigNode& root) {
  constexpr std::string_view kShipped =
      "what default.yaml has: the packet engine sends nothing again";
  const Section section(root, "rdma");
  section.require(rdma.recovery == shipped.recovery, "recovery", kShipped);
  section.require(rdma.retry.timeout == shipped.retry.timeout, "timeout", kShipped);
  section.require(rdma.retry.retries == shipped.retry.retries, "retries", kShipped);
  section.require(rdma.selective.short_timeout == shipped.selective.short_timeout, "short_timeout",
                  kShipped);
  section.require(rdma.selective.long_timeout == shipped.selective.long_timeout, "long_timeout",
                  kShipped);
}

}  // namespace

PacketOptions load_packet_options(const std::filesystem::path& file,
                                  const std::filesystem::path& folder) {
  ConfigDocument document = ConfigDocument::load(file);
  const TransportProfile transport = TransportProfile::read(document, file.parent_path(), folder);
  const ConfigNode root = document.root();
  check_flow_control(transport, root);
  check_recovery(transport.rdma, TransportProfile::load(folder / "default.yaml", folder).rdma,
                 root);
  if (transport.ecn && transport.ecn->mark_at != MarkAt::Dequeue) {
    const ConfigNode ecn = root.required("ecn");
    ecn.fail("a preset that marks packets when they leave, as the packet engine does", ecn.found());
  }

  PacketOptions options;
  options.mtu = transport.rdma.path_mtu;
  read_control(root, transport.control, options);
  options.marking = transport.ecn;
  options.pfc = transport.pfc.is_lossless(transport.rdma.data_priority);
  options.headroom = transport.pfc.headroom;
  options.pipeline = transport.pfc.pipeline;
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
  return options;
}

}  // namespace trainyard
