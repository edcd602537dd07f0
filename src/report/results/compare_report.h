// SPDX-License-Identifier: Apache-2.0
// Two runs, or a run and a measured step, beside each other: what differs in what went in, and in
// every part of what came out. The differences of parts add up to that of the whole exactly.
#pragma once

#include <string>
#include <vector>

#include "report/formats/document.h"
#include "sim/units.h"

namespace trainyard {

// A key with another value in each; empty where one of them has none.
struct ComparedValue {
  std::string key;
  std::string before = {};
  std::string after = {};
};

struct ComparedPart {
  std::string name;
  SimTime before = {};
  SimTime after = {};
};

// The times of a step, or of a collective at one size.
struct ComparedTime {
  std::string label;
  std::string before_how = {};  // "Ring Simple, 16 channels"; may be empty.
  std::string after_how = {};
  SimTime before;
  SimTime after;
  std::vector<ComparedPart> parts = {};  // Add up to both; may be empty.
};

struct RunComparison {
  std::string what;  // "steps"
  std::string before;
  std::string after;
  std::vector<ComparedValue> inputs = {};
  std::vector<ComparedValue> resources = {};  // Resources of the machine.
  std::vector<ComparedValue> figures = {};    // Figures of the results, beside times.
  std::vector<ComparedTime> times = {};
  std::vector<std::string> notes = {};
};

// CSV has a line for each part and time, JSON has exact times.
[[nodiscard]] Document document_of(const RunComparison& comparison);

}  // namespace trainyard
