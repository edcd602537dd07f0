// SPDX-License-Identifier: Apache-2.0
#include "support/catch.h"

#include "parallelism/traffic/group_shapes.h"

#include <numeric>
#include <vector>

#include "parallelism/traffic/cluster_times.h"
#include "support/built_clusters.h"

namespace trainyard {
namespace {

class ShapesOf {
 public:
  explicit ShapesOf(Cluster cluster)
      : cluster_(std::move(cluster)),
        servers_(servers_of_gpus(cluster_)),
        routing_(cluster_.topology, cluster_.routing),
        shapes_(cluster_, servers_, routing_) {}

  [[nodiscard]] bool have_one_shape(const std::vector<int>& a, const std::vector<int>& b) const {
    return shapes_.shape(a) == shapes_.shape(b);
  }
  [[nodiscard]] bool are_joined_alike(const std::vector<int>& a, const std::vector<int>& b) {
    return shapes_.joints(a) == shapes_.joints(b);
  }

 private:
  Cluster cluster_;
  std::vector<int> servers_;
  Routing routing_;
  GroupShapes shapes_;
};

}  // namespace

TEST_CASE("a shape is places on like servers, whichever those are", "[group_shapes]") {
  ShapesOf shapes(shipped_cluster("dgx-h100", {.nodes = 4}));
  REQUIRE(shapes.have_one_shape({0, 8}, {16, 24}));
  REQUIRE(shapes.have_one_shape({0, 1, 8, 9}, {8, 9, 24, 25}));
  REQUIRE_FALSE(shapes.have_one_shape({0, 8}, {1, 9}));
  REQUIRE_FALSE(shapes.have_one_shape({0, 8}, {0, 1}));
}

TEST_CASE("GPUs on an NVSwitch are joined alike, those of a cube mesh are not", "[group_shapes]") {
  ShapesOf switched(shipped_cluster("dgx-h100", {.nodes = 2}));
  REQUIRE(switched.are_joined_alike({0, 8}, {5, 13}));
  REQUIRE(switched.are_joined_alike({0, 1, 8, 9}, {2, 7, 10, 15}));
  REQUIRE_FALSE(switched.are_joined_alike({0, 1, 8, 9}, {0, 1, 2, 8}));
  ShapesOf mesh(shipped_cluster("dgx-1", {.nodes = 2}));
  REQUIRE(mesh.are_joined_alike({0, 8}, {5, 13}));
  REQUIRE_FALSE(mesh.are_joined_alike({0, 1, 8, 9}, {0, 3, 8, 11}));  // One link or two.
}

}  // namespace trainyard
