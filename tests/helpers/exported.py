"""Modules exported to ONNX or to AOTInductor, and run on other batches than the one they were exported with."""

import os
import subprocess
import sys

import pytest
import torch
from torch.utils._pytree import tree_leaves, tree_map

quiet = pytest.mark.filterwarnings("ignore")
"""The exporters warn about their own code."""
ANY = torch.export.Dim.DYNAMIC


def dynamic(inputs):
    """Every tensor may have another number of rows; edges, [2, E], another number of columns."""
    return tree_map(lambda value: {int(is_edge_index(value)): ANY} if isinstance(value, torch.Tensor) else None, inputs)


def is_edge_index(value):
    return value.dim() == 2 and value.dtype == torch.long


def exported(module, inputs):
    return torch.export.export(module.eval(), inputs, dynamic_shapes=dynamic(inputs))


def is_standard(program):
    """Whether a program runs without this package."""
    return not [node for node in program.graph.nodes if "sopool" in str(node.target)]


def onnx_session(program):
    """The program as an ONNX file in memory, and a function that runs it on tensors."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    file = torch.onnx.export(program, dynamo=True, verbose=False).model_proto
    assert not has_races(file)
    session = runtime.InferenceSession(file.SerializeToString())
    names = [one.name for one in session.get_inputs()]
    known = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]

    def run(inputs):
        values = dict(zip(known, tree_leaves(inputs), strict=True))
        return [torch.from_numpy(out) for out in session.run(None, {name: values[name].numpy() for name in names})]

    return run


def has_races(file):
    """Whether a file has sums that the threads of ONNX Runtime 1.31 compute wrongly now and then."""
    return any(
        attribute.name == "reduction" and node.op_type == "ScatterND" and attribute.s != b"none"
        for node in file.graph.node
        for attribute in node.attribute
    )


WITHOUT_SOPOOL = """
import sys
import torch
sys.modules["sopool"] = None  # an import would fail
package, cases = sys.argv[1:]
run = torch._inductor.aoti_load_package(package)
for inputs, want in torch.load(cases):
    torch.testing.assert_close(run(*inputs), want, rtol=1e-5, atol=1e-5)
"""


def check_package(program, cases, folder):
    """Compile with AOTInductor, and compare in another process, which cannot import this package."""
    package = torch._inductor.aoti_compile_and_package(program, package_path=str(folder / "model.pt2"))
    torch.save(cases, folder / "cases.pt")
    command = [sys.executable, "-c", WITHOUT_SOPOOL, package, str(folder / "cases.pt")]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
