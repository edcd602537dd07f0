// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "network/traffic/traffic_sizes.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/config_error.h"
#include "support/paths.h"
#include "support/program.h"

namespace trainyard {
namespace {

// Returns the per cent of the flows that are at most `size`, of the continuous distribution.
double percent_up_to(const FlowSizes& sizes, Bytes size) {
  const std::vector<SizePoint>& points = sizes.points();
  const auto above = std::ranges::upper_bound(points, size, {}, &SizePoint::size);
  if (above == points.begin()) {
    return 0.0;
  }
  if (above == points.end()) {
    return 100.0;
  }
  const SizePoint& low = *(above - 1);
  const double share = static_cast<double>((size - low.size).count()) /
                       static_cast<double>((above->size - low.size).count());
  return low.percent + share * (above->percent - low.percent);
}

using namespace literals;

const std::filesystem::path kShipped = source_dir() / "configs/traffic/sizes";

FlowSizes read(const std::string& text, const std::filesystem::path& folder = ".") {
  ConfigDocument document = ConfigDocument::parse("size: " + text, "my.yaml");
  const FlowSizes sizes = read_flow_sizes(document.root().required("size"), folder, kShipped);
  document.finish();
  return sizes;
}

std::string error_sizes(const std::string& text, const std::filesystem::path& folder = ".") {
  try {
    (void)read(text, folder);
  } catch (const ConfigError& problem) {
    return problem.what();
  }
  return "no error";
}

TEST_CASE("one size draws nothing and is its own mean") {
  const FlowSizes sizes = read("10 MB");
  RandomStream stream(1, "sizes");
  RandomStream same(1, "sizes");
  REQUIRE(sizes.is_fixed());
  REQUIRE(sizes.draw(stream) == Bytes(10'000'000));
  REQUIRE(stream.next() == same.next());
  REQUIRE(sizes.mean_bytes() == 1e7);
  REQUIRE(sizes.name() == "10MB");
  REQUIRE(percent_up_to(sizes, Bytes(9'999'999)) == 0.0);
  REQUIRE(percent_up_to(sizes, Bytes(10'000'000)) == 100.0);
}

TEST_CASE("between points a distribution is a straight line, and jumps where sizes are equal") {
  const FlowSizes sizes = read("{cdf: [[1 KB, 0], [1 KB, 50], [3 KB, 100]]}");
  REQUIRE(sizes.mean_bytes() == 0.5 * 1000 + 0.5 * 2000);
  REQUIRE(percent_up_to(sizes, Bytes(999)) == 0.0);
  REQUIRE(percent_up_to(sizes, Bytes(1000)) == 50.0);
  REQUIRE(percent_up_to(sizes, Bytes(2000)) == 75.0);
  REQUIRE(percent_up_to(sizes, Bytes(3000)) == 100.0);
  REQUIRE(percent_up_to(sizes, Bytes(9000)) == 100.0);
  RandomStream stream(1, "sizes");
  int exact = 0;
  for (int draw = 0; draw < 1000; ++draw) {
    const Bytes size = sizes.draw(stream);
    REQUIRE(size >= Bytes(1000));
    REQUIRE(size < Bytes(3000));
    exact += size == Bytes(1000) ? 1 : 0;
  }
  REQUIRE(std::abs(exact - 500) < 5 * 16);
}

// The greatest distance between the distribution and n draws from it exceeds 1.95 / sqrt(n) once in
// a thousand seeds (Kolmogorov and Smirnov). Means: five standard errors of what was drawn.
TEST_CASE("draws of the shipped distributions have their shape and mean") {
  constexpr std::size_t kDraws = 50'000;
  for (const std::string name : {"web-search", "ali-storage", "fb-hadoop"}) {
    INFO(name);
    const FlowSizes sizes = read(name);
    REQUIRE(sizes.name() == name);
    RandomStream stream(7, name);
    std::vector<Bytes> drawn;
    double sum = 0.0;
    double squares = 0.0;
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      drawn.push_back(sizes.draw(stream));
      const auto size = static_cast<double>(drawn.back().count());
      REQUIRE(size >= 1.0);
      sum += size;
      squares += size * size;
    }
    std::sort(drawn.begin(), drawn.end());
    double distance = 0.0;
    for (std::size_t index = 0; index < kDraws; ++index) {
      const double share = 100.0 * static_cast<double>(index) / kDraws;
      distance = std::max(distance, std::abs(percent_up_to(sizes, drawn[index]) - share));
    }
    REQUIRE(distance < 100.0 * 1.95 / std::sqrt(kDraws) + 0.1);  // Whole bytes: 0.1 of 1 in 100 B.
    const double mean = sum / kDraws;
    const double deviation = std::sqrt(squares / kDraws - mean * mean);
    REQUIRE(std::abs(mean - sizes.mean_bytes()) < 5 * deviation / std::sqrt(kDraws) + 1.0);
  }
}

// The averages that the generator of HPCC computes for the same tables.
TEST_CASE("the shipped distributions have the means of their sources") {
  REQUIRE(read("web-search").mean_bytes() == Approx(1'711'250.0));
  REQUIRE(read("ali-storage").mean_bytes() == Approx(40'869.8));
  REQUIRE(read("fb-hadoop").mean_bytes() == Approx(120'420.75));
}

TEST_CASE("a distribution comes from a file beside the one that names it") {
  const ScratchFolder folder;
  (void)folder.write("mine.yaml", "name: mine\nsource: me\ncdf: [[1 B, 0], [9 B, 100]]\n");
  REQUIRE(read("mine.yaml", folder.path()).mean_bytes() == 5.0);
  REQUIRE(read("./mine.yaml", folder.path()).name() == "mine");
  (void)folder.write("odd.yaml", "name: mine\nsource: me\ncdf: [[1 B, 0], [9 B, 100]]\nx: 1\n");
  REQUIRE(error_sizes("odd.yaml", folder.path()).find("odd.yaml:4:1: unknown key \"x\"") !=
          std::string::npos);
  REQUIRE(error_sizes("none.yaml", folder.path()).find("none.yaml: cannot be read") !=
          std::string::npos);
}

TEST_CASE("mistakes in sizes are one line with their place") {
  REQUIRE(error_sizes("10") ==
          "my.yaml:1:7: size: expected a size such as \"25 MiB\", found \"10\"");
  REQUIRE(error_sizes("0 B") ==
          "my.yaml:1:7: size: expected a size of one byte or more, found \"0 B\"");
  REQUIRE(error_sizes("8 TiB") ==
          "my.yaml:1:7: size: expected a size of at most 4TiB, found \"8 TiB\"");
  REQUIRE(error_sizes("websearch") ==
          "my.yaml:1:7: size: expected a size such as \"10 MB\", one of ali-storage, fb-hadoop, "
          "web-search, or {cdf: [[10 KB, 15], ...]}, found \"websearch\"; did you mean "
          "\"web-search\"?");
  REQUIRE(error_sizes("[1 B, 2 B]").find("found a sequence") != std::string::npos);
  REQUIRE(error_sizes("{cdf: [[1 B, 0]]}") ==
          "my.yaml:1:13: size.cdf: expected two points or more, found 1");
  REQUIRE(error_sizes("{cdf: [[1 B, 1], [2 B, 100]]}") ==
          "my.yaml:1:14: size.cdf[0]: expected 0 per cent at the first point, found 1");
  REQUIRE(error_sizes("{cdf: [[1 B, 0], [2 B, 99]]}") ==
          "my.yaml:1:24: size.cdf[1]: expected 100 per cent at the last point, found 99");
  REQUIRE(error_sizes("{cdf: [[2 B, 0], [1 B, 100]]}") ==
          "my.yaml:1:24: size.cdf[1]: expected a size of at least 2B, that of the point before, "
          "found 1B");
  REQUIRE(error_sizes("{cdf: [[2 B, 0], [3 B, 50], [4 B, 50]]}") ==
          "my.yaml:1:35: size.cdf[2]: expected more than 50 per cent, those of the point before, "
          "found 50");
  REQUIRE(error_sizes("{cdf: [[2 B, 0, 1], [3 B, 100]]}") ==
          "my.yaml:1:14: size.cdf[0]: expected a size and the per cent of flows up to it, such as "
          "[10 KB, 15], found a sequence of 3");
}

}  // namespace
}  // namespace trainyard
