#pragma once
// What is known of this machine.
#include <string>

#include "report/result_file.h"

namespace flux::cli {

std::string cpu_name();
MachineFacts machine_facts();

}  // namespace flux::cli
