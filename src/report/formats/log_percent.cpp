// SPDX-License-Identifier: Apache-2.0
#include "report/formats/log_percent.h"

#include <spdlog/fmt/fmt.h>

#include <cmath>

namespace trainyard {

double log_percent(double logarithm) {
  return 100.0 * std::expm1(logarithm);
}

std::string percent_of_log(double logarithm) {
  return fmt::format("{:.1f} %", log_percent(logarithm));
}

std::string signed_percent_of_log(double logarithm) {
  return fmt::format("{:+.1f} %", log_percent(logarithm));
}

Cell error_cell(bool is_known, double logarithm) {
  return is_known ? Cell{percent_of_log(logarithm), logarithm} : Cell::none();
}

Cell bias_cell(bool is_known, double logarithm) {
  return is_known ? Cell{signed_percent_of_log(logarithm), logarithm} : Cell::none();
}

}  // namespace trainyard
