// SPDX-License-Identifier: Apache-2.0
// Attention by cuDNN's own operation, forward and backward, without a mask: the rate is that of all
// products, 4 B H S S D forward and 10 B H S S D backward. With a causal mask half of them are left
// out, which is for the reader of these figures to count.
#include "calibrate/cuda/measurements.h"

#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

#include "calibrate/backend.h"
#include "calibrate/cuda/gemm.h"
#include "calibrate/cuda/library.h"
#include "calibrate/text.h"

namespace trainyard::calibrate {

// The first headers in which both directions were seen; forward ran with them on H200.
#if defined(CUDNN_VERSION) && CUDNN_VERSION >= 91900

namespace {

struct Cudnn {
  explicit Cudnn(const Options& options)
      : library(options.cudnn, {"libcudnn.so.9", "libcudnn.so"}) {
    if (!library.found()) {
      throw NotMeasured("no cuDNN library was found; --cudnn names one");
    }
  }
  Library library;
#define TRAINYARD_CUDNN(name) decltype(&::name) name = library.function<decltype(::name)>(#name)
  TRAINYARD_CUDNN(cudnnCreate);
  TRAINYARD_CUDNN(cudnnDestroy);
  TRAINYARD_CUDNN(cudnnSetStream);
  TRAINYARD_CUDNN(cudnnGetErrorString);
  TRAINYARD_CUDNN(cudnnBackendCreateDescriptor);
  TRAINYARD_CUDNN(cudnnBackendDestroyDescriptor);
  TRAINYARD_CUDNN(cudnnBackendSetAttribute);
  TRAINYARD_CUDNN(cudnnBackendGetAttribute);
  TRAINYARD_CUDNN(cudnnBackendFinalize);
  TRAINYARD_CUDNN(cudnnBackendExecute);
#undef TRAINYARD_CUDNN

  // What the library refuses is not measured.
  void require(cudnnStatus_t status, const char* what) const {
    if (status != CUDNN_STATUS_SUCCESS) {
      throw NotMeasured(fmt::format("cuDNN refuses {}: {}", what, cudnnGetErrorString(status)));
    }
  }
};

class Handle {
 public:
  Handle(const Cudnn& cudnn, const Stream& stream) : cudnn_(cudnn) {
    cudnn.require(cudnn.cudnnCreate(&handle_), "a handle");
    cudnn.require(cudnn.cudnnSetStream(handle_, stream.get()), "a stream");
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { (void)cudnn_.cudnnDestroy(handle_); }
  [[nodiscard]] const cudnnHandle_t& get() const { return handle_; }

 private:
  const Cudnn& cudnn_;
  cudnnHandle_t handle_ = nullptr;
};

class Descriptor {
 public:
  Descriptor(const Cudnn& cudnn, cudnnBackendDescriptorType_t type) : cudnn_(&cudnn) {
    cudnn.require(cudnn.cudnnBackendCreateDescriptor(type, &descriptor_), "a descriptor");
  }
  Descriptor(Descriptor&& other) noexcept
      : cudnn_(other.cudnn_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (descriptor_ != nullptr) {
      (void)cudnn_->cudnnBackendDestroyDescriptor(descriptor_);
    }
  }
  [[nodiscard]] const cudnnBackendDescriptor_t& get() const { return descriptor_; }

  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values) {
    cudnn_->require(cudnn_->cudnnBackendSetAttribute(descriptor_, name, type, count, values),
                    "an attribute");
  }
  void link(cudnnBackendAttributeName_t name, const Descriptor& other) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other.get());
  }
  [[nodiscard]] bool finalize() const {
    return cudnn_->cudnnBackendFinalize(descriptor_) == CUDNN_STATUS_SUCCESS;
  }
  void finish(const char* what) const {
    cudnn_->require(cudnn_->cudnnBackendFinalize(descriptor_), what);
  }

