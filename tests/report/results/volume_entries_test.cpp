// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "report/results/volume_entries.h"

#include <string>
#include <vector>

namespace trainyard {
namespace {

const std::vector<TierVolume> kVolumes{
    {.key = "nvlink", .title = "NVLink", .links = 16, .bytes = gib(3), .busiest = mib(192)},
    {.key = "nic", .title = "links of NICs", .links = 4, .bytes = mib(512), .busiest = mib(128)}};

}  // namespace

TEST_CASE("volumes are one line for people and one field for CSV", "[volumes]") {
  REQUIRE(volumes_text(kVolumes) == "NVLink 3 GiB, links of NICs 512 MiB");
  const Field field = volumes_field(kVolumes);
  REQUIRE(std::get<std::string>(field.cell.value) == "nvlink=3221225472;nic=536870912");
  REQUIRE(appears_in(field.column.shown, Shown::Csv));
  REQUIRE_FALSE(appears_in(field.column.shown, Shown::Text));
  REQUIRE(std::holds_alternative<std::monostate>(volumes_field({}).cell.value));
}

TEST_CASE("a tier has its key and its bytes for programs, its title and sizes for people",
          "[volumes]") {
  const std::vector<Field> fields = tier_fields(kVolumes[1]);
  REQUIRE(fields.size() == 4);
  REQUIRE(fields[0].cell.text == "links of NICs");
  REQUIRE(std::get<std::string>(fields[0].cell.value) == "nic");
  REQUIRE(std::get<std::int64_t>(fields[1].cell.value) == 4);
  REQUIRE(fields[2].cell.text == "512 MiB");
  REQUIRE(std::get<std::int64_t>(fields[3].cell.value) == mib(128).count());
}

}  // namespace trainyard
