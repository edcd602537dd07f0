// SPDX-License-Identifier: Apache-2.0
#include "topology/server/server_keys.h"

#include <spdlog/fmt/fmt.h>

#include <tuple>

#include "topology/server/parts.h"

namespace trainyard {
namespace {

constexpr int kMaxSockets = 64;  // Every pair of them is joined.
constexpr int kMaxChips = 60;    // Times 1024 ports is within a Node's 16 bits.
constexpr int kMaxServersOfDomain = 4096;
constexpr int kMaxTrunkLinks = 4096;
constexpr Whole kDeviceCount{0, kMaxServerDevices};
constexpr Whole kLaneCount{1, 32};

// The names are in the order of Distance.
constexpr std::array<std::string_view, 5> kDistances = {"none", "pix", "pxb", "phb", "sys"};
constexpr std::array<std::string_view, 2> kDevices = {"gpu", "nic"};

auto pcie_named(Catalogue* catalogue) {
  return link_named(catalogue, LinkFamily::Pcie, "a PCIe link such as PCIe4");
}

double payload_efficiency(const ConfigNode& payload) {
  const Bytes size = payload.as_bytes();
  if (size < Bytes(64) || size > Bytes(4096)) {
    payload.fail("64 B to 4096 B", payload.found());
  }
  return pcie_efficiency(size);
}

// The schema leaves out what stands below a branch of a branch.
struct BranchKind {
  Catalogue* catalogue;
  bool is_described = true;

  void read(const Fields& parent, const ConfigNode& node, ServerBranch& branch) const {
    branch.node = node;
    if (node.is_scalar()) {
      branch.kind = node.as_choice(kDevices) == 0 ? NodeKind::Gpu : NodeKind::Nic;
    } else {
      Group{[this](Fields& fields, ServerBranch& own) { rows(fields, own); }}.read(parent, node,
                                                                                   branch);
    }
  }
  void describe(Schema& schema, ServerBranch& branch) const {
    if (is_described) {
      Choice{kDevices}.describe(schema.alternatives.emplace_back());
      Fields fields(schema.alternatives.emplace_back());
      rows(fields, branch);
    }
  }

