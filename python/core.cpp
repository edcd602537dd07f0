// SPDX-License-Identifier: Apache-2.0
// The Python module trainyard._core: one call, the tables of options, and exceptions. All else is
// Python, in python/trainyard.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <trainyard/trainyard.h>
#include <chrono>
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

// The run has a thread of its own, so that this one can look after signals and call Python. Nobody
// holds the interpreter's lock meanwhile.
trainyard::Result run(const std::vector<std::string>& words, const py::object& progress) {
  constexpr std::chrono::milliseconds kBetweenLooks{50};
  std::stop_source stop;
  Progress lines;
  trainyard::Watch watch{.stop = stop.get_token(), .progress = {}};
  if (!progress.is_none()) {
    watch.progress = [&lines](std::string_view line) { lines.set(line); };
  }
  std::packaged_task<trainyard::Result()> task([&] { return trainyard::run(words, watch); });
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
  module.def("run", &run, py::arg("words"), py::arg("progress") = py::none());
  module.def("commands", &commands);
}
