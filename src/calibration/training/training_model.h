// SPDX-License-Identifier: Apache-2.0
// The model of a training row: a file of configs/workloads/models, or a form with the sizes of the
// row.
#pragma once

#include <string>
#include <vector>

#include "calibration/training/training_fields.h"
#include "parallelism/model/model.h"

namespace trainyard {

class ModelFolder;

struct ModelResolution {
  Model model;
  std::vector<std::string> missing = {};  // Keys; the model then means nothing.
  std::string clash = {};                 // Where the row and the file of its model differ.
};

// Returns the model of a file, of which the row may cut the layers (the first ones stay, or as many
// without experts as it says) and change the vocabulary; its other sizes must be those of the file.
[[nodiscard]] ModelResolution model_of(const ModelFields& fields, ModelFolder& models);

}  // namespace trainyard
