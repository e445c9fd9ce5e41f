/* Included once for each precision, with REAL and NAME. `linear` and, for whole blocks, `width` and `weighted` are
   constants wherever these are inlined. */

#define INLINE static inline __attribute__((always_inline))

/* The rows that a loop reads and writes do not overlap. GCC would check that for each edge, in spite of `restrict`. */
#if defined(__GNUC__) && !defined(__clang__)
#define APART _Pragma("GCC ivdep")
#else
#define APART
#endif

INLINE REAL NAME(sigma)(REAL v, int linear) { return linear ? v : NAME(tanh)(v); }

/* the derivatives of sigma as functions of s = sigma(v) */
INLINE REAL NAME(slope)(REAL s, int linear) { return linear ? 1 : 1 - s * s; }
INLINE REAL NAME(curvature)(REAL s, int linear) { return linear ? 0 : -2 * s * (1 - s * s); }

/* sigma(v)/v, 1 where v is tiny and s may have lost digits */
INLINE REAL NAME(chord)(REAL v, REAL s, int linear) { return linear || v * v < (REAL)1e-36 ? 1 : s / v; }

/* the integral of sigma from 0 to v; for tanh |v| - log(1 + |s|), and -log(1 - s^2)/2 where that would cancel */
INLINE REAL NAME(primitive)(REAL v, REAL s, int linear) {
  if (linear) return (REAL)0.5 * v * v;
  const int near = v * v < (REAL)0.25;
  const REAL size = v < 0 ? -v : v;
  const REAL log = NAME(log1p)(near ? -s * s : (s < 0 ? -s : s));
  return near ? (REAL)-0.5 * log : size - log;
}

INLINE void NAME(fetch)(const REAL *y, const REAL *t, const REAL *out, integer row, integer channels, integer first,
                        integer width) {
  for (integer c = 0; c < width; c += LINE / (integer)sizeof(REAL)) {
    __builtin_prefetch(y + row * channels + first + c, 0);
    if (t != y) __builtin_prefetch(t + row * channels + first + c, 0);
    __builtin_prefetch(out + row * channels + first + c, 1);
  }
}

INLINE void NAME(clear)(REAL *out, integer nodes, integer channels, integer first, integer width) {
  for (integer i = 0; i < nodes; i++)
    for (integer c = 0; c < width; c++) out[i * channels + first + c] = 0;
}

/* What one edge moves from its tail to its head: w times sigma(v) (order 0), sigma'(v) dt (1), sigma''(v) dt du (2) or
   sigma(v)/v dt (3), v and dt the differences along the edge. */
INLINE void NAME(move)(int order, int linear, integer width, REAL w, const REAL *restrict yi, const REAL *restrict yj,
                       const REAL *restrict ti, const REAL *restrict tj, const REAL *restrict ui,
                       const REAL *restrict uj, REAL *restrict here, REAL *restrict there) {
  APART
  for (integer c = 0; c < width; c++) {
    const REAL v = yj[c] - yi[c], s = NAME(sigma)(v, linear);
    REAL q;
    if (order == 0)
      q = w * s;
    else if (order == 1)
      q = w * NAME(slope)(s, linear) * (tj[c] - ti[c]);
    else if (order == 2)
      q = w * NAME(curvature)(s, linear) * (tj[c] - ti[c]) * (uj[c] - ui[c]);
    else
      q = w * NAME(chord)(v, s, linear) * (tj[c] - ti[c]);
    there[c] += q;
    here[c] -= q;
  }
}

INLINE void NAME(scatter)(int order, int linear, int weighted, const REAL *y, const REAL *t, const REAL *u,
                          const integer *ptr, const integer *head, const REAL *weight, REAL *out, integer nodes,
                          integer channels, integer first, integer width) {
  const integer edges = ptr[nodes];
  REAL here[BLOCK];
  NAME(clear)(out, nodes, channels, first, width);
  for (integer i = 0; i < nodes; i++) {
    if (ptr[i] == ptr[i + 1]) continue;
    const integer a = i * channels + first;
    for (integer c = 0; c < width; c++) here[c] = 0;
    for (integer e = ptr[i]; e < ptr[i + 1]; e++) {
      const integer b = head[e] * channels + first;
      NAME(fetch)(y, order ? t : y, out, head[e + AHEAD < edges ? e + AHEAD : edges - 1], channels, first, width);
      const REAL w = weighted ? weight[e] : 1;
      NAME(move)(order, linear, width, w, y + a, y + b, t + a, t + b, u + a, u + b, here, out + b);
    }
    for (integer c = 0; c < width; c++) out[a + c] += here[c];
  }
}

