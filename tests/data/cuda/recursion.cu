// Recursion of functions with local variables: each call has its own, and outer calls' are written through pointers.
struct Item {
    int v[5];
    int *leaves;
};

__device__ __noinline__ int descend(const int *data, int low, int high, int *outer, Item item) {
    int mine[4] = {low, high, 0, 0};
    item.v[low & 3] += 1;
    if (high - low <= 1) {
        outer[low & 1] += data[low] * 3 + item.v[low & 3];
        *item.leaves += 1;
        return data[low];
    }
    int middle = (low + high) / 2;
    int a = descend(data, low, middle, mine + 2, item);
    int b = descend(data, middle, high, mine + 2, item);
    outer[high & 1] += mine[2] - mine[3] + mine[(low ^ high) & 1];
    return a * 2 + b;
}

extern "C" __global__ void tree(const int *data, int *out) {
    int t = threadIdx.x + blockIdx.x * blockDim.x;
    int leaves = 0, top[2] = {0, 0};
    Item item = {{1, 2, 3, 4, 5}, &leaves};
    int root = descend(data, 0, 1 + t % 13, top, item);
    out[4 * t] = root;
    out[4 * t + 1] = top[0];
    out[4 * t + 2] = top[1];
    out[4 * t + 3] = leaves;
}

__device__ __noinline__ void sort(int *a, int n) {
    if (n < 2) return;
    int sorted[64];
    int pivot = a[n / 2], less = 0, equal = 0;
    for (int i = 0; i < n; i++)
        if (a[i] < pivot) sorted[less++] = a[i];
    for (int i = 0; i < n; i++)
        if (a[i] == pivot) sorted[less + equal++] = a[i];
    int at = less + equal;
    for (int i = 0; i < n; i++)
        if (a[i] > pivot) sorted[at++] = a[i];
    for (int i = 0; i < n; i++) a[i] = sorted[i];
    sort(a, less);
    sort(a + less + equal, n - less - equal);
}

extern "C" __global__ void quicksort(int *data, int each) { sort(data + each * (threadIdx.x + blockIdx.x * blockDim.x), each); }

__device__ __noinline__ int odd(int n, int *trace);

__device__ __noinline__ int even(int n, int *trace) {
    int local[3] = {n, n * 2, 1};
    trace[n % 3] += n;
    return n == 0 ? 1 : odd(n - 1, local) + local[n % 3];
}

__device__ __noinline__ int odd(int n, int *trace) {
    int local[5] = {n, 7, n * 5, 2, 9};
    trace[n % 3] -= n;
    return n == 0 ? 0 : even(n - 1, local + 1) + local[1 + n % 3];
}

typedef int (*Step)(int, int *);
__device__ Step steps[2] = {even, odd};

extern "C" __global__ void parity(int *out, int by_table) {
    int t = threadIdx.x, trace[3] = {0, 0, 0};
    out[4 * t] = by_table ? steps[t & 1](t % 7, trace) : even(t % 7, trace);
    for (int i = 0; i < 3; i++) out[4 * t + 1 + i] = trace[i];
}
