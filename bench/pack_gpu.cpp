/// How fast does heddle pack and unpack on a GPU? Parts of matrices beside a copy of as many bytes
/// within the GPU, vectors beside cudaMemcpy2D, few thread blocks that write to host memory beside
/// a copy to the host, and parts of matrices that lie in host memory beside copies from and to
/// there. All in turns, medians; every result is validated, here or by the packer's tests.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fmt/core.h>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/median.hpp"
#include "node-runtime/device/devices.hpp"
#include "node-runtime/transport/datatype/datatype.hpp"
#include "node-runtime/transport/datatype/pack.hpp"
#include "node-runtime/transport/pack/device_packer.hpp"

namespace heddle {
namespace {

using Plan = DevicePacker::Plan;

constexpr std::int64_t element_bytes = sizeof(double);

struct Options {
  std::string backend = "cuda";
  std::vector<std::int64_t> sizes{1000, 2000, 4000, 8000};
  std::vector<std::int64_t> vector_counts{1000, 8000};
  std::vector<std::int64_t> block_bytes{64,   128,  200,    512,    1000,   1024,   4000,
                                        4096, 8200, 16'384, 65'528, 65'536, 131'080};
  std::vector<std::uint32_t> block_limits{1, 2, 4, 16, 0};
  std::vector<std::string> only;
  int repetitions = 15;
  std::uint64_t memory_bytes = std::uint64_t{8} << 30U;
};

/// What is packed: a part of some memory.
struct Case {
  std::string name;
  std::string shape;
  Plan plan;
  std::int64_t memory_bytes = 0;
};

Plan plan_of(const Datatype& type) {
  return std::make_shared<const PackPlan>(make_plan(type));
}

Case sub_matrix(std::int64_t n, std::int64_t leading) {
  return {"submatrix", fmt::format("n={} leading={}", n, leading),
          plan_of(Datatype::vector(n, n, leading, Scalar::float64)), n * leading * element_bytes};
}

Case triangle(std::int64_t n) {
  return {"lower", fmt::format("n={}", n),
          plan_of(Datatype::triangle({.rows = n, .columns = n, .leading = n}, Scalar::float64)),
          n * n * element_bytes};
}

Case transpose(std::int64_t n, std::int64_t leading) {
  const Datatype row = Datatype::vector(n, 1, leading, Scalar::float64);
  return {"transpose", fmt::format("n={} leading={}", n, leading),
          plan_of(Datatype::hvector(n, 1, element_bytes, row)), n * leading * element_bytes};
}

/// Blocks of random lengths up to `length_max` at random distances, about n*n/2 elements in all.
Case indexed(std::int64_t n, std::int64_t length_max) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> length(1, length_max);
  std::vector<Datatype::IndexedBlock> blocks;
  std::int64_t at = 0;
  while (at < n * n) {
    blocks.push_back({at, length(random)});
    at += blocks.back().length + length(random);
  }
  return {"indexed", fmt::format("n={} blocks={} to={}", n, blocks.size(), length_max),
          plan_of(Datatype::indexed(blocks, Scalar::float64)), at * element_bytes};
}

class Bench {
 public:
  Bench(Device& device, const Options& options)
      : device_(device),
        options_(options),
        is_gpu_(device.info().backend == DeviceBackend::cuda),
        packer_(device, packer_options(device)),
        stream_(device.create_stream()),
        begin_(device.create_event()),
        end_(device.create_event()),
        delay_(device, is_gpu_ ? std::size_t{1} << 30U : 4096) {}

  static void heading() {
    fmt::print("{:<10} {:<34} {:<20} {:>10} {:>10} {:>9} {:>9} {:>7}\n", "what", "shape", "how",
               "us", "us best", "GB/s", "GB/s peer", "ratio");
  }

  /// Beside a copy within the device.
  void parts(const Case& what) {
    if (!wants(what.name)) return;
    const Buffers buffers(*this, what, false);
    validate(what, buffers, {});
    Way copy{"copy", [&](std::size_t set) {
               stream_->copy(buffers.packed(set), buffers.other_packed(set), size_of(what));
             }};
    Way pack{"pack", [&](std::size_t set) { run_pack(what, buffers, set, {}); }};
    Way unpack{"unpack", [&](std::size_t set) { run_unpack(what, buffers, set); }};
    time_in_turns(what, {&copy, &pack, &unpack}, buffers.sets());
    report(what, pack, copy);
    report(what, unpack, copy);
    if (what.plan->body == PackPlan::Body::units) first_times(what, buffers, copy);
  }

