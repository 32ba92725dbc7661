/* The kernels of the tiled QR factorisation on a device: reflectors are applied to a tile. Matrices are column-major: element
 * (r, c) of x is at x[x_at + r + c * x_ld]. REAL is the type of the elements, REAL8 its vector.
 *
 * Reflectors are grouped in blocks of INNER: the product of a block's reflectors is I - V * inverse(T) * transpose(V), with T
 * upper triangular. A group of INNER work items has 8 columns of C, and keeps W := inverse(transpose(T)) * transpose(V) * C,
 * of INNER rows, in its own memory. A work item computes a row of W, and then 8 rows of C - V * W. */
#define INNER 32
#define COLUMNS 8

/* Adds the products of a column v with up to 8 columns of C to a row of W. */
void add_products(__global const REAL *v, __global const REAL *c, uint c_ld, uint rows, uint columns, LOCAL REAL *w) {
    uint r = 0;
    if (columns == COLUMNS) {
        REAL8 u0 = 0, u1 = 0, u2 = 0, u3 = 0, u4 = 0, u5 = 0, u6 = 0, u7 = 0;
        for (; r + 8 <= rows; r += 8) {
            REAL8 x = vload8(0, v + r);
            u0 += x * vload8(0, c + r);
            u1 += x * vload8(0, c + r + c_ld);
            u2 += x * vload8(0, c + r + 2 * c_ld);
            u3 += x * vload8(0, c + r + 3 * c_ld);
            u4 += x * vload8(0, c + r + 4 * c_ld);
            u5 += x * vload8(0, c + r + 5 * c_ld);
            u6 += x * vload8(0, c + r + 6 * c_ld);
            u7 += x * vload8(0, c + r + 7 * c_ld);
        }
        w[0] += u0.s0 + u0.s1 + u0.s2 + u0.s3 + u0.s4 + u0.s5 + u0.s6 + u0.s7;
        w[1] += u1.s0 + u1.s1 + u1.s2 + u1.s3 + u1.s4 + u1.s5 + u1.s6 + u1.s7;
        w[2] += u2.s0 + u2.s1 + u2.s2 + u2.s3 + u2.s4 + u2.s5 + u2.s6 + u2.s7;
        w[3] += u3.s0 + u3.s1 + u3.s2 + u3.s3 + u3.s4 + u3.s5 + u3.s6 + u3.s7;
        w[4] += u4.s0 + u4.s1 + u4.s2 + u4.s3 + u4.s4 + u4.s5 + u4.s6 + u4.s7;
        w[5] += u5.s0 + u5.s1 + u5.s2 + u5.s3 + u5.s4 + u5.s5 + u5.s6 + u5.s7;
        w[6] += u6.s0 + u6.s1 + u6.s2 + u6.s3 + u6.s4 + u6.s5 + u6.s6 + u6.s7;
        w[7] += u7.s0 + u7.s1 + u7.s2 + u7.s3 + u7.s4 + u7.s5 + u7.s6 + u7.s7;
    }
    for (uint column = 0; column < columns; column++) {
        REAL sum = 0;
        for (uint row = r; row < rows; row++) {
            sum += v[row] * c[row + column * c_ld];
        }
        w[column] += sum;
    }
}

/* W := inverse(transpose(T)) * W, by a group; d becomes the reciprocals of the diagonal of T. An infinite element there, of a
 * reflector that changes nothing, makes a row of zeros. */
