// SPDX-License-Identifier: Apache-2.0
// Explains why a time is what it is: what each resource would change, which links carry most, what
// would help most, and what the model leaves out. As text, CSV (resources alone) and JSON.
#pragma once

#include <string>
#include <vector>

#include "parallelism/run/tier_volumes.h"
#include "parallelism/traffic/link_bytes.h"
#include "report/formats/document.h"
#include "sim/units.h"

namespace trainyard {

// The effect on a time that was run again with one resource changed and all else as it was.
struct ResourceEffect {
  std::string key;    // "nic"
  std::string title;  // "links of NICs"
  std::string value;  // "50 GB/s", or empty.
  SimTime faster;     // With the resource better by the factor of the report,
  SimTime slower;     // and worse by it.
};

// Another setting, or a faster resource, and the time with it.
struct Improvement {
  std::string what;
  std::string kind;  // "setting", or "hardware" and "software" by 10 %.
  SimTime time;
};

// Links that are alike and carry as much.
struct ContendedLinks {
  std::string resource;  // Its key.
  std::string example;   // "node0/nic0 -> leaf0"
  int count = 1;
  double rate_gbps = 0.0;    // GB/s.
  double utilisation = 0.0;  // Bytes over the rate times the time, of 1.
  std::vector<PurposeBytes> parts;
};

// One time: of a step, or of a collective at one size.
struct ExplainedTime {
  std::string label;  // "step", "1GiB"
  std::string how;    // "Ring Simple, 16 channels"
  SimTime time;
  ResourceEffect all = {};  // Everything at once: 1 where the model is homogeneous.
  std::vector<ResourceEffect> effects = {};
  std::vector<Improvement> improvements = {};  // Best first; only those that help.
  std::vector<ContendedLinks> links = {};      // Busiest first.
  std::vector<TierVolume> volumes = {};        // Bytes on all links, by tier.
};

struct RunExplanation {
  std::vector<std::string> header;  // Lines.
  double factor = 1.1;
  std::vector<ExplainedTime> times;  // At least one, all with the same resources.
  std::vector<std::string> limits;   // Aspects that the model does not cover in this case.
  std::vector<std::string> notes;
};

enum class EffectKind {
  None,      // Neither faster nor slower changes anything.
  Slack,     // Only a slower one would show: it is just fast enough.
  Helps,     // A faster one is worth something.
  Backward,  // A faster one makes it slower.
};
// Below two thousandths an elasticity counts as none.
[[nodiscard]] EffectKind effect_kind(const ResourceEffect& effect, SimTime base, double factor);

// One line: which resources the time follows, by their share.
[[nodiscard]] std::string summary_of(const ExplainedTime& time, double factor);

[[nodiscard]] Document document_of(const RunExplanation& explanation);

}  // namespace trainyard
