#include "base/process_watch.hpp"

#include <csignal>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace heddle {
namespace {

/// A child that lives until it is killed.
pid_t start_child() {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  return child;
}

TEST(ProcessWatch, TellsThatAProcessHasEndedBeforeItsParentAsks) {
  const pid_t child = start_child();
  const ProcessWatch watch(child);
  EXPECT_EQ(watch.process(), child);
  EXPECT_FALSE(watch.has_ended());
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(watch.has_ended());
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(watch.has_ended());
}

TEST(ProcessWatch, TellsAStoppedProcessFromOneThatRunsOrHasEnded) {
  const pid_t child = start_child();
  const ProcessWatch watch(child);
  EXPECT_FALSE(watch.is_stopped());
  int status = 0;
  ::kill(child, SIGSTOP);
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(watch.is_stopped());
  ::kill(child, SIGCONT);
  ASSERT_EQ(::waitpid(child, &status, WCONTINUED), child);
  EXPECT_FALSE(watch.is_stopped());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(watch.is_stopped());
}

TEST(ProcessWatch, OfANumberThatNobodyHasSaysSo) {
  const pid_t child = start_child();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(ProcessWatch(child).has_ended());
}

TEST(ProcessWatch, CountsAZombieAsEndedWithoutADescriptorOfTheProcess) {
  const pid_t child = start_child();
  EXPECT_FALSE(ProcessWatch::has_ended(child));
  ::kill(child, SIGSTOP);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, WUNTRACED), child);
  EXPECT_FALSE(ProcessWatch::has_ended(child));
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(::kill(child, 0), 0);  // the zombie still has the id
  EXPECT_TRUE(ProcessWatch::has_ended(child));
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(ProcessWatch::has_ended(child));
}

}  // namespace
}  // namespace heddle
