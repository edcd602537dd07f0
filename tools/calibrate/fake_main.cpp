// SPDX-License-Identifier: Apache-2.0
#include "calibrate/fake_backend.h"
#include "calibrate/program.h"

int main(int argc, char** argv) {
  trainyard::calibrate::FakeBackend backend;
  return trainyard::calibrate::run_program(argc, argv, backend);
}
