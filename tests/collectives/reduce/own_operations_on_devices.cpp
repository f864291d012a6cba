#include "node-runtime/collectives/reduce/own_operations.hpp"
#include "tests/collectives/reduce/own_functors.hpp"

namespace heddle::test {
namespace {

ReduceProperties properties(const char* name, Scalar scalar) {
  ReduceProperties made;
  made.name = name;
  made.scalar = scalar;
  return made;
}

}  // namespace

ReduceOperation matrix_product() {
  return make_reduce_operation<Matrix2>(MatrixProduct{},
                                        properties("matrix product", Scalar::float64));
}

ReduceOperation then_modulo(std::uint64_t modulus) {
  return make_reduce_operation<AffineMap>(ThenModulo{modulus},
                                          properties("then modulo", Scalar::uint32));
}

ReduceOperation first_that_is() {
  return make_reduce_operation<ThreeBytes>(FirstThatIs{},
                                           properties("first that is", Scalar::byte));
}

ReduceOperation integer_product() {
  return make_reduce_operation<Matrix3>(IntegerProduct{},
                                        properties("integer product", Scalar::int64));
}

}  // namespace heddle::test
