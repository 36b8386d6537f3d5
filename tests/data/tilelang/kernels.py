"""TileLang kernels whose PTX is test data: what tests/support/programs/tilelang_kernels.py judges."""

import tilelang.language as T


def product(M, N, K, BM, BN, BK, stages):
    @T.prim_func
    def product(a: T.Tensor((M, K), "float16"), b: T.Tensor((K, N), "float16"), c: T.Tensor((M, N), "float16")):
        with T.Kernel(T.ceildiv(N, BN), T.ceildiv(M, BM), threads=128) as (bx, by):
            tile_a = T.alloc_shared((BM, BK), "float16")
            tile_b = T.alloc_shared((BK, BN), "float16")
            acc = T.alloc_fragment((BM, BN), "float32")
            T.clear(acc)
            for k in T.Pipelined(T.ceildiv(K, BK), num_stages=stages):
                T.copy(a[by * BM, k * BK], tile_a)
                T.copy(b[k * BK, bx * BN], tile_b)
                T.gemm(tile_a, tile_b, acc)
            T.copy(acc, c[by * BM, bx * BN])

    return product


def attention(batch, heads, length, D, BM, BN, causal, stages):
    shape, scale = (batch, length, heads, D), 1.44269504 / D**0.5

    @T.prim_func
    def attention(
        q: T.Tensor(shape, "float16"),
        k: T.Tensor(shape, "float16"),
        v: T.Tensor(shape, "float16"),
        o: T.Tensor(shape, "float16"),
    ):
        with T.Kernel(T.ceildiv(length, BM), heads, batch, threads=128) as (bx, by, bz):
            tile_q = T.alloc_shared((BM, D), "float16")
            tile_k = T.alloc_shared((BN, D), "float16")
            tile_v = T.alloc_shared((BN, D), "float16")
            scores = T.alloc_fragment((BM, BN), "float32")
            chances = T.alloc_fragment((BM, BN), "float16")
            acc = T.alloc_fragment((BM, D), "float32")
            most = T.alloc_fragment((BM,), "float32")
            before = T.alloc_fragment((BM,), "float32")
            shrink = T.alloc_fragment((BM,), "float32")
            sums = T.alloc_fragment((BM,), "float32")
            total = T.alloc_fragment((BM,), "float32")
            T.copy(q[bz, bx * BM : (bx + 1) * BM, by, :], tile_q)
            T.fill(acc, 0)
            T.fill(total, 0)
            T.fill(most, -T.infinity("float32"))
            steps = length // BN
            for j in T.Pipelined(steps, num_stages=stages):
                T.copy(k[bz, j * BN : (j + 1) * BN, by, :], tile_k)
                if causal:
                    for m, n in T.Parallel(BM, BN):
                        scores[m, n] = T.if_then_else(bx * BM + m >= j * BN + n, 0, -T.infinity("float32"))
                else:
                    T.clear(scores)
                T.gemm(tile_q, tile_k, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)
                T.copy(most, before)
                T.fill(most, -T.infinity("float32"))
                T.reduce_max(scores, most, dim=1, clear=False)
                for m in T.Parallel(BM):
                    most[m] = T.max(most[m], before[m])
                    shrink[m] = T.exp2(before[m] * scale - most[m] * scale)
                for m, n in T.Parallel(BM, BN):
                    scores[m, n] = T.exp2(scores[m, n] * scale - most[m] * scale)
                T.reduce_sum(scores, sums, dim=1)
                for m in T.Parallel(BM):
                    total[m] = total[m] * shrink[m] + sums[m]
                T.copy(scores, chances)
                for m, n in T.Parallel(BM, D):
                    acc[m, n] *= shrink[m]
                T.copy(v[bz, j * BN : (j + 1) * BN, by, :], tile_v)
                T.gemm(chances, tile_v, acc, policy=T.GemmWarpPolicy.FullRow)
            for m, n in T.Parallel(BM, D):
                acc[m, n] /= total[m]
            T.copy(acc, o[bz, bx * BM : (bx + 1) * BM, by, :])

    return attention


def rms_norm(rows, columns, BR):
    @T.prim_func
    def rms_norm(
        x: T.Tensor((rows, columns), "float32"), w: T.Tensor((columns,), "float32"), y: T.Tensor((rows, columns), "float32")
    ):
        with T.Kernel(T.ceildiv(rows, BR), threads=128) as bx:
            tile = T.alloc_shared((BR, columns), "float32")
            mine = T.alloc_fragment((BR, columns), "float32")
            squares = T.alloc_fragment((BR, columns), "float32")
            mean = T.alloc_fragment((BR,), "float32")
            T.copy(x[bx * BR : (bx + 1) * BR, :], tile)
            T.copy(tile, mine)
            for i, j in T.Parallel(BR, columns):
                squares[i, j] = mine[i, j] * mine[i, j]
            T.reduce_sum(squares, mean, dim=1)
            for i in T.Parallel(BR):
                mean[i] = T.rsqrt(mean[i] / columns + 1e-6)
            for i, j in T.Parallel(BR, columns):
                mine[i, j] = mine[i, j] * mean[i] * w[j]
            T.copy(mine, y[bx * BR : (bx + 1) * BR, :])

    return rms_norm


def linear_attention(length, D, chunk):
    @T.prim_func
    def linear_attention(
        q: T.Tensor((length, D), "float16"),
        k: T.Tensor((length, D), "float16"),
        v: T.Tensor((length, D), "float16"),
        o: T.Tensor((length, D), "float32"),
    ):
        with T.Kernel(1, threads=128) as _:
            tile_q = T.alloc_shared((chunk, D), "float16")
            tile_k = T.alloc_shared((chunk, D), "float16")
            tile_v = T.alloc_shared((chunk, D), "float16")
            scores = T.alloc_fragment((chunk, chunk), "float32")
            scores_shared = T.alloc_shared((chunk, chunk), "float16")
            state = T.alloc_fragment((D, D), "float32")
            state_shared = T.alloc_shared((D, D), "float16")
            acc = T.alloc_fragment((chunk, D), "float32")
            T.clear(state)
            for i in T.Pipelined(T.ceildiv(length, chunk), num_stages=2):
                T.copy(q[i * chunk, 0], tile_q)
                T.copy(k[i * chunk, 0], tile_k)
                T.copy(v[i * chunk, 0], tile_v)
                T.gemm(tile_q, tile_k, scores, transpose_B=True, clear_accum=True)
                for m, n in T.Parallel(chunk, chunk):
                    scores[m, n] = T.if_then_else(m >= n, scores[m, n], 0)
                T.copy(scores, scores_shared)
                T.copy(state, state_shared)
                T.gemm(scores_shared, tile_v, acc, clear_accum=True)
                T.gemm(tile_q, state_shared, acc)
                T.gemm(tile_k, tile_v, state, transpose_A=True)
                T.copy(acc, o[i * chunk, 0])

    return linear_attention


BOTH = ("sm_80", "sm_90a")
KERNELS = [
    (product, (96, 128, 256, 64, 64, 32, 3), BOTH),
    (attention, (1, 2, 192, 64, 64, 64, True, 2), (*BOTH, "sm_120a")),
    (linear_attention, (256, 64, 64), BOTH),
    (rms_norm, (24, 256, 8), ("sm_80",)),
]