 private:
  const Cudnn* cudnn_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

struct AttentionShape {
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t sequence;
  std::int64_t head;
  [[nodiscard]] double pairs() const {
    return static_cast<double>(batch * heads) * static_cast<double>(sequence * sequence) *
           static_cast<double>(head);
  }
  [[nodiscard]] std::size_t bytes(std::int64_t of_heads) const {
    return static_cast<std::size_t>(batch * of_heads * sequence * head) * 2;
  }
};

// What is bound to each tensor; its identifier is its place. All are bf16 but the last two.
enum Tensor : std::int64_t { kQ, kK, kV, kO, kDo, kDq, kDk, kDv, kStatistics, kScale, kTensors };

struct Link {
  cudnnBackendAttributeName_t attribute;
  Tensor tensor;
};
constexpr std::array<Link, 6> kForward = {{{CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, kQ},
                                           {CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, kK},
                                           {CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, kV},
                                           {CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, kO},
                                           {CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC, kStatistics},
                                           {CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, kScale}}};
constexpr std::array<Link, 10> kBackward = {{{CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC, kQ},
                                             {CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC, kK},
                                             {CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC, kV},
                                             {CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC, kO},
                                             {CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC, kDo},
                                             {CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC, kStatistics},
                                             {CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC, kScale},
                                             {CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC, kDq},
                                             {CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC, kDk},
                                             {CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC, kDv}}};

// Dimensions are batch, heads, sequence, head; memory holds batch, sequence, heads, head, as the
// projections before and after it leave and take them.
Descriptor make_tensor(const Cudnn& cudnn, Tensor which, const AttentionShape& shape) {
  const std::int64_t heads =
      which == kK || which == kV || which == kDk || which == kDv ? shape.kv_heads : shape.heads;
  std::array<std::int64_t, 4> sizes = {shape.batch, heads, shape.sequence, shape.head};
  std::array<std::int64_t, 4> strides = {shape.sequence * heads * shape.head, shape.head,
                                         heads * shape.head, 1};
  if (which == kStatistics) {
    sizes = {shape.batch, heads, shape.sequence, 1};
    strides = {heads * shape.sequence, shape.sequence, 1, 1};
  } else if (which == kScale) {
    sizes = {1, 1, 1, 1};
    strides = {1, 1, 1, 1};
  }
  const bool is_float = which == kStatistics || which == kScale;
  const cudnnDataType_t type = is_float ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16;
  const std::int64_t alignment = is_float ? 4 : 16;
  const std::int64_t identifier = which + 1;
  const bool by_value = which == kScale;
  Descriptor tensor(cudnn, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes.data());
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides.data());
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &identifier);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
  tensor.finish("a tensor");
  return tensor;
}