/* Block by block; whole blocks with loops of known length, and no product where all weights are 1. That holds for the
   last block too: a compiler fuses a product with a sum where it can, so every copy of a loop must have the same
   products, or results would depend on where threads divide the channels. */
#define PART(size, has_weights, call)                                                                                  \
  {                                                                                                                    \
    const integer width = size, weighted = has_weights;                                                                \
    call;                                                                                                              \
  }

#define BLOCKS(call)                                                                                                   \
  for (integer first = begin; first < end; first += BLOCK) {                                                           \
    const integer rest = end - first;                                                                                  \
    if (rest >= BLOCK && weight) PART(BLOCK, 1, call)                                                                  \
    else if (rest >= BLOCK) PART(BLOCK, 0, call)                                                                       \
    else if (weight) PART(rest, 1, call)                                                                               \
    else PART(rest, 0, call)                                                                                           \
  }

#define SCATTER(name, order, linear)                                                                                   \
  void NAME(name)(const REAL *y, const REAL *t, const REAL *u, const integer *ptr, const integer *head,                \
                  const REAL *weight, REAL *out, integer nodes, integer channels, integer begin, integer end) {        \
    BLOCKS(NAME(scatter)(order, linear, weighted, y, t, u, ptr, head, weight, out, nodes, channels, first, width))     \
  }

SCATTER(flux_tanh, 0, 0)
SCATTER(flux_identity, 0, 1)
SCATTER(flux_jvp_tanh, 1, 0)
SCATTER(flux_jvp_identity, 1, 1)
SCATTER(flux_curve_tanh, 2, 0)
SCATTER(flux_curve_identity, 2, 1)
SCATTER(flux_secant_tanh, 3, 0)
SCATTER(flux_secant_identity, 3, 1)

/* The flux, with the sums of w sigma, w sigma^2 and w (integral of sigma, if asked for) per graph and channel: a node's
   own sums in REAL, the sums over nodes in double. */
INLINE void NAME(moments)(int linear, int integral, int weighted, const REAL *y, const integer *ptr,
                          const integer *head, const REAL *weight, const integer *batch, REAL *out, double *sums,
                          integer nodes, integer channels, integer graphs, integer first, integer width) {
  const integer edges = ptr[nodes];
  REAL here[BLOCK], m1[BLOCK], m2[BLOCK];
  NAME(clear)(out, nodes, channels, first, width);
  for (integer k = 0; k < 3 * graphs; k++)
    for (integer c = 0; c < width; c++) sums[k * channels + first + c] = 0;
  for (integer i = 0; i < nodes; i++) {
    if (ptr[i] == ptr[i + 1]) continue;
    const integer a = i * channels + first;
    for (integer c = 0; c < width; c++) here[c] = m1[c] = m2[c] = 0;
    for (integer e = ptr[i]; e < ptr[i + 1]; e++) {
      NAME(fetch)(y, y, out, head[e + AHEAD < edges ? e + AHEAD : edges - 1], channels, first, width);
      const REAL *restrict yi = y + a, *restrict yj = y + head[e] * channels + first;
      REAL *restrict there = out + head[e] * channels + first;
      const REAL w = weighted ? weight[e] : 1;
      APART
      for (integer c = 0; c < width; c++) {
        const REAL v = yj[c] - yi[c], s = NAME(sigma)(v, linear), q = w * s;
        there[c] += q;
        here[c] -= q;
        m1[c] += q * s;
        if (integral) m2[c] += w * NAME(primitive)(v, s, linear);
      }
    }
    double *row = sums + (batch ? batch[i] : 0) * channels + first;
    for (integer c = 0; c < width; c++) {
      out[a + c] += here[c];
      row[c] -= here[c]; /* what left the node */
      row[c + graphs * channels] += m1[c];
      if (integral) row[c + 2 * graphs * channels] += m2[c];
    }
  }
}

