/* tanh x = x P(x^2)/Q(x^2), the minimax fit of degree 13/6 that Eigen uses; beyond the limit tanh rounds to +-1.
   NaN goes in, NaN comes out. */
static inline float tanh_float32(float x) {
  const float limit = LIMIT32, one = ONE, minus = -limit, less = -one;
  float c = limit < x ? limit : x;
  c = minus > c ? minus : c;
  const float s = c * c;
  float p = -2.76076847742355e-16f;
  p = p * s + 2.00018790482477e-13f;
  p = p * s + -8.60467152213735e-11f;
  p = p * s + 5.12229709037114e-08f;
  p = p * s + 1.48572235717979e-05f;
  p = p * s + 6.37261928875436e-04f;
  p = p * s + 4.89352455891786e-03f;
  float q = 1.19825839466702e-06f;
  q = q * s + 1.18534705686654e-04f;
  q = q * s + 2.26843463243900e-03f;
  q = q * s + 4.89352518554385e-03f;
  float t = c * p / q;
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
