#pragma once

#include <cstdint>
#include <cuda_runtime.h>

#include "kernels/cuda/grid_exchange.cuh"

/// Combines the threads' sums of a panel's kernel over all CTAs, column by column.
/// A warp's lanes stand in down_count rows by across_count columns; a thread has a value for each
/// of its `slots` columns, that of position slot * across_count + across.
namespace heddle::kernel::cuda::meeting {

constexpr int warps = 8;
constexpr int threads = 32 * warps;
constexpr int across_count = 4;
constexpr int down_count = 8;
/// Most sets of values that one meeting combines.
constexpr int group = 4;
static_assert(warps == 2 * group, "half of the warps send values, the other half rows");

struct Sum {
  __device__ __forceinline__ double operator()(double a, double b) const { return a + b; }
};
/// Operands are absolute values.
struct Maximum {
  __device__ __forceinline__ double operator()(double a, double b) const { return fmax(a, b); }
};
struct Nothing {
  __device__ __forceinline__ void operator()() const {}
};

/// Where a thread stands.
struct Place {
  int lane = static_cast<int>(threadIdx.x) % 32;
  int warp = static_cast<int>(threadIdx.x) / 32;
  int across = lane % across_count;
  int down = lane / across_count;
  int cta = static_cast<int>(blockIdx.x);
  int ctas = static_cast<int>(gridDim.x);
};

/// What threads of a CTA share, by position. Arrays of two alternate by the epoch's parity: a warp
/// may be in the next epoch while another one still reads this one's.
template <int width>
struct Shared {
  double partial[2][warps][group][width];  ///< a warp's share
  double gathered[warps][group][width];    ///< what a warp has received
  double rows[2][group][width];            ///< rows that one CTA shows to all
};

template <int width>
class Meeting {
 public:
  static constexpr int slots = width / across_count;
  static_assert(slots == 4 || slots == 8, "add_down() leaves one position per lane, or per pair");
  using Rows = double[group][width];

  __device__ __forceinline__ Meeting(const Place& place, GridWords* words, std::uint32_t epoch,
                                     Shared<width>& shared)
      : place_(place), words_(words), epoch_(epoch), shared_(shared) {}

  /// What CTA 0 showed in the last meeting, and where it puts what it will show in the next one.
  [[nodiscard]] __device__ __forceinline__ const Rows& rows() const {
    return shared_.rows[epoch_ % 2];
  }
  [[nodiscard]] __device__ __forceinline__ Rows& rows_to_show() const {
    return shared_.rows[(epoch_ + 1) % 2];
  }

  /// All CTAs combine `count` sets of `values`, in the same order everywhere; the results are those
  /// of position lane % width. With `rows` everybody has the rows that CTA 0 showed afterwards.
  /// `meanwhile` runs while other CTAs are waited for.
  template <int count, bool rows, class Operation, class Meanwhile>
  __device__ __forceinline__ void meet(double (&values)[count][slots], double (&results)[count],
                                       Operation operation, const Meanwhile& meanwhile) {
    ++epoch_;
    double(&partial)[warps][group][width] = shared_.partial[epoch_ % 2];
    constexpr int lanes_per_position = 32 / width;
#pragma unroll
    for (int i = 0; i < count; ++i) {
      const double mine = add_down(values[i], operation);
      if (place_.down % lanes_per_position == 0) {
        partial[place_.warp][i][place_.down / lanes_per_position * across_count + place_.across] =
            mine;
      }
    }
    __syncthreads();
    if (place_.ctas == 1) {
#pragma unroll
      for (int i = 0; i < count; ++i) results[i] = over_warps(partial, i, operation);
      meanwhile();
      return;
    }
    double(&shown)[group][width] = shared_.rows[epoch_ % 2];
    const int row = place_.warp - group;
    if (place_.warp < count) {
      const double total = over_warps(partial, place_.warp, operation);
      if (place_.lane < width) send(slot(place_.cta, place_.warp), total, epoch_);
    } else if (rows && place_.cta == 0 && row >= 0 && place_.lane < width) {
      send(slot(place_.ctas, row), shown[row][place_.lane], epoch_);
    }
    meanwhile();
    gather(results, operation);
    if (place_.lane < width) {
#pragma unroll
      for (int i = 0; i < count; ++i) shared_.gathered[place_.warp][i][place_.lane] = results[i];
      if (rows && place_.cta != 0 && row >= 0) {
        const GridWords* from = slot(place_.ctas, row);
        shown[row][place_.lane] = receive(from, load_words(from), epoch_);
      }
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < count; ++i) results[i] = over_warps(shared_.gathered, i, operation);
  }