  /// Beside cudaMemcpy2D, within the device and to the host; and the same beside it for a copy of
  /// as many bytes that lie together, which is the most that can be had.
  void vectors(std::int64_t count, std::int64_t block_bytes) {
    if (!wants("vector")) return;
    const std::int64_t stride = 2 * block_bytes;
    const Case what{"vector", fmt::format("blocks={} bytes={}", count, block_bytes),
                    plan_of(Datatype::hvector(count, block_bytes, stride, Scalar::byte)),
                    count * stride};
    for (const bool to_host : {false, true}) {
      const Buffers buffers(*this, what, to_host);
      validate(what, buffers, {});
      const auto bytes = static_cast<std::size_t>(block_bytes);
      const CopyShape shape{bytes, static_cast<std::size_t>(count), bytes, 2 * bytes};
      Way peer{"memcpy2D", [&](std::size_t set) {
                 stream_->copy_strided(buffers.packed(set), buffers.elements_source(set), shape);
               }};
      Way pack{to_host ? "pack to host" : "pack",
               [&](std::size_t set) { run_pack(what, buffers, set, {}); }};
      Way copy{to_host ? "copy to host" : "copy", [&](std::size_t set) {
                 const Source from =
                     to_host ? buffers.elements_source(set) : buffers.other_packed(set);
                 stream_->copy(buffers.packed(set), from, size_of(what));
               }};
      time_in_turns(what, {&peer, &pack, &copy}, buffers.sets());
      report(what, pack, peer);
      report(what, copy, peer);
    }
  }

  /// Few thread blocks, to and from host memory, beside copies of as many bytes.
  void limits(const Case& what) {
    if (!wants("limits")) return;
    const Buffers buffers(*this, what, true);
    Way to_host{"copy to host", [&](std::size_t set) {
                  stream_->copy(buffers.packed(set), buffers.elements_source(set), size_of(what));
                }};
    Way from_host{"copy from host", [&](std::size_t set) {
                    stream_->copy(buffers.elements(set), buffers.packed_source(set), size_of(what));
                  }};
    for (const std::uint32_t limit : options_.block_limits) {
      validate(what, buffers, {limit});
      const std::string blocks = limit == 0 ? "all" : fmt::format("{}", limit);
      Way pack{fmt::format("pack, {} blocks", blocks),
               [&](std::size_t set) { run_pack(what, buffers, set, {limit}); }};
      Way unpack{fmt::format("unpack, {} blocks", blocks),
                 [&](std::size_t set) { run_unpack(what, buffers, set, {limit}); }};
      to_host.seconds.clear();
      from_host.seconds.clear();
      time_in_turns(what, {&to_host, &from_host, &pack, &unpack}, buffers.sets());
      report(what, pack, to_host);
      report(what, unpack, from_host);
    }
  }

  /// Elements in host memory, to and from the device: as they lie there, and packed. Beside copies
  /// of as many bytes.
  void far(const Case& what) {
    if (!wants("far")) return;
    const Buffers buffers(*this, what, true);
    const HostElements host(device_, what);
    const auto shape = loop_shape(*what.plan, 1);
    const std::int64_t first = what.plan->true_lower_bound;
    constexpr PackOptions on_host{.on_host = true};
    Way from_host{"copy from host", [&](std::size_t set) {
                    stream_->copy(buffers.elements(set), buffers.packed_source(set), size_of(what));
                  }};
    Way to_host{"copy to host", [&](std::size_t set) {
                  stream_->copy(buffers.packed(set), buffers.elements_source(set), size_of(what));
                }};
    Way pack{"pack from host", [&](std::size_t set) {
               packer_.pack(*stream_, what.plan, 1, host.address(), all_of(what),
                            buffers.elements(set), on_host);
             }};
    Way unpack{"unpack to host", [&](std::size_t set) {
                 packer_.unpack(*stream_, what.plan, 1, all_of(what), buffers.elements_source(set),
                                host.address(), on_host);
               }};
    Way in{"as it lies, from host", [&](std::size_t set) {
             packer_.transfer(*stream_, *shape, {host.address() + first, nullptr}, *shape,
                              {buffers.memory(set) + first, &device_});
           }};
    Way out{"as it lies, to host", [&](std::size_t set) {
              packer_.transfer(*stream_, *shape, {buffers.memory(set) + first, &device_}, *shape,
                               {host.address() + first, nullptr});
            }};
    std::vector<Way*> ways{&from_host, &to_host, &pack, &unpack};
    if (shape) ways.insert(ways.end(), {&in, &out});
    time_in_turns(what, ways, buffers.sets());
    report(what, pack, from_host);
    report(what, unpack, to_host);
    if (!shape) return;
    report(what, in, from_host);
    report(what, out, to_host);
  }

