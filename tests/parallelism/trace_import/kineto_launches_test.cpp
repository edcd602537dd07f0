// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/trace_import/kineto_launches.h"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <vector>

namespace trainyard {
namespace {

// An event of the host on a thread, in microseconds.
std::string host_event(const std::string& category, const std::string& name, double start,
                       double time, const std::string& arguments, int thread = 7) {
  return fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": {}, "ts": {}, )"
                     R"("dur": {}, "args": {{{}}}}})",
                     category, name, thread, start, time, arguments);
}

std::string launch(double start, int correlation, int thread = 7) {
  return host_event("cuda_runtime", "cudaLaunchKernel", start, 1,
                    fmt::format(R"("correlation": {})", correlation), thread);
}

std::string title(const std::string& name, double start, double time, const std::string& shapes,
                  const std::string& type = "float") {
  return host_event("user_annotation", "nccl:" + name, start, time,
                    fmt::format(R"("Input Dims": {}, "Input type": ["{}"])", shapes, type));
}

KinetoLaunches launches_of(const std::vector<std::string>& events) {
  KinetoLaunches launches;
  for (const std::string& text : events) {
    const nlohmann::json event = nlohmann::json::parse(text);
    if (KinetoLaunches::is_of_launches(kineto_text(event, "cat"), kineto_text(event, "name"))) {
      launches.take(event, KinetoFields(event, "a.json", 0, "x"));
    }
  }
  return launches;
}

}  // namespace

TEST_CASE("a kernel belongs to the call around its launch, on its thread", "[kineto]") {
  // The second launch lies in no call, the third in one of another thread.
  KinetoLaunches launches = launches_of(
      {launch(12, 40), launch(30, 41), launch(12, 42, 8), title("all_reduce", 10, 5, "[[3, 4]]"),
       host_event("cpu_op", "aten::mm", 0, 100, ""),
       title("broadcast", 20, 5, "[[5]]", "c10::BFloat16"), launch(20, 43), launch(25, 44)});
  const auto first = launches.around(40);
  REQUIRE(first);
  REQUIRE(first->name == "all_reduce");
  REQUIRE(first->bytes == 48);
  REQUIRE(first->output_bytes == 0);
  REQUIRE(!launches.around(41));
  REQUIRE(!launches.around(42));
  REQUIRE(!launches.around(45));
  const auto begin = launches.around(43);
  const auto end = launches.around(44);
  REQUIRE((begin && end));
  REQUIRE(begin->name == "broadcast");
  REQUIRE(begin->bytes == 10);
  REQUIRE(begin->number == end->number);
  REQUIRE(begin->number != first->number);
}

TEST_CASE("what comes out is known where a call is dispatched with both tensors", "[kineto]") {
  const auto both = [](const std::string& name, const std::string& dispatched) {
    KinetoLaunches launches = launches_of(
        {host_event("cpu_op", dispatched, 10, 9,
                    R"("Input Dims": [[2, 4], [8, 4], []], "Input type": ["float", "float", ""])"),
         host_event("cpu_op", "record_param_comms", 11, 7, R"("Ev Idx": 5)"),
         title(name, 12, 5, "[[8, 4]]"), launch(13, 40)});
    return launches.around(40).value();
  };
  const LaunchedCall scatter = both("_reduce_scatter_base", "c10d::_reduce_scatter_base_");
  REQUIRE(scatter.name == "_reduce_scatter_base");
  REQUIRE(scatter.bytes == 128);
  REQUIRE(scatter.output_bytes == 32);
  REQUIRE(scatter.fields.is_null());
}

TEST_CASE("newer versions note down all fields of a call", "[kineto]") {
  KinetoLaunches launches =
      launches_of({host_event("cpu_op", "record_param_comms", 11, 7,
                              R"("Collective name": "allreduce", "dtype": "Float")"),
                   launch(13, 40)});
  const auto call = launches.around(40);
  REQUIRE(call);
  REQUIRE(call->fields.at("dtype") == "Float");
}

TEST_CASE("shapes that are not known leave a call without bytes", "[kineto]") {
  const auto bytes = [](const std::string& shapes, const std::string& type = "float") {
    KinetoLaunches launches =
        launches_of({title("all_reduce", 10, 5, shapes, type), launch(12, 40)});
    return launches.around(40).value().bytes;
  };
  REQUIRE(bytes("[[[2], [3, 5]]]") == 68);  // A list of two tensors.
  REQUIRE(bytes("[[0]]") == 0);
  REQUIRE(bytes("[[]]") == 0);
  REQUIRE(bytes("[[-1]]") == 0);
  REQUIRE(bytes("[[1000000, 1000000, 1000000]]") == 0);
  REQUIRE(bytes("[[4]]", "TensorList") == 0);
  REQUIRE(bytes("[[4], [5]]") == 0);  // Fewer types than shapes.
}

}  // namespace trainyard
