// SPDX-License-Identifier: Apache-2.0
// Convolutional networks and their training for tests.
#pragma once

#include <string>

#include "parallelism/run/convolutional_run.h"
#include "sim/fields.h"
#include "support/built_clusters.h"
#include "support/step_rates.h"

namespace trainyard {

inline ConvolutionalModel read_network(ConfigDocument document) {
  ConvolutionalModel model;
  read_fields(document.root(), model, convolutional_fields);
  document.finish();
  return model;
}

inline ConvolutionalModel shipped_network(const std::string& name) {
  return read_network(
      ConfigDocument::load(kConfigsFolder / "workloads/convolutional" / (name + ".yaml")));
}

// Makes a network for images of 3 x 32 x 32 from these lines of blocks.
inline ConvolutionalModel small_network(const std::string& blocks) {
  return read_network(ConfigDocument::parse(
      "title: Small\nimage: {channels: 3, height: 32, width: 32}\nblocks:\n" + blocks, "small"));
}

inline ConvolutionalWorkload image_workload(ConvolutionalModel model, std::int64_t batch) {
  return {.name = "test", .title = "Test", .model = std::move(model), .batch = batch};
}

// With links and latencies only, each call alone.
inline StepTables image_tables() {
  return {.rates = shipped_rates(), .fidelity = Fidelity::Flow, .method = StepMethod::Graph};
}

}  // namespace trainyard
