// SPDX-License-Identifier: Apache-2.0
#include "cli/step/step_collectives.h"

#include <utility>

#include "cli/common/nccl_options.h"
#include "sim/config_error.h"

namespace trainyard {

Options step_collectives_options() {
  return {{"runtime", "NAME",
           "of collectives: nccl (the default), as NCCL chooses and runs them; plain, links and "
           "latencies only"},
          {"nccl-version", "V", "nccl: 2.28.9 (the default), 2.30.7 or 2.27.7"},
          {"profile", "FILE",
           "nccl: constants of the event model, as trainyard calibrate writes them", kInput}};
}

StepCollectives read_step_collectives(const OptionReader& reader) {
  StepCollectives read{.is_nccl = reader.choice("runtime", {"nccl", "plain"}) == 0,
                       .profile = reader.text("profile")};
  if (read.profile && !read.is_nccl) {
    throw ConfigError("--profile: expected --runtime nccl, whose times it has, found plain");
  }
  if (reader.given("nccl-version")) {
    if (!read.is_nccl) {
      throw ConfigError("--nccl-version: expected --runtime nccl, found plain");
    }
    NcclOptions named;
    read_nccl_version(reader, named);
    read.version = named.version;
    read.notes = std::move(named.notes);
  }
  return read;
}

}  // namespace trainyard
