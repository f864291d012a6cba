#include <gtest/gtest.h>
#include <string>

#include "base/error.hpp"
#include "kernels/cuda/libraries.hpp"
#include "kernels/cuda/loading.hpp"

/// Loading needs the CUDA toolkit, but no GPU.
namespace heddle::kernel::cuda {
namespace {

class SomeLibrary : public LoadedLibrary {
 public:
  explicit SomeLibrary(const char* name) : LoadedLibrary(name) {}
  void look_up(const char* symbol) const { static_cast<void>(entry(symbol)); }
};

std::string failure_of(const auto& what) {
  try {
    what();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::usage);
    return error.what();
  }
  return "no failure";
}

}  // namespace

TEST(CudaLibraries, HaveAllEntryPointsInTheVersionThatHeddleWasBuiltWith) {
  EXPECT_EQ(cublas_lt().version() / 10000, std::size_t{CUBLAS_VER_MAJOR});
  EXPECT_STRNE(cublas().status_text(CUBLAS_STATUS_SUCCESS),
               cublas().status_text(CUBLAS_STATUS_ALLOC_FAILED));
  EXPECT_NE(cusolver().dpotrf, nullptr);
  EXPECT_EQ(&cublas(), &cublas());
  EXPECT_EQ(why_not_loaded(), "");
}

TEST(CudaLibraries, SayWhatIsMissingAndWhatToDo) {
  const std::string absent = failure_of([] { SomeLibrary library("libheddle-has-none.so.1"); });
  EXPECT_NE(absent.find("libheddle-has-none.so.1, with which GPUs compute"), std::string::npos)
      << absent;
  EXPECT_NE(absent.find("LD_LIBRARY_PATH"), std::string::npos) << absent;

  const std::string other = failure_of([] { SomeLibrary("libm.so.6").look_up("cublasCreate_v2"); });
  EXPECT_NE(other.find("libm.so.6 has no cublasCreate_v2"), std::string::npos) << other;
}

}  // namespace heddle::kernel::cuda
