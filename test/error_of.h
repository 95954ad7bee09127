#pragma once
#include <gtest/gtest.h>

#include <string>

#include "flux/error.h"

namespace flux {

/// The message of the flux::Error of this kind that `act` throws. Fails the test, and returns nothing, if it throws
/// none, one of another kind, or one that is no single line.
template <class Act>
std::string error_of(ErrorKind kind, Act&& act) {
  try {
    act();
  } catch (Error const& error) {
    std::string const message = error.what();
    EXPECT_EQ(name(error.kind()), name(kind)) << message;
    EXPECT_EQ(message.find_first_of("\n\r\033"), message.npos) << message;
    return message;
  }
  ADD_FAILURE() << "no error";
  return {};
}

template <class Act>
std::string invalid(Act&& act) {
  return error_of(ErrorKind::kInvalid, act);
}

/// EXPECT_HAS(message, "part"): shows the message if it lacks the part.
#define EXPECT_HAS(message, part) EXPECT_PRED_FORMAT2(testing::IsSubstring, part, message)

}  // namespace flux