 private:
  /// Page-locked memory for the elements of a case.
  class HostElements {
   public:
    HostElements(Device& device, const Case& what)
        : device_(device),
          address_(static_cast<std::byte*>(
              device.allocate_host(static_cast<std::size_t>(what.memory_bytes)))) {
      std::memset(address_, 1, static_cast<std::size_t>(what.memory_bytes));
    }
    HostElements(const HostElements&) = delete;
    HostElements& operator=(const HostElements&) = delete;
    ~HostElements() { device_.free_host(address_); }
    [[nodiscard]] std::byte* address() const { return address_; }

   private:
    Device& device_;
    std::byte* address_;
  };

  struct Way {
    std::string name;
    std::function<void(std::size_t set)> call;
    std::vector<double> seconds = {};
  };

  /// Several sets of memory and stream, so that a cache does not hold what is read.
  class Buffers {
   public:
    Buffers(const Bench& bench, const Case& what, bool is_on_host)
        : device_(bench.device_),
          is_on_host_(is_on_host),
          memory_bytes_(rounded(what.memory_bytes)),
          packed_bytes_(rounded(what.plan->size)),
          sets_(sets_for(bench)),
          memory_(device_, sets_ * memory_bytes_),
          packed_(device_, sets_ * packed_bytes_),
          other_(device_, sets_ * packed_bytes_),
          host_(static_cast<std::byte*>(device_.allocate_host(
              is_on_host ? sets_ * packed_bytes_ : BlockAllocator::alignment))) {}
    Buffers(const Buffers&) = delete;
    Buffers& operator=(const Buffers&) = delete;
    ~Buffers() { device_.free_host(host_); }

    [[nodiscard]] std::size_t sets() const { return sets_; }
    [[nodiscard]] std::byte* memory(std::size_t set) const {
      return memory_.address() + set * memory_bytes_;
    }
    [[nodiscard]] Destination elements(std::size_t set) const { return {memory(set), &device_}; }
    [[nodiscard]] Source elements_source(std::size_t set) const { return {memory(set), &device_}; }
    [[nodiscard]] Destination packed(std::size_t set) const {
      if (is_on_host_) return {host_ + set * packed_bytes_, nullptr};
      return {packed_.address() + set * packed_bytes_, &device_};
    }
    [[nodiscard]] Source packed_source(std::size_t set) const {
      const Destination same = packed(set);
      return {same.address, same.device};
    }
    [[nodiscard]] Source other_packed(std::size_t set) const {
      return {other_.address() + set * packed_bytes_, &device_};
    }

   private:
    static std::size_t rounded(std::int64_t bytes) {
      return (static_cast<std::size_t>(bytes) + 511) / 512 * 512;
    }
    [[nodiscard]] std::size_t sets_for(const Bench& bench) const {
      constexpr std::size_t beyond_caches = std::size_t{512} << 20U;
      constexpr std::size_t sets_max = 64;
      if (!bench.is_gpu_) return 1;
      return std::clamp<std::size_t>(beyond_caches / (memory_bytes_ + packed_bytes_), 1, sets_max);
    }

    Device& device_;
    bool is_on_host_;
    std::size_t memory_bytes_;
    std::size_t packed_bytes_;
    std::size_t sets_;
    DeviceBuffer memory_;
    DeviceBuffer packed_;
    DeviceBuffer other_;
    std::byte* host_;
  };

  /// Room for the longest list of units.
  static DevicePacker::Options packer_options(const Device& device) {
    DevicePacker::Options options;
    if (device.info().backend == DeviceBackend::cuda) options.cache_bytes = std::size_t{128} << 20U;
    return options;
  }
  [[nodiscard]] bool wants(const std::string& name) const {
    return options_.only.empty() ||
           std::find(options_.only.begin(), options_.only.end(), name) != options_.only.end();
  }
  static std::size_t size_of(const Case& what) { return static_cast<std::size_t>(what.plan->size); }
  static StreamRange all_of(const Case& what) { return {0, what.plan->size}; }

