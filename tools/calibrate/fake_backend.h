// SPDX-License-Identifier: Apache-2.0
// A machine that is not there, for the tests of everything but the kernels: samples are a function
// of the measurement and a seed, and the environment tells it to misbehave:
//   TRAINYARD_FAKE_GPUS=N      GPUs (1); 0 for none
//   TRAINYARD_FAKE_NAME=TEXT   part of each UUID
//   TRAINYARD_FAKE_NCCL=TEXT   version of its NCCL (2.28.9); empty for none
//   TRAINYARD_FAKE_SEED=N      of the noise (1)
//   TRAINYARD_FAKE_SLEEP=MS    that each measurement takes
//   TRAINYARD_FAKE_HANG=ID, _FAIL=ID, _CRASH=ID, _NONSENSE=ID, _EMPTY=ID, _SKIP=ID
#pragma once

#include "calibrate/backend.h"

namespace trainyard::calibrate {

class FakeBackend final : public Backend {
 public:
  [[nodiscard]] std::string name() const override { return "fake"; }
  [[nodiscard]] Machine machine(const Options& options) override;
  void measure(const std::string& id, const Options& options, SampleSink& sink) override;
};

// What a measurement of the fake machine is scattered around, in GB/s: 100 to 1000.
[[nodiscard]] double fake_rate(const std::string& id);

}  // namespace trainyard::calibrate
