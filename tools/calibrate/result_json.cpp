// SPDX-License-Identifier: Apache-2.0
#include "calibrate/result_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "calibrate/text.h"

namespace trainyard::calibrate {
namespace {

Json to_json(const Gpu& gpu) {
  return {{"name", gpu.name},
          {"uuid", gpu.uuid},
          {"pci_bus_id", gpu.pci_bus_id},
          {"compute_capability", gpu.compute_capability},
          {"multiprocessors", gpu.multiprocessors},
          {"memory_bytes", gpu.memory_bytes},
          {"l2_bytes", gpu.l2_bytes},
          {"sm_clock_mhz", gpu.sm_clock_mhz},
          {"memory_clock_mhz", gpu.memory_clock_mhz},
          {"memory_bus_bits", gpu.memory_bus_bits},
          {"power_limit_w", gpu.power_limit_w},
          {"pcie_generation", gpu.pcie_generation},
          {"pcie_width", gpu.pcie_width},
          {"copy_engines", gpu.copy_engines}};
}

Gpu read_gpu(const Json& json, const std::string& place) {
  const ObjectReader reader(
      json, place,
      {"name", "uuid", "pci_bus_id", "compute_capability", "multiprocessors", "memory_bytes",
       "l2_bytes", "sm_clock_mhz", "memory_clock_mhz", "memory_bus_bits", "power_limit_w",
       "pcie_generation", "pcie_width", "copy_engines"});
  const auto count = [&reader](std::string_view key) {
    return static_cast<int>(reader.integer(key, 0));
  };
  return {.name = reader.text("name"),
          .uuid = reader.text("uuid"),
          .pci_bus_id = reader.text("pci_bus_id"),
          .compute_capability = reader.text("compute_capability"),
          .multiprocessors = count("multiprocessors"),
          .memory_bytes = reader.integer("memory_bytes", 0),
          .l2_bytes = reader.integer("l2_bytes", 0),
          .sm_clock_mhz = count("sm_clock_mhz"),
          .memory_clock_mhz = count("memory_clock_mhz"),
          .memory_bus_bits = count("memory_bus_bits"),
          .power_limit_w = count("power_limit_w"),
          .pcie_generation = count("pcie_generation"),
          .pcie_width = count("pcie_width"),
          .copy_engines = count("copy_engines")};
}

Parameter read_parameter(const std::string& name, const Json& value, const ObjectReader& sample) {
  if (value.is_number_integer()) {
    return {.name = name, .value = value.get<std::int64_t>()};
  }
  if (value.is_number_float()) {
    return {.name = name, .value = value.get<double>()};
  }
  if (!value.is_string()) {
    sample.fail("parameters", "numbers and texts");
  }
  return {.name = name, .value = value.get<std::string>()};
}

Summary read_summary(const ObjectReader& reader) {
  const Summary summary = {.count = static_cast<int>(reader.integer("count", 1)),
                           .median = reader.number("median"),
                           .p10 = reader.number("p10"),
                           .p90 = reader.number("p90"),
                           .min = reader.number("min"),
                           .max = reader.number("max")};
  if (!(summary.min <= summary.p10 && summary.p10 <= summary.median &&
        summary.median <= summary.p90 && summary.p90 <= summary.max)) {
    reader.fail("median", "min <= p10 <= median <= p90 <= max");
  }
  return summary;
}

}  // namespace

ObjectReader::ObjectReader(const Json& json, std::string place,
                           std::initializer_list<std::string_view> keys)
    : json_(json), place_(std::move(place)) {
  if (!json.is_object()) {
    throw std::runtime_error(
        fmt::format("{}: expected an object, found {}", place_, json.type_name()));
  }
  for (const auto& [key, ignored] : json.items()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      throw std::runtime_error(fmt::format("{}: expected one of {}, found {}", place_,
                                           fmt::join(keys, ", "), in_quotes(key)));
    }
  }
  for (const std::string_view key : keys) {
    if (!json.contains(std::string(key))) {
      throw std::runtime_error(fmt::format("{}: expected the key \"{}\", found none", place_, key));
    }
  }
}

const Json& ObjectReader::value(std::string_view key) const {
  return json_.at(std::string(key));
}

void ObjectReader::fail(std::string_view key, std::string_view expected) const {
  throw std::runtime_error(fmt::format("{}.{}: expected {}, found {}", place_, key, expected,
                                       one_line(value(key).dump(), 60)));
}