  void run_pack(const Case& what, const Buffers& buffers, std::size_t set, PackOptions options) {
    packer_.pack(*stream_, what.plan, 1, buffers.memory(set), all_of(what), buffers.packed(set),
                 options);
  }
  void run_unpack(const Case& what, const Buffers& buffers, std::size_t set,
                  PackOptions options = {}) {
    packer_.unpack(*stream_, what.plan, 1, all_of(what), buffers.packed_source(set),
                   buffers.memory(set), options);
  }

  /// The host's engine packs the same stream, and fills the same places from another one.
  void validate(const Case& what, const Buffers& buffers, PackOptions options) {
    std::vector<std::byte> memory(static_cast<std::size_t>(what.memory_bytes));
    std::mt19937_64 random(2);
    for (std::size_t i = 0; i + 8 <= memory.size(); i += 8) {
      const std::uint64_t value = random();
      std::memcpy(memory.data() + i, &value, 8);
    }
    std::vector<std::byte> expected(size_of(what));
    std::vector<std::byte> found(size_of(what));
    heddle::pack(*what.plan, 1, memory.data(), all_of(what), expected.data());
    for (std::size_t set = 0; set < buffers.sets(); ++set) {
      stream_->copy(buffers.elements(set), {memory.data(), nullptr}, memory.size());
      stream_->synchronize();
    }
    run_pack(what, buffers, 0, options);
    get(found, buffers.packed_source(0));
    if (found != expected) throw wrong("packed", what);

    for (std::byte& byte : expected) byte ^= std::byte{0x5a};
    put(buffers.packed(0), expected);
    run_unpack(what, buffers, 0, options);
    heddle::unpack(*what.plan, 1, all_of(what), expected.data(), memory.data());
    found.resize(memory.size());
    get(found, buffers.elements_source(0));
    if (found != memory) throw wrong("unpacked", what);
  }
  static Error wrong(const std::string& how, const Case& what) {
    return {ErrorCode::internal,
            fmt::format("{} {}, {}, is not what the host makes of it", how, what.name, what.shape)};
  }
  void get(std::vector<std::byte>& bytes, Source from) {
    if (from.device != nullptr) stream_->copy({bytes.data(), nullptr}, from, bytes.size());
    stream_->synchronize();
    if (from.device == nullptr) std::memcpy(bytes.data(), from.address, bytes.size());
  }
  void put(Destination to, const std::vector<std::byte>& bytes) {
    if (to.device != nullptr) stream_->copy(to, {bytes.data(), nullptr}, bytes.size());
    stream_->synchronize();
    if (to.device == nullptr) std::memcpy(to.address, bytes.data(), bytes.size());
  }

  /// Seconds of a call in a burst that the host has queued before the device comes to it.
  double burst(const Way& way, std::size_t sets, int calls) {
    const std::size_t half = delay_.bytes() / 2;
    constexpr int calls_within_a_delay = 20;
    for (int i = 0; i <= calls / calls_within_a_delay; ++i) {
      stream_->copy({delay_.address(), &device_}, {delay_.address() + half, &device_}, half);
    }
    stream_->record(*begin_);
    for (int i = 0; i < calls; ++i) way.call(static_cast<std::size_t>(i) % sets);
    stream_->record(*end_);
    end_->synchronize();
    return 1e-9 * static_cast<double>(end_->completed_ns() - begin_->completed_ns()) / calls;
  }

  void time_in_turns(const Case& what, const std::vector<Way*>& ways, std::size_t sets) {
    constexpr double bytes_of_burst = 2e9;
    const int calls =
        is_gpu_ ? std::clamp(static_cast<int>(bytes_of_burst / static_cast<double>(size_of(what))),
                             4, 100)
                : 2;
    for (Way* way : ways) static_cast<void>(burst(*way, sets, calls));  // warms up
    for (int r = 0; r < options_.repetitions; ++r) {
      for (std::size_t w = 0; w < ways.size(); ++w) {
        Way& way = *ways[(w + static_cast<std::size_t>(r)) % ways.size()];
        way.seconds.push_back(burst(way, sets, calls));
      }
    }
  }

