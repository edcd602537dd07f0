// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cuda/cuda_backend.h"
#include "calibrate/program.h"

int main(int argc, char** argv) {
  trainyard::calibrate::CudaBackend backend;
  return trainyard::calibrate::run_program(argc, argv, backend);
}
