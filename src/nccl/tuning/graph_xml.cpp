// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning/graph_xml.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <pugixml.hpp>

#include "nccl/tuning/connect.h"
#include "sim/check.h"
#include "sim/config.h"
#include "sim/config_error.h"
#include "sim/numbers.h"
#include "sim/printable.h"
#include "sim/xml_file.h"

namespace trainyard::nccl {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;
constexpr std::uint64_t kMaxDevice = 0xFFFFFFFFFFFFFFFFU;
constexpr double kMaxSpeed = 1e6;  // GB/s; only to refuse nonsense.

struct Kind {
  int id;
  std::string_view name;
  int min_pattern;
  int max_pattern;
  bool heads_only;  // A channel may name its first GPU alone.
  Graph GraphSet::*graph;
};
// The kinds are in the order in which NCCL writes them (src/init.cc: initTransportsRank,
// dumpGraphs).
constexpr std::array kKinds{
    Kind{0, "ring", 4, 4, false, &GraphSet::ring},
    Kind{1, "tree", 1, 3, false, &GraphSet::tree},
    Kind{4, "collnet direct", 6, 6, true, &GraphSet::collnet_direct},
    Kind{2, "collnet chain", 3, 3, false, &GraphSet::collnet_chain},
    Kind{3, "NVLS", 5, 5, true, &GraphSet::nvls},
};

// An attribute in the file.
struct Attribute {
  std::string_view text;
  std::string path;
  std::size_t offset = 0;
};

class GraphReader {
 public:
  GraphReader(std::string_view text, const std::string& name, const GraphNames& names)
      : file_(text, name, kMaxBytes, "graphs"), names_(names) {}

  GraphSet read() {
    const pugi::xml_node root = file_.root();
    require_attributes(root, "graphs", {"version"});
    (void)integer(root, "graphs", "version", 1, 1);
    GraphSet file;
    int count = 0;
    for (const pugi::xml_node node : root.children()) {
      const std::string path = fmt::format("graphs.graph[{}]", count++);
      require_name(node, path, {"graph"});
      read_graph(node, path, file);
    }
    return file;
  }

 private:
  void read_graph(const pugi::xml_node& node, const std::string& path, GraphSet& file) const {
    require_attributes(node, path,
                       {"id", "pattern", "crossnic", "nchannels", "speedintra", "speedinter",
                        "latencyinter", "typeintra", "typeinter", "samechannels"});
    const int id = integer(node, path, "id", 0, static_cast<int>(kKinds.size()) - 1);
    const auto* const kind = std::find_if(kKinds.begin(), kKinds.end(),
                                          [id](const Kind& each) { return each.id == id; });
    CHECK(kind != kKinds.end(), "every id is a kind of graph");
    if ((file.*(kind->graph)).exists()) {
      file_.fail(node, path, fmt::format("expected each id once, found {} again", id));
    }
    const int channels = integer(node, path, "nchannels", 0, kMaxChannels / 2);
    // NCCL writes zeros everywhere for graphs that it did not search.
    const int min_pattern = channels == 0 ? 0 : kind->min_pattern;
    Graph graph;
    graph.pattern =
        static_cast<GraphPattern>(integer(node, path, "pattern", min_pattern, kind->max_pattern));
    graph.cross_nic = integer(node, path, "crossnic", 0, 2);
    graph.channel_count = channels;
    graph.bw_intra = number(node, path, "speedintra", channels > 0);
    graph.bw_inter = number(node, path, "speedinter", channels > 0);
    if (node.attribute("latencyinter")) {
      graph.latency_inter = number(node, path, "latencyinter", false);
    }
    graph.type_intra = path_type(node, path, "typeintra");
    graph.type_inter = path_type(node, path, "typeinter");
    graph.same_channels = integer(node, path, "samechannels", 0, 1) == 1;
    for (const pugi::xml_node child : node.children()) {
      const std::string child_path = fmt::format("{}.channel[{}]", path, graph.channels.size());
      require_name(child, child_path, {"channel"});
      require_attributes(child, child_path, {});
      graph.channels.push_back(read_channel(child, child_path, *kind));
    }
    if (graph.channels.size() != static_cast<std::size_t>(channels)) {
      file_.fail(node, path,
                 fmt::format("expected nchannels channels ({}), found {}", channels,
                             graph.channels.size()));
    }
    if (channels > 0) {
      file.*(kind->graph) = std::move(graph);
    }
  }

