"""Writes the seeds of the fuzz targets with the formats' own libraries: pip install ml_dtypes numpy safetensors.

The files are checked in; run this again only to add one. Elements count up from 0, so that tests can tell them.
"""

import pathlib

import ml_dtypes
import numpy
import safetensors.numpy

CORPUS = pathlib.Path(__file__).parent / "corpus"


def write_npy(name, array, version=(1, 0)):
    with open(CORPUS / "npy" / name, "wb") as file:
        numpy.lib.format.write_array(file, array, version=version)


def write_safetensors(name, tensors, metadata=None):
    (CORPUS / "safetensors" / name).write_bytes(safetensors.numpy.save(tensors, metadata))


def main():
    for folder in ("npy", "safetensors"):
        (CORPUS / folder).mkdir(parents=True, exist_ok=True)
    count = numpy.arange
    write_npy("f64.npy", count(6, dtype="<f8").reshape(2, 3))
    write_npy("f32.npy", count(6, dtype="<f4").reshape(2, 3))
    write_npy("f32_format2.npy", count(6, dtype="<f4").reshape(2, 3), version=(2, 0))
    write_npy("f16_vector.npy", count(5, dtype="<f2"))
    write_npy("f32_scalar.npy", count(1, dtype="<f4").reshape(()))
    write_npy("f32_cube.npy", count(8, dtype="<f4").reshape(2, 2, 2))
    write_npy("f32_empty.npy", count(0, dtype="<f4").reshape(0, 4))
    write_npy("bf16.npy", count(6, dtype=ml_dtypes.bfloat16).reshape(2, 3))
    write_npy("refused_fortran.npy", numpy.asfortranarray(count(6, dtype="<f4").reshape(2, 3)))
    write_npy("refused_integers.npy", count(6, dtype="<i4"))
    write_npy("refused_big_endian.npy", count(6, dtype=">f4"))
    write_npy("refused_structure.npy", numpy.zeros(2, dtype=[("a", "<f4"), ("b", "<i2")]))

    mlp = {"h.0.mlp.c_fc.weight": count(6, dtype="<f4").reshape(2, 3), "h.0.mlp.c_fc.bias": count(3, dtype="<f4"),
           "h.0.mlp.c_proj.weight": count(6, dtype="<f4").reshape(3, 2)}
    write_safetensors("mlp.safetensors", mlp, {"format": "pt"})
    write_safetensors("dtypes.safetensors", {
        "f64": count(2, dtype="<f8"), "f16": count(4, dtype="<f2").reshape(2, 2),
        "bf16": count(6, dtype=ml_dtypes.bfloat16).reshape(2, 3), "ids": count(2, dtype="<i8").reshape(1, 2),
        "mask": numpy.array([True, False, True]), "scalar": count(1, dtype="<f4").reshape(())})
    write_safetensors("no_elements.safetensors", {"a": count(0, dtype="<f4").reshape(0, 4)})
    write_safetensors("no_tensors.safetensors", {})


if __name__ == "__main__":
    main()
