// SPDX-License-Identifier: Apache-2.0
// Congestion control as configs/transport/control/*.yaml states it, for ports of any speed, and
// what that means for one port. docs/models/transport.md explains the keys.
#pragma once

#include <filesystem>
#include <string>
#include <variant>

#include "hw/control/congestion_control.h"
#include "sim/units.h"

namespace trainyard {

// A rate, or one that grows with that of the port.
struct RateRule {
  Bandwidth rate{};
  Bandwidth per{};  // The port that `rate` is for; 0: any.

  // At least 1 bit/s.
  [[nodiscard]] Bandwidth at(Bandwidth line) const;
};

struct DcqcnProfile {
  DcqcnSettings settings{};  // Without what depends on the port.
  RateRule least{};
  RateRule additive{};
  RateRule hyper{};
  bool has_window = false;  // Line rate x base RTT, narrowing with the rate.
  CnpRule cnp_rule = CnpRule::Immediate;
  SimTime cnp_interval{};
};

struct HpccProfile {
  HpccSettings settings{};
  RateRule additive{};  // W_AI is this times the base RTT.
};

// Windows in units of line rate x base RTT.
struct SwiftProfile {
  SwiftSettings settings{};
  double first_window = 1.0;
  double most_window = 2.0;
};

struct TimelyProfile {
  TimelySettings settings{};
  RateRule additive{};
  RateRule least{};
  Bytes segment{};
};

struct DctcpProfile {
  DctcpSettings settings{};
};

// Windows in units of line rate x base RTT.
struct CreditProfile {
  Bytes quantum{};
  double window = 1.5;
  double speculative = 1.0;
  SimTime patience{};
};

struct NoControlProfile {};

// The port of a sender, and the network behind it.
struct PortTerms {
  Bandwidth line{};
  SimTime base_rtt{};  // Of the longest path, with everything idle.
  Bytes packet{};      // A full packet on the wire.
};

struct ControlProfile {
  std::string name;  // That of the file, without ".yaml": goes into reports.
  std::variant<NoControlProfile, DcqcnProfile, HpccProfile, SwiftProfile, TimelyProfile,
               DctcpProfile, CreditProfile>
      rules{};

  // Throws ConfigError.
  [[nodiscard]] static ControlProfile load(const std::filesystem::path& file);

  [[nodiscard]] ControlSettings settings(const PortTerms& port) const;
  // nullptr where receivers send no CNPs.
  [[nodiscard]] const DcqcnProfile* dcqcn() const { return std::get_if<DcqcnProfile>(&rules); }
  [[nodiscard]] bool has_credits() const { return std::holds_alternative<CreditProfile>(rules); }
  [[nodiscard]] bool wants_int() const { return std::holds_alternative<HpccProfile>(rules); }
};

}  // namespace trainyard
