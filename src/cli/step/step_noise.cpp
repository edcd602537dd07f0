// SPDX-License-Identifier: Apache-2.0
#include "cli/step/step_noise.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/config_error.h"

namespace trainyard {
namespace {

constexpr double kPartsOfOne = 1e6;

std::optional<double> number_of(std::string_view text) {
  double value = 0.0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole = read.ec == std::errc() && read.ptr == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

// "KEY=VALUE", both not empty.
std::optional<std::pair<std::string_view, std::string_view>> split_pair(std::string_view text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string_view::npos || sign == 0 || sign + 1 == text.size()) {
    return std::nullopt;
  }
  return std::pair(text.substr(0, sign), text.substr(sign + 1));
}

}  // namespace

Options noise_options() {
  Option jitter_seed = seed_option("of --jitter (default: 0)");
  jitter_seed.traits.needs = "jitter";  // Nothing else is by chance.
  return {{"slow-rank", "RANK=FACTOR", "with graph: a rank that computes so many times as long"},
          {"jitter", "KIND=SHARE",
           "with graph: computation is longer by chance, by this share on average: ranks, each by "
           "its own share all step long; operations, each single one; may be given for both",
           kRepeated},
          jitter_seed};
}

std::optional<SlowRank> read_slow_rank(const OptionReader& reader) {
  const std::optional<std::string> text = reader.text("slow-rank");
  if (!text) {
    return std::nullopt;
  }
  if (const auto pair = split_pair(*text)) {
    SlowRank slow;
    const char* const end = pair->first.data() + pair->first.size();
    const auto rank = std::from_chars(pair->first.data(), end, slow.rank);
    const auto factor = number_of(pair->second);
    if (rank.ec == std::errc() && rank.ptr == end && factor && *factor >= 0.001 &&
        *factor <= 1000.0) {
      slow.ppm = std::llround(*factor * kPartsOfOne);
      return slow;
    }
  }
  fail_option("slow-rank", "RANK=FACTOR, a factor from 0.001 to 1000", *text);
}

ComputeJitter read_jitter(const OptionReader& reader) {
  ComputeJitter jitter;
  for (const std::string& text : reader.texts("jitter")) {
    const auto pair = split_pair(text);
    const auto share = pair ? number_of(pair->second) : std::nullopt;
    const bool is_of_ranks = pair && pair->first == "ranks";
    if (!share || !(*share >= 1e-6 && *share <= 10.0) ||
        (!is_of_ranks && pair->first != "operations")) {
      fail_option("jitter", "ranks=SHARE or operations=SHARE, a share from 0.000001 to 10", text);
    }
    std::int64_t& ppm = is_of_ranks ? jitter.rank_ppm : jitter.operation_ppm;
    if (ppm != 0) {
      throw ConfigError(fmt::format("--jitter: expected {} once, found it twice", pair->first));
    }
    ppm = std::llround(*share * kPartsOfOne);
  }
  jitter.seed = read_seed(reader).value_or(0);
  return jitter;
}

std::optional<std::string> describe_noise(const std::optional<SlowRank>& slow,
                                          const ComputeJitter& jitter) {
  std::vector<std::string> all;
  const auto share = [](std::int64_t ppm) { return static_cast<double>(ppm) / kPartsOfOne; };
  if (slow) {
    all.push_back(fmt::format("rank {} computes {} times as long as the others", slow->rank,
                              share(slow->ppm)));
  }
  if (jitter.rank_ppm > 0) {
    all.push_back(
        fmt::format("ranks are slower by {:.4g} % on average", 100.0 * share(jitter.rank_ppm)));
  }
  if (jitter.operation_ppm > 0) {
    all.push_back(fmt::format("operations are longer by {:.4g} % on average",
                              100.0 * share(jitter.operation_ppm)));
  }
  if (all.empty()) {
    return std::nullopt;
  }
  return fmt::format("{}{}", fmt::join(all, "; "),
                     jitter.has_any() ? fmt::format(" (seed {})", jitter.seed) : "");
}

}  // namespace trainyard
