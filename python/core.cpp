// SPDX-License-Identifier: Apache-2.0
// The Python module trainyard._core: one call, the tables of options, and exceptions. All else is
// Python, in python/trainyard.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <trainyard/trainyard.h>
#include <algorithm>
#include <chrono>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace py = pybind11;

namespace {

// The last line of progress that Python has not seen.
class Progress {
 public:
  void set(std::string_view line) {
    const std::scoped_lock lock(mutex_);
    line_ = std::string(line);
  }
  [[nodiscard]] std::optional<std::string> take() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(line_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::optional<std::string> line_;
};

// A congestion control that is a function of Python. It is called once for each flow, with the
// first signal, and returns what is called with every signal of the flow, the first one too. What
// these raise cannot be thrown through the run: the run is asked to end, and it is raised then.
class Control {
 public:
  Control(py::object of_flow, std::stop_source& stop) : of_flow_(std::move(of_flow)), stop_(stop) {}

  // Called by the thread of the run, which has a state of the interpreter but not its lock.
  trainyard::FlowPace pace(const trainyard::FlowSignal& signal) {
    if (failure_) {
      return {};
    }
    const py::gil_scoped_acquire locked;
    flows_.resize(std::max<std::size_t>(flows_.size(), signal.flow + 1));
    Flow& flow = flows_[signal.flow];
    try {
      if (signal.kind == trainyard::FlowSignal::Kind::Start) {
        flow.control = of_flow_(signal);
      }
      take(flow.control(signal), flow.pace);
    } catch (...) {
      failure_ = std::current_exception();
      stop_.request_stop();
    }
    return flow.pace;
  }

  // With the lock.
  void rethrow() const {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

 private:
  struct Flow {
    py::object control;
    trainyard::FlowPace pace;
  };

  // A number of bytes, or bits per second; nothing is 0.
  static std::int64_t above_zero(const py::object& value) {
    if (value.is_none()) {
      return 0;
    }
    const py::object whole = py::reinterpret_steal<py::object>(PyNumber_Long(value.ptr()));
    if (!whole) {
      throw py::error_already_set();
    }
    const long long number = PyLong_AsLongLong(whole.ptr());
    if (number == -1 && PyErr_Occurred() != nullptr) {
      throw py::error_already_set();
    }
    if (number <= 0) {
      throw py::value_error("a control: expected a window and a rate above zero, or None, found " +
                            py::repr(value).cast<std::string>());
    }
    return number;
  }
  // Nothing: as before. A number: the window. A pair: window and rate.
  static void take(const py::object& answer, trainyard::FlowPace& pace) {
    if (answer.is_none()) {
      return;
    }
    if (!py::isinstance<py::tuple>(answer)) {
      pace.window_bytes = above_zero(answer);
      return;
    }
    const auto pair = py::reinterpret_borrow<py::tuple>(answer);
    if (pair.size() != 2) {
      throw py::value_error("a control: expected a window, or a window and a rate, found " +
                            py::repr(answer).cast<std::string>());
    }
    pace = {.window_bytes = above_zero(pair[0]), .bits_per_second = above_zero(pair[1])};
  }

  py::object of_flow_;
  std::stop_source& stop_;
  std::vector<Flow> flows_;
  std::exception_ptr failure_;
};

// The run has a thread of its own, so that this one can look after signals and call Python. Nobody
// holds the interpreter's lock meanwhile, but for the calls of a control.
trainyard::Result run(const std::vector<std::string>& words, const py::object& progress,
                      const py::object& control) {
  constexpr std::chrono::milliseconds kBetweenLooks{50};
  std::stop_source stop;
  Progress lines;
  trainyard::Watch watch{.stop = stop.get_token(), .progress = {}, .control = {}};
  if (!progress.is_none()) {
    watch.progress = [&lines](std::string_view line) { lines.set(line); };
  }
  std::optional<Control> called;
  if (!control.is_none()) {
    called.emplace(control, stop);
    watch.control = [&called](const trainyard::FlowSignal& signal) { return called->pace(signal); };
  }
  std::packaged_task<trainyard::Result()> task([&] {
    if (!called) {
      return trainyard::run(words, watch);
    }
    // The thread has a state of the interpreter for as long as it runs, not one for each call.
    const py::gil_scoped_acquire state;
    const py::gil_scoped_release released;
    return trainyard::run(words, watch);
  });
  std::future<trainyard::Result> result = task.get_future();
  std::jthread runner(std::move(task));
  const auto is_over = [&](std::chrono::milliseconds patience) {
    const py::gil_scoped_release released;
    return result.wait_for(patience) == std::future_status::ready;
  };
  try {
    while (!is_over(kBetweenLooks)) {
      if (PyErr_CheckSignals() != 0) {
        throw py::error_already_set();
      }
      if (const std::optional<std::string> line = lines.take()) {
        progress(*line);
      }
    }
  } catch (...) {
    stop.request_stop();
    const py::gil_scoped_release released;
    runner.join();
    throw;
  }
  {
    const py::gil_scoped_release released;
    runner.join();
  }
  if (called) {
    called->rethrow();
  }
  return result.get();
}

void raise_with_place(const py::handle& type, const trainyard::Error& error) {
  const py::object raised = type(error.what());
  raised.attr("place") = error.place();
  PyErr_SetObject(type.ptr(), raised.ptr());
}

void add_exceptions(py::module_& module) {
  static const py::handle kError =
      py::exception<trainyard::Error>(module, "Error", PyExc_Exception).release();
  static const py::handle kCancelled =
      py::exception<trainyard::Cancelled>(module, "Cancelled", PyExc_Exception).release();
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(std::move(thrown));
    } catch (const trainyard::Error& error) {
      raise_with_place(kError, error);
    } catch (const trainyard::Cancelled& error) {
      PyErr_SetString(kCancelled.ptr(), error.what());
    }
  });
}

