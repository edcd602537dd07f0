// SPDX-License-Identifier: Apache-2.0
// The format is that of Broadcom/csg-htsim, sim/datacenter/fat_tree_topology.cpp (load,
// set_custom_params, init_network).
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>

#include "sim/config_error.h"
#include "sim/numbers.h"
#include "sim/printable.h"
#include "topology/exchange/simulated_network.h"

namespace trainyard {
namespace {

constexpr std::int64_t kMaxTreeNumber = 1'000'000;
constexpr std::int64_t kMaxTreeCables = 1'000'000;
constexpr std::array<std::string_view, 3> kTreeKeys{"nodes", "tiers", "podsize"};

struct TierKey {
  std::string_view name;
  bool is_required = false;
  std::int64_t otherwise = 1;
};
constexpr std::array kTierKeys{TierKey{"downlink_speed_gbps", true},
                               TierKey{"downlink_latency_ns", true},
                               TierKey{"radix_down", true},
                               TierKey{"radix_up", true},
                               TierKey{"bundle"},
                               TierKey{"oversubscribed"},
                               TierKey{"switch_latency_ns", false, 0},
                               TierKey{"queue_up"},
                               TierKey{"queue_down"}};

struct TreeValue {
  std::int64_t value = 0;
  std::size_t line = 0;
};
using TreeValues = std::map<std::string, TreeValue, std::less<>>;

class HtsimReader {
 public:
  HtsimReader(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  SimulatedNetwork read() && {
    read_lines();
    check_keys();
    check_numbers();
    lay_cables();
    return std::move(network_);
  }

 private:
  [[noreturn]] void fail(std::size_t line, std::string_view what, const std::string& expected,
                         const std::string& found) const {
    throw ConfigError(
        fmt::format("{}:{}: {}: expected {}, found {}", name_, line, what, expected, found));
  }

  void read_lines() {
    for (; !rest_.empty(); ++line_) {
      std::string_view text = rest_.substr(0, rest_.find('\n'));
      rest_.remove_prefix(std::min(text.size() + 1, rest_.size()));
      text = text.substr(0, text.find_last_not_of(" \t\r") + 1);
      text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
      if (!text.empty() && text.front() != '#') {
        read_key(text);
      }
    }
  }

  void read_key(std::string_view text) {
    const std::size_t end = text.find_first_of(" \t");
    const std::string key = lower_case(text.substr(0, end));
    const std::size_t begin =
        end == std::string_view::npos ? end : text.find_first_not_of(" \t", end);
    const std::string_view word = begin == std::string_view::npos ? "" : text.substr(begin);
    const bool is_tier = key == "tier";
    const auto value = parse_number<std::int64_t>(word, is_tier || key.ends_with("_ns") ? 0 : 1,
                                                  is_tier ? 2 : kMaxTreeNumber);
    const bool is_head = std::ranges::find(kTreeKeys, key) != kTreeKeys.end();
    if (!is_tier && !is_head &&
        std::ranges::find(kTierKeys, key, &TierKey::name) == kTierKeys.end()) {
      fail(line_, "key", "Nodes, Tiers, Podsize, Tier or a key of a tier",
           in_quotes(text.substr(0, end)));
    }
    if (!value) {
      fail(line_, key,
           is_tier ? "0, 1 or 2" : fmt::format("a whole number up to {}", kMaxTreeNumber),
           word.empty() ? "nothing" : in_quotes(word));
    }
    if (is_tier) {
      tier_ = static_cast<std::size_t>(*value) + 1;
      lines_.at(tier_) = line_;
    } else if (!is_head && tier_ == 0) {
      fail(line_, key, "a line Tier before it", "none");
    } else if (!values_.at(is_head ? 0 : tier_).emplace(key, TreeValue{*value, line_}).second) {
      fail(line_, key, "it once", "it twice");
    }
  }

  void check_keys() {
    for (const std::string_view key : kTreeKeys) {
      if (!values_[0].contains(key)) {
        fail(line_, key, "a number", "none");
      }
    }
    tiers_ = static_cast<std::size_t>(values_[0]["tiers"].value);
    if (tiers_ != 2 && tiers_ != 3) {
      fail(values_[0]["tiers"].line, "tiers", "2 or 3", std::to_string(tiers_));
    }
    for (std::size_t tier = 1; tier <= tiers_; ++tier) {
      TreeValues& values = values_.at(tier);
      const std::size_t line = lines_.at(tier) == 0 ? line_ : lines_.at(tier);
      for (const TierKey& key : kTierKeys) {
        const bool is_top = tier == tiers_ && key.name == "radix_up";
        if (values.contains(key.name)) {
          has_queues_ = has_queues_ || key.name.starts_with("queue");
        } else if (key.is_required && !is_top) {
          fail(line, fmt::format("tier {}", tier - 1), fmt::format("the key {}", key.name), "none");
        } else {
          values[std::string(key.name)] = {is_top ? 0 : key.otherwise, line};
        }
      }
    }
  }

  [[nodiscard]] std::int64_t number(std::size_t tier, std::string_view key) const {
    return values_.at(tier + 1).find(key)->second.value;
  }
  // A key of a tier must have the value that follows from others.
  void expect(std::size_t tier, std::string_view key, std::int64_t value, std::string_view why) {
    const TreeValue& given = values_.at(tier + 1).find(key)->second;
    if (given.value != value) {
      fail(given.line, fmt::format("{} of tier {}", key, tier), fmt::format("{}, {}", value, why),
           std::to_string(given.value));
    }
  }
  // Returns how often `part` goes into what `whole` is.
  std::int64_t share(std::int64_t whole, std::string_view what, std::int64_t part,
                     std::size_t line) const {
    if (whole % part != 0) {
      fail(line, what, fmt::format("a multiple of {}", part), std::to_string(whole));
    }
    return whole / part;
  }

  void check_numbers() {
    const TreeValue nodes = values_[0]["nodes"];
    const TreeValue pod = values_[0]["podsize"];
    pods_ = share(nodes.value, "nodes", pod.value, nodes.line);
    leaves_ = share(pod.value, "podsize", number(0, "radix_down"), pod.line);
    const auto line = [&](std::size_t tier, std::string_view key) {
      return values_.at(tier + 1).find(key)->second.line;
    };
    expect(0, "bundle", 1, "as hosts have one port");
    spines_ = share(number(0, "radix_up"), "radix_up of tier 0", number(1, "bundle"),
                    line(0, "radix_up"));
    expect(1, "radix_down", leaves_ * number(1, "bundle"),
           "as the leaves of a pod and the bundle say");
    if (tiers_ == 2 && pods_ > 1) {
      fail(pod.line, "podsize", "that of all nodes, as two tiers have one pod",
           std::to_string(pod.value));
    }
    if (tiers_ == 3) {
      cores_ = share(number(1, "radix_up"), "radix_up of tier 1", number(2, "bundle"),
                     line(1, "radix_up"));
      expect(2, "radix_down", pods_ * number(2, "bundle"), "as the pods and the bundle say");
    }
    for (std::size_t tier = 0; tier + 1 < tiers_; ++tier) {
      const std::int64_t down = number(tier, "radix_down") * number(tier, "downlink_speed_gbps");
      const std::int64_t up = number(tier, "radix_up") * number(tier + 1, "downlink_speed_gbps");
      expect(tier, "oversubscribed",
             share(down, fmt::format("rate down of tier {}", tier), up, lines_.at(tier + 1)),
             "the rate down over the rate up");
    }
    if (nodes.value * (1 + number(0, "radix_up")) + pods_ * spines_ * number(1, "radix_up") >
        kMaxTreeCables) {
      fail(nodes.line, "nodes", fmt::format("at most {} cables in all", kMaxTreeCables), "more");
    }
  }

  void lay(std::int64_t from, std::int64_t to, std::size_t tier) {
    const SimulatedNetwork::Cable cable{
        .from = static_cast<std::uint32_t>(from),
        .to = static_cast<std::uint32_t>(to),
        .rate = Bandwidth(number(tier, "downlink_speed_gbps") * 1'000'000'000),
        .delay = nanoseconds(number(tier, "downlink_latency_ns"))};
    network_.cables.insert(network_.cables.end(), static_cast<std::size_t>(number(tier, "bundle")),
                           cable);
  }

  void lay_cables() {
    const std::int64_t hosts = values_[0]["nodes"].value;
    const std::int64_t first_spine = hosts + pods_ * leaves_;
    const std::int64_t first_core = first_spine + pods_ * spines_;
    network_.hosts = static_cast<std::uint32_t>(hosts);
    for (std::int64_t host = 0; host < hosts; ++host) {
      lay(host, hosts + host / number(0, "radix_down"), 0);
    }
    for (std::int64_t leaf = 0; leaf < pods_ * leaves_; ++leaf) {
      for (std::int64_t spine = 0; spine < spines_; ++spine) {
        lay(hosts + leaf, first_spine + leaf / leaves_ * spines_ + spine, 1);
      }
    }
    for (std::int64_t spine = 0; spine < pods_ * spines_; ++spine) {
      for (std::int64_t core = 0; core < cores_; ++core) {
        lay(first_spine + spine, first_core + spine % spines_ + spines_ * core, 2);
      }
    }
    const std::array<std::int64_t, 3> switches{pods_ * leaves_, pods_ * spines_, spines_ * cores_};
    for (std::size_t tier = 0; tier < tiers_; ++tier) {
      network_.switch_delays.insert(network_.switch_delays.end(),
                                    static_cast<std::size_t>(switches.at(tier)),
                                    nanoseconds(number(tier, "switch_latency_ns")));
    }
    if (has_queues_) {
      network_.remarks.push_back("The sizes of queues in the file are not taken over.");
    }
  }

  std::string_view rest_;
  const std::string& name_;
  std::size_t line_ = 1;
  std::size_t tier_ = 0;  // One more than the number of the tier that lines are of; 0: none yet.
  std::array<TreeValues, 4> values_;       // The head and the tiers.
  std::array<std::size_t, 4> lines_ = {};  // Lines on which they begin.
  std::size_t tiers_ = 0;
  std::int64_t pods_ = 0;
  std::int64_t leaves_ = 0;  // Leaves of a pod.
  std::int64_t spines_ = 0;  // The same.
  std::int64_t cores_ = 0;   // Cores of a spine.
  bool has_queues_ = false;
  SimulatedNetwork network_;
};

}  // namespace

bool looks_like_htsim_topology(std::string_view text) {
  bool has_tiers = false;
  for (; !text.empty() && !has_tiers;) {
    const std::string line = lower_case(text.substr(0, text.find('\n')));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view word = std::string_view(line).substr(0, line.find_first_of(" \t\r"));
    const bool is_head = std::ranges::find(kTreeKeys, word) != kTreeKeys.end();
    if (!word.empty() && word.front() != '#' && !is_head) {
      return false;
    }
    has_tiers = word == "tiers";
  }
  return has_tiers;
}

SimulatedNetwork read_htsim_topology(std::string_view text, const std::string& name) {
  return HtsimReader(text, name).read();
}

}  // namespace trainyard