  GraphChannel read_channel(const pugi::xml_node& node, const std::string& path,
                            const Kind& kind) const {
    GraphChannel channel;
    std::vector<int> nics;
    for (const pugi::xml_node child : node.children()) {
      require_name(child, path, {"net", "gpu"});
      const bool is_net = std::string_view(child.name()) == "net";
      const std::string child_path =
          fmt::format("{}.{}[{}]", path, child.name(), is_net ? nics.size() : channel.gpus.size());
      if (is_net) {
        require_attributes(child, child_path, {"dev"});
        nics.push_back(nic(child, child_path));
      } else {
        require_attributes(child, child_path, {"dev", "rank"});
        channel.gpus.push_back(gpu(child, child_path));
      }
    }
    check_gpus(node, path, channel.gpus, kind);
    const std::size_t expected = names_.several_nodes ? 2 : 0;
    // A file of several nodes can be used on one: its NICs are then of no use.
    if (nics.size() != expected && !(expected == 0 && nics.size() == 2)) {
      file_.fail(node, path,
                 fmt::format("expected {} \"net\", found {}",
                             expected == 0 ? "no" : "a first and a last element", nics.size()));
    }
    if (names_.several_nodes) {
      channel.net_in = nics.front();
      channel.net_out = nics.back();
    }
    return channel;
  }

  void check_gpus(const pugi::xml_node& node, const std::string& path, std::vector<int> gpus,
                  const Kind& kind) const {
    std::sort(gpus.begin(), gpus.end());
    const auto twice = std::adjacent_find(gpus.begin(), gpus.end());
    if (twice != gpus.end()) {
      file_.fail(
          node, path,
          fmt::format("expected every GPU once, found rank {} twice", names_.first_rank + *twice));
    }
    if (gpus.size() != names_.gpus.size() && !(kind.heads_only && gpus.size() == 1)) {
      file_.fail(node, path,
                 fmt::format("expected all {} GPUs of the node, found {}", names_.gpus.size(),
                             gpus.size()));
    }
  }

  [[nodiscard]] int gpu(const pugi::xml_node& node, const std::string& path) const {
    if (node.attribute("rank")) {
      const int last = names_.first_rank + static_cast<int>(names_.gpus.size()) - 1;
      return integer(node, path, "rank", names_.first_rank, last) - names_.first_rank;
    }
    return static_cast<int>(device(node, path, names_.gpus, "GPU"));
  }

  [[nodiscard]] int nic(const pugi::xml_node& node, const std::string& path) const {
    std::vector<int> numbers;
    std::vector<std::uint64_t> ids;
    for (const auto& [number, id] : names_.nics) {
      numbers.push_back(number);
      ids.push_back(id);
    }
    return numbers[device(node, path, ids, "NIC")];
  }

  // Position in `known`.
  [[nodiscard]] std::size_t device(const pugi::xml_node& node, const std::string& path,
                                   const std::vector<std::uint64_t>& known,
                                   std::string_view noun) const {
    const Attribute found = attribute(node, path, "dev");
    std::string_view digits = found.text;
    if (digits.starts_with("0x")) {
      digits.remove_prefix(2);
    }
    std::uint64_t value = kMaxDevice;
    const char* const end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, value, 16);
    const bool is_number = result.ec == std::errc() && result.ptr == end;
    const auto place = std::find(known.begin(), known.end(), value);
    if (!is_number || place == known.end()) {
      std::vector<std::string> all;
      for (const std::uint64_t each : known) {
        all.push_back(fmt::format("{:#x}", each));
      }
      fail(found, fmt::format("the index of a {} of the node ({})", noun,
                              all.size() > 16 ? fmt::format("{} .. {}", all.front(), all.back())
                                              : fmt::format("{}", fmt::join(all, ", "))));
    }
    return static_cast<std::size_t>(place - known.begin());
  }

  [[nodiscard]] int integer(const pugi::xml_node& node, const std::string& path,
                            std::string_view key, int min, int max) const {
    const Attribute found = attribute(node, path, key);
    const auto value = parse_number(found.text, min, max);
    if (!value) {
      fail(found, min == max ? std::to_string(min)
                             : fmt::format("a whole number from {} to {}", min, max));
    }
    return *value;
  }

  [[nodiscard]] double number(const pugi::xml_node& node, const std::string& path,
                              std::string_view key, bool positive) const {
    const Attribute found = attribute(node, path, key);
    const auto value = parse_number(found.text, 0.0, kMaxSpeed);
    if (!value || (positive && *value == 0.0)) {
      fail(found, positive ? "a number above 0" : "a number of at least 0");
    }
    return *value;
  }

