// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cuda/gemm.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <stdexcept>

#include "calibrate/backend.h"
#include "calibrate/cuda/library.h"
#include "calibrate/cuda/measurements.h"

namespace trainyard::calibrate {

struct CublasLt {
  explicit CublasLt(const Options& options)
      : library(options.cublaslt, {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}) {
    if (!library.found()) {
      throw NotMeasured("no cuBLASLt library was found; --cublaslt names one");
    }
  }
  Library library;
#define TRAINYARD_CUBLASLT(name) decltype(&::name) name = library.function<decltype(::name)>(#name)
  TRAINYARD_CUBLASLT(cublasLtCreate);
  TRAINYARD_CUBLASLT(cublasLtDestroy);
  TRAINYARD_CUBLASLT(cublasLtMatmul);
  TRAINYARD_CUBLASLT(cublasLtMatmulAlgoGetHeuristic);
  TRAINYARD_CUBLASLT(cublasLtMatmulDescCreate);
  TRAINYARD_CUBLASLT(cublasLtMatmulDescDestroy);
  TRAINYARD_CUBLASLT(cublasLtMatmulDescSetAttribute);
  TRAINYARD_CUBLASLT(cublasLtMatmulPreferenceCreate);
  TRAINYARD_CUBLASLT(cublasLtMatmulPreferenceDestroy);
  TRAINYARD_CUBLASLT(cublasLtMatmulPreferenceSetAttribute);
  TRAINYARD_CUBLASLT(cublasLtMatrixLayoutCreate);
  TRAINYARD_CUBLASLT(cublasLtMatrixLayoutDestroy);
#undef TRAINYARD_CUBLASLT
};

namespace {

// 32 MiB, which cuBLAS recommends for Hopper.
constexpr std::size_t kWorkspace = std::size_t{32} << 20;

void require(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error(std::string(what) + ": cuBLASLt status " +
                             std::to_string(static_cast<int>(status)));
  }
}

struct TypeFacts {
  cudaDataType_t in;
  cudaDataType_t out;
  cublasComputeType_t compute;
  std::size_t in_bytes;
  std::size_t out_bytes;
};

std::string shape_text(const GemmShape& shape) {
  return std::to_string(shape.m) + " x " + std::to_string(shape.n) + " x " +
         std::to_string(shape.k);
}

TypeFacts facts_of(GemmType type) {
  switch (type) {
    case GemmType::Bf16:
      return {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2, 2};
    case GemmType::Fp16:
      return {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, 2, 2};
    case GemmType::Fp8:
      return {CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1, 2};
    case GemmType::Tf32:
      break;
  }
  return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4, 4};
}

__device__ std::uint32_t scrambled(std::uint32_t value) {
  value = (value ^ (value >> 16)) * 0x85EBCA6BU;
  value = (value ^ (value >> 13)) * 0xC2B2AE35U;
  return value ^ (value >> 16);
}

// Uniform in [-1, 1): zeros would cost less power and so run faster than any real layer.
template <typename T>
__global__ void fill_kernel(T* values, std::size_t count, std::uint32_t seed) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    const std::uint32_t bits = scrambled(static_cast<std::uint32_t>(i) + seed);
    values[i] = T(static_cast<float>(bits >> 8) * 0x1p-23F - 1.0F);
  }
}

// One entry by one thread, against what the library found.
template <typename In, typename Out>
__global__ void check_entry(const In* inputs, const In* weights, const Out* outputs,
                            std::int64_t row, std::int64_t column, std::int64_t n, std::int64_t k,
                            double* difference) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < k; ++i) {
    sum += static_cast<double>(static_cast<float>(inputs[row * k + i])) *
           static_cast<double>(static_cast<float>(weights[column * k + i]));
  }
  *difference = fabs(sum - static_cast<double>(static_cast<float>(outputs[row * n + column])));
}

