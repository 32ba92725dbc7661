/* CUDA C in front of the kernels, which are written in OpenCL C: the part of it that they use. All functions are those of the
 * device: the compiler's option is -default-device. */
typedef unsigned int uint;
#define __kernel extern "C" __global__
#define __global
#define __local __shared__
#define LOCAL
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define barrier(fence) __syncthreads()
#define REAL4 Real4
#define REAL8 Real8

inline uint get_local_id(uint at) { return at == 0 ? threadIdx.x : threadIdx.y; }
inline uint get_local_size(uint at) { return at == 0 ? blockDim.x : blockDim.y; }
inline uint get_global_id(uint at) {
    return at == 0 ? blockIdx.x * blockDim.x + threadIdx.x : blockIdx.y * blockDim.y + threadIdx.y;
}

struct Real4 {
    REAL s0, s1, s2, s3;
};

struct Real8 {
    REAL s0, s1, s2, s3, s4, s5, s6, s7;
    Real8(REAL x) : s0(x), s1(x), s2(x), s3(x), s4(x), s5(x), s6(x), s7(x) {}
    Real8(REAL a, REAL b, REAL c, REAL d, REAL e, REAL f, REAL g, REAL h)
        : s0(a), s1(b), s2(c), s3(d), s4(e), s5(f), s6(g), s7(h) {}
};

#define BY_ELEMENT(op)                                                                                              \
    inline Real8 operator op(Real8 x, Real8 y) {                                                                    \
        return Real8(x.s0 op y.s0, x.s1 op y.s1, x.s2 op y.s2, x.s3 op y.s3, x.s4 op y.s4, x.s5 op y.s5,            \
                     x.s6 op y.s6, x.s7 op y.s7);                                                                   \
    }                                                                                                               \
    inline Real8 &operator op##=(Real8 &x, Real8 y) { return x = x op y; }
BY_ELEMENT(+)
BY_ELEMENT(-)
BY_ELEMENT(*)
BY_ELEMENT(/)

inline Real4 vload4(uint at, const REAL *x) {
    x += 4 * at;
    Real4 loaded = {x[0], x[1], x[2], x[3]};
    return loaded;
}
inline Real8 vload8(uint at, const REAL *x) {
    x += 8 * at;
    return Real8(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
}
inline void vstore8(Real8 from, uint at, REAL *x) {
    x += 8 * at;
    x[0] = from.s0;
    x[1] = from.s1;
    x[2] = from.s2;
    x[3] = from.s3;
    x[4] = from.s4;
    x[5] = from.s5;
    x[6] = from.s6;
    x[7] = from.s7;
}
