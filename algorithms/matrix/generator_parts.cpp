#include "algorithms/matrix/generator_parts.hpp"

#include <cmath>
#include <utility>

namespace heddle {

GeometricSequence::GeometricSequence(std::int64_t count, double condition)
    : steps_(count - 1), condition_(condition) {
  for (double& root : roots_) root = condition = std::sqrt(condition);
}

double GeometricSequence::operator()(std::int64_t k) const {
  if (k == 0) return 1.0;
  if (k == steps_) return 1.0 / condition_;
  double power = 1.0;
  std::int64_t rest = k;
  for (const double root : roots_) {  // one binary digit of k / steps at a time
    rest *= 2;
    if (rest < steps_) continue;
    rest -= steps_;
    power *= root;
  }
  return 1.0 / power;
}

std::vector<double> shuffled_sequence(std::int64_t count, double condition, std::uint64_t seed) {
  const GeometricSequence sequence(count, condition);
  std::vector<double> values;
  for (std::int64_t k = 0; k < count; ++k) values.push_back(sequence(k));
  for (std::size_t k = values.size(); k > 1; --k) {  // Fisher and Yates
    std::swap(values[k - 1], values[random_bits(seed, kernel::RandomStream::order, k) % k]);
  }
  return values;
}

std::uint64_t random_bits(std::uint64_t seed, kernel::RandomStream stream, std::uint64_t index) {
  const auto bits =
      kernel::Philox4x32::generate(kernel::counter_of(index, 0, stream), kernel::key_of(seed));
  return (std::uint64_t{bits[1]} << 32) | bits[0];
}

}  // namespace heddle
