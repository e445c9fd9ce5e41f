/* tanh x = x P(s)/Q(s), s = x^2, a minimax fit on |x| <= 9 with P(0) = Q(0). Beyond, s stays at 81, and the value,
   which grows with x, is held at +-1. NaN goes in, NaN comes out. P and Q have one degree, and Q the leading coefficient
   1: that takes fewer products than other fits, and many processors have as much room for additions besides. */
static inline float tanh_float32(float x) {
  const float limit = LIMIT32, one = ONE, less = -one;
  const float square = x * x, s = limit < square ? limit : square;
  float p = 0.017172927f;
  p = p * s + 26.5015907f;
  p = p * s + 4495.04541f;
  p = p * s + 172069.328f;
  p = p * s + 1285920.38f;
  float q = s + 422.506042f;
  q = q * s + 33275.7305f;
  q = q * s + 600709.25f;
  q = q * s + 1285920.38f;
  float t = x * p / q;
  t = one < t ? one : t;
  return less > t ? less : t;
}

/* log(1 + a) = 2 artanh r = sum 2/(2k + 1) r^(2k + 1) with r = a/(2 + a), |r| <= 1/3 */
static inline float log1p_float32(float a) {
  const float r = a / (2.0f + a), s = r * r;
  float p = 2.0f / 15;
  p = p * s + 2.0f / 13;
  p = p * s + 2.0f / 11;
  p = p * s + 2.0f / 9;
  p = p * s + 2.0f / 7;
  p = p * s + 2.0f / 5;
  p = p * s + 2.0f / 3;
  p = p * s + 2.0f;
  return r * p;
}
