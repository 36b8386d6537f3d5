// FlashAttention-2, as config.h says (`Element`, `HEAD`, `CAUSAL`, …); queries and keys by rows of all heads. The library's own
// launch functions want PyTorch: `build` fills the structures of parameters and launches the same kernels with the same shapes.
#include "config.h"
#include "flash_fwd_launch_template.h"
#include "flash_bwd_launch_template.h"

using namespace FLASH_NAMESPACE;

static void fill(Flash_fwd_params& p, void** at, int b, int h, int groups, int m, int n) {
  p.q_ptr = at[0], p.k_ptr = at[1], p.v_ptr = at[2], p.o_ptr = at[3], p.softmax_lse_ptr = at[4];
  p.q_row_stride = p.o_row_stride = h * HEAD, p.k_row_stride = p.v_row_stride = groups * HEAD;
  p.q_head_stride = p.k_head_stride = p.v_head_stride = p.o_head_stride = HEAD;
  p.q_batch_stride = p.o_batch_stride = m * h * HEAD, p.k_batch_stride = p.v_batch_stride = n * groups * HEAD;
  p.b = b, p.h = h, p.h_k = groups, p.h_h_k_ratio = h / groups, p.d = p.d_rounded = HEAD;
  p.seqlen_q = m, p.seqlen_k = n, p.seqlen_q_rounded = (m + 127) / 128 * 128, p.seqlen_k_rounded = (n + 127) / 128 * 128;
  p.total_q = b * m, p.is_causal = CAUSAL, p.is_bf16 = std::is_same<Element, cutlass::bfloat16_t>::value;
  p.window_size_left = -1, p.window_size_right = CAUSAL ? 0 : -1;
  p.scale_softmax = 0.125f, p.scale_softmax_log2 = p.scale_softmax * M_LOG2E;
  p.p_dropout = DROPOUT ? 0.8f : 1, p.p_dropout_in_uint8_t = DROPOUT ? 204 : 255, p.rp_dropout = 1 / p.p_dropout;
  p.scale_softmax_rp_dropout = p.rp_dropout * p.scale_softmax;
  p.philox_args = {0x123456789abcdefull, 77}, p.rng_state = (uint64_t*)at[5];
}

#ifdef BACKWARD
// Arrays: Q, K, V, O, the logarithms of the sums, the generator's state, dO, dQ, dK, dV, their sums, sums of dO O.
extern "C" int build(void** at, int b, int h, int groups, int m, int n) {
  Flash_bwd_params p{};
  fill(p, at, b, h, groups, m, n);
  p.do_ptr = at[6], p.dq_ptr = at[7], p.dk_ptr = at[8], p.dv_ptr = at[9], p.dq_accum_ptr = at[10], p.dsoftmax_sum = at[11];
  p.do_row_stride = p.dq_row_stride = p.q_row_stride, p.dk_row_stride = p.dv_row_stride = p.q_row_stride;
  p.do_head_stride = p.dq_head_stride = p.dk_head_stride = p.dv_head_stride = HEAD;
  p.do_batch_stride = p.dq_batch_stride = p.q_batch_stride, p.dk_batch_stride = p.dv_batch_stride = n * h * HEAD;
  using Traits = TRAITS;
  auto first = &flash_bwd_dot_do_o_kernel<true, Traits>;
  first<<<dim3((m + Traits::kBlockM - 1) / Traits::kBlockM, b, h), Traits::kNThreads>>>(p);
  auto main = &flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Traits, DROPOUT, CAUSAL, false, false, false, true, false>;
  main<<<dim3((n + Traits::kBlockN - 1) / Traits::kBlockN, b, h), Traits::kNThreads, Traits::kSmemSize1colblock>>>(p);
  auto last = &flash_bwd_convert_dq_kernel<Traits>;
  last<<<dim3((m + Traits::kBlockM - 1) / Traits::kBlockM, b, h), Traits::kNThreads, Traits::kSmemdQSize>>>(p, 1);
  return 0;
}
#else
// Arrays: Q, K, V, O, the logarithms of the sums, the generator's state.
extern "C" int build(void** at, int b, int h, int groups, int m, int n) {
  Flash_fwd_params p{};
  fill(p, at, b, h, groups, m, n);
  using Traits = TRAITS;
  auto kernel = &flash_fwd_kernel<Traits, DROPOUT, CAUSAL, false, false, false, true, false, false>;
  kernel<<<dim3((m + Traits::kBlockM - 1) / Traits::kBlockM, b, h), Traits::kNThreads, Traits::kSmemSize>>>(p);
  return 0;
}
#endif
