// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/steps/memory_profile.h"

#include <string>

#include "sim/units.h"

namespace trainyard {

TEST_CASE("the profile of a step's memory has a line for each pass of each rank", "[memory]") {
  MemoryMoment forward{.position = 0, .pass = {}, .unit = {.layer = 3}, .use = {}};
  forward.use[MemoryClass::Weights] = gib(4);
  forward.use[MemoryClass::GatheredWeights] = mib(512);
  MemoryMoment last = forward;
  last.position = 1;
  last.unit.place = StepPlace::Optimizer;
  const StepMemory memory{
      .ranks = {{.rank = 0, .profile = {forward, last}}, {.rank = 1, .profile = {last}}},
      .worst = 0};
  const std::string csv = memory_profile_csv(memory);
  REQUIRE(csv.rfind("rank,position,moment,weights_gib,gradients_gib,optimizer_states_gib,"
                    "gathered_weights_gib,activations_gib,",
                    0) == 0);
  const std::string sizes = "4,0,0,0.5,0,0,0,0,0,0,0\n";
  const auto line = [&](const char* place, const MemoryMoment& moment) {
    return std::string(place) +
           (moment.where().find(',') == std::string::npos ? moment.where()
                                                          : "\"" + moment.where() + "\"") +
           "," + sizes;
  };
  REQUIRE(csv.substr(csv.find('\n') + 1) ==
          line("0,0,", forward) + line("0,1,", last) + line("1,1,", last));
}

}  // namespace trainyard
