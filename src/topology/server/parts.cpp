// SPDX-License-Identifier: Apache-2.0
#include "topology/server/parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr double kLongestCableMetres = 100'000.0;

// In the order of LinkFamily.
constexpr std::array kLinkKinds{LinkKind::NvLink, LinkKind::Pcie,    LinkKind::C2c, LinkKind::Xgmi,
                                LinkKind::Socket, LinkKind::Network, LinkKind::Hccs};

}  // namespace

std::uint16_t PartLog::part(std::string_view name) {
  const auto place = std::find(names_.begin(), names_.end(), name);
  CHECK(place != names_.end() || names_.size() <= std::numeric_limits<std::uint16_t>::max(),
        "more parts than the catalogue may hold");
  const auto index = static_cast<std::uint16_t>(place - names_.begin());
  if (place == names_.end()) {
    names_.emplace_back(name);
  }
  return index;
}

void PartLog::add(std::string_view part, std::string_view key, std::string_view value,
                  std::string_view source) {
  std::string line = fmt::format("{}: {} = {}: {}", part, key, value, source);
  if (std::find(lines_.begin(), lines_.end(), line) == lines_.end()) {
    lines_.push_back(std::move(line));
  }
}

LinkSpec PhysicalLink::bundle(int lanes) const {
  return {.kind = kind,
          .bandwidth = rate.scaled(lanes * efficiency),
          .latency = latency,
          .lanes = lanes,
          .part = part};
}

PhysicalLink physical_link(const LinkModel& model, PartLog& parts) {
  return {.kind = kLinkKinds.at(static_cast<std::size_t>(model.family)),
          .rate = parts.use(model.name, "bandwidth", model.bandwidth),
          .efficiency = parts.use(model.name, "efficiency", model.efficiency),
          .latency = parts.use(model.name, "latency", model.latency),
          .part = parts.part(model.name)};
}

PhysicalLink gpu_link(const LinkModel& model, PartLog& parts) {
  PhysicalLink link = physical_link(model, parts);
  if (model.gpu_latency) {
    link.latency += parts.use(model.name, "gpu_latency", *model.gpu_latency);
  }
  return link;
}

SimTime cable_delay(const ConfigNode& length) {
  const std::string text = length.as_string();
  char* end = nullptr;
  const double metres = std::strtod(text.c_str(), &end);
  std::string_view unit(end);
  unit.remove_prefix(std::min(unit.find_first_not_of(' '), unit.size()));
  const bool is_length = end != text.c_str() && unit == "m" && metres >= 0.0 &&
                         metres <= kLongestCableMetres;  // False for NaN too.
  if (!is_length) {
    length.fail("a length such as \"10 m\", at most 100 km", length.found());
  }
  return picoseconds(std::llround(metres * kCablePicosecondsPerMetre));
}

}  // namespace trainyard
