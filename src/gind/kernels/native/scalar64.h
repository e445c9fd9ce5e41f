/* tanh u = u + u^3 P(u^2)/Q(u^2) for small u (Cephes), then five times tanh 2u = 2ab/(a^2 + b^2): all terms are
   positive, so the relative error does not grow. NaN goes in, NaN comes out. */
static inline double tanh_float64(double x) {
  const double limit = LIMIT64, minus = -limit;
  double c = limit < x ? limit : x;
  c = minus > c ? minus : c;
  const double u = c * 0.03125, s = u * u;
  const double p = (-9.64399179425052238628e-1 * s + -9.92877231001918586564e1) * s + -1.61468768441708447952e3;
  const double q = ((s + 1.12811678491632931402e2) * s + 2.23548839060100448583e3) * s + 4.84406305325125486048e3;
  double a = u + u * s * p / q, b = 1.0 + a * a;
  a = a + a;
  for (int k = 0; k < 4; k++) {
    const double twice = 2 * a * b;
    b = a * a + b * b;
    a = twice;
  }
  return a / b;
}

/* log(1 + a) as in single precision, with seventeen terms */
static inline double log1p_float64(double a) {
  const double r = a / (2.0 + a), s = r * r;
  double p = 2.0 / 33;
  p = p * s + 2.0 / 31;
  p = p * s + 2.0 / 29;
  p = p * s + 2.0 / 27;
  p = p * s + 2.0 / 25;
  p = p * s + 2.0 / 23;
  p = p * s + 2.0 / 21;
  p = p * s + 2.0 / 19;
  p = p * s + 2.0 / 17;
  p = p * s + 2.0 / 15;
  p = p * s + 2.0 / 13;
  p = p * s + 2.0 / 11;
  p = p * s + 2.0 / 9;
  p = p * s + 2.0 / 7;
  p = p * s + 2.0 / 5;
  p = p * s + 2.0 / 3;
  p = p * s + 2.0;
  return r * p;
}
