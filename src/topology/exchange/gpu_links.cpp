// SPDX-License-Identifier: Apache-2.0
#include "topology/exchange/gpu_links.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "sim/config.h"
#include "topology/cluster/cluster.h"
#include "topology/exchange/server_export.h"

namespace trainyard {
namespace {

// "A100-SXM" of "A100-SXM-80GB": versions of a GPU that differ in memory or power are joined alike.
std::string_view family_of(std::string_view part) {
  const std::size_t dash = part.rfind('-');
  const bool is_size = dash != std::string_view::npos &&
                       part.substr(dash + 1).find_first_of("0123456789") == 0 &&
                       (part.ends_with("GB") || part.ends_with('W'));
  return is_size ? part.substr(0, dash) : part;
}

// Returns whether the links alone lead from each GPU to every other.
bool joins_all(const ServerOutline& tree) {
  std::vector<std::size_t> reached{0};
  for (std::size_t next = 0; next < reached.size(); ++next) {
    for (std::size_t gpu = 0; gpu < tree.gpu_links.size(); ++gpu) {
      const std::size_t here = reached[next];
      const bool joined = tree.gpu_links[here][gpu] > 0 ||
                          (tree.switch_links[here] > 0 && tree.switch_links[gpu] > 0);
      if (joined && std::find(reached.begin(), reached.end(), gpu) == reached.end()) {
        reached.push_back(gpu);
      }
    }
  }
  return reached.size() == tree.gpu_links.size();
}

bool has_switches(const ServerOutline& tree) {
  return std::any_of(tree.switch_links.begin(), tree.switch_links.end(),
                     [](int links) { return links > 0; });
}

struct ShippedServer {
  std::string name;
  ServerOutline tree;
};

// The servers of configs/servers with GPUs of this family whose links join them all, by name.
std::vector<ShippedServer> servers_with(std::string_view family, const Catalogue& catalogue) {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder = catalogue.folder().parent_path() / "servers";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<ShippedServer> servers;
  for (const std::filesystem::path& file : files) {
    const std::string name = file.stem().string();
    ConfigDocument document = ConfigDocument::parse(
        fmt::format("name: a\nsource: a\nnodes: 1\nserver: {}\n", name), name);
    ServerOutline tree =
        server_outline(build_cluster(document, catalogue, {}).topology, ServerId(0));
    if (family_of(tree.gpu) == family && tree.gpus > 1 && joins_all(tree)) {
      servers.push_back({name, std::move(tree)});
    }
  }
  return servers;
}

}  // namespace

void complete_gpu_links(ImportedServer& server, const Catalogue& catalogue) {
  ServerOutline& tree = server.tree;
  const GpuModel& gpu = catalogue.gpus().at(tree.gpu);
  if (tree.gpus < 2 || gpu.scale_up_links.value == 0) {
    return;
  }
  const std::vector<ShippedServer> servers = servers_with(family_of(tree.gpu), catalogue);
  auto like = std::find_if(servers.begin(), servers.end(),
                           [&](const ShippedServer& each) { return each.tree.gpus == tree.gpus; });
  const bool all_switched =
      std::all_of(servers.begin(), servers.end(),
                  [](const ShippedServer& each) { return has_switches(each.tree); });
  if (like == servers.end() && all_switched) {
    like = std::find_if(servers.begin(), servers.end(),
                        [&](const ShippedServer& each) { return each.tree.gpus > tree.gpus; });
  }
  if (like == servers.end()) {
    server.remarks.push_back(fmt::format(
        "The file states no links between the GPUs, and no server of configs/servers shows how {} "
        "{} are joined: none stand here. The key gpu_links adds them.",
        tree.gpus, tree.gpu));
    return;
  }
  if (has_switches(like->tree)) {
    tree.switch_links.assign(tree.switch_links.size(), gpu.scale_up_links.value);
  } else {
    tree.gpu_links = like->tree.gpu_links;
  }
  server.remarks.push_back(
      fmt::format("The file states no links between the GPUs, which NCCL finds on the machine: "
                  "they are those of configs/servers/{}.yaml.",
                  like->name));
}

}  // namespace trainyard