void solve(__global const REAL *t, uint t_ld, uint width, LOCAL REAL *w, LOCAL REAL *d) {
    uint p = get_local_id(0);
    if (p < width) d[p] = 1 / t[p + p * t_ld];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint q = 0; q < width; q++) {
        if (p > q && p < width) {
            REAL factor = t[q + p * t_ld] * d[q];
            vstore8(vload8(p, w) - vload8(q, w) * factor, p, w);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (p < width) vstore8(vload8(p, w) * d[p], p, w);
    barrier(CLK_LOCAL_MEM_FENCE);
}

/* C := C - V * W for the rows of a work item: 8, and every 8 * INNER rows further on. */
void subtract_products(__global const REAL *v, uint v_ld, __global REAL *c, uint c_ld, uint rows, uint columns,
                       uint width, LOCAL const REAL *w) {
    for (uint r = get_local_id(0) * 8; r < rows; r += 8 * INNER) {
        if (r + 8 > rows || columns < COLUMNS) {
            for (uint column = 0; column < columns; column++) {
                for (uint row = r; row < min(r + 8, rows); row++) {
                    REAL sum = 0;
                    for (uint p = 0; p < width; p++) {
                        sum += v[row + p * v_ld] * w[p * COLUMNS + column];
                    }
                    c[row + column * c_ld] -= sum;
                }
            }
        } else {
            __global REAL *x = c + r;
            REAL8 u0 = vload8(0, x), u1 = vload8(0, x + c_ld), u2 = vload8(0, x + 2 * c_ld);
            REAL8 u3 = vload8(0, x + 3 * c_ld), u4 = vload8(0, x + 4 * c_ld), u5 = vload8(0, x + 5 * c_ld);
            REAL8 u6 = vload8(0, x + 6 * c_ld), u7 = vload8(0, x + 7 * c_ld);
            for (uint p = 0; p < width; p++) {
                REAL8 y = vload8(0, v + r + p * v_ld);
                LOCAL const REAL *z = w + p * COLUMNS;
                u0 -= y * z[0];
                u1 -= y * z[1];
                u2 -= y * z[2];
                u3 -= y * z[3];
                u4 -= y * z[4];
                u5 -= y * z[5];
                u6 -= y * z[6];
                u7 -= y * z[7];
            }
            vstore8(u0, 0, x);
            vstore8(u1, 0, x + c_ld);
            vstore8(u2, 0, x + 2 * c_ld);
            vstore8(u3, 0, x + 3 * c_ld);
            vstore8(u4, 0, x + 4 * c_ld);
            vstore8(u5, 0, x + 5 * c_ld);
            vstore8(u6, 0, x + 6 * c_ld);
            vstore8(u7, 0, x + 7 * c_ld);
        }
    }
}

/* C := transpose(Q) * C with the reflectors of geqrt: V is n x n with ones on its diagonal, of which the part below is read; C
 * is n x count. */
__kernel void unmqr(__global const REAL *v, uint v_at, uint v_ld, __global const REAL *t, uint t_at, uint t_ld,
                    __global REAL *c, uint c_at, uint c_ld, uint n, uint count) {
    __local REAL w[INNER * COLUMNS];
    __local REAL d[INNER];
    uint p = get_local_id(0), j = get_global_id(1) * COLUMNS;
    uint columns = min(count - j, (uint)COLUMNS);
    v += v_at;
    t += t_at;
    c += c_at + j * c_ld;
    for (uint first = 0; first < n; first += INNER) {
        uint width = min(n - first, (uint)INNER), at = first + p;
        __global const REAL *panel = v + first * v_ld;
        if (p < width) {
            for (uint column = 0; column < COLUMNS; column++) {
                w[p * COLUMNS + column] = column < columns ? c[at + column * c_ld] : 0;
            }
            add_products(panel + at + 1 + p * v_ld, c + at + 1, c_ld, n - at - 1, columns, w + p * COLUMNS);
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        solve(t + first * t_ld, t_ld, width, w, d);
        if (p < width) {
            for (uint column = 0; column < columns; column++) {
                REAL sum = w[p * COLUMNS + column];
                for (uint q = 0; q < p; q++) {
                    sum += panel[at + q * v_ld] * w[q * COLUMNS + column];
                }
                c[at + column * c_ld] -= sum;
            }
        }
        uint below = first + width;
        subtract_products(panel + below, v_ld, c + below, c_ld, n - below, columns, width, w);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

/* (C1; C2) := transpose(Q) * (C1; C2) with the reflectors of tsqrt: V is m x n, C1 n x count, C2 m x count. */
__kernel void tsmqr(__global const REAL *v, uint v_at, uint v_ld, __global const REAL *t, uint t_at, uint t_ld,
                    __global REAL *c1, uint c1_at, uint c1_ld, __global REAL *c2, uint c2_at, uint c2_ld, uint m,
                    uint n, uint count) {
    __local REAL w[INNER * COLUMNS];
    __local REAL d[INNER];
    uint p = get_local_id(0), j = get_global_id(1) * COLUMNS;
    uint columns = min(count - j, (uint)COLUMNS);
    v += v_at;
    t += t_at;
    c1 += c1_at + j * c1_ld;
    c2 += c2_at + j * c2_ld;
    for (uint first = 0; first < n; first += INNER) {
        uint width = min(n - first, (uint)INNER), at = first + p;
        __global const REAL *panel = v + first * v_ld;
        if (p < width) {
            for (uint column = 0; column < COLUMNS; column++) {
                w[p * COLUMNS + column] = column < columns ? c1[at + column * c1_ld] : 0;
            }
            add_products(panel + p * v_ld, c2, c2_ld, m, columns, w + p * COLUMNS);
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        solve(t + first * t_ld, t_ld, width, w, d);
        if (p < width) {
            for (uint column = 0; column < columns; column++) {
                c1[at + column * c1_ld] -= w[p * COLUMNS + column];
            }
        }
        subtract_products(panel, v_ld, c2, c2_ld, m, columns, width, w);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}