  [[nodiscard]] PathType path_type(const pugi::xml_node& node, const std::string& path,
                                   std::string_view key) const {
    const Attribute found = attribute(node, path, key);
    const std::optional<PathType> type = parse_path_type(found.text);
    if (!type || *type > PathType::Sys || to_string(*type) != found.text) {
      fail(found, "LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB or SYS");
    }
    return *type;
  }

  // --- Places ----------------------------------------------------------------------------------

  void require_name(const pugi::xml_node& node, std::string_view path,
                    std::initializer_list<std::string_view> known) const {
    if (std::find(known.begin(), known.end(), node.name()) == known.end() ||
        node.type() != pugi::node_element) {
      const bool is_element = node.type() == pugi::node_element;
      file_.fail(node, path,
                 fmt::format("expected the element \"{}\", found {}", fmt::join(known, "\" or \""),
                             in_quotes(is_element ? node.name() : node.value())));
    }
  }
  void require_attributes(const pugi::xml_node& node, std::string_view path,
                          std::initializer_list<std::string_view> known) const {
    std::vector<std::string> seen;
    const std::vector<std::string> names(known.begin(), known.end());
    for (const pugi::xml_attribute each : node.attributes()) {
      const std::string name = each.name();
      const std::size_t offset = file_.offset_of(node, seen.size());
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        file_.fail(
            offset, path,
            fmt::format("unknown attribute {}{}", in_quotes(name), did_you_mean(name, names)));
      }
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
        file_.fail(offset, path, fmt::format("the attribute {} is given twice", in_quotes(name)));
      }
      seen.push_back(name);
    }
  }

  [[nodiscard]] Attribute attribute(const pugi::xml_node& node, const std::string& path,
                                    std::string_view key) const {
    std::size_t position = 0;
    for (const pugi::xml_attribute each : node.attributes()) {
      if (each.name() == key) {
        return {.text = each.value(),
                .path = fmt::format("{}.{}", path, key),
                .offset = file_.offset_of(node, position)};
      }
      ++position;
    }
    file_.fail(node, path, fmt::format("missing attribute \"{}\"", key));
  }

  [[noreturn]] void fail(const Attribute& found, std::string_view expected) const {
    file_.fail_value(found.offset, found.path, expected, found.text);
  }

  XmlFile file_;
  const GraphNames& names_;
};

std::string net_element(std::optional<int> nic, const GraphNames& names) {
  return nic ? fmt::format("      <net dev=\"{:#x}\"/>\n", names.nics.at(*nic)) : "";
}

std::string graph_element(const Graph& graph, int id, const GraphNames& names) {
  std::string text = fmt::format(
      "  <graph id=\"{}\" pattern=\"{}\" crossnic=\"{}\" nchannels=\"{}\" speedintra=\"{:g}\" "
      "speedinter=\"{:g}\" latencyinter=\"{:g}\" typeintra=\"{}\" typeinter=\"{}\" "
      "samechannels=\"{}\">\n",
      id, static_cast<int>(graph.pattern), graph.cross_nic, graph.channel_count, graph.bw_intra,
      graph.bw_inter, graph.latency_inter, to_string(graph.type_intra), to_string(graph.type_inter),
      graph.same_channels ? 1 : 0);
  for (const GraphChannel& channel : graph.channels) {
    text += "    <channel>\n" + net_element(channel.net_in, names);
    for (const int gpu : channel.gpus) {
      text += fmt::format("      <gpu dev=\"{:#x}\" rank=\"{}\"/>\n",
                          names.gpus.at(static_cast<std::size_t>(gpu)), names.first_rank + gpu);
    }
    text += net_element(channel.net_out, names) + "    </channel>\n";
  }
  return text + "  </graph>\n";
}

}  // namespace

std::string write_graph_xml(const GraphSet& graphs, const GraphNames& names) {
  std::string text = "<graphs version=\"1\">\n";
  for (const Kind& kind : kKinds) {
    if (const Graph& graph = graphs.*(kind.graph); graph.exists()) {
      text += graph_element(graph, kind.id, names);
    }
  }
  return text + "</graphs>\n";
}

GraphSet read_graph_xml(std::string_view text, const std::string& name, const GraphNames& names) {
  return GraphReader(text, name, names).read();
}

}  // namespace trainyard::nccl
