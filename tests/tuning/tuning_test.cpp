#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

#include "apps/tuning/copies.hpp"
#include "apps/tuning/cpu.hpp"
#include "apps/tuning/device.hpp"
#include "apps/tuning/products.hpp"
#include "kernels/cpu/blas.hpp"
#include "kernels/kernels.hpp"
#include "node-runtime/device/devices.hpp"

/// What is measured, not how fast it is: tables are whole, figures positive, time limits kept.
namespace heddle::tuning {
namespace {

/// The shortest durations that there are.
constexpr double brief = 1;

void ignore(const std::string& /*what*/, double /*share*/) {}

DeviceSet emulated(std::int32_t count, std::uint64_t memory_bytes) {
  DeviceOptions options;
  options.backend = DeviceBackend::emulated;
  options.count = count;
  options.emulated.memory_bytes = memory_bytes;
  return make_devices(options);
}

void expect_positive(const KernelTimes& times) {
  for (const KernelTime& time : times) {
    EXPECT_GT(time.microseconds, 0)
        << time.kernel->name << ' ' << time.rows << " x " << time.columns;
  }
}

std::set<const Kernel*> kernels_of(const KernelTimes& times) {
  std::set<const Kernel*> kernels;
  for (const KernelTime& time : times) kernels.insert(time.kernel);
  return kernels;
}

}  // namespace

TEST(Tuning, times_all_kernels_of_a_device_on_what_fits_its_memory) {
  static_cast<void>(load_blas({}));
  const NormalValues normal;
  Effort effort(brief, ignore);
  const DeviceSet devices = emulated(1, std::uint64_t{48} << 20);
  // With inverse blocks, as GPUs have them.
  const DeviceMeasurement measured = measure_device(*devices.devices[0], 64, normal, effort);
  EXPECT_EQ(measured.backend, "emulated");
  EXPECT_EQ(measured.name, "emulated");
  EXPECT_GE(measured.streams, 1);
  EXPECT_LE(measured.streams, 3);
  expect_positive(measured.kernels);
  const std::set<const Kernel*> kernels = kernels_of(measured.kernels);
  for (const Kernel* kernel : {&kernel::potrf, &kernel::trsm, &kernel::syrk, &kernel::gsmm}) {
    EXPECT_TRUE(kernels.contains(kernel)) << kernel->name;
  }
  for (const KernelTime& time : measured.kernels) {
    EXPECT_TRUE(time.inner > 0 || time.columns <= 256) << time.kernel->name << ' ' << time.columns;
  }
}

TEST(Tuning, leaves_out_what_there_is_no_time_for) {
  static_cast<void>(load_blas({}));
  const NormalValues normal;
  Effort effort(brief, ignore);
  effort.until(0);
  const CpuMeasurement cpu = measure_cpu({1, {}}, normal, effort);
  // The two smallest tiles, on which everything else depends.
  EXPECT_EQ(cpu.one_worker.size(), 8U);
  EXPECT_EQ(cpu.all_workers, cpu.one_worker);
  expect_positive(cpu.one_worker);
  const DeviceSet devices = emulated(1, std::uint64_t{256} << 20);
  const DeviceMeasurement device = measure_device(*devices.devices[0], 0, normal, effort);
  EXPECT_EQ(device.kernels.size(), 4U);
}

TEST(Tuning, copies_to_and_from_a_device_and_to_its_peer) {
  Effort effort(brief, ignore);
  const DeviceSet devices = emulated(2, std::uint64_t{16} << 20);
  const CopyRates alone = measure_copies(*devices.devices[0], nullptr, effort);
  EXPECT_GT(alone.to_device, 0);
  EXPECT_GT(alone.to_host, 0);
  EXPECT_GT(alone.both_ways, 0);
  EXPECT_FALSE(alone.to_peer);
  for (const auto& figure : {alone.within, alone.packing, alone.short_us}) {
    ASSERT_TRUE(figure);
    EXPECT_GT(*figure, 0);
    EXPECT_LT(*figure, 1e6);
  }
  const CopyRates two = measure_copies(*devices.devices[0], devices.devices[1].get(), effort);
  ASSERT_TRUE(two.to_peer);
  EXPECT_GT(*two.to_peer, 0);
}

TEST(Tuning, keeps_one_choice_of_those_that_repeat) {
  using kernel::cuda::ProductChoices;
  EXPECT_EQ(without_repetitions({{768, 0, 0}, {1536, 17, 3}, {3072, 17, 3}}),
            (ProductChoices{{768, 0, 0}, {1536, 17, 3}}));
  EXPECT_EQ(without_repetitions({{768, 17, 3}, {1536, 0, 0}, {3072, 17, 3}}).size(), 3U);
  EXPECT_TRUE(without_repetitions({}).empty());
}

TEST(Tuning, says_how_much_is_done) {
  std::vector<double> shares;
  Effort effort(100, [&](const std::string&, double share) { shares.push_back(share); });
  effort.tell("something");
  EXPECT_EQ(shares.size(), 1U);
  EXPECT_TRUE(effort.allows(50));
  effort.until(0.1);
  EXPECT_FALSE(effort.allows(50));
  EXPECT_DOUBLE_EQ(effort.lasting(0.5), 0.5);
  EXPECT_DOUBLE_EQ(Effort(9, ignore).lasting(0.5), 0.05);
}

}  // namespace heddle::tuning
