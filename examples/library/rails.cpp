// SPDX-License-Identifier: Apache-2.0
// Prints how long an all-reduce of 64 MiB takes on eight DGX H100 with eight, four and two NICs
// each, and a step of a model on the same machines.
#include <trainyard/trainyard.h>
#include <cstdio>
#include <string>

int main() {
  try {
    for (const int nics : {8, 4, 2}) {
      const trainyard::Cluster cluster("dgx-h100", 8, {"server.nics=" + std::to_string(nics)});
      const trainyard::Result call =
          cluster.collective("all_reduce", {{"minbytes", "64M"}, {"maxbytes", "64M"}});
      const trainyard::Result step = cluster.run("step", {}, {{"model", "llama-3-8b"}});
      std::printf("%d NICs: all_reduce %.1f us, step %.3f s\n", nics, call.number("rows.0.time_us"),
                  step.number("step_time_s"));
    }
    // Input that cannot be used is an exception with its place.
    static_cast<void>(trainyard::Cluster("dgx-h100", -1).collective("all_reduce"));
  } catch (const trainyard::Error& error) {
    std::printf("%s is wrong: %s\n", error.place().c_str(), error.what());
  }
}
