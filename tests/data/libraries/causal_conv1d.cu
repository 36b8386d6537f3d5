// Causal convolution along sequences of causal-conv1d, forward, of bfloats, by its own launch functions: channels are rows (0) or
// last in memory (1).
#include "kernels.cuh"

// Arrays: x, weights, biases, results, and for which = 1 the numbers of the sequences that places belong to.
extern "C" int build(void** at, int which, int batch, int dim, int length) {
  ConvParamsBase p{};
  p.batch = batch, p.dim = dim, p.seqlen = length, p.width = 4, p.silu_activation = true;
  p.x_ptr = at[0], p.weight_ptr = at[1], p.bias_ptr = at[2], p.out_ptr = at[3];
  p.x_batch_stride = p.out_batch_stride = dim * length;
  p.x_c_stride = p.out_c_stride = which ? 1 : length, p.x_l_stride = p.out_l_stride = which ? dim : 1;
  p.weight_c_stride = 4, p.weight_width_stride = 1;
  if (which) {
    p.seq_idx_ptr = at[4];
    causal_conv1d_channellast_fwd_launch<128, 4, at::BFloat16, float>(p, 0);
  } else {
    causal_conv1d_fwd_launch<128, 4, at::BFloat16, float>(p, 0);
  }
  return 0;
}
