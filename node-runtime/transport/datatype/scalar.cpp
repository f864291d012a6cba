#include "node-runtime/transport/datatype/scalar.hpp"

#include <array>
#include <cstddef>

namespace heddle {
namespace {

struct Properties {
  std::string_view name;
  std::int64_t size;
  std::int64_t alignment;
};

/// By the enumerator's value.
constexpr std::array<Properties, 13> properties{{{"byte", 1, 1},
                                                 {"int8", 1, 1},
                                                 {"int16", 2, 2},
                                                 {"int32", 4, 4},
                                                 {"int64", 8, 8},
                                                 {"uint8", 1, 1},
                                                 {"uint16", 2, 2},
                                                 {"uint32", 4, 4},
                                                 {"uint64", 8, 8},
                                                 {"float32", 4, 4},
                                                 {"float64", 8, 8},
                                                 {"complex_float32", 8, 4},
                                                 {"complex_float64", 16, 8}}};

const Properties& properties_of(Scalar scalar) {
  return properties.at(static_cast<std::size_t>(scalar));
}

}  // namespace

std::int64_t size_of(Scalar scalar) {
  return properties_of(scalar).size;
}

std::int64_t alignment_of(Scalar scalar) {
  return properties_of(scalar).alignment;
}

std::string_view name_of(Scalar scalar) {
  return properties_of(scalar).name;
}

}  // namespace heddle
