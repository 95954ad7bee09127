#pragma once
// A probe that cannot make a call says which, and ends.
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                              \
  do {                                                                                           \
    auto const result = (call);                                                                  \
    if (static_cast<int>(result) != 0) {                                                         \
      std::printf("%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, static_cast<int>(result)); \
      std::exit(2);                                                                              \
    }                                                                                            \
  } while (0)
