"""Compile tests/data/tinygrad/kernels.py to PTX without a GPU; tinygrad 0.14 made what is committed.

python tests/data/ptx/tinygrad/regenerate.py, from the repository root. tinygrad's device of tests (NULL) compiles and runs
nothing; here it records what would be launched: `launches.json` says for each computation how large each buffer is, which
hold the inputs and the outputs, and the kernels with grid, block and buffers (number and offset) in their order.
"""

import importlib.util
import json
import lzma
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ARCHS = ("sm_80", "sm_90", "sm_120")


def record(arch):
    """Compile and record everything for one architecture; tinygrad reads it from the environment."""
    os.environ.update(DEV=f"NULL:PTX:{arch}", PARALLEL="0", CACHELEVEL="0")
    from tinygrad import Tensor  # noqa: PLC0415  # after the environment is set
    from tinygrad.runtime import ops_null  # noqa: PLC0415
    from tinygrad.runtime.support import compiler_cuda  # noqa: PLC0415

    compiler_cuda.NVPTXCompiler = compiler_cuda.PTXCompiler
    log, sizes = [], []

    def allocate(_, size, options):
        sizes.append(size)
        return len(sizes) - 1, 0

    def remember(self, device, obj):
        self.device, self.name, self.profile_key, self.text = device.device, obj.name, obj.profile_key, obj.lib

    def note(self, *buffers, global_size=(1, 1, 1), local_size=(1, 1, 1), vals=(), wait=False, **_):
        log.append((self.text.decode(), list(map(int, global_size)), list(map(int, local_size)), buffers, list(vals)))
        return 1e-3

    null = ops_null.NullAllocator
    null._alloc, null._offset = allocate, lambda _, buffer, size, offset: (buffer[0], buffer[1] + offset)
    null._copyin = lambda _, to, data: log.append((to, bytes(data).hex()))
    ops_null.NullProgram.__init__, ops_null.NullProgram.__call__ = remember, note

    spec = importlib.util.spec_from_file_location("kernels", HERE.parents[1] / "tinygrad" / "kernels.py")
    kernels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernels)
    out = {}
    for function, inputs in kernels.COMPUTATIONS:
        log.clear()
        sizes.clear()
        tensors = {name: Tensor.empty(*shape, dtype=kind).realize() for name, (shape, kind) in inputs.items()}
        for t in tensors.values():
            t.uop.buffer.ensure_allocated()
        results = [r.contiguous() for r in function(**tensors)]
        Tensor.realize(*results)
        modules, steps = {}, []
        for entry in log:
            assert len(entry) == 5, f"{function.__name__}: {entry[:1]}"
            text, grid, block, buffers, values = entry
            called = re.search(r"\.entry (\w+)", text)[1]
            name = next(n for n in (called, *(f"{called}_{i}" for i in range(2, 99))) if modules.get(n, text) == text)
            modules[name] = text
            steps.append([name, grid, block, [list(b) for b in buffers], values])
        head = re.match(r"(\.\w+ \S+\n)+", next(iter(modules.values())))[0]
        text = head + "".join(re.sub(r"(\.entry )\w+", rf"\g<1>{n}", t.removeprefix(head)) + "\n" for n, t in modules.items())
        (HERE / f"{function.__name__}.{arch}.ptx.xz").write_bytes(lzma.compress(text.encode()))
        of = {n: list(t.uop.buffer.ensure_allocated()._buf) for n, t in tensors.items()}
        to = [list(t.uop.buffer.ensure_allocated()._buf) for t in results]
        out[function.__name__] = {"sizes": list(sizes), "inputs": of, "outputs": to, "steps": steps}
    return out


def main():
    """Record in a fresh process for each architecture."""
    if len(sys.argv) > 1:
        print(json.dumps(record(sys.argv[1])))
        return
    each = [
        json.loads(subprocess.run([sys.executable, __file__, arch], check=True, capture_output=True, text=True).stdout)
        for arch in ARCHS
    ]
    assert all(found == each[0] for found in each), "launches differ between architectures"
    lines = [f"{json.dumps(name)}: {json.dumps(launches)}" for name, launches in each[0].items()]
    (HERE.parents[1] / "tinygrad" / "launches.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
