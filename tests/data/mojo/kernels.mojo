# Kernels in Mojo; `main` prints their PTX, `//==== architecture/kernel` in front of each.
from max.gpu import thread_idx, block_idx, block_dim, lane_id
from max.gpu.host import get_gpu_target
from max.gpu.host.compile import _compile_code
from max.gpu.primitives.warp import sum as warp_sum
from std.math import exp

comptime Floats = UnsafePointer[Float32, MutAnyOrigin]
comptime Ints = UnsafePointer[Int32, MutAnyOrigin]


def exponential(a: Floats, b: Floats, c: Floats, n: Int):
    var i = Int(block_idx.x * block_dim.x + thread_idx.x)
    if i < n:
        c[i] = exp(a[i]) + b[i] * 2


def collatz(a: Ints, c: Ints, n: Int):
    var i = Int(block_idx.x * block_dim.x + thread_idx.x)
    if i < n:
        var v = Int64(a[i])
        var steps = Int32(0)
        while v > 1:
            if v % 2 == 0:
                v = v // 2
            else:
                v = v * 3 + 1
            steps += 1
        c[i] = steps * 100 + a[i] // -7


def sums(a: Floats, c: Floats, n: Int):
    var i = Int(block_idx.x * block_dim.x + thread_idx.x)
    var v = a[i] if i < n else Float32(0)
    var s = warp_sum(v)
    if lane_id() == 0:
        c[i // 32] = s


def main():
    print("//==== sm_80/exponential")
    print(_compile_code[exponential, target=get_gpu_target["sm_80"]()]().asm)
    print("//==== sm_80/collatz")
    print(_compile_code[collatz, target=get_gpu_target["sm_80"]()]().asm)
    print("//==== sm_80/sums")
    print(_compile_code[sums, target=get_gpu_target["sm_80"]()]().asm)
    print("//==== sm_90a/exponential")
    print(_compile_code[exponential, target=get_gpu_target["sm_90a"]()]().asm)
    print("//==== sm_90a/collatz")
    print(_compile_code[collatz, target=get_gpu_target["sm_90a"]()]().asm)
    print("//==== sm_90a/sums")
    print(_compile_code[sums, target=get_gpu_target["sm_90a"]()]().asm)