  /// With units that are not on the device yet: from the call to the end.
  void first_times(const Case& what, const Buffers& buffers, const Way& copy) {
    Way first{"pack, first time", {}};
    for (std::size_t r = 0; r < copy.seconds.size(); ++r) {
      // Units are kept by the plan's identity.
      const Case anew{what.name, what.shape, std::make_shared<const PackPlan>(*what.plan),
                      what.memory_bytes};
      const std::int64_t begin = now_ns();
      run_pack(anew, buffers, 0, {});
      stream_->synchronize();
      first.seconds.push_back(1e-9 * static_cast<double>(now_ns() - begin));
    }
    report(what, first, copy);
  }

  static void report(const Case& what, const Way& way, const Way& peer) {
    std::vector<double> ratios;
    for (std::size_t r = 0; r < way.seconds.size(); ++r) {
      ratios.push_back(peer.seconds[r] / way.seconds[r]);
    }
    const auto rate = [&](const Way& one) {
      return 1e-9 * static_cast<double>(what.plan->size) / median(one.seconds);
    };
    fmt::print("{:<10} {:<34} {:<20} {:>10.1f} {:>10.1f} {:>9.1f} {:>9.1f} {:>7.3f}\n", what.name,
               what.shape, way.name, 1e6 * median(way.seconds),
               1e6 * *std::min_element(way.seconds.begin(), way.seconds.end()), rate(way),
               rate(peer), median(ratios));
    static_cast<void>(std::fflush(stdout));
  }

  Device& device_;
  const Options& options_;
  const bool is_gpu_;
  DevicePacker packer_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> begin_;
  std::unique_ptr<Event> end_;
  DeviceBuffer delay_;
};

int run(int argc, char** argv) {
  Options options;
  CLI::App app{"Packing and unpacking on a GPU, beside its own copies"};
  app.add_option("--backend", options.backend, "cuda, or emulated to try the program")
      ->check(CLI::IsMember({"cuda", "emulated"}));
  app.add_option("--sizes", options.sizes, "orders of the matrices")->check(CLI::Range(64, 20'000));
  app.add_option("--vector-counts", options.vector_counts, "numbers of blocks of the vectors");
  app.add_option("--block-bytes", options.block_bytes, "lengths of their blocks");
  app.add_option("--block-limits", options.block_limits, "most thread blocks; 0: no limit");
  app.add_option("--repetitions", options.repetitions, "timings of each")
      ->check(CLI::Range(1, 1000));
  app.add_option("--memory", options.memory_bytes, "bytes of the device to use");
  app.add_option("--only", options.only,
                 "submatrix, lower, transpose, indexed, vector, limits, far");
  CLI11_PARSE(app, argc, argv);

  const bool is_gpu = options.backend == "cuda";
  DeviceOptions wanted{is_gpu ? DeviceBackend::cuda : DeviceBackend::emulated, 1, {}, {}};
  wanted.cuda.memory_bytes = options.memory_bytes;
  wanted.emulated.memory_bytes = options.memory_bytes;
  const DeviceSet set = make_devices(wanted);
  fmt::print("{}\n", set.devices.front()->info().name);
  Bench bench(*set.devices.front(), options);
  Bench::heading();
  for (const std::int64_t n : options.sizes) {
    const std::int64_t even = (n + 65) / 2 * 2;  // rows at multiples of 16 bytes
    bench.parts(sub_matrix(n, even));
    bench.parts(sub_matrix(n, even + 1));
    bench.parts(triangle(n));
    bench.parts(transpose(n, even));
    bench.parts(indexed(n, n));
    bench.parts(indexed(n, 32));
  }
  for (const std::int64_t count : options.vector_counts) {
    for (const std::int64_t bytes : options.block_bytes) bench.vectors(count, bytes);
  }
  for (const std::int64_t n : options.sizes) {
    const std::int64_t even = n + 64;
    bench.far(sub_matrix(n, even));
    bench.far(sub_matrix(n, even + 1));
    bench.far(triangle(n));
    bench.far(transpose(n, even));
    bench.far(indexed(n, n));
  }
  const std::int64_t n = options.sizes.back() / 2;
  bench.limits(sub_matrix(n, n + 64));
  bench.limits(triangle(n));
  bench.limits(indexed(n, n));
  return 0;
}

}  // namespace
}  // namespace heddle

int main(int argc, char** argv) {
  try {
    return heddle::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "pack_gpu: {}\n", error.what());
    return 1;
  }
}
