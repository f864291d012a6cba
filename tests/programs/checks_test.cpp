#include "tests/programs/checks.hpp"

#include <algorithm>
#include <gtest/gtest.h>

#include "tests/programs/program_case.hpp"
#include "tests/support/seeds.hpp"

/// Whether the checks find what they are for: programs with a mistake built in.
namespace heddle::simulation {
namespace {}  // namespace
}  // namespace heddle::simulation
