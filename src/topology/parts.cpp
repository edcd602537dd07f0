// SPDX-License-Identifier: Apache-2.0
#include "topology/parts.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sim/check.h"

namespace trainyard {
namespace {

constexpr double kCablePicosecondsPerMetre = 5'000.0;
constexpr double kLongestCableMetres = 100'000.0;

LinkKind kind_of(LinkFamily family) {
  switch (family) {
    case LinkFamily::NvLink:
      return LinkKind::NvLink;
    case LinkFamily::Pcie:
      return LinkKind::Pcie;
    case LinkFamily::C2c:
      return LinkKind::C2c;
    case LinkFamily::Xgmi:
      return LinkKind::Xgmi;
    case LinkFamily::Socket:
      return LinkKind::Socket;
  }
  CHECK(false, "unknown family of link");
}

}  // namespace

std::string EstimateLog::to_text(int value) {
  return std::to_string(value);
}
std::string EstimateLog::to_text(double value) {
  return fmt::format("{}", value);
}
std::string EstimateLog::to_text(Bandwidth value) {
  return to_string(value);
}
std::string EstimateLog::to_text(SimTime value) {
  return to_string(value);
}

void EstimateLog::add(std::string_view part, std::string_view key, std::string_view value,
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
          .lanes = lanes};
}

PhysicalLink physical_link(const LinkModel& model, EstimateLog& estimates) {
  return {.kind = kind_of(model.family),
          .rate = estimates.use(model.name, "bandwidth", model.bandwidth),
          .efficiency = estimates.use(model.name, "efficiency", model.efficiency),
          .latency = estimates.use(model.name, "latency", model.latency)};
}

PhysicalLink gpu_link(const LinkModel& model, EstimateLog& estimates) {
  PhysicalLink link = physical_link(model, estimates);
  if (model.gpu_latency) {
    link.latency += estimates.use(model.name, "gpu_latency", *model.gpu_latency);
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
