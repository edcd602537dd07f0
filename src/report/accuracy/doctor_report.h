// SPDX-License-Identifier: Apache-2.0
// Prints the results of `trainyard doctor`.
#pragma once

#include <string>
#include <vector>

#include "calibration/doctor/doctor.h"
#include "report/formats/document.h"

namespace trainyard {

struct DoctorReport {
  std::string log;      // Its file.
  std::string cluster;  // Its name.
  int ranks = 0;
  int nodes = 0;
  std::vector<Operation> operations = {};  // Operations by run.
  DoctorResult result = {};
  std::vector<std::string> notes = {};
};

// "healthy", "NVLS is off", "a NIC is down, or PCIe of a NIC has half of its lanes".
[[nodiscard]] std::string name_of(const DoctorResult& result, const Explanation& explanation);
// The verdict on the log in one sentence.
[[nodiscard]] std::string verdict_text(const DoctorResult& result);

// CSV has the rows of the log alone.
[[nodiscard]] Document document_of(const DoctorReport& report);

}  // namespace trainyard
