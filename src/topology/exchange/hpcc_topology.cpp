// SPDX-License-Identifier: Apache-2.0
// The formats are those of alibaba-edu/High-Precision-Congestion-Control, simulation/scratch/
// third.cc, and of aliyun/SimAI, astra-sim-alibabacloud/astra-sim/network_frontend/ns3/common.h.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>

#include "sim/config_error.h"
#include "sim/numbers.h"
#include "sim/printable.h"
#include "topology/exchange/simulated_network.h"

namespace trainyard {
namespace {

constexpr std::string_view kWordBlanks = " \t\r\n";
constexpr std::int64_t kMaxSimulatedNodes = 1'000'000;  // As many servers as a cluster may have.

// Words of a text with their lines: ns-3 reads with >>, to which lines mean nothing.
class NetworkWords {
 public:
  NetworkWords(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  [[noreturn]] void fail(std::string_view what, std::string_view expected,
                         std::string_view found) const {
    throw ConfigError(
        fmt::format("{}:{}: {}: expected {}, found {}", name_, line_, what, expected, found));
  }

  std::string_view next(std::string_view what, std::string_view expected) {
    skip_blanks();
    if (rest_.empty()) {
      fail(what, expected, "the end of the file");
    }
    const std::string_view word = rest_.substr(0, rest_.find_first_of(kWordBlanks));
    rest_.remove_prefix(word.size());
    return word;
  }
  std::int64_t whole(std::string_view what, std::int64_t min, std::int64_t max) {
    const std::string expected = max == std::numeric_limits<std::int64_t>::max()
                                     ? fmt::format("a whole number from {} on", min)
                                     : fmt::format("a whole number from {} to {}", min, max);
    const std::string_view word = next(what, expected);
    const auto number = parse_number(word, min, max);
    if (!number) {
      fail(what, expected, in_quotes(word));
    }
    return *number;
  }
  // The first word behind blanks, which stays.
  std::string_view peek() {
    skip_blanks();
    return rest_.substr(0, rest_.find_first_of(kWordBlanks));
  }

 private:
  void skip_blanks() {
    const std::size_t end = std::min(rest_.find_first_not_of(kWordBlanks), rest_.size());
    line_ += std::count(rest_.begin(), rest_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    rest_.remove_prefix(end);
  }

  std::string_view rest_;
  const std::string& name_;
  std::ptrdiff_t line_ = 1;
};

// The words of the first line that has any.
std::vector<std::string_view> first_line(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kWordBlanks), text.size()));
  text = text.substr(0, text.find('\n'));
  std::vector<std::string_view> words;
  while (!text.empty() && words.size() < 8) {
    const std::size_t end = std::min(text.find_first_of(kWordBlanks), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(text.find_first_not_of(kWordBlanks, end), text.size()));
  }
  return words;
}

bool is_whole(std::string_view word) {
  return parse_number<std::uint64_t>(word).has_value();
}

// ns-3 writes "100Gbps" and "25.5Mbps", and a number alone for bits per second.
Bandwidth ns3_rate(NetworkWords& words) {
  constexpr std::string_view kExpected = "a rate such as 100Gbps, above zero";
  const std::string word(words.next("rate", kExpected));
  const std::size_t unit = std::min(word.find_first_not_of("0123456789."), word.size());
  const bool is_bits = word.ends_with("bps");
  const std::string si = unit == word.size() ? " b/s"
                         : is_bits ? " " + (word[unit] == 'K' ? "k" : word.substr(unit, 1)) +
                                         (unit + 3 < word.size() ? "b/s" : "/s")
                                   : " " + word.substr(unit);
  try {
    return parse_bandwidth(word.substr(0, unit) + si);
  } catch (const UnitError&) {
    words.fail("rate", kExpected, in_quotes(word));
  }
}

SimTime ns3_delay(NetworkWords& words) {
  constexpr std::string_view kExpected = "a delay such as 1000ns";
  const std::string_view word = words.next("delay", kExpected);
  try {
    return parse_time(word);
  } catch (const UnitError&) {
    words.fail("delay", kExpected, in_quotes(word));
  }
}

enum class SimulatedKind : std::uint8_t { Host, Switch, NvSwitch };

class HpccReader {
 public:
  HpccReader(std::string_view text, const std::string& name)
      : words_(text, name), has_servers_(first_line(text).size() > 3) {}

  SimulatedNetwork read() && {
    read_header();
    read_switches();
    number_nodes();
    nvlinks_.resize(network_.hosts);
    for (std::int64_t link = 0; link < links_; ++link) {
      read_link();
    }
    check_nvlinks();
    remark();
    return std::move(network_);
  }

 private:
  void read_header() {
    constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
    const std::int64_t nodes = words_.whole("nodes", 1, kMaxSimulatedNodes);
    if (has_servers_) {
      network_.gpus_per_server =
          static_cast<std::uint32_t>(words_.whole("GPUs of a server", 1, nodes));
      nvswitches_ = words_.whole("NVSwitches", 0, nodes);
    }
    switches_ = words_.whole("switches", 0, nodes - nvswitches_);
    links_ = words_.whole("links", 0, kAny);
    if (has_servers_) {
      network_.gpu_type = words_.next("GPU", "its name");
    }
    kinds_.resize(static_cast<std::size_t>(nodes), SimulatedKind::Host);
  }

  void read_switches() {
    for (std::int64_t index = 0; index < nvswitches_ + switches_; ++index) {
      const auto node = static_cast<std::size_t>(read_node("switch"));
      if (kinds_[node] != SimulatedKind::Host) {
        words_.fail("switch", "each node once", std::to_string(node));
      }
      kinds_[node] = index < nvswitches_ ? SimulatedKind::NvSwitch : SimulatedKind::Switch;
    }
  }

