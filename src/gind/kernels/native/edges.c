/* The loops of the fused operators: one node after another, its edges, a block of channels.

   Plain C that compilers turn into vector code: no data-dependent branches in the inner loops (selects only), no calls
   into libm, `restrict` pointers, and nothing that reorders sums, so results do not depend on the vector width.
   A call does the channels first ... last - 1, so threads share out the channels and need no locks. */

#include <stdint.h>

typedef int64_t integer;

enum { BLOCK = 128, LINE = 64, AHEAD = 4 }; /* channels, bytes, edges: about as long as memory takes to answer */

/* Where the fits of tanh end: x^2 in single, |x| in double precision. Variables: in `limit < x ? limit : x`, which keeps
   a NaN, compilers see the machine's minimum, but with a constant limit GCC turns the comparison round and does not. */
float LIMIT32 = 81, ONE = 1;
double LIMIT64 = 20;

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

#define REAL float
#define NAME(name) JOIN(name, float32)
#include "scalar32.h"
#include "loops.h"
#undef REAL
#undef NAME

#define REAL double
#define NAME(name) JOIN(name, float64)
#include "scalar64.h"
#include "loops.h"