 private:
  void rows(Fields& fields, ServerBranch& branch) const {
    fields.optional("times", branch.times, Whole{1, kMaxServerDevices}, "So many of it: 1.");
    bool is_known = false;
    const auto device = [&](std::string_view key, NodeKind device_kind, auto& value,
                            const auto& value_kind, std::string_view text) {
      fields.where(!is_known, [&] {
        if (fields.optional(key, value, value_kind, text)) {
          is_known = true;
          branch.kind = device_kind;
        }
      });
    };
    const List below{BranchKind{catalogue, false}};
    device("switch", NodeKind::PcieSwitch, branch.below, below, "Branches below a PCIe switch.");
    fields.where(branch.kind == NodeKind::PcieSwitch, [&] {
      fields.optional("uplink", branch.uplink, pcie_named(catalogue),
                      "Link of the switch upwards: `pcie_uplink`.");
      fields.optional("lanes", branch.lanes, kLaneCount, "Lanes of the uplink.");
    });
    device("root", NodeKind::RootComplex, branch.below, below, "Branches below a root complex.");
    fields.where(branch.kind == NodeKind::RootComplex, [&] {
      fields.optional("bandwidth", branch.bandwidth, Rate{}, "Limit of a root: the CPU's.");
    });
    device("gpu", NodeKind::Gpu, branch.gpu, part_named(catalogue, &Catalogue::gpu), "Part.");
    device("nic", NodeKind::Nic, branch.nic, part_named(catalogue, &Catalogue::nic), "Part.");
    fields.check([&](const ConfigNode& node) {
      if (!is_known) {
        node.fail("gpu, nic or a mapping with one of the keys switch, root, gpu and nic");
      }
      if (branch.gpu != nullptr || branch.nic != nullptr) {
        branch.node = node.required(branch.gpu != nullptr ? "gpu" : "nic");
      } else if (branch.below.empty()) {
        node.required(branch.kind == NodeKind::PcieSwitch ? "switch" : "root")
            .fail("at least one branch", "an empty list");
      }
    });
  }
};

void check_tree(const ConfigNode& node, const ServerKeys& keys) {
  const ConfigNode tree = node.required("tree");
  for (const std::string_view key : {"sockets", "pcie_switches"}) {
    if (const auto number = node.optional(key)) {
      number->fail("tree says this already; leave it out");
    }
  }
  if (keys.tree->empty() || keys.tree->size() > kMaxSockets) {
    tree.fail(fmt::format("a list of branches for each of 1 to {} sockets", kMaxSockets),
              fmt::format("{} sockets", keys.tree->size()));
  }
}

void device_fields(Fields& fields, ServerKeys& keys) {
  Catalogue* catalogue = keys.catalogue;
  fields.required("gpu", keys.gpu, part_named(catalogue, &Catalogue::gpu), "Part.");
  fields.optional("nic", keys.nic, part_named(catalogue, &Catalogue::nic), "Part.");
  fields.optional("cpu", keys.cpu, part_named(catalogue, &Catalogue::cpu), "Part.");
  const bool has_tree = fields.optional(
      "tree", keys.tree, List<List<BranchKind>>{{{catalogue}}},
      "For each socket what hangs off it: `gpu`, `nic`, or a mapping with what is below.");
  fields.where(!has_tree, [&] {
    fields.required("gpus", keys.gpus, Whole{1, kMaxServerDevices},
                    "GPUs, without `tree`, with which they are only checked.");
  });
  fields.optional("sockets", keys.sockets, Whole{1, kMaxSockets}, "CPUs, without `tree`: 1.");
  fields.optional("pcie_switches", keys.pcie_switches, kDeviceCount,
                  "PCIe switches, without `tree`.");
  fields.optional("nics", keys.nics, has_tree ? kDeviceCount : Whole{0, kMaxServerNics}, "NICs.");
  fields.where(has_tree, [&] { fields.optional("gpus", keys.gpus, kDeviceCount, ""); });
  fields.optional("pcie_uplink", keys.pcie_uplink, pcie_named(catalogue),
                  "Link from a PCIe switch upwards: the GPU's own, else the NIC's.");
  fields.optional("pcie_uplink_lanes", keys.pcie_uplink_lanes, kLaneCount, "Lanes of it: 16.");
  fields.optional("pcie_payload", keys.pcie_efficiency, Via{Amount{}, payload_efficiency},
                  "Largest payload of PCIe, 64 B to 4096 B: that of the part.");
  fields.check([&](const ConfigNode& node) {
    if (has_tree) {
      check_tree(node, keys);
    }
    if (keys.pcie_uplink_lanes && keys.pcie_uplink == nullptr) {
      node.required("pcie_uplink_lanes")
          .fail("pcie_uplink_lanes needs pcie_uplink, the name of the link");
    }
  });
}

void scale_up_fields(Fields& fields, ServerKeys& keys) {
  fields.where(keys.layout == ServerTemplate::Links, [&] {
    fields.required(
        "gpu_links", keys.gpu_links,
        Via{List<List<Whole>>{{kDeviceCount}}, [](const ConfigNode& node) { return node.items(); }},
        "With `links`: two GPUs and the number of their links.");
  });
  fields.where(keys.layout == ServerTemplate::NvSwitch, [&] {
    fields.optional("nvlink_domain", keys.nvlink_domain, Whole{2, kMaxServersOfDomain},
                    "Servers that share the switch: each has its own.");
    fields.optional("nvswitch_boards", keys.nvswitch_boards, Whole{1, 2}, "Boards: 1.");
    fields.where(keys.nvswitch_boards > 1, [&] {
      fields.optional("nvswitch_trunk_links", keys.nvswitch_trunk_links, Whole{1, kMaxTrunkLinks},
                      "Links between two boards: those of the GPUs of one.");
    });
    if (!fields.optional("nvswitch", keys.nvswitch,
                         part_named(keys.catalogue, &Catalogue::nvswitch), "Part of the chips.")) {
      fields.check([](const ConfigNode& node) {
        if (const auto chips = node.optional("nvswitch_chips")) {
          chips->fail("nvswitch_chips needs nvswitch, the name of the part");
        }
      });
    }
    fields.where(keys.nvswitch != nullptr, [&] {
      fields.required("nvswitch_chips", keys.nvswitch_chips, Whole{1, kMaxChips},
                      "Chips of a board or domain, with `nvswitch`.");
    });
  });
}

}  // namespace

void server_fields(Fields& fields, ServerKeys& keys) {
  fields.check([&](const ConfigNode& node) { keys.node = node; });
  fields.required("template", keys.layout, Choice{kServerTemplates}, "What joins the GPUs.");
  device_fields(fields, keys);
  scale_up_fields(fields, keys);
  fields.optional("socket_link", keys.socket_link,
                  link_named(keys.catalogue, LinkFamily::Socket, "a link between CPU sockets"),
                  "Link between two CPUs: that of `cpu`.");
  fields.optional("socket_links", keys.socket_links, Whole{1, 16}, "Links of two CPUs: 1.");
  fields.optional("peer_access", keys.traits.peer_access, Choice{kDistances},
                  "Farthest GPUs with access to each other: `sys`.");
  fields.optional("gpudirect", keys.traits.gpudirect, Choice{kDistances},
                  "Farthest GPU and NIC with GPUDirect RDMA: `pxb`.");
  fields.optional("pxn", keys.traits.pxn, Flag{}, "GPUs hand data to the GPU next to a NIC.");
  fields.optional("host_memory", keys.traits.host_memory, Amount{}, "Of all sockets: unknown.");
}

void server_file_fields(Fields& fields, ServerKeys& keys) {
  fields.required("source", std::ignore, Unread{}, "Where the facts are from.");
  fields.optional("base", std::ignore, Unread{}, "File whose values hold where none is given.");
  fields.where(true, [&] { server_fields(fields, keys); });
}

}  // namespace trainyard
