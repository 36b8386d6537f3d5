"""Computations of tinygrad whose PTX is test data: each takes empty tensors of the shapes and types listed and returns others.

`tests/data/ptx/tinygrad/regenerate.py` compiles them without a GPU.
"""

from tinygrad import dtypes

COMPUTATIONS = []


def computation(**inputs):
    """Register a function with the shapes and types of its inputs."""

    def register(function):
        COMPUTATIONS.append((function, {name: (shape, getattr(dtypes, kind)) for name, (shape, kind) in inputs.items()}))
        return function

    return register


@computation(a=((64, 64), "half"), b=((64, 64), "half"))
def product_of_halves(a, b):
    """A product on tensor cores."""
    return (a.matmul(b, dtype=dtypes.float),)


@computation(a=((40, 24), "float"), b=((24, 56), "float"))
def product_of_floats(a, b):
    return (a @ b,)


@computation(x=((16, 200), "float"))
def softmax(x):
    return (x.softmax(1),)


@computation(x=((12, 96), "half"), w=((96,), "half"))
def rms_norm(x, w):
    f = x.float()
    return ((f * (f.square().mean(1, keepdim=True) + 1e-5).rsqrt()).half() * w,)


@computation(q=((1, 2, 32, 16), "float"), k=((1, 2, 32, 16), "float"), v=((1, 2, 32, 16), "float"))
def attention(q, k, v):
    return (q.scaled_dot_product_attention(k, v, is_causal=True),)


@computation(x=((2, 3, 12, 12), "float"), w=((4, 3, 3, 3), "float"))
def convolution(x, w):
    return (x.conv2d(w, padding=1).relu().max_pool2d(),)


@computation(x=((3, 64), "int"))
def running_sums(x):
    return (x.cumsum(1), x.cummax(1)[0], x.flip(1).cumsum(1))


@computation(x=((4, 32), "float"))
def sorted_rows(x):
    values, places = x.sort(1)
    return (values, places)


@computation(x=((100,), "double"))
def doubles(x):
    """Without functions and quotients: tinygrad writes `ex2.approx.f64`, `rcp.approx.f64` …, which ptxas refuses."""
    return (x.abs() + x * x, x.maximum(0) * x - x.floor(), x.cumsum(0))


@computation(x=((100,), "int"), y=((100,), "int"), z=((100,), "long"))
def integers(x, y, z):
    return (x // y, x % y, (x << 3) ^ (y >> 1), z // y.cast(dtypes.long), (x < y).where(x, y), (z & 255).cast(dtypes.uchar))


@computation(x=((90,), "float"))
def conversions(x):
    return (
        x.half(),
        x.cast(dtypes.char),
        x.cast(dtypes.short).cast(dtypes.float),
        x.cast(dtypes.long),
        (x > 0),
        x.bitcast(dtypes.uint),
        x.abs().cast(dtypes.uchar),
    )


@computation(x=((50, 8), "float"), index=((20,), "int"))
def rows_taken(x, index):
    return (x[index], x.argmax(1), x.T.contiguous())


@computation(x=((6, 40), "float"), labels=((6,), "int"))
def cross_entropy(x, labels):
    return (x.sparse_categorical_crossentropy(labels),)


@computation(x=((300,), "half"))
def sums_of_halves(x):
    return (x.sum(), x.max(), x.float().std())
