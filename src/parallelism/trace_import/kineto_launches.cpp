// SPDX-License-Identifier: Apache-2.0
#include "parallelism/trace_import/kineto_launches.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <utility>

#include "parallelism/workload/imported_text.h"

namespace trainyard {
namespace {

constexpr std::string_view kTitle = "nccl:";
constexpr std::string_view kDispatched = "c10d::";
constexpr std::string_view kNotedCall = "record_param_comms";

struct ScalarName {
  std::string_view text;
  std::int64_t bytes;
};
// Types as c10's type names have them (c10/util/typeid.h: C++'s names, and c10's own).
constexpr std::array<ScalarName, 15> kScalarNames{{{"float", 4},
                                                   {"c10::Half", 2},
                                                   {"c10::BFloat16", 2},
                                                   {"double", 8},
                                                   {"unsigned char", 1},
                                                   {"signed char", 1},
                                                   {"bool", 1},
                                                   {"short", 2},
                                                   {"short int", 2},
                                                   {"int", 4},
                                                   {"long", 8},
                                                   {"long int", 8},
                                                   {"long long", 8},
                                                   {"c10::Float8_e4m3fn", 1},
                                                   {"c10::Float8_e5m2", 1}}};

// Elements of a tensor or a list of tensors: [2, 3], [[2, 3], [4]]. Nothing: none, or too many.
std::optional<std::int64_t> elements_of(const nlohmann::json& dimensions) {
  if (!dimensions.is_array() || dimensions.empty()) {
    return std::nullopt;
  }
  const bool is_tensor = dimensions.front().is_number();
  std::int64_t elements = is_tensor ? 1 : 0;
  for (const nlohmann::json& each : dimensions) {
    std::int64_t next = 0;
    if (is_tensor) {
      next = each.is_number_unsigned() && each <= kMaxImportedBytes ? each.get<std::int64_t>() : -1;
    } else {
      next = elements_of(each).value_or(-1);
    }
    if (next < 0 || (is_tensor && next > 0 && elements > kMaxImportedBytes / next)) {
      return std::nullopt;
    }
    elements = is_tensor ? elements * next : std::min(elements + next, kMaxImportedBytes);
  }
  return elements;
}

std::vector<std::int64_t> bytes_of_inputs(const nlohmann::json& arguments) {
  std::vector<std::int64_t> bytes;
  const auto shapes = arguments.find("Input Dims");
  const auto types = arguments.find("Input type");
  if (shapes == arguments.end() || types == arguments.end() || !shapes->is_array() ||
      !types->is_array() || shapes->size() != types->size()) {
    return bytes;
  }
  for (std::size_t index = 0; index < shapes->size(); ++index) {
    const nlohmann::json& type = (*types)[index];
    const auto known =
        std::find_if(kScalarNames.begin(), kScalarNames.end(),
                     [&](const ScalarName& each) { return type.is_string() && type == each.text; });
    const std::optional<std::int64_t> elements = elements_of((*shapes)[index]);
    bytes.push_back(known == kScalarNames.end() || !elements ||
                            *elements > kMaxImportedBytes / known->bytes
                        ? 0
                        : *elements * known->bytes);
  }
  return bytes;
}

bool is_launch(std::string_view category, std::string_view name) {
  return (category == "cuda_runtime" || category == "cuda_driver" || category == "Runtime") &&
         name.find("Launch") != std::string_view::npos;
}

}  // namespace

bool KinetoLaunches::is_of_launches(std::string_view category, std::string_view name) {
  return is_launch(category, name) ||
         ((category == "cpu_op" || category == "user_annotation" || category == "Operator") &&
          (name.starts_with(kTitle) || name.starts_with(kDispatched) || name == kNotedCall));
}

std::uint32_t KinetoLaunches::thread_of(const nlohmann::json& event) {
  std::string thread;
  for (const char* key : {"pid", "tid"}) {
    const auto found = event.find(key);
    thread += found == event.end()
                  ? std::string()
                  : found->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    thread += '/';
  }
  if (threads_.empty() || thread != last_thread_) {
    last_number_ =
        threads_.emplace(thread, static_cast<std::uint32_t>(threads_.size())).first->second;
    last_thread_ = std::move(thread);
    noted_.resize(threads_.size());
  }
  return last_number_;
}

void KinetoLaunches::take(const nlohmann::json& event, const KinetoFields& fields) {
  const auto arguments = event.find("args");
  if (arguments == event.end() || !arguments->is_object() || kineto_text(event, "ph") != "X") {
    return;
  }
  constexpr std::int64_t kMaxTime = 9'000'000'000'000'000;  // As those of operations of a GPU.
  const std::string_view name = kineto_text(event, "name");
  const std::int64_t start = fields.nanoseconds_of("ts", kMaxTime);
  if (is_launch(kineto_text(event, "cat"), name)) {
    if (arguments->contains("correlation")) {
      const std::int64_t correlation =
          fields.within(*arguments)
              .integer("correlation", std::numeric_limits<std::int64_t>::max());
      launches_.push_back({.correlation = correlation, .time = start, .thread = thread_of(event)});
    }
    return;
  }
  constexpr std::int64_t kMaxDuration = 100'000'000'000;
  Noted noted{.start = start,
              .end = start + fields.nanoseconds_of("dur", kMaxDuration),
              .name = std::string(name),
              .bytes = bytes_of_inputs(*arguments),
              .fields = {}};
  if (name == kNotedCall && arguments->contains("Collective name")) {
    noted.fields = *arguments;
  }
  noted_[thread_of(event)].push_back(std::move(noted));
}

void KinetoLaunches::sort() {
  std::sort(launches_.begin(), launches_.end(),
            [](const Launch& a, const Launch& b) { return a.correlation < b.correlation; });
  for (std::vector<Noted>& of_thread : noted_) {
    std::stable_sort(of_thread.begin(), of_thread.end(),
                     [](const Noted& a, const Noted& b) { return a.start < b.start; });
  }
  is_sorted_ = true;
}

std::optional<LaunchedCall> KinetoLaunches::around(std::int64_t correlation) {
  if (!is_sorted_) {
    sort();
  }
  const auto launch = std::lower_bound(
      launches_.begin(), launches_.end(), correlation,
      [](const Launch& each, std::int64_t value) { return each.correlation < value; });
  if (launch == launches_.end() || launch->correlation != correlation) {
    return std::nullopt;
  }
  LaunchedCall call;
  bool is_called = false;
  const std::vector<Noted>& noted = noted_[launch->thread];
  auto next =
      std::upper_bound(noted.begin(), noted.end(), launch->time,
                       [](std::int64_t time, const Noted& each) { return time < each.start; });
  // A call is dispatched, noted down and run one within the other; a wait may lie between.
  constexpr int kMostBefore = 8;
  for (int before = 0; before < kMostBefore && next != noted.begin(); ++before) {
    const Noted& each = *--next;
    if (each.end < launch->time) {
      continue;
    }
    // The outermost one of them is read last.
    call.number = (static_cast<std::uint64_t>(launch->thread) << 32U) |
                  static_cast<std::uint64_t>(next - noted.begin());
    is_called = true;
    if (each.name.starts_with(kTitle) && call.name.empty()) {
      call.name = each.name.substr(kTitle.size());
      call.bytes = each.bytes.empty() ? 0 : each.bytes.front();
    } else if (each.name.starts_with(kDispatched) && each.bytes.size() >= 2 && each.bytes[1] > 0) {
      call.output_bytes = each.bytes[0];
      call.bytes = each.bytes[1];
    } else if (each.name == kNotedCall && call.fields.is_null()) {
      call.fields = each.fields;
    }
  }
  return is_called ? std::optional(std::move(call)) : std::nullopt;
}

}  // namespace trainyard
