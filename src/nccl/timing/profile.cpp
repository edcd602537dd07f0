// SPDX-License-Identifier: Apache-2.0
#include "nccl/timing/profile.h"

#include <string>
#include <vector>

#include "sim/config.h"

namespace trainyard::nccl {
namespace {

// Values are {value, evidence, source, note}, as in the catalogue of parts.
class Reader {
 public:
  explicit Reader(ConfigDocument& document) {
    for (const auto& [name, text] : document.root().required("sources").entries()) {
      static_cast<void>(text.as_string());
      sources_.push_back(name);
    }
  }

  [[nodiscard]] ConfigNode value(const ConfigNode& parent, std::string_view key) const {
    const ConfigNode node = parent.required(key);
    static constexpr std::array<std::string_view, 5> kEvidences{"datasheet", "measured", "shipped",
                                                                "secondary", "estimate"};
    static_cast<void>(node.required("evidence").as_choice(kEvidences));
    const ConfigNode source = node.required("source");
    const std::vector<std::string_view> names(sources_.begin(), sources_.end());
    static_cast<void>(source.as_choice(names));
    if (const auto note = node.optional("note")) {
      static_cast<void>(note->as_string());
    }
    if (const auto fit = node.optional("fit")) {
      fit->skip();  // The report of `trainyard calibrate` on it.
    }
    return node.required("value");
  }

  [[nodiscard]] SimTime time(const ConfigNode& parent, std::string_view key) const {
    return value(parent, key).as_time();
  }
  [[nodiscard]] Bandwidth rate(const ConfigNode& parent, std::string_view key) const {
    return value(parent, key).as_bandwidth();
  }
  [[nodiscard]] double share(const ConfigNode& parent, std::string_view key) const {
    return value(parent, key).as_number(0.01, 2.0);
  }
  [[nodiscard]] int count(const ConfigNode& parent, std::string_view key) const {
    return static_cast<int>(value(parent, key).as_integer(0, 1'000'000));
  }
  // [LL, LL128, Simple]
  [[nodiscard]] ProtocolTimes times(const ConfigNode& parent, std::string_view key) const {
    const ConfigNode list = value(parent, key);
    const std::vector<ConfigNode> items = list.items();
    if (items.size() != 3) {
      list.fail("three times, of LL, LL128 and Simple", std::to_string(items.size()));
    }
    return {.ll = items[0].as_time(), .ll128 = items[1].as_time(), .simple = items[2].as_time()};
  }

 private:
  std::vector<std::string> sources_;
};

GpuProfile read_gpu(const Reader& reader, const ConfigNode& node) {
  GpuProfile gpu{.simple_rate = reader.rate(node, "simple_rate"),
                 .simple_cost = reader.time(node, "simple_cost"),
                 .ll128_rate = reader.rate(node, "ll128_rate"),
                 .ll128_cost = reader.time(node, "ll128_cost"),
                 .ll_cost = reader.time(node, "ll_cost"),
                 .ll_pass = reader.time(node, "ll_pass"),
                 .ll128_link = reader.share(node, "ll128_link"),
                 .point_to_point_link = reader.share(node, "point_to_point_link"),
                 .nvls = {}};
  if (const auto nvls = node.optional("nvls")) {
    gpu.nvls = NvlsProfile{.link = reader.share(*nvls, "link"),
                           .head_cost = reader.time(*nvls, "head_cost"),
                           .symmetric_base = reader.time(*nvls, "symmetric_base")};
  }
  return gpu;
}

TransportProfile read_transport(const Reader& reader, const ConfigNode& node) {
  return {.latency = reader.times(node, "latency")};
}

NetworkProfile read_network(const Reader& reader, const ConfigNode& node) {
  return {.latency = reader.times(node, "latency"),
          .host_cost = reader.time(node, "host_cost"),
          .rate = reader.share(node, "rate"),
          .connection_rate = node.optional("connection_rate") ? reader.rate(node, "connection_rate")
                                                              : kMaxBandwidth};
}

}  // namespace

Profile Profile::load(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  return read(document);
}

Profile Profile::read(ConfigDocument& document) {
  const ConfigNode root = document.root();
  const Reader reader(document);
  Profile profile;
  const ConfigNode kernel = root.required("kernel");
  profile.ring_base = reader.times(kernel, "ring_base");
  profile.tree_base = reader.times(kernel, "tree_base");
  profile.per_channel = reader.time(kernel, "per_channel");
  profile.pat_base = reader.time(kernel, "pat_base");
  profile.tree_network_extra = reader.times(kernel, "tree_network_extra");
  profile.collnet_extra = reader.time(kernel, "collnet_extra");
  profile.nvls_tree_sync = reader.time(kernel, "nvls_tree_sync");
  for (const auto& [name, node] : root.required("gpus").entries()) {
    profile.gpus.emplace(name, read_gpu(reader, node));
  }
  const ConfigNode transports = root.required("transports");
  profile.nvlink = read_transport(reader, transports.required("nvlink"));
  profile.nvswitch = reader.time(transports.required("nvlink"), "switch_latency");
  profile.units_in_step = reader.count(transports.required("nvlink"), "units_in_step");
  profile.pcie = read_transport(reader, transports.required("pcie"));
  profile.host = read_transport(reader, transports.required("host"));
  profile.pcie_rate = reader.share(transports.required("pcie"), "rate");
  profile.pcie_ll_rate = reader.share(transports.required("pcie"), "ll_rate");
  profile.staged_ll_pass = reader.time(transports.required("host"), "ll_pass_extra");
  profile.staging_rate = reader.share(transports.required("host"), "rate");
  profile.host_bridge_rate = reader.share(transports, "host_bridge_rate");
  const ConfigNode networks = root.required("networks");
  for (const auto& [name, node] : networks.entries()) {
    profile.networks.emplace(name, read_network(reader, node));
  }
  std::vector<std::string_view> names;
  for (const auto& [name, network] : profile.networks) {
    names.push_back(name);
  }
  for (const auto& [nic, network] : root.required("nics").entries()) {
    profile.network_of_nic.emplace(nic, names[network.as_choice(names)]);
  }
  const ConfigNode launch = root.required("launch");
  profile.launch = {.process_per_gpu = reader.time(launch, "process_per_gpu"),
                    .shared_process = reader.time(launch, "shared_process"),
                    .per_gpu = reader.time(launch, "per_gpu"),
                    .per_channel = reader.time(launch, "per_channel"),
                    .graph = reader.time(launch, "graph")};
  if (const auto basis = root.optional("calibration")) {
    profile.basis = ProfileBasis::read(*basis);
  }
  document.finish();
  return profile;
}

}  // namespace trainyard::nccl
