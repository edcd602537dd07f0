// SPDX-License-Identifier: Apache-2.0
// Matrix products by cuBLASLt, which is loaded at run time: it is half a gigabyte, and a machine
// without it can be measured all the same.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/cuda/device.h"

namespace trainyard::calibrate {

// "13.1.0", or empty where the library is not found.
[[nodiscard]] std::string cublaslt_version(const Options& options);

struct GemmShape {
  std::int64_t m;  // Tokens.
  std::int64_t n;  // Outputs.
  std::int64_t k;  // Inputs.
  [[nodiscard]] double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
};

// "bf16", "fp16", "fp8" (e4m3 in, bf16 out, fast accumulation) and "tf32" (single precision in and
// out).
enum class GemmType { Bf16, Fp16, Fp8, Tf32 };
[[nodiscard]] GemmType parse_gemm_type(std::string_view name);
// Uniform in [-1, 1), in the type of what goes in.
void fill_random(GemmType type, const DeviceBuffer& buffer, std::uint32_t seed);

struct CublasLt;  // The functions of the library.

// outputs (m x n) = inputs (m x k) times weights (n x k) transposed, all with k or n contiguous, as
// a linear layer does it; products are added in single precision. Several sets of operands are used
// in turn, so that none is found in the L2 cache.
class Gemm {
 public:
  // Throws NotMeasured where the library has no kernel for the shape.
  Gemm(const Context& context, GemmType type, const GemmShape& shape);
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;
  ~Gemm();

  void start(std::int64_t number, cudaStream_t stream) const;
  // Compares entries of each set's outputs with sums of their own. Throws if any is wrong.
  void check(cudaStream_t stream) const;

 private:
  struct Operands {
    DeviceBuffer inputs;
    DeviceBuffer weights;
    DeviceBuffer outputs;
  };
  void describe();
  void choose();

  std::unique_ptr<CublasLt> library_;
  GemmType type_;
  GemmShape shape_;
  std::vector<Operands> operands_;
  DeviceBuffer workspace_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t weights_ = nullptr;
  cublasLtMatrixLayout_t inputs_ = nullptr;
  cublasLtMatrixLayout_t outputs_ = nullptr;
  cublasLtMatmulHeuristicResult_t chosen_{};
};

}  // namespace trainyard::calibrate