template <typename T>
void fill(const DeviceBuffer& buffer, std::uint32_t seed) {
  fill_kernel<<<1024, 256>>>(buffer.as<T>(), buffer.bytes() / sizeof(T), seed);
  require_launched("fill");
}

}  // namespace

void fill_random(GemmType type, const DeviceBuffer& buffer, std::uint32_t seed) {
  switch (type) {
    case GemmType::Bf16:
      return fill<__nv_bfloat16>(buffer, seed);
    case GemmType::Fp16:
      return fill<__half>(buffer, seed);
    case GemmType::Fp8:
      return fill<__nv_fp8_e4m3>(buffer, seed);
    case GemmType::Tf32:
      return fill<float>(buffer, seed);
  }
}

std::string cublaslt_version(const Options& options) {
  const Library library(options.cublaslt,
                        {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"});
  auto* const version = library.optional<decltype(cublasLtGetVersion)>("cublasLtGetVersion");
  if (version == nullptr) {
    return "";
  }
  // 130100 is 13.1.0; 12.0 and before counted 12 x 10000.
  const std::size_t code = version();
  return std::to_string(code / 10'000) + "." + std::to_string(code / 100 % 100) + "." +
         std::to_string(code % 100);
}

GemmType parse_gemm_type(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kNames = {"bf16", "fp16", "fp8", "tf32"};
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) {
    throw std::runtime_error("expected a data type, found " + std::string(name));
  }
  return static_cast<GemmType>(found - kNames.begin());
}

Gemm::Gemm(const Context& context, GemmType type, const GemmShape& shape)
    : library_(std::make_unique<CublasLt>(context.options)),
      type_(type),
      shape_(shape),
      workspace_(kWorkspace) {
  const TypeFacts facts = facts_of(type);
  const auto elements = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::size_t>(a * b);
  };
  const std::size_t inputs = elements(shape.m, shape.k) * facts.in_bytes;
  const std::size_t weights = elements(shape.n, shape.k) * facts.in_bytes;
  const std::size_t outputs = elements(shape.m, shape.n) * facts.out_bytes;
  const std::size_t sets = std::clamp<std::size_t>(
      2 * static_cast<std::size_t>(context.device.l2CacheSize) / (inputs + weights + outputs) + 1,
      1, 64);
  for (std::size_t i = 0; i < sets; ++i) {
    operands_.push_back({DeviceBuffer(inputs), DeviceBuffer(weights), DeviceBuffer(outputs)});
    fill_random(type, operands_.back().inputs, static_cast<std::uint32_t>(2 * i) * 7919U);
    fill_random(type, operands_.back().weights, static_cast<std::uint32_t>(2 * i + 1) * 7919U);
    calibrate::require(cudaMemset(operands_.back().outputs.as<void>(), 0xFF, outputs),
                       "cudaMemset");  // Not a number in every type.
  }
  calibrate::require(cudaDeviceSynchronize(), "fill");
  describe();
  choose();
}

Gemm::~Gemm() {
  (void)library_->cublasLtMatrixLayoutDestroy(outputs_);
  (void)library_->cublasLtMatrixLayoutDestroy(inputs_);
  (void)library_->cublasLtMatrixLayoutDestroy(weights_);
  (void)library_->cublasLtMatmulDescDestroy(operation_);
  (void)library_->cublasLtDestroy(handle_);
}

// The library counts columns first: it sees outputs transposed (n x m) as weights (k x n,
// transposed) times inputs (k x m).
void Gemm::describe() {
  const TypeFacts facts = facts_of(type_);
  require(library_->cublasLtCreate(&handle_), "cublasLtCreate");
  require(library_->cublasLtMatmulDescCreate(&operation_, facts.compute, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
  const cublasOperation_t transposed = CUBLAS_OP_T;
  require(library_->cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA,
                                                   &transposed, sizeof(transposed)),
          "CUBLASLT_MATMUL_DESC_TRANSA");
  if (type_ == GemmType::Fp8) {
    // As training does in the forward pass: sums of 128 products before the next rounding.
    const std::int8_t fast = 1;
    require(library_->cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_FAST_ACCUM,
                                                     &fast, sizeof(fast)),
            "CUBLASLT_MATMUL_DESC_FAST_ACCUM");
  }
  const auto layout = [&](cublasLtMatrixLayout_t& made, cudaDataType_t type, std::int64_t rows,
                          std::int64_t columns) {
    require(library_->cublasLtMatrixLayoutCreate(&made, type, static_cast<std::uint64_t>(rows),
                                                 static_cast<std::uint64_t>(columns), rows),
            "cublasLtMatrixLayoutCreate");
  };
  layout(weights_, facts.in, shape_.k, shape_.n);
  layout(inputs_, facts.in, shape_.k, shape_.m);
  layout(outputs_, facts.out, shape_.n, shape_.m);
}

void Gemm::choose() {
  cublasLtMatmulPreference_t preference = nullptr;
  require(library_->cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const std::size_t max = kWorkspace;
  require(library_->cublasLtMatmulPreferenceSetAttribute(
              preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &max, sizeof(max)),
          "CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES");
  int found = 0;
  const cublasStatus_t status = library_->cublasLtMatmulAlgoGetHeuristic(
      handle_, operation_, weights_, inputs_, outputs_, outputs_, preference, 1, &chosen_, &found);
  (void)library_->cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0) {
    throw NotMeasured("cuBLASLt has no kernel for " + shape_text(shape_));
  }
}

void Gemm::start(std::int64_t number, cudaStream_t stream) const {
  const Operands& set = operands_[static_cast<std::size_t>(number) % operands_.size()];
  const float one = 1.0F;
  const float zero = 0.0F;
  require(library_->cublasLtMatmul(handle_, operation_, &one, set.weights.as<void>(), weights_,
                                   set.inputs.as<void>(), inputs_, &zero, set.outputs.as<void>(),
                                   outputs_, set.outputs.as<void>(), outputs_, &chosen_.algo,
                                   workspace_.as<void>(), kWorkspace, stream),
          "cublasLtMatmul");
}

void Gemm::check(cudaStream_t stream) const {
  const DeviceBuffer difference(sizeof(double));
  // Products of uniform numbers in [-1, 1) have a deviation of 1/3; their sum of sqrt(k) / 3, which
  // bf16 keeps to 1/256 of its size. Five deviations of that are never passed by chance.
  const double tolerance = 5.0 * std::sqrt(static_cast<double>(shape_.k)) / 3.0 / 128.0 + 0.02;
  const std::array<std::array<std::int64_t, 2>, 3> places = {
      {{0, 0}, {shape_.m - 1, shape_.n - 1}, {shape_.m / 2, shape_.n / 3}}};
  for (const Operands& set : {std::cref(operands_.front()), std::cref(operands_.back())}) {
    for (const auto& [row, column] : places) {
      const auto launch = [&](auto* in, auto* out) {
        using In = std::remove_pointer_t<decltype(in)>;
        using Out = std::remove_pointer_t<decltype(out)>;
        check_entry<<<1, 1, 0, stream>>>(set.inputs.as<In>(), set.weights.as<In>(),
                                         set.outputs.as<Out>(), row, column, shape_.n, shape_.k,
                                         difference.as<double>());
      };
      if (type_ == GemmType::Bf16) {
        launch(static_cast<__nv_bfloat16*>(nullptr), static_cast<__nv_bfloat16*>(nullptr));
      } else if (type_ == GemmType::Fp16) {
        launch(static_cast<__half*>(nullptr), static_cast<__half*>(nullptr));
      } else if (type_ == GemmType::Fp8) {
        launch(static_cast<__nv_fp8_e4m3*>(nullptr), static_cast<__nv_bfloat16*>(nullptr));
      } else {
        launch(static_cast<float*>(nullptr), static_cast<float*>(nullptr));
      }
      require_launched("a check of a matrix product");
      double found = 0.0;
      calibrate::require(cudaStreamSynchronize(stream), "a check of a matrix product");
      calibrate::require(
          cudaMemcpy(&found, difference.as<void>(), sizeof(found), cudaMemcpyDeviceToHost),
          "a check of a matrix product");
      require_right(found <= tolerance ? 0 : 1,  // A NaN is wrong, too.
                    "product " + shape_text(shape_));
    }
  }
}

namespace {

// Squares for the rate by size; layers of models of 8 and 70 billion parameters with and without
// tensor parallelism; few tokens, as in decoding; edges that are no multiple of a tile; rows that
// are not aligned to 16 bytes.
constexpr std::array<GemmShape, 32> kShapes = {{
    {512, 512, 512},     {1024, 1024, 1024},   {2048, 2048, 2048},  {4096, 4096, 4096},
    {8192, 8192, 8192},  {16384, 16384, 8192}, {4096, 6144, 4096},  {4096, 28672, 4096},
    {4096, 4096, 14336}, {8192, 6144, 4096},   {8192, 28672, 4096}, {8192, 4096, 14336},
    {8192, 10240, 8192}, {8192, 57344, 8192},  {8192, 8192, 28672}, {8192, 1280, 8192},
    {8192, 7168, 8192},  {8192, 8192, 1024},   {8192, 8192, 3584},  {16, 8192, 8192},
    {64, 8192, 8192},    {256, 8192, 8192},    {1024, 8192, 8192},  {2048, 8192, 8192},
    {4096, 4096, 256},   {4096, 4096, 1024},   {2176, 2176, 4096},  {3200, 3200, 4096},
    {4224, 4224, 4096},  {4096, 4096, 4104},   {4096, 4104, 4090},  {4096, 4098, 4097},
}};

std::vector<Parameter> parameters(std::string_view type, const GemmShape& shape) {
  return {text("type", std::string(type)), integer("m", shape.m), integer("n", shape.n),
          integer("k", shape.k)};
}

void add_rate(Context& context, std::vector<Parameter> all, const GemmShape& shape,
              const std::vector<double>& seconds) {
  context.sink.add(Sample{.quantity = "matrix product rate",
                          .unit = "TFLOP/s",
                          .parameters = std::move(all),
                          .summary = summarise_rate(shape.flops() / 1e12, seconds)});
}

// A burst ends before the GPU is warm and its power limit reached; training does not.
void measure_sustained(Context& context, std::string_view type, const Stream& stream) {
  constexpr GemmShape kShape = {8192, 8192, 8192};
  constexpr double kSeconds = 3.0;
  const Gemm gemm(context, parse_gemm_type(type), kShape);
  std::int64_t number = 0;
  for (const WallClock clock; clock.seconds() < kSeconds;) {
    for (int i = 0; i < 20; ++i) {
      gemm.start(number++, stream.get());
    }
    stream.wait();
  }
  auto all = parameters(type, kShape);
  all.push_back({.name = "seconds_before", .value = kSeconds});
  add_rate(context, all, kShape, time_on_stream(context.options, stream.get(), [&](std::int64_t i) {
             gemm.start(i, stream.get());
           }));
}

}  // namespace

void measure_gemm(Context& context) {
  const std::string type = context.id.substr(context.id.rfind('.') + 1);
  const Stream stream;
  for (const GemmShape& shape : kShapes) {
    try {
      const Gemm gemm(context, parse_gemm_type(type), shape);
      const auto seconds = time_kernels(context.options, stream.get(),
                                        [&](std::int64_t i) { gemm.start(i, stream.get()); });
      gemm.check(stream.get());
      add_rate(context, parameters(type, shape), shape, seconds);
      add_times(context.sink, "matrix product time", parameters(type, shape), seconds);
    } catch (const NotMeasured& reason) {  // FP8 wants 16 of everything.
      context.sink.add(Record{.name = "not measured", .text = reason.reason()});
    }
  }
  measure_sustained(context, type, stream);
}

}  // namespace trainyard::calibrate
