#include "node-runtime/transport/p2p/request.hpp"

#include <gtest/gtest.h>
#include <string>
#include <thread>

namespace heddle::p2p {

TEST(RequestState, wakes_who_waits_before_the_end) {
  RequestState state(true);
  std::thread waiting([&] { EXPECT_EQ(state.wait().bytes, 24); });
  state.complete({NodeId{1}, 7, 24, false, Path::put});
  waiting.join();
  EXPECT_EQ(state.wait().path, Path::put);
}

TEST(RequestState, throws_what_made_it_fail) {
  RequestState state(false);
  state.fail(Error(ErrorCode::communication, "node 3 is lost"));
  EXPECT_TRUE(state.is_done());
  EXPECT_THROW(static_cast<void>(state.wait()), Error);
}

TEST(RequestState, begun_at_once_does_not_let_anybody_wait_for_ever) {
  const RequestState state(false);
  EXPECT_DEATH(static_cast<void>(state.wait()), "begun at once and is under way");
}

}  // namespace heddle::p2p
