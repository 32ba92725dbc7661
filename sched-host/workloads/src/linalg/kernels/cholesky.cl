/* The kernels of the tiled Cholesky factorisation on a device. Matrices are column-major: element (r, c) of x is at
 * x[x_at + r + c * x_ld]. REAL is the type of the elements, REAL4 and REAL8 its vectors.
 *
 * A work item computes 8 rows and 4 columns in registers, with vectors along the rows: elements of a column follow one
 * another in memory. Blocks at the edges are computed element by element. */
#define ROWS 8
#define COLUMNS 4
#define DEPTH 128

/* C := C - A * transpose(B), in the block of C from (i, j) on; with `lower`, in the lower triangle only. */
void subtract_edge(__global const REAL *a, uint a_ld, __global const REAL *b, uint b_ld, __global REAL *c, uint c_ld,
                   uint i, uint j, uint m, uint n, uint k, bool lower) {
    for (uint column = j; column < min(j + COLUMNS, n); column++) {
        for (uint row = lower ? max(i, column) : i; row < min(i + ROWS, m); row++) {
            REAL sum = 0;
            for (uint p = 0; p < k; p++) {
                sum += a[row + p * a_ld] * b[column + p * b_ld];
            }
            c[row + column * c_ld] -= sum;
        }
    }
}

/* Stores what is left of a column of a block on the diagonal: the rows from `first` on. */
void store_lower(REAL8 value, __global REAL *c, int first) {
    if (first <= 0) c[0] = value.s0;
    if (first <= 1) c[1] = value.s1;
    if (first <= 2) c[2] = value.s2;
    if (first <= 3) c[3] = value.s3;
    if (first <= 4) c[4] = value.s4;
    if (first <= 5) c[5] = value.s5;
    if (first <= 6) c[6] = value.s6;
    if (first <= 7) c[7] = value.s7;
}

/* C := C - A * transpose(B) in the blocks of a group: the same 4 columns, and 8 rows for each of its work items, from row i
 * of this one on. Elements of B that follow one another in the sums are a column apart, which is a poor use of caches: the
 * group copies them, DEPTH at a time, into memory of its own. */
