// SPDX-License-Identifier: Apache-2.0
#include "nccl/types/types.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>

namespace trainyard::nccl {
namespace {

struct KnownRelease {
  int minor;
  std::string_view name;
};

// Indexed by Version.
constexpr std::array kReleases{
    KnownRelease{4, "2.4.7"},    KnownRelease{5, "2.5.7"},   KnownRelease{6, "2.6.4"},
    KnownRelease{7, "2.7.8"},    KnownRelease{8, "2.8.4"},   KnownRelease{10, "2.10.3"},
    KnownRelease{12, "2.12.12"}, KnownRelease{14, "2.14.3"}, KnownRelease{15, "2.15.5"},
    KnownRelease{16, "2.16.5"},  KnownRelease{17, "2.17.1"}, KnownRelease{18, "2.18.5"},
    KnownRelease{19, "2.19.4"},  KnownRelease{20, "2.20.5"}, KnownRelease{21, "2.21.5"},
    KnownRelease{23, "2.23.4"},  KnownRelease{24, "2.24.3"}, KnownRelease{25, "2.25.1"},
    KnownRelease{26, "2.26.6"},  KnownRelease{27, "2.27.7"}, KnownRelease{28, "2.28.9"},
    KnownRelease{29, "2.29.7"},  KnownRelease{30, "2.30.7"}};
static_assert(kReleases.size() == static_cast<std::size_t>(kNewestVersion) + 1);

// Minor releases without a row that decide as the row before them does.
constexpr std::array kAlike{11, 13, 22};

constexpr std::array<std::string_view, 5> kFunctionNames{"Broadcast", "Reduce", "AllGather",
                                                         "ReduceScatter", "AllReduce"};
constexpr std::array<std::string_view, 8> kAlgorithmNames{
    "Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT", "AllPairs"};
constexpr std::array<std::string_view, 3> kProtocolNames{"LL", "LL128", "Simple"};
constexpr std::array<std::string_view, 12> kPathNames{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                      "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

template <typename Value, std::size_t Count>
std::optional<Value> find_name(const std::array<std::string_view, Count>& names,
                               std::string_view name) {
  for (std::size_t i = 0; i < Count; ++i) {
    if (same_letters(names[i], name)) {
      return static_cast<Value>(i);
    }
  }
  return std::nullopt;
}

// The number at the front of `text`, which is then without it.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::string_view to_string(Version version) {
  return kReleases[static_cast<std::size_t>(version)].name;
}

std::string_view to_string(Function function) {
  return kFunctionNames[static_cast<std::size_t>(function)];
}

std::string_view to_string(Algorithm algorithm) {
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}

std::string_view to_string(Protocol protocol) {
  return kProtocolNames[static_cast<std::size_t>(protocol)];
}

std::string_view to_string(PathType type) {
  return kPathNames[static_cast<std::size_t>(type)];
}

std::optional<Algorithm> parse_algorithm(std::string_view name) {
  const auto found = find_name<Algorithm>(kAlgorithmNames, name);
  return found == Algorithm::AllPairs ? std::nullopt : found;
}

std::optional<Protocol> parse_protocol(std::string_view name) {
  return find_name<Protocol>(kProtocolNames, name);
}

std::optional<Function> parse_function(std::string_view name) {
  return find_name<Function>(kFunctionNames, name);
}

std::optional<PathType> parse_path_type(std::string_view name) {
  return find_name<PathType>(kPathNames, name);
}

std::optional<ParsedVersion> parse_version(std::string_view text) {
  const auto major = take_number(text);
  if (!major || text.empty() || text.front() != '.') {
    return std::nullopt;
  }
  text.remove_prefix(1);
  const auto minor = take_number(text);
  if (!minor) {
    return std::nullopt;
  }
  if (!text.empty()) {  // ".7", or what a packager adds behind it.
    text.remove_prefix(1);
    if (!take_number(text)) {
      return std::nullopt;
    }
  }
  if (*major != 2) {
    return std::nullopt;
  }
  std::size_t known = 0;
  while (known + 1 < kReleases.size() && kReleases[known + 1].minor <= *minor) {
    ++known;
  }
  return ParsedVersion{.known = static_cast<Version>(known),
                       .exact = kReleases[known].minor == *minor ||
                                std::find(kAlike.begin(), kAlike.end(), *minor) != kAlike.end()};
}

std::optional<Function> function_of(Operation operation) {
  // In the order of kFunctions.
  constexpr std::array kOperations{Operation::Broadcast, Operation::Reduce, Operation::AllGather,
                                   Operation::ReduceScatter, Operation::AllReduce};
  for (std::size_t i = 0; i < kOperations.size(); ++i) {
    if (kOperations[i] == operation) {
      return kFunctions[i];
    }
  }
  return std::nullopt;
}

}  // namespace trainyard::nccl