 private:
  static constexpr unsigned all = 0xffffffffU;

  /// Combines `values` over the lanes of equal `across`, halving their number with each step. With
  /// 8 slots a lane is left with the one whose position is the lane's number, with 4 slots pairs of
  /// lanes are left with the same one.
  template <class Operation>
  [[nodiscard]] __device__ __forceinline__ double add_down(double (&values)[slots],
                                                           Operation operation) const {
#pragma unroll
    for (int bit = down_count / 2, half = slots / 2; bit > 0; bit /= 2, half /= 2) {
      if (half == 0) {
        const double other = __shfl_xor_sync(all, values[0], bit * across_count);
        values[0] = operation(values[0], other);
        continue;
      }
      const bool upper = (place_.down & bit) != 0;
#pragma unroll
      for (int i = 0; i < slots / 2; ++i) {
        if (i >= half) break;
        const double keep = upper ? values[i + half] : values[i];
        const double give = upper ? values[i] : values[i + half];
        values[i] = operation(keep, __shfl_xor_sync(all, give, bit * across_count));
      }
    }
    return values[0];
  }

  /// Where a CTA sends its i-th values to; CTA 0's rows go where one more CTA would send.
  [[nodiscard]] __device__ __forceinline__ GridWords* slot(int cta, int i) const {
    const int index = static_cast<int>(epoch_ % 2) * (place_.ctas + 1) + cta;
    return words_ + (index * group + i) * width + place_.lane % width;
  }

  /// The warps' i-th values of this lane's position, combined.
  template <class Operation>
  [[nodiscard]] __device__ __forceinline__ double over_warps(
      const double (&values)[warps][group][width], int i, Operation operation) const {
    double total = values[0][i][place_.lane % width];
#pragma unroll
    for (int w = 1; w < warps; ++w) total = operation(total, values[w][i][place_.lane % width]);
    return total;
  }

  /// The CTAs' values, combined over every eighth CTA from this warp's number on.
  template <int count, class Operation>
  __device__ __forceinline__ void gather(double (&results)[count], Operation operation) const {
    constexpr int batch = 8 / count;  // CTAs of which loads are under way at a time
    // Neutral for both operations: of maxima all values are absolute.
#pragma unroll
    for (int i = 0; i < count; ++i) results[i] = 0;
    for (int first = place_.warp; first < place_.ctas; first += batch * warps) {
      GridWords words[batch][count];
#pragma unroll
      for (int b = 0; b < batch; ++b) {
        const int cta = min(first + b * warps, place_.ctas - 1);
#pragma unroll
        for (int i = 0; i < count; ++i) words[b][i] = load_words(slot(cta, i));
      }
#pragma unroll
      for (int b = 0; b < batch; ++b) {
        const int cta = first + b * warps;
        if (cta >= place_.ctas) break;
#pragma unroll
        for (int i = 0; i < count; ++i) {
          results[i] = operation(results[i], receive(slot(cta, i), words[b][i], epoch_));
        }
      }
    }
  }

  const Place place_;
  GridWords* const words_;
  std::uint32_t epoch_;
  Shared<width>& shared_;
};

}  // namespace heddle::kernel::cuda::meeting