// One direction for one shape, ready to run.
class Plan {
 public:
  Plan(const Cudnn& cudnn, const Handle& handle, const AttentionShape& shape, bool forward)
      : cudnn_(cudnn), handle_(handle) {
    for (std::int64_t i = 0; i < kTensors; ++i) {
      tensors_.push_back(make_tensor(cudnn, static_cast<Tensor>(i), shape));
    }
    operation_ =
        std::make_unique<Descriptor>(cudnn, forward ? CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR
                                                    : CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR);
    const auto link = [this](const Link& each) {
      operation_->link(each.attribute, tensors_[static_cast<std::size_t>(each.tensor)]);
      used_.push_back(each.tensor);
    };
    if (forward) {
      std::for_each(kForward.begin(), kForward.end(), link);
    } else {
      std::for_each(kBackward.begin(), kBackward.end(), link);
    }
    operation_->finish("this attention");
    graph_ = std::make_unique<Descriptor>(cudnn, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph_->set(static_cast<cudnnBackendAttributeName_t>(kGraphHandle), CUDNN_TYPE_HANDLE, 1,
                &handle.get());
    graph_->link(CUDNN_ATTR_OPERATIONGRAPH_OPS, *operation_);
    graph_->finish("a graph of this attention");
    if (!choose(CUDNN_HEUR_MODE_A) && !choose(CUDNN_HEUR_MODE_FALLBACK)) {
      throw NotMeasured("cuDNN has no kernel for this attention");
    }
    std::int64_t bytes = 0;
    std::int64_t found = 0;
    cudnn.require(
        cudnn.cudnnBackendGetAttribute(plan_->get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                       CUDNN_TYPE_INT64, 1, &found, &bytes),
        "a workspace");
    workspace_ = std::make_unique<DeviceBuffer>(static_cast<std::size_t>(bytes));
  }

  // `memory` has an address for each tensor.
  void bind(const std::array<void*, kTensors>& memory) {
    std::vector<std::int64_t> identifiers;
    std::vector<void*> addresses;
    for (const Tensor tensor : used_) {
      identifiers.push_back(tensor + 1);
      addresses.push_back(memory.at(static_cast<std::size_t>(tensor)));
    }
    const auto count = static_cast<std::int64_t>(identifiers.size());
    void* const workspace = workspace_->as<void>();
    pack_ = std::make_unique<Descriptor>(cudnn_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack_->set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, identifiers.data());
    pack_->set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses.data());
    pack_->set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    pack_->finish("these buffers");
  }
  void start() const {
    cudnn_.require(cudnn_.cudnnBackendExecute(handle_.get(), plan_->get(), pack_->get()),
                   "a run of this attention");
  }

 private:
  // By number, because their names are deprecated from 9.14 on, and earlier libraries need them.
  static constexpr int kPlanHandle = 400;
  static constexpr int kGraphHandle = 800;

