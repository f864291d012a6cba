#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <string>

#include "base/error.hpp"
#include "tests/topology/links/small_topologies.hpp"

namespace heddle::test {
namespace {

struct Case {
  std::string expected;  ///< in the text of the first fault
  std::function<void(TopologyParts&)> damage;
};

TEST(TopologyFaults, name_what_is_wrong) {
  EXPECT_TRUE(faults_of(three_gpus().parts()).empty());
  const std::vector<Case> cases{
      {"vertices 0 and 99", [](TopologyParts& p) { p.links[0].b = VertexId{99}; }},
      {"joins a vertex to itself", [](TopologyParts& p) { p.links[0].b = p.links[0].a; }},
      {"has a rate of 0 GB/s", [](TopologyParts& p) { p.links[0].rate = 0; }},
      {"has a rate of nan GB/s",
       [](TopologyParts& p) { p.links[0].rate = std::numeric_limits<double>::quiet_NaN(); }},
      {"has a latency of -1 us", [](TopologyParts& p) { p.links[0].latency_us = -1; }},
      {"has a count of 0", [](TopologyParts& p) { p.links[0].count = 0; }},
      {"'g0' and 's0' is of kind socket",
       [](TopologyParts& p) { p.links[0].kind = LinkKind::socket; }},
      {"'m0' and 'm1' is of kind pcie", [](TopologyParts& p) { p.links[4].kind = LinkKind::pcie; }},
      {"is there twice; give one of them a count",
       [](TopologyParts& p) { p.links.push_back(p.links[0]); }},
      {"closes a circle",
       [](TopologyParts& p) {
         p.links.push_back({VertexId{0}, VertexId{3}, LinkKind::pcie, 1, 1, 0});
       }},
      {"the GPU 'g2' has no link", [](TopologyParts& p) { p.links.erase(p.links.begin() + 2); }},
      {"the GPU 'g0' has no way to host memory",
       [](TopologyParts& p) {
         p.links[0] = {VertexId{0}, VertexId{2}, LinkKind::nvlink, 1, 1, 0};
       }},
      {"the GPU 'g2' lies on another's way",
       [](TopologyParts& p) { p.links[0] = {VertexId{0}, VertexId{2}, LinkKind::pcie, 1, 1, 0}; }},
      {"'m1' has no way to the first one",
       [](TopologyParts& p) { p.links.erase(p.links.begin() + 4); }},
      {"the name 'g0' is there twice", [](TopologyParts& p) { p.vertices[1].name = "g0"; }},
      {"comes after a vertex that is none",
       [](TopologyParts& p) { p.vertices[6].kind = VertexKind::gpu; }},
      {"there is no GPU", [](TopologyParts& p) { p = {}; }},
      {"the UUID 'GPU-1' is there twice",
       [](TopologyParts& p) { p.vertices[0].uuid = p.vertices[1].uuid = "GPU-1"; }},
      {"the pair names GPU 3",
       [](TopologyParts& p) {
         p.pairs.push_back({GpuId{0}, GpuId{3}, 1, 0});
       }},
      {"is one GPU",
       [](TopologyParts& p) {
         p.pairs.push_back({GpuId{1}, GpuId{1}, 1, 0});
       }},
      {"the pair from g0 to g1 has a rate of 0",
       [](TopologyParts& p) {
         p.pairs.push_back({GpuId{0}, GpuId{1}, 0, 0});
       }},
      {"the pair from g0 to g1 is there twice",
       [](TopologyParts& p) {
         p.pairs.assign(2, {GpuId{0}, GpuId{1}, 1, 0});
       }},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.expected);
    TopologyParts parts = three_gpus().parts();
    one.damage(parts);
    const std::vector<TopologyFault> faults = faults_of(parts);
    ASSERT_FALSE(faults.empty());
    EXPECT_NE(faults.front().text.find(one.expected), std::string::npos) << faults.front().text;
    try {
      static_cast<void>(GpuTopology(parts));
      FAIL() << "it was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::usage);
      EXPECT_NE(std::string(error.what()).find(one.expected), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace heddle::test
