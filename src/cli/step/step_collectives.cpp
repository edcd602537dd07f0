// SPDX-License-Identifier: Apache-2.0
#include "cli/step/step_collectives.h"

#include <utility>

#include "cli/common/nccl_options.h"
#include "sim/config_error.h"

namespace trainyard {

void add_step_collectives_options(boost::program_options::options_description& options) {
  auto add = options.add_options();
  add("runtime", text_value("NAME"),
      "of collectives: nccl (the default), as NCCL chooses and runs them; plain, links and "
      "latencies only");
  add("nccl-version", text_value("V"), "nccl: 2.28.9 (the default), 2.30.7 or 2.27.7");
  add("profile", text_value("FILE"),
      "nccl: constants of the event model, as trainyard calibrate writes them");
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