const char* kind_of(const trainyard::FlowSignal& signal) {
  using Kind = trainyard::FlowSignal::Kind;
  switch (signal.kind) {
    case Kind::Start:
      return "start";
    case Kind::Ack:
      return "ack";
    case Kind::Loss:
      return "loss";
    case Kind::Timeout:
      return "timeout";
  }
  return "";
}

py::dict dictionary_of(const trainyard::OptionRow& row) {
  py::dict made;
  made["name"] = row.name;
  made["value"] = row.value;
  made["help"] = row.help;
  made["choices"] = row.choices;
  made["is_argument"] = row.is_argument;
  made["repeats"] = row.repeats;
  return made;
}

py::list commands() {
  py::list made;
  for (const trainyard::CommandRow& row : trainyard::commands()) {
    py::dict command;
    command["name"] = row.name;
    command["summary"] = row.summary;
    py::list options;
    for (const trainyard::OptionRow& option : row.options) {
      options.append(dictionary_of(option));
    }
    command["options"] = options;
    made.append(command);
  }
  return made;
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  using trainyard::Result;
  module.attr("__version__") = TRAINYARD_VERSION_TEXT;
  add_exceptions(module);
  py::class_<Result>(module, "Outcome")
      .def_property_readonly("status", &Result::status)
      .def_property_readonly("text", &Result::text)
      .def_property_readonly("has_json", &Result::has_json)
      .def_property_readonly("log", &Result::log)
      .def("csv", &Result::csv)
      .def("json", &Result::json);
  using trainyard::FlowSignal;
  py::class_<FlowSignal>(module, "FlowSignal")
      .def_property_readonly("kind", &kind_of)
      .def_readonly("flow", &FlowSignal::flow)
      .def_readonly("now_ps", &FlowSignal::now_ps)
      .def_readonly("line_bits_per_second", &FlowSignal::line_bits_per_second)
      .def_readonly("base_rtt_ps", &FlowSignal::base_rtt_ps)
      .def_readonly("packet_bytes", &FlowSignal::packet_bytes)
      .def_readonly("rtt_ps", &FlowSignal::rtt_ps)
      .def_readonly("acked", &FlowSignal::acked)
      .def_readonly("next", &FlowSignal::next)
      .def_readonly("size_bytes", &FlowSignal::size_bytes)
      .def_readonly("is_marked", &FlowSignal::is_marked);
  module.def("run", &run, py::arg("words"), py::arg("progress") = py::none(),
             py::arg("control") = py::none());
  module.def("commands", &commands);
}
