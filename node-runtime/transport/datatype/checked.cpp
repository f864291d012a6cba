#include "node-runtime/transport/datatype/checked.hpp"

#include <fmt/core.h>

#include "base/error.hpp"

namespace heddle::datatype {

void overflowed(std::int64_t left, char operation, std::int64_t right) {
  throw Error(ErrorCode::usage,
              fmt::format("a datatype's sizes and offsets must fit 64 bits, and {} {} {} does not; "
                          "use smaller counts, strides or displacements",
                          left, operation, right));
}

}  // namespace heddle::datatype