void subtract(__global const REAL *a, uint a_ld, __global const REAL *b, uint b_ld, __global REAL *c, uint c_ld, uint i,
              uint j, uint m, uint n, uint k, bool lower, LOCAL REAL *z) {
    bool is_whole = i + ROWS <= m && j + COLUMNS <= n && (!lower || i + ROWS > j);
    REAL8 u0 = 0, u1 = 0, u2 = 0, u3 = 0;
    for (uint first = 0; first < k; first += DEPTH) {
        uint depth = min(k - first, (uint)DEPTH);
        for (uint p = get_local_id(0); p < depth; p += get_local_size(0)) {
            for (uint column = 0; column < COLUMNS; column++) {
                z[p * COLUMNS + column] = j + column < n ? b[j + column + (first + p) * b_ld] : 0;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        if (is_whole) {
            __global const REAL *x = a + i + first * a_ld;
            for (uint p = 0; p < depth; p++) {
                REAL8 y = vload8(0, x + p * a_ld);
                u0 += y * z[p * COLUMNS];
                u1 += y * z[p * COLUMNS + 1];
                u2 += y * z[p * COLUMNS + 2];
                u3 += y * z[p * COLUMNS + 3];
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (!is_whole) {
        if (!lower || i + ROWS > j) subtract_edge(a, a_ld, b, b_ld, c, c_ld, i, j, m, n, k, lower);
        return;
    }
    c += i + j * c_ld;
    u0 = vload8(0, c) - u0;
    u1 = vload8(0, c + c_ld) - u1;
    u2 = vload8(0, c + 2 * c_ld) - u2;
    u3 = vload8(0, c + 3 * c_ld) - u3;
    if (lower && i < j + COLUMNS - 1) {
        int first = (int)j - (int)i;
        store_lower(u0, c, first);
        store_lower(u1, c + c_ld, first + 1);
        store_lower(u2, c + 2 * c_ld, first + 2);
        store_lower(u3, c + 3 * c_ld, first + 3);
    } else {
        vstore8(u0, 0, c);
        vstore8(u1, 0, c + c_ld);
        vstore8(u2, 0, c + 2 * c_ld);
        vstore8(u3, 0, c + 3 * c_ld);
    }
}

/* C := C - A * transpose(B): A is m x k, B n x k, C m x n. */
__kernel void gemm(__global const REAL *a, uint a_at, uint a_ld, __global const REAL *b, uint b_at, uint b_ld,
                   __global REAL *c, uint c_at, uint c_ld, uint m, uint n, uint k) {
    __local REAL z[DEPTH * COLUMNS];
    uint i = get_global_id(0) * ROWS, j = get_global_id(1) * COLUMNS;
    subtract(a + a_at, a_ld, b + b_at, b_ld, c + c_at, c_ld, i, j, m, n, k, false, z);
}

/* The lower triangle of C := C - A * transpose(A): A is n x k. */
__kernel void syrk(__global const REAL *a, uint a_at, uint a_ld, __global REAL *c, uint c_at, uint c_ld, uint n,
                   uint k) {
    __local REAL z[DEPTH * COLUMNS];
    uint i = get_global_id(0) * ROWS, j = get_global_id(1) * COLUMNS;
    subtract(a + a_at, a_ld, a + a_at, a_ld, c + c_at, c_ld, i, j, n, n, k, true, z);
}

/* B := B * inverse(transpose(L)): L is n x n, of which the lower triangle is read, B is m x n. A work item has 8 rows. */
__kernel void trsm(__global const REAL *l, uint l_at, uint l_ld, __global REAL *b, uint b_at, uint b_ld, uint m,
                   uint n) {
    uint i = get_global_id(0) * 8;
    l += l_at;
    b += b_at;
    if (i + 8 > m) {
        for (uint row = i; row < m; row++) {
            for (uint j = 0; j < n; j++) {
                REAL sum = b[row + j * b_ld];
                for (uint p = 0; p < j; p++) {
                    sum -= b[row + p * b_ld] * l[j + p * l_ld];
                }
                b[row + j * b_ld] = sum / l[j + j * l_ld];
            }
        }
        return;
    }
    b += i;
    uint j = 0;
    for (; j + 4 <= n; j += 4) {
        __global REAL *x = b + j * b_ld;
        REAL8 x0 = vload8(0, x), x1 = vload8(0, x + b_ld), x2 = vload8(0, x + 2 * b_ld), x3 = vload8(0, x + 3 * b_ld);
        for (uint p = 0; p < j; p++) {
            REAL8 y = vload8(0, b + p * b_ld);
            REAL4 z = vload4(0, l + j + p * l_ld);
            x0 -= y * z.s0;
            x1 -= y * z.s1;
            x2 -= y * z.s2;
            x3 -= y * z.s3;
        }
        __global const REAL *d = l + j + j * l_ld;
        x0 /= d[0];
        x1 = (x1 - x0 * d[1]) / d[1 + l_ld];
        x2 = (x2 - x0 * d[2] - x1 * d[2 + l_ld]) / d[2 + 2 * l_ld];
        x3 = (x3 - x0 * d[3] - x1 * d[3 + l_ld] - x2 * d[3 + 2 * l_ld]) / d[3 + 3 * l_ld];
        vstore8(x0, 0, x);
        vstore8(x1, 0, x + b_ld);
        vstore8(x2, 0, x + 2 * b_ld);
        vstore8(x3, 0, x + 3 * b_ld);
    }
    for (; j < n; j++) {
        REAL8 x = vload8(0, b + j * b_ld);
        for (uint p = 0; p < j; p++) {
            x -= vload8(0, b + p * b_ld) * l[j + p * l_ld];
        }
        vstore8(x / l[j + j * l_ld], 0, b + j * b_ld);
    }
}
