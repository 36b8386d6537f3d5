// The selective scan of mamba-ssm, forward, of halves, with B and C that vary and a gate. The library's own launch function wants
// PyTorch: `build` fills the structure of parameters and launches the same kernel with the same shape.
#include "selective_scan_fwd_kernel.cuh"

// Arrays: A, B, C, D, u, delta, its biases, results, the states at the ends of chunks, z, results times the gate.
extern "C" int build(void** at, int batch, int dim, int length, int states, int groups) {
  constexpr int threads = 32, items = 16;
  SSMParamsBase p{};
  p.batch = batch, p.dim = dim, p.seqlen = length, p.dstate = states, p.n_groups = groups, p.dim_ngroups_ratio = dim / groups;
  p.n_chunks = (length + threads * items - 1) / (threads * items), p.is_variable_B = p.is_variable_C = p.delta_softplus = true;
  p.A_d_stride = states, p.A_dstate_stride = 1;
  p.B_batch_stride = p.C_batch_stride = groups * states * length, p.B_group_stride = p.C_group_stride = states * length;
  p.B_dstate_stride = p.C_dstate_stride = length;
  p.u_batch_stride = p.delta_batch_stride = p.z_batch_stride = p.out_batch_stride = p.out_z_batch_stride = dim * length;
  p.u_d_stride = p.delta_d_stride = p.z_d_stride = p.out_d_stride = p.out_z_d_stride = length;
  p.A_ptr = at[0], p.B_ptr = at[1], p.C_ptr = at[2], p.D_ptr = at[3], p.u_ptr = at[4], p.delta_ptr = at[5];
  p.delta_bias_ptr = at[6], p.out_ptr = at[7], p.x_ptr = at[8], p.z_ptr = at[9], p.out_z_ptr = at[10];
  using Traits = Selective_Scan_fwd_kernel_traits<threads, items, 1, false, true, true, true, at::Half, WEIGHT>;
  auto kernel = &selective_scan_fwd_kernel<Traits>;
  kernel<<<dim3(batch, dim), threads, Traits::kSmemSize + MAX_DSTATE * sizeof(typename Traits::scan_t)>>>(p);
  return 0;
}
