// SPDX-License-Identifier: Apache-2.0
// Draws sizes of flows: one size, or an empirical distribution.
//
// A distribution is a list of points (size, per cent of the flows that are at most so large), with
// straight lines between them, as the generators of the HPCC and pFabric simulations read theirs
// (alibaba-edu/High-Precision-Congestion-Control, traffic_gen/). Between two points of equal size
// it jumps: so many flows have exactly that size. With u uniform in [0, 100) and x_i, p_i the
// points around it,
//     size = x_i + (u - p_i) / (p_j - p_i) (x_j - x_i), cut to whole bytes, one at least;
//     mean = sum over the pieces of (p_j - p_i) / 100 (x_i + x_j) / 2.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/config.h"
#include "sim/fields.h"
#include "sim/random.h"
#include "sim/units.h"

namespace trainyard {

// Limit for one flow: that of a whole GPU memory is far below, and sums over millions stay exact.
inline constexpr Bytes kMaxFlowSize{std::int64_t{1} << 42};

struct SizePoint {
  Bytes size;
  double percent;
};

class FlowSizes {
 public:
  // All flows of one size of at least a byte.
  explicit FlowSizes(Bytes size);
  // There are at least two points; sizes never decrease, per cents increase from 0 to 100.
  explicit FlowSizes(std::vector<SizePoint> points);

  // Draws nothing where there is one size.
  [[nodiscard]] Bytes draw(RandomStream& stream) const;
  [[nodiscard]] double mean_bytes() const;
  [[nodiscard]] const std::vector<SizePoint>& points() const { return points_; }
  [[nodiscard]] bool is_fixed() const { return points_.size() == 1; }
  // Returns the text of a summary: "10MB", or the name of the distribution.
  [[nodiscard]] const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }

 private:
  std::vector<SizePoint> points_;
  std::string name_;
};

// A file of a distribution: its name, and its points.
struct SizesFile {
  std::string name;
  std::vector<SizePoint> points;
};
void sizes_fields(Fields& fields, SizesFile& file);

// Describes what read_flow_sizes takes.
struct FlowSizesKind {
  static void describe(Schema& schema);
};

// A size such as "10 MB"; the name of a file in `shipped`, such as web-search; a file of the same
// form, beside the one that names it, in `folder`; or {cdf: [[SIZE, PER CENT], ...]} in place.
[[nodiscard]] FlowSizes read_flow_sizes(const ConfigNode& node, const std::filesystem::path& folder,
                                        const std::filesystem::path& shipped);

}  // namespace trainyard
