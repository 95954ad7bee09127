#include "kernel/tensor_map.h"

#include <string>

#include "kernel/driver.h"

namespace flux {

CUtensorMap tensor_map(MatrixView const& v) {
  static auto const encode = driver_function<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  CUtensorMap map;
  uint64_t const pitch = v.stride * 2;
  cuuint64_t const size[] = {static_cast<cuuint64_t>(v.columns), static_cast<cuuint64_t>(v.rows),
                             static_cast<cuuint64_t>(v.slots)};
  cuuint64_t const pitches[] = {pitch, static_cast<cuuint64_t>(v.slot_stride) * 2};
  cuuint32_t const box[] = {static_cast<cuuint32_t>(v.box_columns), static_cast<cuuint32_t>(v.box_rows), 1};
  cuuint32_t const step[] = {1, 1, 1};
  CUresult const result =
      encode(&map, v.dtype == DType::kBF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
             v.slots > 0 ? 3 : 2, const_cast<void*>(v.data), size, pitches, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
             v.swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
             CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw Error(ErrorKind::kDevice, "the CUDA driver refused a tensor map of " + std::to_string(v.rows) + " x " +
                                        std::to_string(v.columns) + " elements, rows " + std::to_string(v.stride) +
                                        " apart (error " + std::to_string(result) + ")");
  return map;
}

}  // namespace flux
