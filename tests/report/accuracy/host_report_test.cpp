// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/accuracy/host_report.h"

#include "report/formats/output.h"

namespace trainyard {

TEST_CASE("the report of a host says what was fitted and how far off its collectives are",
          "[report][mpi]") {
  HostCalibration made{
      .set = {.name = "host.yaml", .cpu = "some CPU", .cores = 2, .mpi = "MPI", .rows = {}}};
  made.constants = {{.name = "shared.send",
                     .is_time = true,
                     .shipped = 70e-9,
                     .value = 80e-9,
                     .low = 75e-9,
                     .high = 85e-9,
                     .is_fitted = true,
                     .rows = 5},
                    {.name = "sum", .shipped = 320e9, .value = 320e9, .reason = "too few"}};
  made.collectives = {
      {.ranks = 2, .size = kib(4), .measured_us = 2.0, .shipped_us = 3.0, .fitted_us = 2.2}};
  Document document;
  add_host(made, document);
  const std::string text = render(document, Format::Table);
  INFO(text);
  REQUIRE(text.find("shared.send") != std::string::npos);
  REQUIRE(text.find("75 ns") != std::string::npos);
  REQUIRE(text.find("40 GB/s") != std::string::npos);
  REQUIRE(text.find("too few") != std::string::npos);
  REQUIRE(text.find("50.0 %") != std::string::npos);
  REQUIRE(text.find("10.0 %") != std::string::npos);
}

TEST_CASE("the report of validated hosts has each group of rows and all collectives",
          "[report][mpi]") {
  const auto one = [](const char* test, double predicted) {
    return HostPrediction{.row = {.test = test, .path = "shared", .ranks = 2, .size = kib(4)},
                          .measured_us = 2.0,
                          .predicted_us = predicted};
  };
  const HostValidationReport report{
      .profile = "mpi.yaml",
      .hosts = {{.set = {.name = "h.yaml", .cpu = "CPU", .cores = 2, .mpi = "MPI", .rows = {}},
                 .predictions = {
                     .rows = {one("ping-pong", 2.2), one("all_reduce", 3.0), one("alltoall", 1.0)},
                     .silent = 3}}}};
  const std::string text = render(report, Format::Table);
  INFO(text);
  REQUIRE(text.find("ping-pong, shared") != std::string::npos);
  REQUIRE(text.find("10.0 %") != std::string::npos);
  REQUIRE(text.find("all_reduce, 2 ranks") != std::string::npos);
  REQUIRE(text.find("all collectives") != std::string::npos);
  REQUIRE(text.find("h.yaml: 3 rows of sockets") != std::string::npos);
  REQUIRE(render(report, Format::Csv).find("predicted_us") != std::string::npos);
}

}  // namespace trainyard
