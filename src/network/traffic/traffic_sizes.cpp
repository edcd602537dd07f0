// SPDX-License-Identifier: Apache-2.0
#include "network/traffic/traffic_sizes.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "sim/check.h"
#include "sim/yaml_names.h"

namespace trainyard {
namespace {

void check_size(const ConfigNode& node, Bytes size) {
  if (size > kMaxFlowSize) {
    node.fail(fmt::format("a size of at most {}", to_string(kMaxFlowSize)), node.found());
  }
}

SizePoint read_point(const ConfigNode& node) {
  const std::vector<ConfigNode> pair = node.items();
  if (pair.size() != 2) {
    node.fail("a size and the per cent of flows up to it, such as [10 KB, 15]",
              fmt::format("a sequence of {}", pair.size()));
  }
  const SizePoint point{.size = pair[0].as_bytes(), .percent = pair[1].as_number(0.0, 100.0)};
  check_size(pair[0], point.size);
  return point;
}

std::vector<SizePoint> read_points(const ConfigNode& node) {
  const std::vector<ConfigNode> items = node.items();
  if (items.size() < 2) {
    node.fail("two points or more", fmt::format("{}", items.size()));
  }
  std::vector<SizePoint> points;
  for (const ConfigNode& item : items) {
    const SizePoint point = read_point(item);
    if (points.empty() && point.percent != 0.0) {
      item.fail("0 per cent at the first point", fmt::format("{}", point.percent));
    }
    if (!points.empty() && point.size < points.back().size) {
      item.fail(fmt::format("a size of at least {}, that of the point before",
                            to_string(points.back().size)),
                to_string(point.size));
    }
    if (!points.empty() && point.percent <= points.back().percent) {
      item.fail(
          fmt::format("more than {} per cent, those of the point before", points.back().percent),
          fmt::format("{}", point.percent));
    }
    points.push_back(point);
  }
  if (points.back().percent != 100.0) {
    items.back().fail("100 per cent at the last point", fmt::format("{}", points.back().percent));
  }
  return points;
}

// List{List{...}} would be one list.
using Points = List<List<Either<Amount, Number>>>;
constexpr Via kPoints{Points{.of = {.of = {.first = {}, .second = {0.0, 100.0}}}}, read_points};

void cdf_fields(Fields& fields, std::vector<SizePoint>& points) {
  fields.required("cdf", points, kPoints, "Pairs of a size and the per cent of flows up to it.");
}

FlowSizes load_cdf(const std::filesystem::path& file) {
  ConfigDocument document = ConfigDocument::load(file);
  SizesFile read;
  read_fields(document.root(), read, sizes_fields);
  document.finish();
  FlowSizes sizes(std::move(read.points));
  sizes.set_name(std::move(read.name));
  return sizes;
}

}  // namespace

void sizes_fields(Fields& fields, SizesFile& file) {
  fields.required("name", file.name, Text{}, "Name for people.");
  fields.required("source", std::ignore, Unread{}, "Where the distribution is from.");
  cdf_fields(fields, file.points);
}

void FlowSizesKind::describe(Schema& schema) {
  std::vector<SizePoint> points;
  Text::describe(schema.alternatives.emplace_back());
  Group{cdf_fields}.describe(schema.alternatives.emplace_back(), points);
}

FlowSizes::FlowSizes(Bytes size)
    : points_{{.size = size, .percent = 100.0}}, name_(to_string(size)) {
  CHECK(size > Bytes(0), "a flow without a byte");
}

FlowSizes::FlowSizes(std::vector<SizePoint> points)
    : points_(std::move(points)), name_("a distribution") {
  CHECK(points_.size() > 1, "a distribution of sizes needs two points");
  CHECK(points_.front().percent == 0.0, "a distribution of sizes begins at 0");
  CHECK(points_.back().percent == 100.0, "a distribution of sizes ends at 100");
  for (std::size_t index = 1; index < points_.size(); ++index) {
    CHECK(points_[index].size >= points_[index - 1].size, "sizes decrease");
    CHECK(points_[index].percent > points_[index - 1].percent, "per cents do not increase");
  }
}

Bytes FlowSizes::draw(RandomStream& stream) const {
  if (is_fixed()) {
    return points_.front().size;
  }
  const double percent = 100.0 * stream.uniform();
  const auto above = std::ranges::upper_bound(points_, percent, {}, &SizePoint::percent);
  const SizePoint& high = above == points_.end() ? points_.back() : *above;
  const SizePoint& low = *(&high - 1);
  const double share = (percent - low.percent) / (high.percent - low.percent);
  const auto more =
      static_cast<std::int64_t>(share * static_cast<double>(high.size.count() - low.size.count()));
  return std::max(Bytes(1), low.size + Bytes(more));
}

double FlowSizes::mean_bytes() const {
  if (is_fixed()) {
    return static_cast<double>(points_.front().size.count());
  }
  double sum = 0.0;
  for (std::size_t index = 1; index < points_.size(); ++index) {
    const SizePoint& low = points_[index - 1];
    const SizePoint& high = points_[index];
    sum += (high.percent - low.percent) * static_cast<double>(low.size.count() + high.size.count());
  }
  return sum / 200.0;
}

FlowSizes read_flow_sizes(const ConfigNode& node, const std::filesystem::path& folder,
                          const std::filesystem::path& shipped) {
  if (node.is_map()) {
    std::vector<SizePoint> points;
    read_fields(node, points, cdf_fields);
    return FlowSizes(std::move(points));
  }
  const std::string text = node.is_scalar() ? node.as_string() : "";
  const std::filesystem::path named(text);
  if (named.has_parent_path() || named.extension() == ".yaml") {
    return load_cdf(folder / named);
  }
  if (text.find_first_of("+-.0123456789") == 0) {
    const Bytes size = node.as_bytes();
    check_size(node, size);
    if (size == Bytes(0)) {
      node.fail("a size of one byte or more", node.found());
    }
    return FlowSizes(size);
  }
  const std::vector<std::string> names = yaml_names_in(shipped);
  if (std::ranges::find(names, text) == names.end()) {
    node.fail(fmt::format("a size such as \"10 MB\", one of {}, or {{cdf: [[10 KB, 15], ...]}}",
                          fmt::join(names, ", ")),
              node.found() + did_you_mean(text, names));
  }
  return load_cdf(shipped / (text + ".yaml"));
}

}  // namespace trainyard