std::string ObjectReader::text(std::string_view key) const {
  if (!value(key).is_string()) {
    fail(key, "text");
  }
  return value(key).get<std::string>();
}

bool ObjectReader::boolean(std::string_view key) const {
  if (!value(key).is_boolean()) {
    fail(key, "true or false");
  }
  return value(key).get<bool>();
}

std::int64_t ObjectReader::integer(std::string_view key, std::int64_t min) const {
  const Json& number = value(key);
  const bool fits = number.is_number_integer() &&
                    (!number.is_number_unsigned() ||
                     number.get<std::uint64_t>() <= std::numeric_limits<std::int64_t>::max());
  if (!fits || number.get<std::int64_t>() < min) {
    fail(key, fmt::format("a whole number of {} or more", min));
  }
  return number.get<std::int64_t>();
}

double ObjectReader::number(std::string_view key) const {
  if (!value(key).is_number() || !std::isfinite(value(key).get<double>())) {
    fail(key, "a number");
  }
  return value(key).get<double>();
}

const Json& ObjectReader::array(std::string_view key) const {
  if (!value(key).is_array()) {
    fail(key, "a list");
  }
  return value(key);
}

Json to_json(const Machine& machine) {
  Json gpus = Json::array();
  for (const Gpu& gpu : machine.gpus) {
    gpus.push_back(to_json(gpu));
  }
  return {{"hostname", machine.hostname},
          {"cpu", machine.cpu},
          {"cpus", machine.cpus},
          {"driver", machine.driver},
          {"cuda_driver", machine.cuda_driver},
          {"cuda_runtime", machine.cuda_runtime},
          {"nccl", machine.nccl},
          {"cublaslt", machine.cublaslt},
          {"gpus", std::move(gpus)}};
}

Machine read_machine(const Json& json, const std::string& place) {
  const ObjectReader reader(json, place,
                            {"hostname", "cpu", "cpus", "driver", "cuda_driver", "cuda_runtime",
                             "nccl", "cublaslt", "gpus"});
  Machine machine = {.hostname = reader.text("hostname"),
                     .cpu = reader.text("cpu"),
                     .cpus = static_cast<int>(reader.integer("cpus", 0)),
                     .driver = reader.text("driver"),
                     .cuda_driver = reader.text("cuda_driver"),
                     .cuda_runtime = reader.text("cuda_runtime"),
                     .nccl = reader.text("nccl"),
                     .cublaslt = reader.text("cublaslt"),
                     .gpus = {}};
  for (const Json& gpu : reader.array("gpus")) {
    machine.gpus.push_back(read_gpu(gpu, fmt::format("{}.gpus[{}]", place, machine.gpus.size())));
  }
  return machine;
}

Json to_json(const Sample& sample) {
  Json parameters = Json::object();
  for (const Parameter& parameter : sample.parameters) {
    std::visit([&](const auto& value) { parameters[parameter.name] = value; }, parameter.value);
  }
  return {{"quantity", sample.quantity},     {"unit", sample.unit},
          {"parameters", parameters},        {"count", sample.summary.count},
          {"median", sample.summary.median}, {"p10", sample.summary.p10},
          {"p90", sample.summary.p90},       {"min", sample.summary.min},
          {"max", sample.summary.max}};
}

Sample read_sample(const Json& json, const std::string& place) {
  const ObjectReader reader(
      json, place,
      {"quantity", "unit", "parameters", "count", "median", "p10", "p90", "min", "max"});
  Sample sample = {.quantity = reader.text("quantity"),
                   .unit = reader.text("unit"),
                   .parameters = {},
                   .summary = read_summary(reader)};
  if (std::find(units().begin(), units().end(), sample.unit) == units().end()) {
    reader.fail("unit", fmt::format("one of {}", fmt::join(units(), ", ")));
  }
  if (!reader.value("parameters").is_object()) {
    reader.fail("parameters", "an object");
  }
  for (const auto& [name, value] : reader.value("parameters").items()) {
    sample.parameters.push_back(read_parameter(name, value, reader));
  }
  return sample;
}

Json to_json(const Record& record) {
  return {{"name", record.name}, {"text", record.text}};
}

Record read_record(const Json& json, const std::string& place) {
  const ObjectReader reader(json, place, {"name", "text"});
  return {.name = reader.text("name"), .text = reader.text("text")};
}

}  // namespace trainyard::calibrate
