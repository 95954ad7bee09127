#pragma once
// Two models on three clusters: what the FLUX paper measured, and what is simulated.

namespace flux::cli {

void print_model_table(bool json);

}  // namespace flux::cli