#define MOMENTS(name, linear, integral)                                                                                \
  void NAME(name)(const REAL *y, const integer *ptr, const integer *head, const REAL *weight, const integer *batch,    \
                  REAL *out, double *sums, integer nodes, integer channels, integer graphs, integer begin,             \
                  integer end) {                                                                                       \
    BLOCKS(NAME(moments)(linear, integral, weighted, y, ptr, head, weight, batch, out, sums, nodes, channels, graphs,  \
                         first, width))                                                                                \
  }

MOMENTS(moments_tanh, 0, 1)
MOMENTS(moments_identity, 1, 1)
MOMENTS(spread_tanh, 0, 0)
MOMENTS(spread_identity, 1, 0)

/* An edge moves (dt + c0 + 2 c1 sigma) sigma' + c2 sigma, c the cotangents of the moments of its graph. Without
   `integral` there is no c2. */
INLINE void NAME(flux_vjp)(int linear, int integral, int weighted, const REAL *y, const REAL *t,
                           const REAL *cotangent, const integer *ptr, const integer *head, const REAL *weight,
                           const integer *batch, REAL *out, integer nodes, integer channels, integer graphs,
                           integer first, integer width) {
  const integer edges = ptr[nodes];
  REAL here[BLOCK];
  NAME(clear)(out, nodes, channels, first, width);
  for (integer i = 0; i < nodes; i++) {
    if (ptr[i] == ptr[i + 1]) continue;
    const integer a = i * channels + first;
    const REAL *restrict c0 = cotangent + (batch ? batch[i] : 0) * channels + first;
    const REAL *restrict c1 = c0 + graphs * channels, *restrict c2 = integral ? c1 + graphs * channels : c1;
    for (integer c = 0; c < width; c++) here[c] = 0;
    for (integer e = ptr[i]; e < ptr[i + 1]; e++) {
      NAME(fetch)(y, t, out, head[e + AHEAD < edges ? e + AHEAD : edges - 1], channels, first, width);
      const integer b = head[e] * channels + first;
      const REAL *restrict yi = y + a, *restrict yj = y + b, *restrict ti = t + a, *restrict tj = t + b;
      REAL *restrict there = out + b;
      const REAL w = weighted ? weight[e] : 1;
      APART
      for (integer c = 0; c < width; c++) {
        const REAL s = NAME(sigma)(yj[c] - yi[c], linear);
        const REAL pushed = (tj[c] - ti[c] + c0[c] + c1[c] * (s + s)) * NAME(slope)(s, linear);
        const REAL q = w * (integral ? pushed + c2[c] * s : pushed);
        there[c] += q;
        here[c] -= q;
      }
    }
    for (integer c = 0; c < width; c++) out[a + c] += here[c];
  }
}

#define FLUX_VJP(name, linear, integral)                                                                               \
  void NAME(name)(const REAL *y, const REAL *t, const REAL *cotangent, const integer *ptr, const integer *head,        \
                  const REAL *weight, const integer *batch, REAL *out, integer nodes, integer channels,                \
                  integer graphs, integer begin, integer end) {                                                        \
    BLOCKS(NAME(flux_vjp)(linear, integral, weighted, y, t, cotangent, ptr, head, weight, batch, out, nodes, channels, \
                          graphs, first, width))                                                                       \
  }

FLUX_VJP(flux_vjp_tanh, 0, 1)
FLUX_VJP(flux_vjp_identity, 1, 1)
FLUX_VJP(spread_vjp_tanh, 0, 0)
FLUX_VJP(spread_vjp_identity, 1, 0)

#undef INLINE
#undef APART
#undef PART
#undef BLOCKS
#undef SCATTER
#undef MOMENTS
#undef FLUX_VJP
