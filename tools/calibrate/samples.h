// SPDX-License-Identifier: Apache-2.0
// What a measurement yields: summaries of repetitions, each with the parameters that it was taken
// at. A rate is the work of one repetition over its time.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace trainyard::calibrate {

struct Parameter {
  std::string name;
  std::variant<std::int64_t, double, std::string> value;
};

// In the unit of the sample. Percentiles are interpolated linearly between the two nearest values
// (type 7 of Hyndman and Fan 1996, as elsewhere in Trainyard).
struct Summary {
  int count = 0;
  double median = 0.0;
  double p10 = 0.0;
  double p90 = 0.0;
  double min = 0.0;
  double max = 0.0;
};

struct Sample {
  std::string quantity;  // "copy bandwidth", "launch gap": docs/accuracy/harness.md has the list.
  std::string unit;      // One of units().
  std::vector<Parameter> parameters;
  Summary summary;
};

// Text that goes with a measurement: NCCL's tuning lines, the topology that it saw, a remark.
struct Record {
  std::string name;
  std::string text;
};

// "us", "GB/s" (1e9 bytes per second), "TFLOP/s", "ratio" and the units of a GPU's state.
[[nodiscard]] const std::vector<std::string>& units();

// `values` must not be empty, and each must be finite; throws std::runtime_error else, because a
// device may answer with nonsense.
[[nodiscard]] Summary summarise(std::vector<double> values);

// The same in the unit work per second: `work` over each of `seconds`.
[[nodiscard]] Summary summarise_rate(double work, const std::vector<double>& seconds);

// Where a measurement puts what it found, as soon as it has it: what came before a hang is kept.
class SampleSink {
 public:
  SampleSink() = default;
  SampleSink(const SampleSink&) = delete;
  SampleSink& operator=(const SampleSink&) = delete;
  virtual ~SampleSink() = default;

  virtual void add(const Sample& sample) = 0;
  virtual void add(const Record& record) = 0;
};

// Times in seconds as a sample in microseconds.
void add_times(SampleSink& sink, std::string quantity, std::vector<Parameter> parameters,
               const std::vector<double>& seconds);
// Rates in GB/s of `bytes` moved in each of `seconds`.
void add_bandwidth(SampleSink& sink, std::string quantity, std::vector<Parameter> parameters,
                   double bytes, const std::vector<double>& seconds);

}  // namespace trainyard::calibrate
