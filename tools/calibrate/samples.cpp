// SPDX-License-Identifier: Apache-2.0
#include "calibrate/samples.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace trainyard::calibrate {
namespace {

// Of sorted values.
double percentile(const std::vector<double>& values, double percent) {
  const double place = percent / 100.0 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

}  // namespace

const std::vector<std::string>& units() {
  static const std::vector<std::string> all = {"us",  "GB/s", "TFLOP/s", "ratio",
                                               "MHz", "W",    "C",       "count"};
  return all;
}

Summary summarise(std::vector<double> values) {
  if (values.empty()) {
    throw std::runtime_error("expected at least one repetition, found none");
  }
  for (const double value : values) {
    if (!std::isfinite(value)) {
      throw std::runtime_error("expected finite times and rates, found one that is not");
    }
  }
  std::sort(values.begin(), values.end());
  return {.count = static_cast<int>(values.size()),
          .median = percentile(values, 50.0),
          .p10 = percentile(values, 10.0),
          .p90 = percentile(values, 90.0),
          .min = values.front(),
          .max = values.back()};
}

Summary summarise_rate(double work, const std::vector<double>& seconds) {
  std::vector<double> rates;
  rates.reserve(seconds.size());
  for (const double time : seconds) {
    rates.push_back(work / time);
  }
  return summarise(std::move(rates));
}

void add_times(SampleSink& sink, std::string quantity, std::vector<Parameter> parameters,
               const std::vector<double>& seconds) {
  std::vector<double> microseconds;
  microseconds.reserve(seconds.size());
  for (const double time : seconds) {
    microseconds.push_back(time * 1e6);
  }
  sink.add(Sample{.quantity = std::move(quantity),
                  .unit = "us",
                  .parameters = std::move(parameters),
                  .summary = summarise(std::move(microseconds))});
}

void add_bandwidth(SampleSink& sink, std::string quantity, std::vector<Parameter> parameters,
                   double bytes, const std::vector<double>& seconds) {
  sink.add(Sample{.quantity = std::move(quantity),
                  .unit = "GB/s",
                  .parameters = std::move(parameters),
                  .summary = summarise_rate(bytes / 1e9, seconds)});
}

}  // namespace trainyard::calibrate
