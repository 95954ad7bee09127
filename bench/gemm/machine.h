#pragma once
#include "report/result_file.h"

namespace flux::bench {

/// What a result file says of this machine's GPU 0.
MachineFacts gpu_facts();

}  // namespace flux::bench
