// SPDX-License-Identifier: Apache-2.0
// Reads what nccl-tests writes with -J FILE (version 3 of that format, nccl-tests src/util.cu):
//
//   {"version":3, "args":["./all_reduce_perf",...], "config":{"nthreads":1, "ngpus":1, "graph":0,
//    "devices":[{"rank":0, "hostname":"one", "device_info":"NVIDIA H100 80GB HBM3",...},...]},
//    "results":[{"size":8, ..., "out_of_place":{"time":12.3, "alg_bw":0.0, "bus_bw":0.0,
//    "nwrong":0}, "in_place":{...}}, ...], "out_of_bounds":{"count":0, "okay":"true"},
//    "average_bus_bandwidth":{"bandwidth":92.3}, ..., "end_time":"..."}
//
// Each process lists the first of its devices alone.
#pragma once

#include <string>
#include <string_view>

#include "calibration/measured/measurement.h"

namespace trainyard {

// Returns whether the text begins as such a file.
[[nodiscard]] bool is_nccl_json(std::string_view text);

// Throws ConfigError naming `name` and the line or the place.
[[nodiscard]] MeasuredTable parse_nccl_json(const std::string& text, const std::string& name);

}  // namespace trainyard