  std::uint32_t read_node(std::string_view what) {
    return static_cast<std::uint32_t>(
        words_.whole(what, 0, static_cast<std::int64_t>(kinds_.size()) - 1));
  }

  // Hosts in order, then switches in order; an NVSwitch has the number of no node.
  void number_nodes() {
    numbers_.resize(kinds_.size());
    std::uint32_t next = 0;
    for (const SimulatedKind kind : {SimulatedKind::Host, SimulatedKind::Switch}) {
      for (std::size_t node = 0; node < kinds_.size(); ++node) {
        if (kinds_[node] == kind) {
          moved_ = moved_ || (kind == SimulatedKind::Host && node != next);
          numbers_[node] = next++;
        }
      }
      network_.hosts = kind == SimulatedKind::Host ? next : network_.hosts;
    }
    if (network_.hosts == 0 || network_.hosts % network_.gpus_per_server != 0) {
      words_.fail("nodes", fmt::format("hosts, {} for each server", network_.gpus_per_server),
                  std::to_string(network_.hosts));
    }
    network_.switch_delays.assign(next - network_.hosts, SimTime());
  }

  void read_link() {
    const std::uint32_t from = read_node("node of a link");
    const std::uint32_t to = read_node("node of a link");
    if (from == to) {
      words_.fail("link", "two nodes", fmt::format("{} twice", from));
    }
    const Bandwidth rate = ns3_rate(words_);
    const SimTime delay = ns3_delay(words_);
    const std::string_view losses = words_.next("error rate", "a share");
    const auto share = parse_number(losses, 0.0, 1.0);
    if (!share) {
      words_.fail("error rate", "a share from 0 to 1", in_quotes(losses));
    }
    lossy_ += *share > 0.0 ? 1 : 0;
    const bool is_nvlink =
        kinds_[from] == SimulatedKind::NvSwitch || kinds_[to] == SimulatedKind::NvSwitch;
    if (is_nvlink) {
      enter_nvlink(from, to, rate);
    } else {
      network_.cables.push_back(
          {.from = numbers_[from], .to = numbers_[to], .rate = rate, .delay = delay});
    }
  }

  void enter_nvlink(std::uint32_t from, std::uint32_t to, Bandwidth rate) {
    const bool is_reversed = kinds_[from] == SimulatedKind::NvSwitch;
    const std::uint32_t gpu = is_reversed ? to : from;
    const std::uint32_t nvswitch = is_reversed ? from : to;
    if (kinds_[gpu] != SimulatedKind::Host) {
      words_.fail("link of an NVSwitch", "a GPU at its other end", std::to_string(gpu));
    }
    const std::uint32_t server = numbers_[gpu] / network_.gpus_per_server;
    // The server of an NVSwitch stands where other nodes have their number.
    if (numbers_[nvswitch] == 0) {
      numbers_[nvswitch] = server + 1;
    } else if (numbers_[nvswitch] != server + 1) {
      words_.fail("link of an NVSwitch",
                  fmt::format("GPUs of one server of {}", network_.gpus_per_server),
                  fmt::format("the GPU {}", gpu));
    }
    Bandwidth& sum = nvlinks_[numbers_[gpu]];
    if (rate.bits_per_second() > kMaxBandwidth.bits_per_second() - sum.bits_per_second()) {
      words_.fail("rate",
                  fmt::format("at most {} for all NVLinks of a GPU", to_string(kMaxBandwidth)),
                  to_string(rate) + " more");
    }
    sum = Bandwidth(sum.bits_per_second() + rate.bits_per_second());
  }

  void check_nvlinks() {
    network_.nvlink = nvlinks_.front();
    for (std::size_t gpu = 0; gpu < nvlinks_.size(); ++gpu) {
      if (nvlinks_[gpu] != network_.nvlink) {
        words_.fail(
            "links of NVSwitches",
            fmt::format("{} for each GPU, as the first one has", to_string(network_.nvlink)),
            fmt::format("{} for the GPU {}", to_string(nvlinks_[gpu]), gpu));
      }
    }
  }

  void remark() {
    if (moved_) {
      network_.remarks.push_back(
          "Hosts are numbered in the order of their numbers in the file, without the switches: the "
          "flows of such a file name other numbers than servers have here.");
    }
    if (lossy_ > 0) {
      network_.remarks.push_back(fmt::format(
          "{} of {} links lose packets in the file, and none does here.", lossy_, links_));
    }
    if (is_whole(words_.peek())) {
      network_.remarks.push_back(fmt::format(
          "The first line announces {} links, and what follows them is not read.", links_));
    }
  }

  NetworkWords words_;
  bool has_servers_;
  SimulatedNetwork network_;
  std::int64_t nvswitches_ = 0;
  std::int64_t switches_ = 0;
  std::int64_t links_ = 0;
  std::int64_t lossy_ = 0;
  bool moved_ = false;                  // A host has another number than in the file.
  std::vector<SimulatedKind> kinds_;    // One for each node of the file.
  std::vector<std::uint32_t> numbers_;  // Numbers of the nodes of the file here.
  std::vector<Bandwidth> nvlinks_;      // Rate of each GPU into NVSwitches.
};

}  // namespace

bool looks_like_hpcc_topology(std::string_view text) {
  const std::vector<std::string_view> words = first_line(text);
  const bool is_old = words.size() == 3 && std::ranges::all_of(words, is_whole);
  return is_old || (words.size() == 6 && std::all_of(words.begin(), words.begin() + 5, is_whole) &&
                    !is_whole(words[5]));
}

SimulatedNetwork read_hpcc_topology(std::string_view text, const std::string& name) {
  return HpccReader(text, name).read();
}

}  // namespace trainyard
