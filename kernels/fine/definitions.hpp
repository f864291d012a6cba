#pragma once

#include <cstdint>

#include "kernels/fine/fine_tasks.hpp"

/// The fine-grain forms of the kernels of cholesky.hpp and qr.hpp, by their names.
namespace heddle::kernel::fine {

void potrf(const KernelCase& what, std::int64_t small, FineTasks& tasks);
void trsm(const KernelCase& what, std::int64_t small, FineTasks& tasks);
void gsmm(const KernelCase& what, std::int64_t small, FineTasks& tasks);
void syrk(const KernelCase& what, std::int64_t small, FineTasks& tasks);

void geqrt(const KernelCase& what, std::int64_t small, FineTasks& tasks);
void unmqr(const KernelCase& what, std::int64_t small, FineTasks& tasks);
void tsqrt(const KernelCase& what, std::int64_t small, FineTasks& tasks);
void tsmqr(const KernelCase& what, std::int64_t small, FineTasks& tasks);
void ttqrt(const KernelCase& what, std::int64_t small, FineTasks& tasks);
void ttmqr(const KernelCase& what, std::int64_t small, FineTasks& tasks);
void copy_rows(const KernelCase& what, std::int64_t small, FineTasks& tasks);
void copy_triangle(const KernelCase& what, std::int64_t small, FineTasks& tasks);

}  // namespace heddle::kernel::fine
