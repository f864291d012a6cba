#include "node-runtime/collectives/reduce/built_in.hpp"

#include <array>
#include <string_view>

#include "node-runtime/collectives/reduce/pair_loop.hpp"

namespace heddle::reduction {
namespace {

template <class Operation, class T>
void loop_base(const void* /*functor*/, void* output, const void* a, const void* b,
               std::int64_t count) {
  loop_over_pairs<T>(Operation{}, output, a, b, count);
}

#if defined(__x86_64__)
template <class Operation, class T>
[[gnu::target("avx2")]] void loop_avx2(const void* /*functor*/, void* output, const void* a,
                                       const void* b, std::int64_t count) {
  loop_over_pairs<T>(Operation{}, output, a, b, count);
}
#endif

template <class Operation, class T>
PairLoop loop_of() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return loop_avx2<Operation, T>;
#endif
  return loop_base<Operation, T>;
}

bool is_integer(Scalar scalar) {
  return scalar != Scalar::float32 && scalar != Scalar::float64 &&
         scalar != Scalar::complex_float32 && scalar != Scalar::complex_float64;
}

template <class Operation>
Definition defined(BuiltIn operation, std::string_view name) {
  Definition made;
  made.name = name;
  made.scalars_per_element = is_with_index<Operation> ? 2 : 1;
  for (std::size_t s = 0; s < scalar_count; ++s) {
    const auto scalar = static_cast<Scalar>(s);
    with_element<Operation>(scalar, [&]<class T>(ElementType<T>) {
      const bool rounds = is_arithmetic<Operation> && !is_integer(scalar);
      made.forms.at(s) = {loop_of<Operation, T>(), built_in_cuda_form(operation, scalar), !rounds};
    });
  }
  return made;
}

}  // namespace

const Definition& built_in(BuiltIn operation) {
  static const std::array<Definition, built_in_count> all{
      defined<Sum>(BuiltIn::sum, "sum"),
      defined<Product>(BuiltIn::product, "product"),
      defined<Minimum>(BuiltIn::minimum, "minimum"),
      defined<Maximum>(BuiltIn::maximum, "maximum"),
      defined<MinimumWithIndex>(BuiltIn::minimum_with_index, "minimum_with_index"),
      defined<MaximumWithIndex>(BuiltIn::maximum_with_index, "maximum_with_index"),
      defined<BitAnd>(BuiltIn::bit_and, "bit_and"),
      defined<BitOr>(BuiltIn::bit_or, "bit_or"),
      defined<BitXor>(BuiltIn::bit_xor, "bit_xor"),
      defined<LogicalAnd>(BuiltIn::logical_and, "logical_and"),
      defined<LogicalOr>(BuiltIn::logical_or, "logical_or"),
      defined<LogicalXor>(BuiltIn::logical_xor, "logical_xor")};
  return all[static_cast<std::size_t>(operation)];
}

}  // namespace heddle::reduction
