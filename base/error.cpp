#include "base/error.hpp"

#include "base/printable.hpp"

namespace heddle {

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::internal:
      return 1;
    case ErrorCode::usage:
      return 2;
    case ErrorCode::numerical:
      return 3;
    case ErrorCode::communication:
      return 4;
    case ErrorCode::interrupted:
      return 130;
  }
  return 1;
}

Error::Error(ErrorCode code, const std::string& message)
    : std::runtime_error(printable(message, LineBreaks::kept)), code_(code) {}

}  // namespace heddle