  bool choose(cudnnBackendHeurMode_t mode) {
    Descriptor search(cudnn_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    search.link(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph_);
    search.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (!search.finalize()) {
      return false;
    }
    std::vector<cudnnBackendDescriptor_t> found;
    for (int i = 0; i < kMaxEngines; ++i) {
      engines_.emplace_back(cudnn_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      found.push_back(engines_.back().get());
    }
    std::int64_t count = 0;
    if (cudnn_.cudnnBackendGetAttribute(search.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, kMaxEngines, &count,
                                        found.data()) != CUDNN_STATUS_SUCCESS) {
      return false;
    }
    const std::size_t first = engines_.size() - kMaxEngines;
    for (std::int64_t i = 0; i < std::min<std::int64_t>(count, kMaxEngines); ++i) {
      auto plan = std::make_unique<Descriptor>(cudnn_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan->set(static_cast<cudnnBackendAttributeName_t>(kPlanHandle), CUDNN_TYPE_HANDLE, 1,
                &handle_.get());
      plan->link(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                 engines_[first + static_cast<std::size_t>(i)]);
      if (plan->finalize()) {
        plan_ = std::move(plan);
        return true;
      }
    }
    return false;
  }

  static constexpr int kMaxEngines = 16;
  const Cudnn& cudnn_;
  const Handle& handle_;
  std::vector<Descriptor> tensors_;
  std::vector<Descriptor> engines_;
  std::vector<Tensor> used_;
  std::unique_ptr<Descriptor> operation_;
  std::unique_ptr<Descriptor> graph_;
  std::unique_ptr<Descriptor> plan_;
  std::unique_ptr<Descriptor> pack_;
  std::unique_ptr<DeviceBuffer> workspace_;
};

// The tensors of one shape.
struct Memory {
  explicit Memory(const AttentionShape& shape)
      : scale(1.0F / std::sqrt(static_cast<float>(shape.head))) {
    for (std::int64_t i = 0; i < kStatistics; ++i) {
      const bool is_kv = i == kK || i == kV || i == kDk || i == kDv;
      buffers.emplace_back(shape.bytes(is_kv ? shape.kv_heads : shape.heads));
      if (i == kQ || i == kK || i == kV || i == kDo) {
        fill_random(GemmType::Bf16, buffers.back(), static_cast<std::uint32_t>(i + 1) * 7919U);
      } else {  // Not a number in every place.
        require(cudaMemset(buffers.back().as<void>(), 0xFF, buffers.back().bytes()), "cudaMemset");
      }
    }
    buffers.emplace_back(static_cast<std::size_t>(shape.batch * shape.heads * shape.sequence) * 4);
    require(cudaDeviceSynchronize(), "fill");
  }
  [[nodiscard]] std::array<void*, kTensors> addresses() {
    std::array<void*, kTensors> all{};
    for (std::size_t i = 0; i < buffers.size(); ++i) {
      all.at(i) = buffers[i].as<void>();
    }
    all.at(kScale) = &scale;
    return all;
  }
  // The values of the first batch on the host.
  [[nodiscard]] std::vector<float> values(Tensor which, const AttentionShape& shape) const {
    const DeviceBuffer& buffer = buffers[static_cast<std::size_t>(which)];
    std::vector<std::uint16_t> raw(buffer.bytes() / 2 / static_cast<std::size_t>(shape.batch));
    require(cudaMemcpy(raw.data(), buffer.as<void>(), raw.size() * 2, cudaMemcpyDeviceToHost),
            "cudaMemcpy");
    std::vector<float> all;
    all.reserve(raw.size());
    for (const std::uint16_t bits : raw) {
      const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16U;
      float value = 0.0F;
      std::memcpy(&value, &wide, sizeof(value));
      all.push_back(value);
    }
    return all;
  }

  std::vector<DeviceBuffer> buffers;
  float scale;
};

// The weights of one query of the first head over all keys, on the host.
std::vector<double> weights_of(const std::vector<float>& q, const std::vector<float>& k,
                               const AttentionShape& shape, std::int64_t query, double scale) {
  std::vector<double> weights;
  double sum = 0.0;
  for (std::int64_t key = 0; key < shape.sequence; ++key) {
    double product = 0.0;
    for (std::int64_t d = 0; d < shape.head; ++d) {
      product +=
          static_cast<double>(q[static_cast<std::size_t>(query * shape.heads * shape.head + d)]) *
          static_cast<double>(k[static_cast<std::size_t>(key * shape.kv_heads * shape.head + d)]);
    }
    weights.push_back(std::exp(product * scale));
    sum += weights.back();
  }
  for (double& weight : weights) {
    weight /= sum;
  }
  return weights;
}

void require_near(double expected, float found, const char* what) {
  // bf16 rounds weights and results to 1/256 of their sizes, which are below 1 and of that order.
  require_right(std::abs(expected - static_cast<double>(found)) <= 0.01 + 0.03 * std::abs(expected)
                    ? 0
                    : 1,  // A NaN is wrong, too.
                what);
}

void check_forward(const Memory& memory, const AttentionShape& shape) {
  const auto q = memory.values(kQ, shape);
  const auto k = memory.values(kK, shape);
  const auto v = memory.values(kV, shape);
  const auto o = memory.values(kO, shape);
  for (const std::int64_t query : {std::int64_t{0}, shape.sequence - 1}) {
    const auto weights = weights_of(q, k, shape, query, static_cast<double>(memory.scale));
    double expected = 0.0;
    for (std::int64_t key = 0; key < shape.sequence; ++key) {
      expected +=
          weights[static_cast<std::size_t>(key)] *
          static_cast<double>(v[static_cast<std::size_t>(key * shape.kv_heads * shape.head)]);
    }
    require_near(expected, o[static_cast<std::size_t>(query * shape.heads * shape.head)],
                 "attention");
  }
}

// The gradient of one value of the last key of the first head, where that is quick; of the others
// only that something was written in the last places.
void check_backward(const Memory& memory, const AttentionShape& shape) {
  const auto gradient = memory.values(kDv, shape);
  require_right(std::isfinite(gradient.back()) && std::isfinite(memory.values(kDq, shape).back()) &&
                        std::isfinite(memory.values(kDk, shape).back())
                    ? 0
                    : 1,
                "gradients of attention");
  if (shape.sequence > 1024 || shape.kv_heads != shape.heads) {
    return;
  }
  const auto q = memory.values(kQ, shape);
  const auto k = memory.values(kK, shape);
  const auto output = memory.values(kDo, shape);
  const auto row = static_cast<std::size_t>(shape.heads * shape.head);
  double expected = 0.0;
  for (std::int64_t query = 0; query < shape.sequence; ++query) {
    expected += weights_of(q, k, shape, query, static_cast<double>(memory.scale)).back() *
                static_cast<double>(output[static_cast<std::size_t>(query) * row]);
  }
  require_near(expected, gradient[static_cast<std::size_t>(shape.sequence - 1) * row],
               "gradients of attention");
}

void report(Context& context, const AttentionShape& shape, const char* direction, double flops,
            const std::vector<double>& seconds) {
  const std::vector<Parameter> parameters = {text("type", "bf16"),
                                             text("direction", direction),
                                             text("mask", "none"),
                                             integer("batch", shape.batch),
                                             integer("heads", shape.heads),
                                             integer("kv_heads", shape.kv_heads),
                                             integer("sequence", shape.sequence),
                                             integer("head", shape.head)};
  context.sink.add(Sample{.quantity = "attention rate",
                          .unit = "TFLOP/s",
                          .parameters = parameters,
                          .summary = summarise_rate(flops / 1e12, seconds)});
  add_times(context.sink, "attention time", parameters, seconds);
}

std::vector<double> timed(Context& context, const Cudnn& cudnn, const AttentionShape& shape,
                          Memory& memory, bool forward) {
  const Stream stream;
  const Handle handle(cudnn, stream);
  Plan plan(cudnn, handle, shape, forward);
  plan.bind(memory.addresses());
  return time_kernels(context.options, stream.get(), [&](std::int64_t) { plan.start(); });
}

void measure_forward(Context& context, const Cudnn& cudnn, const AttentionShape& shape,
                     Memory& memory) {
  const auto seconds = timed(context, cudnn, shape, memory, true);
  check_forward(memory, shape);
  report(context, shape, "forward", 4.0 * shape.pairs(), seconds);
}

// cuDNN 9.19 has the operation in its headers and refuses every graph of it.
void measure_backward(Context& context, const Cudnn& cudnn, const AttentionShape& shape,
                      Memory& memory) {
  const auto seconds = timed(context, cudnn, shape, memory, false);
  check_backward(memory, shape);
  report(context, shape, "backward", 10.0 * shape.pairs(), seconds);
}

constexpr std::array<AttentionShape, 7> kShapes = {{{8, 16, 16, 512, 128},
                                                    {4, 32, 32, 2048, 64},
                                                    {4, 32, 32, 2048, 128},
                                                    {2, 32, 32, 4096, 128},
                                                    {1, 32, 32, 8192, 128},
                                                    {1, 32, 8, 8192, 128},
                                                    {1, 16, 16, 16384, 128}}};

}  // namespace

void measure_attention(Context& context) {
  const Cudnn cudnn(context.options);
  bool any = false;
  std::string refusal;
  for (const AttentionShape& shape : kShapes) {
    try {
      Memory memory(shape);
      measure_forward(context, cudnn, shape, memory);
      any = true;
      measure_backward(context, cudnn, shape, memory);
    } catch (const NotMeasured& reason) {
      refusal = reason.reason();
      context.sink.add(Record{.name = "not measured", .text = refusal});
    }
  }
  if (!any) {
    throw NotMeasured(refusal);
  }
}

#else

void measure_attention(Context&) {
  throw NotMeasured("built without the headers of cuDNN 9.19 or later");
}

#endif

}  // namespace trainyard::calibrate
